"""Tests of `dbrm.evidence.predictor`: the likelihood as a function of the linear predictor."""

import numpy as np
import pytest

from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evidence.families import find_family
from dbrm.evidence.links import find_link
from dbrm.evidence.predictor import _Compiled, _Plain, predictor_likelihood

KINDS = [
    ("gaussian", "identity"),
    ("gaussian", "log"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("negative_binomial", "log"),
]
N = 50


@pytest.fixture
def rows(rng):
    def rows(family):
        trials = rng.integers(1, 5, N).astype(float) if family == "binomial" else None
        y = {
            "gaussian": rng.normal(2.0, 1.0, N),
            "binomial": None if trials is None else rng.binomial(trials.astype(int), 0.4),
            "gamma": rng.gamma(2.0, 1.0, N),
        }.get(family, rng.negative_binomial(2, 0.4, N))
        weights = rng.integers(0, 3, N).astype(float)
        offset = 0.05 * rng.normal(size=N)
        full = {"weights": weights, "trials": trials, "offset": offset}
        return np.asarray(y, dtype=float), full

    return rows


def eta_for(rng, link):
    return 0.8 + 0.3 * rng.random(N) if link == "inverse" else 0.5 * rng.normal(size=N)


@pytest.mark.parametrize(("family", "link"), KINDS)
def test_compiled_and_plain_agree(rng, rows, family, link):
    y, options = rows(family)
    compiled = predictor_likelihood(find_family(family), find_link(link), y, **options)
    assert isinstance(compiled, _Compiled)
    parts = (compiled.response, compiled.weights, compiled.trials, compiled.offset)
    plain = _Plain(compiled.family, compiled.link, *parts)
    eta = eta_for(rng, link)
    first, second = compiled.at(eta), plain.at(eta)
    assert first.value == pytest.approx(second.value, rel=1e-10)
    np.testing.assert_allclose(first.score, second.score, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("family", "link"), KINDS)
def test_the_score_is_the_derivative(rng, rows, family, link):
    """Also where the dispersion is profiled: envelope theorem."""
    y, options = rows(family)
    likelihood = predictor_likelihood(find_family(family), find_link(link), y, **options)
    eta, direction, h = eta_for(rng, link), rng.normal(size=N) / np.sqrt(N), 1e-4
    f = [likelihood.at(eta + k * h * direction).value for k in (-2, -1, 1, 2)]
    numerical = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
    score = likelihood.at(eta).score
    assert numerical == pytest.approx(score @ direction, abs=1e-7 * (1 + np.linalg.norm(score)))
    # Negative control: without the offset the derivative is another one.
    other = predictor_likelihood(
        find_family(family), find_link(link), y, **(options | {"offset": None})
    )
    assert abs(numerical - other.at(eta).score @ direction) > 1e-6


@pytest.mark.parametrize(("family", "link"), KINDS)
def test_at_the_maximum_it_is_the_likelihood_of_the_fit(rng, rows, family, link):
    y, options = rows(family)
    if link == "inverse":
        options["offset"] = None
    engine = build_engine(Observations(y, **options), Jeffreys(), family=family, link=link)
    x = rng.normal(size=(N, 1))
    intercept, slope = engine.project(x)
    value = engine.likelihood().at(intercept + slope * x[:, 0]).value
    assert value == pytest.approx(engine.fit(x).log_likelihood, rel=1e-9)


def test_rows_without_weight_do_not_count(rng, rows):
    y, options = rows("poisson")
    likelihood = predictor_likelihood(find_family("poisson"), find_link("log"), y, **options)
    eta = rng.normal(size=N)
    before = likelihood.at(eta).value
    eta[options["weights"] == 0] = 3.0
    assert likelihood.at(eta).value == pytest.approx(before)


@pytest.mark.parametrize("kind", [_Compiled, _Plain])
def test_outside_the_domain_there_is_no_likelihood(rng, kind):
    y, ones = rng.gamma(2.0, 1.0, N), np.ones(N)
    likelihood = kind(find_family("gamma"), find_link("inverse"), y, ones, ones, np.zeros(N))
    assert likelihood.at(np.full(N, -1.0)).value == -np.inf
    assert np.isfinite(likelihood.at(ones).value)
