"""Accuracy of the surrogates on simulated logistic data, at three strengths of signal."""

import numpy as np
import pytest
from scipy.special import expit

from dbrm._kernels.bits import unpack_index
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors import BIC, GPrior, Jeffreys
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.surrogate import after_steps, quadratic_of_all

ALL = unpack_index(np.arange(256), 8)


def population(rng, strength, family="binomial", prior=None):
    columns = rng.standard_normal((500, 8))
    eta = strength * columns @ [1, -1, 0.5, 0.5, 0.2, 0, 0, 0]
    if family == "binomial":
        y = (rng.random(500) < expit(eta)).astype(float)
    elif family == "gamma":
        y = rng.gamma(2.0, np.exp(eta) / 2)
    else:
        y = rng.poisson(np.exp(eta)).astype(float)
    return GlmEngine(y, prior or BIC(), family).prepare(columns)


def inclusion(values):
    mass = np.exp(values - values.max())
    return mass / mass.sum() @ ALL


@pytest.mark.parametrize(
    ("strength", "error", "probability"), [(0.2, 1e-3, 3e-3), (0.5, 5e-3, 3e-3), (1.1, 0.25, 0.03)]
)
def test_two_newton_steps_are_nearly_exact(rng, strength, error, probability):
    """Mean errors of 0.00, 0.00 and -0.1 nats for weak, medium and strong signals.

    The signals are those at which a quadratic at zero errs by 0.1, 0.8 and 6 nats.
    Inclusion probabilities are within 0.003; for strong signals, 0.006 on average.
    """
    prepared = population(rng, strength)
    exact, _ = prepared.log_evidence(ALL)
    two = after_steps(prepared, ALL, 2)
    assert np.all(two <= exact + 1e-9)
    assert np.mean(exact - two) < error
    assert np.max(np.abs(inclusion(two) - inclusion(exact))) < probability


def test_more_steps_are_better(rng):
    prepared = population(rng, 2.0)
    exact, _ = prepared.log_evidence(ALL)
    errors = [np.max(exact - after_steps(prepared, ALL, steps)) for steps in (1, 2, 3, 6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-8


@pytest.mark.parametrize(("at", "bound"), [("zero", 0.08), ("null", 0.08)])
def test_quadratic_orders_weak_signals(rng, at, bound):
    prepared = population(rng, 0.3)
    exact, _ = prepared.log_evidence(ALL)
    quadratic = quadratic_of_all(prepared, 8, at)
    assert np.mean(np.abs(exact - quadratic)) < 0.5
    assert np.max(np.abs(inclusion(quadratic) - inclusion(exact))) < bound


def test_quadratic_is_no_more_than_an_order_for_strong_signals(rng):
    """Negative control: off by many nats, still well correlated."""
    prepared = population(rng, 2.0)
    exact, _ = prepared.log_evidence(ALL)
    quadratic = quadratic_of_all(prepared, 8)
    assert np.max(np.abs(exact - quadratic)) > 5
    assert np.corrcoef(exact, quadratic)[0, 1] > 0.95


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
def test_quadratic_is_the_formula(rng, family):
    """l(b0) + g' inv(H) g / 2 + (p/2) log 2 pi, written out for one subset."""
    prepared = population(rng, 0.3, family, Jeffreys())
    start, mask = prepared.problem.start, 0b10110101
    values = quadratic_of_all(prepared, 8)
    chosen = np.concatenate([[0], 1 + np.flatnonzero(ALL[mask])])
    gain = start.gradient[chosen] @ np.linalg.solve(
        start.hessian[np.ix_(chosen, chosen)], start.gradient[chosen]
    )
    null, _ = prepared.log_evidence(ALL[:1])
    if family != "gamma":
        expected = null[0] + 0.5 * gain + 0.5 * ALL[mask].sum() * np.log(2 * np.pi)
        assert values[mask] == pytest.approx(expected, abs=1e-7)
    assert values[0] == pytest.approx(null[0], abs=1e-7)


def test_size_limit_and_refusals(rng):
    prepared = population(rng, 0.3)
    values = quadratic_of_all(prepared, 3)
    np.testing.assert_array_equal(values > -np.inf, ALL.sum(axis=1) <= 3)
    with pytest.raises(InvalidSettingError, match="a prior such as jeffreys"):
        quadratic_of_all(population(rng, 0.3, prior=GPrior()), 8)
    with pytest.raises(InvalidSettingError, match="steps of at least 1; got steps=0"):
        after_steps(prepared, ALL, 0)
