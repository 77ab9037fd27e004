"""Tests of lack of fit: is something left beside the best formula?"""

import numpy as np
import pytest
from scipy.special import expit

import dbrm
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.posterior.lack_of_fit import log_bayes_factor

N, REPEATS = 40, 200
SOME = {"n_populations": 2, "n_chains": 2, "random_state": 1}


def probability(y, columns, x, slopes=None):
    none = np.empty((y.size, 0))
    return expit(log_bayes_factor(y, columns, none if slopes is None else slopes, x))


def simulated(rng, n=N):
    """Covariates, of which the last has no effect, and the terms of a law."""
    x = rng.uniform(0.5, 2.5, (n, 3))
    return x, np.column_stack([x[:, 0] * x[:, 1], np.exp(-x[:, 1])])


def test_nothing_is_left_beside_the_truth(rng):
    """P > 0.8 in at most 5 % of 200 truths.

    A Bayes factor above 4 has probability of about 0.01 under the null: more than ten of 200 come
    up once in 100,000 runs.
    """
    found = []
    for _ in range(REPEATS):
        x, columns = simulated(rng)
        y = columns @ rng.normal(size=2) + rng.uniform(0.01, 1.0) * rng.normal(size=N)
        found.append(probability(y, columns, x))
    assert np.sum(np.array(found) > 0.8) <= 0.05 * REPEATS
    assert np.median(found) < 0.1


@pytest.mark.parametrize(
    "left_out",
    [
        lambda x: np.sin(2.0 * x[:, 2]),
        lambda x: 1.0 / (x[:, 0] + x[:, 2]),
        lambda x: x[:, 0] * np.exp(x[:, 1]) / x[:, 2],
    ],
)
def test_a_smooth_term_that_is_left_out_is_noticed(rng, left_out):
    """Negative control: the check above has the power to fail."""
    for _ in range(5):
        x, columns = simulated(rng, 150)
        term = left_out(x)
        y = columns.sum(axis=1) + 1.5 * term / term.std() + 0.5 * rng.normal(size=150)
        assert probability(y, columns, x) > 0.8


def test_rounding_is_no_remainder(rng):
    x, columns = simulated(rng)
    y = columns @ [2.0, -0.3]
    assert probability(y, columns, x) < 0.05
    assert probability(np.round(y, 4), columns, x) < 0.2
    assert probability(y + 1e-10 * np.sin(x[:, 2]), columns, x) < 0.05
    # Without noise even a small remainder is one.
    assert probability(y + 1e-6 * np.sin(x[:, 2]), columns, x) > 0.99


def test_errors_of_numbers_inside_functions_are_no_remainder(rng):
    """With six digits of the number the residuals are smooth, and tangent to the law."""
    x, _ = simulated(rng)
    y, number = np.exp(-0.547237485 * x[:, 0]), -0.547237
    column = np.exp(number * x[:, 0])[:, None]
    slopes = x[:, :1] * column
    assert probability(y, column, x, slopes) < 0.05
    assert probability(y, column, x) > 0.99


def test_units_and_origins_do_not_matter(rng):
    x, columns = simulated(rng)
    y = columns.sum(axis=1) + 0.1 * x[:, 2] ** 2 + 0.1 * rng.normal(size=N)
    none = np.empty((N, 0))
    before = log_bayes_factor(y, columns, none, x)
    after = log_bayes_factor(
        1e-7 * y + 3.0, columns * [1e9, 1e-4], none, x * [1e3, 1.0, 1e-8] + [0.0, 273.15, 0.0]
    )
    assert after == pytest.approx(before, rel=1e-4)


def test_degenerate_data_say_nothing():
    x = np.arange(3.0)[:, None]
    none = np.empty((3, 0))
    assert log_bayes_factor(np.ones(3), none, none, x) == 0.0
    assert log_bayes_factor(np.array([1.0, 2.0, 4.0]), np.column_stack([x, x**2]), none, x) == 0.0
    assert log_bayes_factor(np.array([1.0, 2.0, 4.0]), none, none, 0.0 * x) == 0.0


def test_rows_of_weight_two_are_no_structure(rng):
    """Repeated, a row would have the same error twice, and no formula could explain it."""
    x = rng.normal(size=(60, 3))
    y, shift = 2.0 * x[:, 1] + rng.normal(size=60), 100.0 * np.sin(x[:, 0])
    counts = np.tile([1.0, 2.0], 30)
    found = dbrm.enumerate_models(x, y + shift, offset=shift, sample_weight=counts)
    assert found.lack_of_fit < 0.5


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    x = rng.uniform(0.5, 2.5, (150, 2))
    return x, x[:, 0] * x[:, 1] + 0.05 * rng.normal(size=150)


@pytest.fixture(scope="module")
def posterior(data):
    return dbrm.fit(*data, transforms=["sin"], **SOME)


