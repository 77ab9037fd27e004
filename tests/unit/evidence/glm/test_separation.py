"""Separation: the supremum of the likelihood, Firth's coefficients, and a proof by programming."""

import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors import GPrior, Jeffreys, Normal
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.separation import Separation, classify_separation
from dbrm.evidence.solvers import DampedNewton, PlainIRLS
from dbrm.status import Status


def complete(rng, n=40):
    x = np.sort(rng.standard_normal(n))
    return x[:, None], (x > x[n // 2]).astype(float)


def quasi(n_each=10):
    """A dummy that is one for successes only; the other rows overlap."""
    x = np.concatenate([np.zeros(2 * n_each), np.ones(n_each)])
    y = np.concatenate([np.tile([0.0, 1.0], n_each), np.ones(n_each)])
    return x[:, None], y


def test_complete_separation_has_supremum_zero(rng):
    columns, y = complete(rng)
    for link in ("logit", "probit", "cloglog"):
        value, status = GlmEngine(y, Jeffreys("none"), link=link).log_evidence(columns)
        assert status is Status.SEPARATED
        assert value == pytest.approx(0.0, abs=1e-9)


def test_quasi_separation_has_the_limit_of_the_likelihood():
    columns, y = quasi()
    value, status = GlmEngine(y, Jeffreys("none")).log_evidence(columns)
    assert status is Status.SEPARATED
    assert value == pytest.approx(20 * np.log(0.5), abs=1e-9)


def test_zero_counts_of_a_group_are_separation_too(rng):
    x = np.repeat([0.0, 1.0], 20)
    y = np.concatenate([rng.poisson(3.0, 20), np.zeros(20)]).astype(float)
    value, status = GlmEngine(y, Jeffreys("none"), "poisson").log_evidence(x[:, None])
    alone, _ = GlmEngine(y[:20], Jeffreys("none"), "poisson").log_evidence(np.zeros((20, 0)))
    assert status is Status.SEPARATED
    assert value == pytest.approx(alone, abs=1e-9)


@pytest.mark.parametrize("y", [np.zeros(7), np.ones(7)])
def test_one_class_only(y):
    value, status = GlmEngine(y, Jeffreys("none")).log_evidence(np.zeros((7, 0)))
    assert status is Status.SEPARATED
    assert value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_firth_maximises_the_penalised_likelihood(rng, link):
    columns, y = complete(rng, 30)
    columns = np.hstack([columns, rng.standard_normal((30, 1))])
    engine = GlmEngine(y, Jeffreys(), link=link)
    fit = engine.fit(columns)
    assert fit.status is Status.SEPARATED
    assert np.all(np.abs(fit.coefficients) < 50)
    design = np.column_stack([np.ones(30), columns])

    def objective(b):
        eta = design @ b
        mean = np.clip(engine.link.mean(eta), 1e-300, 1 - 1e-16)
        weight = engine.link.slope(eta) ** 2 / (mean * (1 - mean))
        information = (design.T * weight) @ design
        likelihood = np.sum(np.where(y == 1, np.log(mean), np.log1p(-mean)))
        return -likelihood - 0.5 * np.linalg.slogdet(information)[1]

    best = scipy.optimize.minimize(objective, fit.coefficients, method="Nelder-Mead").x
    assert objective(fit.coefficients) <= objective(best) + 1e-8
    np.testing.assert_allclose(fit.coefficients, best, atol=2e-3)
    np.testing.assert_array_equal(engine.project(columns), fit.coefficients)


def test_firth_on_a_single_dummy_adds_half_an_observation():
    """For one binary covariate Firth's estimate is the log odds with 1/2 added to each cell."""
    columns, y = quasi()
    coefficients = GlmEngine(y, Jeffreys()).fit(columns).coefficients
    expected = [0.0, np.log(10.5 / 0.5)]
    np.testing.assert_allclose(coefficients, expected, atol=1e-6)


def test_linear_programme_tells_the_three_cases_apart(rng):
    columns, y = complete(rng)
    design = np.column_stack([np.ones(len(y)), columns])
    assert classify_separation(design, y) is Separation.COMPLETE
    columns, y = quasi()
    design = np.column_stack([np.ones(len(y)), columns])
    assert classify_separation(design, y) is Separation.QUASI
    noise = (rng.random(len(y)) < 0.5).astype(float)
    assert classify_separation(np.column_stack([np.ones(30), np.arange(30)]), noise) is (
        Separation.OVERLAP
    )
    mixed = np.full(5, 0.5)
    assert classify_separation(np.ones((5, 1)), mixed) is Separation.OVERLAP


def test_newton_and_the_linear_programme_agree(rng):
    """Hundreds of small data sets: the cheap test misses and invents nothing."""
    seen = set()
    for _ in range(300):
        n, k = int(rng.integers(4, 14)), int(rng.integers(1, 4))
        columns = np.round(rng.standard_normal((n, k)), 1)
        y = (rng.random(n) < expit(2 * columns[:, 0])).astype(float)
        value, status = GlmEngine(y, Jeffreys("none")).log_evidence(columns)
        if status is Status.RANK_DEFICIENT:
            continue
        answer = classify_separation(np.column_stack([np.ones(n), columns]), y)
        assert (status is Status.SEPARATED) == (answer is not Separation.OVERLAP)
        assert (abs(value) < 1e-8) == (answer is Separation.COMPLETE)
        seen.add(answer)
    assert len(seen) == 3


def test_g_priors_stay_finite_under_separation(rng):
    """Infinite estimates carry no information; the Wald statistic is taken at Firth's."""
    columns, y = complete(rng)
    value, status = GlmEngine(y, GPrior()).log_evidence(columns)
    assert status is Status.SEPARATED
    assert np.isfinite(value)
    null, _ = GlmEngine(y, GPrior()).log_evidence(np.zeros((len(y), 0)))
    assert value > null


def test_normal_priors_know_no_separation(rng):
    columns, y = complete(rng)
    _, status = GlmEngine(y, Normal(10.0)).log_evidence(columns)
    assert status is Status.OK


def test_plain_scoring_stops_after_25_iterations(rng):
    """The published scripts' coefficients are those of R's last iteration, large but finite."""
    columns, y = complete(rng)
    plain = GlmEngine(y, Jeffreys("none"), solver=PlainIRLS()).fit(columns)
    firth = GlmEngine(y, Jeffreys("none"), solver=PlainIRLS(coefficients="firth")).fit(columns)
    assert plain.status is Status.SEPARATED
    assert abs(plain.coefficients[1]) > 10 * abs(firth.coefficients[1])
    assert -1e-6 < plain.log_likelihood < 0


def test_solvers_check_their_settings():
    with pytest.raises(InvalidSettingError, match="max_iterations must be at least 1"):
        DampedNewton(max_iterations=0)
    with pytest.raises(InvalidSettingError, match="coefficients 'mle' or 'firth'"):
        PlainIRLS(coefficients="ridge")
