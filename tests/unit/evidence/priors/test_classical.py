"""Jeffreys, BIC, AIC, known variance and the settings of fixed g."""

from math import lgamma, log, pi

import numpy as np
import pytest

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    GaussianShape,
    GPrior,
    Jeffreys,
    KnownVariance,
)
from dbrm.evidence.gaussian import GaussianEngine


@pytest.fixture
def data(rng):
    columns = rng.normal(size=(18, 3))
    return columns, columns @ [1.0, 0.0, -0.5] + rng.normal(size=18)


def residual_sum(columns, response):
    design = np.column_stack([np.ones(len(columns)), columns])
    return design, float(np.linalg.lstsq(design, response)[1][0])


def test_jeffreys_is_not_the_flat_reference_prior(data):
    """The determinant cancels, and n degrees of freedom remain."""
    columns, response = data
    design, rss = residual_sum(columns, response)
    n, p_plus = design.shape
    value, _ = GaussianEngine(response, Jeffreys()).log_evidence(columns)
    ours = -(n - p_plus) / 2 * log(2 * pi) + lgamma(n / 2) - n / 2 * log(rss / 2)
    flat = -(n - p_plus) / 2 * log(2 * pi) - 0.5 * np.linalg.slogdet(design.T @ design)[1]
    flat += lgamma((n - p_plus) / 2) - (n - p_plus) / 2 * log(rss / 2)
    assert value == pytest.approx(ours, abs=1e-10)
    assert abs(value - flat) > 0.5


def test_jeffreys_of_the_joint_information(data):
    columns, response = data
    design, rss = residual_sum(columns, response)
    n, p_plus = design.shape
    value, _ = GaussianEngine(response, Jeffreys(information="joint")).log_evidence(columns)
    expected = -(n - p_plus) / 2 * log(2 * pi) + lgamma(n / 2 + 1)
    expected += 0.5 * log(n / 2) - (n / 2 + 1) * log(rss / 2)
    assert value == pytest.approx(expected, abs=1e-10)


def test_bic_is_jeffreys_less_a_constant_per_coefficient():
    """-BIC/2 = (J) - (p_+/2) log(2 pi n) + c(n), for every size and residual."""
    shape, sizes = GaussianShape(40.0, 7.0, 1e-12), np.arange(6)
    bic, jeffreys = (prior.score_table(sizes, shape) for prior in (BIC(), Jeffreys()))
    gaps = [
        bic.value(f, row) - jeffreys.value(f, row) + (row + 1) / 2 * log(2 * pi * 40)
        for row in range(6)
        for f in (1e-9, 0.2, 1.0)
    ]
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-10)


def test_criteria_by_their_definitions(data):
    columns, response = data
    design, rss = residual_sum(columns, response)
    n, p_plus = design.shape
    likelihood = -n / 2 * (log(2 * pi * rss / n) + 1)
    bic, _ = GaussianEngine(response, BIC()).log_evidence(columns)
    aic, _ = GaussianEngine(response, AIC()).log_evidence(columns)
    known, _ = GaussianEngine(response, KnownVariance(2.0)).log_evidence(columns)
    assert bic == pytest.approx(likelihood - (p_plus + 1) / 2 * log(n), abs=1e-10)
    assert aic == pytest.approx(likelihood - (p_plus + 1), abs=1e-10)
    assert known == pytest.approx(-n / 2 * log(4 * pi) - rss / 4, abs=1e-10)


@pytest.mark.parametrize(
    ("prior", "per_coefficient"),
    [
        (Jeffreys(), 0.5 * log(2 * pi)),
        (Jeffreys(constant="unit_information"), 0.5 * log(2 * pi / 50)),
        (Jeffreys(constant="none"), 0.0),
        (BIC(), -0.5 * log(50)),
        (AIC(), -1.0),
    ],
)
def test_glm_constants(prior, per_coefficient):
    table = prior.glm_table(np.array([0, 3]), 50.0)
    assert not table.needs_wald
    for row, p_plus in ((0, 1), (1, 4)):
        value = table.value(-20.0, 3.0, 99.0, row)
        assert value == pytest.approx(-20.0 + p_plus * per_coefficient, abs=1e-12)


def test_fixed_g_in_a_glm():
    """Base - (p/2) log(1+g) - W / (2(1+g))."""
    value = GPrior(g=9.0).glm_table(np.array([2]), 50.0).value(-20.0, log(7.0), 12.0, 0)
    expected = -20 + 0.5 * log(2 * pi) - 0.5 * log(7.0) - log(10.0) - 0.6
    assert value == pytest.approx(expected, abs=1e-12)


def test_known_variance_refuses_a_glm():
    with pytest.raises(InvalidSettingError, match="fixes the noise variance of a Gaussian"):
        KnownVariance().glm_table(np.arange(3), 10.0)


def test_benchmark_g_uses_the_number_of_candidates():
    assert GPrior(g="benchmark", candidates=15).value_of_g(47.0) == 225.0
    assert GPrior(g="benchmark", candidates=5).value_of_g(47.0) == 47.0
    assert GPrior(g="n").value_of_g(47.0) == 47.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GPrior(g=0.0), "positive finite g"),
        (lambda: GPrior(g=float("nan")), "positive finite g"),
        (lambda: GPrior(g="m"), "'n' or 'benchmark'; got g='m'"),
        (lambda: GPrior(g="benchmark"), "needs candidates"),
        (lambda: Jeffreys(constant="two"), "constant to be one of"),
        (lambda: Jeffreys(information="sigma"), "'beta' or 'joint'"),
        (lambda: KnownVariance(variance=-1.0), "positive variance"),
    ],
)
def test_settings_are_checked(build, message):
    with pytest.raises(InvalidSettingError, match=message):
        build()
