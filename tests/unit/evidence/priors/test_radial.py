"""Tests of `dbrm.evidence.coefficient_priors.radial`."""

from math import exp

import numpy as np
import pytest
from scipy import integrate, stats

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors import GaussianShape, Normal, NormalLogGamma


def test_normal_slopes_are_independent_normals():
    beta = np.array([0.3, -1.2, 2.0])
    expected = stats.norm(scale=2.0).logpdf(beta).sum()
    prior = Normal(variance=4.0)
    assert prior.radial(float(beta @ beta), 3).value == pytest.approx(expected)
    assert prior.ridge == 0.25


def test_unknown_precision_integrates_to_a_t_distribution():
    """Averaging N(0, 1/tau) over the logGamma prior of log tau gives `radial`."""
    prior = NormalLogGamma(shape=1.5, rate=0.2)
    square, size = 0.7, 3

    def integrand(psi):
        log_normal = 0.5 * size * (psi - np.log(2 * np.pi)) - 0.5 * exp(psi) * square
        return exp(log_normal + prior.log_density_of_log_precision(psi))

    expected = np.log(integrate.quad(integrand, -30, 10, epsabs=0, epsrel=1e-11)[0])
    assert prior.radial(square, size).value == pytest.approx(expected, abs=1e-9)
    one = np.exp(prior.radial(0.7**2, 1).value)
    assert one == pytest.approx(stats.t(3.0, scale=np.sqrt(0.2 / 1.5)).pdf(0.7))


def test_paper_default_is_two_degrees_of_freedom():
    """Multivariate t, 2 df, scale sqrt(5e-5)."""
    value = np.exp(NormalLogGamma().radial(0.01**2, 1).value)
    assert value == pytest.approx(stats.t(2, scale=np.sqrt(5e-5)).pdf(0.01))


@pytest.mark.parametrize("prior", [Normal(), NormalLogGamma()])
def test_engines_that_need_a_table_are_refused(prior):
    shape = GaussianShape(10.0, 1.0, 1e-12)
    for call in (
        lambda: prior.score_table(np.arange(2), shape),
        lambda: prior.glm_table(np.arange(2), 10.0),
        lambda: prior.summary(1, 0.5, shape),
    ):
        with pytest.raises(InvalidSettingError, match="no function of the residual sum"):
            call()


def test_settings_are_checked():
    with pytest.raises(InvalidSettingError, match="positive finite variance; got variance=0"):
        Normal(variance=0)
    with pytest.raises(InvalidSettingError, match="positive finite rate; got rate=-1"):
        NormalLogGamma(rate=-1)
