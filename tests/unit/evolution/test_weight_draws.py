"""Strategy 4: the draws of a topology's weights together estimate its integral."""

from dataclasses import replace
from math import lgamma, log, pi

import numpy as np
import pytest

import dbrm
from dbrm.evolution import SearchBudget, proceed
from dbrm.evolution.algorithms.rgmjmcmc import Rgmjmcmc
from dbrm.evolution.projection import Bayes
from dbrm.evolution.weight_draws import WeightDraws
from dbrm.features import multiply, parse_feature

# Two-sided normal quantile: one false alarm in a million.
SURELY = 4.9
PENALTY = 1.5


def drawn(text):
    return parse_feature(text, transforms=("tanh", "sin", "step[0]"))


FIRST, SECOND = drawn("tanh{0.5 + 1.0*a - 2.0*b}"), drawn("tanh{0.1 - 1.0*a + 0.3*b}")


def noted(*projections):
    draws = WeightDraws()
    for projection in projections:
        draws.note(projection)
    return draws


def share(draws, name, *aliases):
    return np.exp(draws.log_share(name, [name, *aliases]))


def test_draws_of_a_projection_share_its_prior():
    draws = noted(FIRST, SECOND, FIRST, drawn("tanh{1.0 + 1.0*a + 1.0*c}"))
    assert share(draws, FIRST) == pytest.approx(1 / 3)
    assert share(draws, drawn("tanh{1.0 + 1.0*a + 1.0*c}")) == pytest.approx(1.0)
    draws.add(noted(SECOND).counts)
    assert share(draws, FIRST) == pytest.approx(1 / 4)


def test_other_features_are_not_draws():
    draws = noted(FIRST, SECOND)
    for text in ("a", "a*b", "sin(a)", "tanh(0.5 + 1.0*a - 2.0*b)", "sin{0.5 + 1.0*a - 2.0*b}"):
        assert draws.log_share(drawn(text), [drawn(text)]) == 0.0, text


def test_inside_other_features_every_draw_counts():
    """Of the children that were drawn, too: good ones are chosen more often, not at random."""
    outer = [drawn(f"sin{{{w} + 1.0*c + 1.0*{FIRST.text}}}") for w in (0.1, 0.2, 0.3)]
    draws = noted(FIRST, SECOND, *outer)
    assert share(draws, outer[0]) == pytest.approx(1 / 2 * 1 / 3)
    assert share(draws, multiply(FIRST, drawn("c"))) == pytest.approx(1 / 2)
    assert share(draws, multiply(FIRST, SECOND)) == pytest.approx(1 / 4)
    assert share(draws, multiply(FIRST, FIRST)) == pytest.approx(1 / 2)


def test_draws_of_one_column_add_up():
    """Steps of 0/1 columns have few different columns; simpler spellings have their own prior."""
    steps = [drawn(f"step[0]{{{w} + 1.0*a + 1.0*b}}") for w in (0.1, 0.2, 0.3, -1.5)]
    draws = noted(*steps)
    assert share(draws, steps[0], *steps[1:3]) == pytest.approx(3 / 4)
    assert share(draws, drawn("a"), *steps[:3]) == pytest.approx(1.0)
    assert share(draws, steps[0], drawn("sin(a*b)")) == pytest.approx(1 / 4)


def test_counts_are_kept_in_snapshots():
    draws, again = noted(FIRST, SECOND), WeightDraws()
    again.set_state(draws.get_state())
    assert again.counts == draws.counts
    assert len(draws.counts) == 1


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(3)
    values = draw.normal(size=(60, 2))
    return values, 0.55 * np.tanh(values.sum(axis=1)) + 0.9 * draw.normal(size=60)


def log_evidence(columns, y):
    """Jeffreys' prior, written down again."""
    n = y.size
    design = np.column_stack([np.ones(n), *columns])
    base, _ = np.linalg.qr(design)
    rest = y - base @ (base.T @ y)
    size = design.shape[1]
    return -(n - size) / 2 * log(2 * pi) + lgamma(n / 2) - n / 2 * log(rest @ rest / 2)


def odds_by_integration(data, n_draws=1000):
    """Odds of one projection in the model, for each of many weights drawn from the prior."""
    values, y = data
    weights = np.random.default_rng(4).normal(size=(n_draws, 3))
    columns = np.tanh(weights[:, :1] + weights[:, 1:] @ values.T)
    subsets = [[], [values[:, 0]], [values[:, 1]], [*values.T]]
    without = [log_evidence(s, y) - PENALTY * len(s) for s in subsets]
    level = np.logaddexp.reduce(without)
    terms = [
        [log_evidence([*s, column], y) - PENALTY * (4 + len(s)) - level for s in subsets]
        for column in columns
    ]
    return np.exp(terms).sum(axis=1)


