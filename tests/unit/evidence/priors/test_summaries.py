"""Posterior of the coefficients under classical priors and g-priors."""

import numpy as np
import pytest

from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    BetaPrime,
    EBLocal,
    GaussianShape,
    GPrior,
    HyperG,
    HyperGN,
    Intrinsic,
    Jeffreys,
    Robust,
    UniformG,
    ZellnerSiow,
)

SHAPE = GaussianShape(25.0, 4.0, 1e-12)


@pytest.mark.parametrize("prior", [Jeffreys(), BIC(), AIC()], ids=repr)
def test_classical_priors_give_the_intervals_of_least_squares(prior):
    """Intercept and four slopes leave 20 of 25 degrees of freedom."""
    summary = prior.summary(4, 0.5, SHAPE)
    assert (summary.shrinkage, summary.degrees_of_freedom) == (1.0, 20.0)
    assert summary.variance == pytest.approx(0.5 * 4.0 / 20)


def evidence(prior, g, size, fraction):
    """Unnormalised posterior of g on a grid, from the fixed-g evidence and the density."""
    table = np.array(
        [GPrior(g=v).score_table(np.array([size]), SHAPE).value(fraction, 0) for v in g]
    )
    mixing = prior.mixing(size, SHAPE.n)
    t = mixing.v / (1 + g)
    inside = t < 1
    logs = np.full(g.size, -np.inf)
    density = mixing.log_density(np.log(t[inside]), np.log1p(-t[inside]))
    logs[inside] = table[inside] + density - 2 * np.log1p(g[inside])
    return np.exp(logs - logs.max())


@pytest.mark.parametrize(
    "prior", [HyperG(), HyperGN(), ZellnerSiow(), BetaPrime(), UniformG()], ids=repr
)
@pytest.mark.parametrize("fraction", [0.05, 0.6, 0.99])
def test_shrinkage_is_the_posterior_mean(prior, fraction):
    """Average g/(1+g) over its posterior with a plain sum over log g."""
    g = np.exp(np.arange(-30.0, 60.0, 0.01))
    weights = evidence(prior, g, 4, fraction) * g
    expected = float(weights @ (g / (1 + g)) / weights.sum())
    summary = prior.summary(4, fraction, SHAPE)
    assert summary.shrinkage == pytest.approx(expected, rel=1e-6)
    assert summary.degrees_of_freedom == 24.0
    assert summary.variance == pytest.approx(4.0 * (1 - expected * (1 - fraction)) / 24, rel=1e-6)


def test_shrinkage_of_fixed_and_estimated_g():
    assert GPrior(g=3.0).summary(2, 0.5, SHAPE).shrinkage == pytest.approx(0.75)
    ratio = (0.5 / 2) / (0.5 / 22)
    assert EBLocal().summary(2, 0.5, SHAPE).shrinkage == pytest.approx(1 - 1 / ratio)
    assert EBLocal().summary(2, 0.999, SHAPE).shrinkage == 0.0


@pytest.mark.parametrize("prior", [HyperG(), Robust(), Intrinsic(), GPrior(), EBLocal()], ids=repr)
def test_null_model_is_a_t_sample(prior):
    summary = prior.summary(0, 1.0, SHAPE)
    assert (summary.shrinkage, summary.degrees_of_freedom) == (1.0, 24.0)
    assert summary.variance == pytest.approx(4.0 / 24)


def test_robust_prior_shrinks_little():
    """Its g is at least (n+1)/(p+1) - 1, whatever the data say."""
    least = 1 - 5 / 26
    assert Robust().summary(4, 1.0, SHAPE).shrinkage >= least
    assert HyperG().summary(4, 1.0, SHAPE).shrinkage < least
