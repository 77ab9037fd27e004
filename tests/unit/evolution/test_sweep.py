"""Tests of `dbrm.evolution.sweep.simple`: every simple feature, once."""

import numpy as np
import pytest
from tests.unit.evolution.simple import simple_features

import dbrm
from dbrm.evolution import sweep_features
from dbrm.evolution.registry import same_up_to_affine
from dbrm.evolution.sweep import candidates
from dbrm.evolution.sweep import simple as sweep
from dbrm.evolution.sweep.levels import level_sizes
from dbrm.features import covariate, modify, multiply, resolve_transforms


def brute_force(names, transforms, most):
    """All canonical features by closing the operators, complexity by complexity."""
    levels = [[], [covariate(name) for name in names]]
    for complexity in range(2, most + 1):
        made = [modify(g, f) for g in transforms for f in levels[complexity - 1]]
        for left in range(1, complexity):
            made += [multiply(f, h) for f in levels[left] for h in levels[complexity - left]]
        levels.append(list({f.key: f for f in made if f.complexity == complexity}.values()))
    return levels[1:]


@pytest.mark.parametrize(
    ("n_covariates", "transforms"), [(1, ["tanh"]), (2, []), (3, ["sin", "tanh"])]
)
def test_the_sweep_lists_every_canonical_feature_once(rng, pose, n_covariates, transforms):
    problem = pose(rng.normal(size=(20, n_covariates)), rng.normal(size=20), transforms=transforms)
    features, columns = simple_features(problem, 4)
    expected = brute_force(problem.table.names, resolve_transforms(transforms), 4)
    sizes = [len(level) for level in expected]
    assert level_sizes(n_covariates, len(transforms), 4) == sizes
    assert len(features) == sum(sizes)
    assert {f.key for f in features} == {f.key for level in expected for f in level}
    for feature, column in zip(features, columns.T, strict=True):
        np.testing.assert_allclose(column, feature.evaluate(problem.table), rtol=1e-12, atol=1e-300)


def test_the_count_of_the_paper_s_planets():
    """Ten covariates, five functions, no projections: 17,575 features up to complexity four."""
    sizes = level_sizes(10, 5, 4)
    assert sizes == [10, 105, 1245, 16215]
    assert sum(sizes) == 17_575


@pytest.mark.parametrize("n_covariates", [0, 1, 4])
def test_counting_needs_no_functions(n_covariates):
    """Without functions only monomials are left."""
    from math import comb

    sizes = level_sizes(n_covariates, 0, 4)
    assert sizes == [comb(n_covariates + c - 1, c) if n_covariates else 0 for c in (1, 2, 3, 4)]


def planted(rng, n=150):
    values = rng.lognormal(sigma=0.5, size=(n, 5))
    return values, 1.0 + values[:, 0] ** 2 * values[:, 3] + 0.1 * rng.normal(size=n)


def test_a_planted_law_comes_first(rng, pose):
    values, response = planted(rng)
    pool = sweep_features(pose(values, response, transforms=("tanh", "sin"), penalty=10.0), 4)
    assert str(pool[0]) == "x1*x1*x4"


def test_a_second_law_is_found_beside_the_first(rng, pose):
    """It correlates little with the response itself, but much with what the first leaves."""
    values, response = planted(rng)
    response = response + 0.3 * np.sin(values[:, 1] * values[:, 2])
    pool = sweep_features(pose(values, response, transforms=("tanh", "sin"), penalty=10.0), 4)
    assert "sin(x2*x3)" in {str(feature) for feature in pool}