def fit(data, strategy, n_populations, **options):
    values, y = data
    chosen = {
        "transforms": ["tanh"],
        "max_projection": 2,
        "operators": {
            "mutation": 1,
            "crossover": 0,
            "modification": 0,
            "projection": 3,
            "informed": 0,
        },
        "keep": ["a", "b"],
        "max_depth": 1,
        "max_model_size": 3,
        "penalty": PENALTY,
        "prior": "jeffreys",
        "sweep": 0,
        "population_size": 8,
        "n_chains": 2,
        "n_jobs": 1,
        "random_state": 1,
    }
    chosen |= {"projection": strategy, "n_populations": n_populations, **options}
    return dbrm.fit(dict(zip("ab", values.T, strict=True)), y, **chosen)


def odds_by_search(data, strategy, n_populations):
    """The same from a run, and the number of draws it made."""
    posterior = fit(data, strategy, n_populations)
    models = posterior.models
    projections = np.array([sum("{" in name for name in names) for names in models["features"]])
    probability = models["probability"].to_numpy()
    odds = probability[projections == 1].sum() / probability[projections == 0].sum()
    return odds, sum("{" in name for name in posterior.features["feature"])


@pytest.mark.parametrize("n_populations", [4, 30])
def test_a_projection_is_as_probable_as_its_integral_says_at_any_effort(data, n_populations):
    """Within Monte Carlo error; with the full prior for each draw it grows with their number."""
    exact = odds_by_integration(data)
    odds, n_draws = odds_by_search(data, Bayes(), n_populations)
    error = exact.std() * np.sqrt(1 / n_draws + 1 / exact.size)
    assert abs(odds - exact.mean()) < SURELY * error
    paper, n_draws = odds_by_search(data, Bayes(integrated=False), n_populations)
    assert paper > exact.mean() + SURELY * error
    assert paper == pytest.approx(n_draws * exact.mean(), rel=0.5)


def test_pool_gibbs_has_the_same_target(data):
    """Visits follow the masses of the models: draws share the prior there, too."""
    options = {"max_model_size": 1, "penalty": 0.3, "n_chains": 1}
    table = fit(data, Bayes(), 6, algorithm="pool-gibbs", n_final=600, **options).features
    is_drawn = table["feature"].str.contains("{", regex=False)
    inclusion, frequency = table.loc[is_drawn, ["inclusion", "frequency"]].sum()
    # Five standard errors of 100 effective draws. With the full prior for each of the draws,
    # 25 or so, their inclusion would be above 0.8.
    assert 15 < is_drawn.sum() < 60
    assert frequency == pytest.approx(inclusion, abs=0.5 * np.sqrt(inclusion * (1 - inclusion)))
    assert inclusion < 0.4


def test_rgmjmcmc_has_the_same_target_and_draws_no_weights(data, rng):
    """A new draw could never be left again: no way back leads through it."""
    budget = SearchBudget(population_size=8, n_populations=6, n_init=20_000, n_final=30)
    problem = replace(fit(data, Bayes(), 1)._problem, budget=budget)
    run = Rgmjmcmc(rng, problem)
    while not run._evolution.finished:
        run.advance(1)
    registry = run._chain.registry
    before = registry.weight_draws.counts
    run.advance(1)
    (n_draws,) = before.values()
    number = next(j for j, f in enumerate(registry.features) if "{" in str(f))
    feature = registry.features[number]
    evidence = problem.engine.log_evidence(feature.evaluate(problem.table)[:, None])[0]
    prior = -PENALTY * feature.complexity - log(n_draws)
    assert n_draws > 15
    assert run._space.log_posterior(frozenset([number])) == pytest.approx(evidence + prior)
    proceed(run)
    assert registry.weight_draws.counts == before


def test_the_topology_can_be_asked_for(data):
    posterior = fit(data, Bayes(), 4)
    models = posterior.models
    any_drawn = [any("{" in name for name in names) for names in models["features"]]
    expected = models["probability"][any_drawn].sum()
    assert posterior.inclusion("tanh(1 + a + b)") == pytest.approx(expected, rel=1e-12)
    assert 0.0 < expected < 0.1
    for text in ("tanh{9.0 + 9.0*a + 9.0*b}", "tanh(1 + a)", "sin(1 + a + b)"):
        assert posterior.inclusion(text) == 0.0, text
