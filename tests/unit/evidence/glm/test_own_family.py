"""A user's likelihood that is no exponential family, from the density to predictions."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.stats
from scipy.special import gamma
from tests.unit.evidence.glm import weibull
from tests.unit.evidence.glm.weibull import Weibull

import dbrm
from dbrm._kernels.bits import unpack_index
from dbrm.evidence.coefficient_priors import BIC, GPrior, Jeffreys, Normal
from dbrm.evidence.families import Gamma
from dbrm.evidence.glm import GlmEngine
from dbrm.status import Status
from dbrm.testing import check_family

ROOT = Path(__file__).resolve().parents[4]
SHAPE = 1.8


def simulate(rng, n=200):
    columns = rng.standard_normal((n, 3))
    mean = np.exp(1 + columns @ [0.5, -0.3, 0.0])
    return columns, Weibull().rvs(rng, mean, 1 / SHAPE)


def log_likelihood(columns, y, coefficients, shape):
    """The same by SciPy, whose parameter is the scale."""
    mean = np.exp(coefficients[0] + columns @ coefficients[1:])
    return scipy.stats.weibull_min.logpdf(y, shape, scale=mean / gamma(1 + 1 / shape)).sum()


def log_integral(columns, y, log_prior):
    """Log of the integral of likelihood times prior over intercept and slope, on a grid."""
    fit = GlmEngine(y, Jeffreys(), Weibull(SHAPE)).fit(columns)
    root = np.linalg.cholesky(fit.covariance * fit.dispersion)
    side = np.linspace(-7, 7, 81)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    terms = [
        log_likelihood(columns, y, beta, SHAPE) + log_prior(beta)
        for beta in fit.coefficients + grid @ root.T
    ]
    volume = (side[1] - side[0]) ** 2 * np.prod(np.diag(root))
    return float(np.logaddexp.reduce(terms) + np.log(volume))


@pytest.mark.parametrize("shape", [None, 0.7, 4.0])
def test_it_passes_the_checks(shape):
    assert len(check_family(Weibull(shape)).passed) >= 11


def test_the_page_shows_this_file():
    page = (ROOT / "docs" / "tutorials" / "own-family.md").read_text("utf-8")
    assert Path(weibull.__file__).read_text("utf-8") in page


@pytest.mark.parametrize("prior", [Jeffreys(), BIC(), GPrior(), Normal(2.0)], ids=lambda p: p.name)
def test_shape_one_is_the_exponential_distribution(rng, prior):
    """As is a gamma with shape one, which is compiled."""
    columns, y = simulate(rng)
    masks = unpack_index(np.arange(8), 3)
    mine = GlmEngine(y, prior, Weibull(1.0)).prepare(columns).log_evidence(masks)
    known = GlmEngine(y, prior, Gamma(1.0)).prepare(columns).log_evidence(masks)
    np.testing.assert_allclose(mine[0], known[0], atol=1e-7)


def test_coefficients_and_shape_have_maximum_likelihood(rng):
    columns, y = simulate(rng)
    fit = GlmEngine(y, Jeffreys(), Weibull()).fit(columns)
    assert fit.status is Status.OK
    found = scipy.optimize.minimize(
        lambda theta: -log_likelihood(columns, y, theta[:-1], np.exp(theta[-1])),
        np.zeros(5),
        method="BFGS",
        options={"gtol": 1e-6},
    )
    np.testing.assert_allclose(fit.coefficients, found.x[:-1], atol=1e-5)
    assert 1 / fit.dispersion == pytest.approx(np.exp(found.x[-1]), rel=1e-5)
    assert fit.log_likelihood == pytest.approx(-found.fun, abs=1e-8)


def test_evidence_is_laplace_and_nearly_the_integral(rng):
    r"""Under Jeffreys' prior :math:`|I|^{1/2} = k^2 |X'X|^{1/2}`, and under a normal one.

    Laplace's method with the expected information is right to order :math:`n^{-1/2}`.
    """
    columns, y = simulate(rng)
    columns = columns[:, :1]
    engine = GlmEngine(y, Jeffreys(), Weibull(SHAPE))
    value, _ = engine.log_evidence(columns)
    assert value == pytest.approx(engine.fit(columns).log_likelihood + np.log(2 * np.pi), abs=1e-9)
    design = np.column_stack([np.ones(y.size), columns])
    flat = np.linalg.slogdet(SHAPE**2 * design.T @ design)[1] / 2
    assert value == pytest.approx(log_integral(columns, y, lambda _: flat), abs=0.1)
    value, _ = GlmEngine(y, Normal(4.0), Weibull(SHAPE)).log_evidence(columns)
    normal = scipy.stats.norm(scale=2.0)
    exact = log_integral(columns, y, lambda beta: normal.logpdf(beta[1]))
    assert value == pytest.approx(exact, abs=0.1)


def test_fit_and_predictions(rng, tmp_path):
    columns, y = simulate(rng, 240)
    table = pd.DataFrame(columns, columns=["a", "b", "c"])
    train, new = table[:160], table[160:]
    posterior = dbrm.enumerate_models(train, y[:160], family=Weibull())
    assert min(posterior.inclusion("a"), posterior.inclusion("b")) > 0.99
    mean = np.exp(1 + columns[160:] @ [0.5, -0.3, 0.0])
    np.testing.assert_allclose(posterior.predict(new), mean, rtol=0.3)
    lower, upper = np.asarray(posterior.predict_interval(new, level=0.8)).T
    # Eighty new responses: one false alarm in a million.
    least, most = scipy.stats.binom.ppf([5e-7, 1 - 5e-7], 80, 0.8)
    assert least <= np.sum((lower < y[160:]) & (y[160:] < upper)) <= most
    draws = posterior.sample_predictive(new, draws=4000, random_state=1)
    inside = np.mean((draws > lower) & (draws < upper))
    assert inside == pytest.approx(0.8, abs=0.01)
    posterior.save(tmp_path / "times.dbrm")
    with pytest.raises(ValueError, match="Pass your own to dbrm"):
        dbrm.load(tmp_path / "times.dbrm")
    again = dbrm.load(tmp_path / "times.dbrm", family=Weibull())
    np.testing.assert_array_equal(again.predict(new), posterior.predict(new))