def test_a_right_formula_is_claimed(posterior):
    assert posterior.models["features"][0] == ("x1*x2",)
    assert posterior.lack_of_fit < 0.1
    share = posterior.best_model.probability
    assert posterior.claim == pytest.approx(share * (1.0 - posterior.lack_of_fit))


def test_a_formula_that_is_not_complete_is_not_claimed(data):
    x, y = data
    posterior = dbrm.enumerate_models(x, y + np.sin(4.0 * x[:, 0]))
    assert posterior.best_model.probability > 0.5
    assert posterior.lack_of_fit > 0.99
    assert posterior.claim < 0.01


@pytest.fixture
def found_by_one(posterior):
    """As if the second chain had not found the best model."""
    visited = posterior._merged.visited
    second = visited[1]
    visited[1] = second[second != 0]
    yield posterior
    visited[1] = second


def test_what_one_chain_alone_found_is_hardly_claimed(found_by_one):
    assert found_by_one.unconfirmed
    full = found_by_one.best_model.probability * (1.0 - found_by_one.lack_of_fit)
    assert found_by_one.claim == pytest.approx(0.2 * full)


def test_what_other_forms_contest_is_hardly_claimed():
    """Beside noise x is not told from sin(x) near zero."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-0.8, 0.8, (80, 2))
    posterior = dbrm.fit(x, x[:, 0] + 0.2 * rng.normal(size=80), transforms=["sin"], **SOME)
    assert len(posterior.best_model.features) == 1
    models, best = posterior.models, set(posterior.best_model.features)
    lacks = [not best <= set(features) for features in models["features"]]
    rivals = models["probability"][lacks].sum()
    assert rivals > 0.15
    assert posterior.contested
    own = posterior.best_model.probability * (1.0 - posterior.lack_of_fit)
    factor = 0.2 * (0.2 if posterior.unconfirmed else 1.0)
    factor *= 0.2 if posterior.may_approximate else 1.0
    assert posterior.claim == pytest.approx(factor * own)


def test_the_summary_says_what_is_contested(posterior, monkeypatch):
    monkeypatch.setitem(posterior.record.settings, "transforms", repr("laws"))
    words = "The data do not tell the best formula from others"
    assert words not in posterior.summary()
    monkeypatch.setattr(type(posterior), "contested", True)
    assert words in posterior.summary()


def test_extensions_and_perfect_fits_are_not_contested(posterior, data):
    assert posterior.best_model.probability < 1.0
    assert not posterior.contested
    x, _ = data
    exact = dbrm.fit(x, x[:, 0] * x[:, 1], transforms=["sin"], **SOME)
    exact._merged.probability[:] = 1.0 / len(exact._merged.probability)
    assert not exact.contested


def test_a_perfect_fit_needs_no_second_chain(data):
    x, _ = data
    posterior = dbrm.fit(x, x[:, 0] * x[:, 1], transforms=["sin"], **SOME)
    posterior._merged.visited[1] = np.arange(1, 2)
    assert not posterior.unconfirmed
    assert posterior.claim > 0.9


def test_the_summary_says_it_where_laws_are_looked_for(posterior, found_by_one, data):
    words = "is left beside the best formula"
    assert words not in posterior.summary()
    settings = posterior.record.settings
    before = settings["transforms"]
    settings["transforms"] = repr("laws")
    try:
        assert "The best formula is not confirmed" in found_by_one.summary()
    finally:
        settings["transforms"] = before
    x, y = data
    right = dbrm.fit(x, y, transforms="laws", **SOME)
    assert f"Nothing {words}" in right.summary()
    options = SOME | {"max_complexity": 1, "n_populations": 1}
    wrong = dbrm.fit(x, y, transforms="laws", **options)
    assert "Warning: The best formula is not complete" in wrong.summary()


def test_a_file_keeps_lack_of_fit_and_claim(posterior, tmp_path):
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    assert loaded.lack_of_fit == posterior.lack_of_fit
    assert loaded.claim == posterior.claim
    loaded.save(tmp_path / "again.dbrm")
    assert dbrm.load(tmp_path / "again.dbrm").lack_of_fit == posterior.lack_of_fit


def test_an_older_file_says_why_it_has_none(posterior, tmp_path):
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    object.__setattr__(loaded._source, "lack_of_fit", None)
    with pytest.raises(InvalidDataError, match="fit again"):
        _ = loaded.lack_of_fit


def test_other_families_are_refused(data, tmp_path):
    x, y = data
    posterior = dbrm.enumerate_models(x, (y > 2.0).astype(float), family="binomial")
    with pytest.raises(InvalidSettingError, match="needs a Gaussian response"):
        _ = posterior.lack_of_fit
    posterior.save(tmp_path / "run.dbrm")
    with pytest.raises(InvalidSettingError, match="needs a Gaussian response"):
        _ = dbrm.load(tmp_path / "run.dbrm").lack_of_fit