@pytest.mark.parametrize("seed", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_a_strong_candidate_of_the_first_round_can_lead_later(pose, seed):
    """Where the next best feature had been promising before, the search for leaders goes on."""
    table = dbrm.datasets.simulate_logic(seed)
    law = {"*".join(sorted(f"X{j}" for j in numbers)) for numbers in dbrm.datasets.LOGIC_LAW}
    y = table.pop("Y").to_numpy()
    names, values = tuple(table.columns), table.to_numpy(dtype=float)
    options = {"penalty": 2 * np.log(1000), "max_complexity": 4, "max_model_size": 15}
    problem = pose(values, y, names=names, transforms=[], **options)
    assert {str(feature) for feature in sweep_features(problem, 4)[:8]} == law


def test_among_functions_of_it_the_law_of_classes_itself_leads():
    """Dozens of functions that level off rank higher beside the null model than the law does."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(500, 2))
    chance = 1 / (1 + np.exp(-4 * np.sin(x[:, 0]) * x[:, 1]))
    y = (draw.random(500) < chance).astype(float)
    plain = ["sigmoid", "tanh", "atan", "gauss", "sin", "cos", "erf", "arcsinh"]
    options = {"n_chains": 1, "n_populations": 2, "random_state": 1}
    posterior = dbrm.fit(x, y, family="binomial", transforms=plain, **options)
    assert str(posterior.features["feature"].iloc[0]) == "x2*sin(x1)"


def test_leaders_are_shortened_where_the_rest_is_noise(rng, pose, monkeypatch):
    values, y = planted(rng)
    problem = pose(values, y)
    (law,) = (f for f in sweep_features(problem, 4)[:1])
    assert law.canonical == "x1*x1*x4"
    longer = multiply(law, covariate("x2"))

    def with_longer(self):
        return self._pool.add([longer], 1)

    monkeypatch.setattr(sweep._Sweep, "_find_leaders", with_longer)
    monkeypatch.setattr(sweep._Sweep, "_exchange", lambda self, leaders: leaders)
    assert sweep_features(problem, 4)[0] is law
    monkeypatch.setattr(sweep._Sweep, "_shorten", lambda self, leaders: leaders)
    assert sweep_features(problem, 4)[0] is longer


def test_the_pool_is_without_copies_and_within_limits(rng, pose):
    values, response = planted(rng)
    problem = pose(values, response, transforms=("troot", "tanh"), max_depth=2, max_complexity=3)
    pool = sweep_features(problem, 4)
    assert all(feature.depth <= 2 and feature.complexity <= 3 for feature in pool)
    columns = [feature.evaluate(problem.table) for feature in pool]
    for j, column in enumerate(columns):
        assert not any(same_up_to_affine(column, other) for other in columns[:j])


def test_the_sweep_is_not_random(rng, pose):
    values, response = planted(rng)
    pools = [sweep_features(pose(values, response), 3) for _ in range(2)]
    assert pools[0] == pools[1]


@pytest.mark.parametrize("most", [0, 1])
def test_nothing_is_swept_when_not_asked(rng, pose, most):
    values, response = planted(rng)
    assert sweep_features(pose(values, response), most) == []


def test_the_work_is_bounded(rng, pose, monkeypatch):
    """With less room the complexity is lowered, then rows are thinned out."""
    values, response = planted(rng, n=2000)
    monkeypatch.setattr(candidates, "_MOST_CELLS", 100_000)
    monkeypatch.setattr(candidates, "_FEWEST_ROWS", 250)
    seen = []
    build = candidates.build_levels

    def spy(table, names, rows, transforms, most, pause):
        seen.append((rows.size, most))
        return build(table, names, rows, transforms, most, pause)

    monkeypatch.setattr(candidates, "build_levels", spy)
    pool = sweep_features(pose(values, response, transforms=("tanh", "sin")), 4)
    ((n_rows, most),) = seen
    assert n_rows * sum(level_sizes(5, 2, most)) <= 100_000
    assert n_rows >= 250
    assert most == 3
    assert str(pool[0]) == "x1*x1*x4"


def test_of_many_rows_some_are_compared_and_all_give_the_constants(rng, pose, monkeypatch):
    """Centre and scale in a feature are those of all rows, whatever rows it was found on."""
    values = np.exp(rng.normal(size=(3000, 3)))
    y = 3 * np.sin((values[:, 1] - values[:, 1].mean()) / values[:, 1].std())
    problem = pose(values, y + rng.normal(size=3000), transforms=["sin[z]", "tanh[z]"])
    everywhere = sweep_features(problem, 3)[0]
    monkeypatch.setattr(sweep, "_MOST_ROWS", 500)
    monkeypatch.setattr(candidates, "_MOST_ROWS", 200)
    assert sweep_features(problem, 3)[0].text == everywhere.text
    assert everywhere.text.startswith("sin((x2 - ")


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        (0, "features of complexity 2, 3 and 4"),
        (10, "features of complexity 4; products of more than 3 covariates"),
        (14, "what fits beside the best feature"),
        (40, ""),
    ],
)
def test_a_sweep_can_be_interrupted_anywhere(rng, pose, calls, said):
    """What was found is returned; what was not looked at is said."""
    values, response = planted(rng)
    problem = pose(values, response, transforms=("tanh", "sin"))
    asked, notes = [], []

    def pause():
        asked.append(None)
        return len(asked) > calls

    pool = sweep_features(problem, 4, pause, notes.append)
    assert pool
    assert "".join(notes).startswith(said)
    assert bool(notes) == bool(said)


def test_too_many_features_are_said(rng, pose, monkeypatch):
    monkeypatch.setattr(candidates, "_MOST_PAIRS", 100)
    monkeypatch.setattr(candidates, "_MOST_CELLS", 20_000)
    notes = []
    values, response = planted(rng)
    sweep_features(pose(values, response, transforms=("tanh", "sin")), 4, note=notes.append)
    assert notes == ["features of complexity 3 and 4"]


def test_products_of_many_covariates_are_looked_at(rng, pose):
    """No part of the parity of six signs shows anything."""
    signs = rng.choice([-1.0, 1.0], size=(200, 9))
    y = signs[:, :6].prod(axis=1) + rng.normal(size=200)
    problem = pose(signs, y, transforms=["sin"])
    assert str(sweep_features(problem, 4)[0]) == "x1*x2*x3*x4*x5*x6"


def test_of_many_covariates_the_strongest_are_swept_and_none_is_overlooked(rng, pose, monkeypatch):
    """Functions of the five strongest only; every covariate and its products with those."""
    monkeypatch.setattr(sweep, "_MOST_COVARIATES", 5)
    values = rng.normal(size=(100, 12))
    weak = int(np.argmin(np.abs(np.corrcoef(values.T, values[:, 9])[9])))
    response = values[:, 9] * 3 + values[:, 4] + values[:, 9] * values[:, weak]
    problem = pose(values, response + 0.1 * rng.normal(size=100))
    pool = {str(feature) for feature in sweep_features(problem, 2)}
    assert {"x10", "x5"} <= pool
    assert pool & {f"x10*x{weak + 1}", f"x{weak + 1}*x10"}
    assert len({text for text in pool if text.startswith("tanh")}) <= 5


@pytest.mark.parametrize(
    "transforms", [["step[q0.5]", "tanh"], ["power[-0.5]", "log_abs"], ["exp", "cube"], ["not"]]
)
def test_awkward_functions_make_no_noise(rng, pose, transforms):
    """Undefined, overflowing and constant columns are passed over in silence."""
    values = -np.abs(rng.normal(size=(60, 3))) * 300.0
    values[0, 0] = 0.0
    pool = sweep_features(pose(values, rng.normal(size=60), transforms=transforms), 4)
    for feature in pool:
        assert np.all(np.isfinite(feature.evaluate({f"x{j + 1}": values[:, j] for j in range(3)})))


def test_no_transforms_no_rows_to_spare(rng, pose):
    values = rng.normal(size=(4, 3))
    pool = sweep_features(pose(values, rng.normal(size=4), transforms=()), 3)
    assert all(isinstance(feature, dbrm.Feature) for feature in pool)
