"""Tests of `dbrm.evidence.root_scale`: evidence of the root of a response."""

import numpy as np
import pytest
from scipy.integrate import dblquad

from dbrm.evidence import GaussianEngine, ZellnerSiow
from dbrm.evidence.coefficient_priors import AIC, BIC, GPrior, HyperG, Jeffreys, KnownVariance
from dbrm.evidence.root_scale import RootScale

PRIOR = ZellnerSiow()


def engine(y, **options):
    return GaussianEngine(np.asarray(y, dtype=float), PRIOR, **options)


def data(seed, n=120):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return rng, x, 5.0 + x[:, 0] - 0.5 * x[:, 1]


def gain(y, x):
    """Log Bayes factor of the root against the response itself."""
    root = RootScale.of(engine(y))
    return root.engine.log_evidence(x)[0] + root.log_jacobian - engine(y).log_evidence(x)[0]


def test_it_is_known_where_errors_grow():
    """And where they do not: the control has the same means."""
    for seed in range(5):
        rng, x, eta = data(seed)
        assert gain((eta + 0.5 * rng.normal(size=len(x))) ** 2, x) > 5.0
        even = 9.0 * eta + 3.0 * rng.normal(size=len(x))
        assert gain(even - even.min() + 3.0, x) < -5.0


def test_units_do_not_matter():
    rng, x, eta = data(1)
    y = (eta + 0.5 * rng.normal(size=len(x))) ** 2
    assert gain(1e6 * y, x) == pytest.approx(gain(y, x), abs=1e-6)
    counts = rng.poisson(y / 5.0)
    assert gain(0.001 * counts, x) == pytest.approx(gain(counts, x), abs=1e-6)


def test_a_row_twice_is_weight_two():
    rng, x, eta = data(2)
    y = (eta + 0.5 * rng.normal(size=len(x))) ** 2
    weights = rng.integers(1, 3, y.size).astype(float)
    rows = np.repeat(np.arange(y.size), weights.astype(int))
    root, twice = RootScale.of(engine(y, weights=weights)), RootScale.of(engine(y[rows]))
    assert root.log_jacobian == pytest.approx(twice.log_jacobian, rel=1e-12)
    assert root.engine.log_evidence(x)[0] == pytest.approx(
        twice.engine.log_evidence(x[rows])[0], rel=1e-9
    )


def test_evidence_is_that_of_the_response():
    r"""Without features, by brute force over mean and log standard deviation of the root.

    Flat in :math:`\mu` and :math:`\log \sigma`, times the Jacobian; the power :math:`(n-1)/n` is
    the unit of the mean. Differences of two responses are free of the improper constant.
    """
    rng = np.random.default_rng(3)

    def brute(z):
        n, mean, spread = z.size, z.mean(), z.std()

        def density(log_sigma, mu):
            sigma = np.exp(log_sigma)
            return np.exp(
                -n * (log_sigma - np.log(spread)) - 0.5 * np.sum((z - mu) ** 2) / sigma**2 + n / 2
            )

        ends = np.log(spread) - 1.5, np.log(spread) + 2.5
        far = 3.0 * spread
        value, _ = dblquad(density, mean - far, mean + far, *ends, epsabs=0, epsrel=1e-9)
        return np.log(value) - n * np.log(spread) - n / 2

    values = []
    for _ in range(2):
        y = rng.gamma(2.0, 3.0, size=25)
        root = RootScale.of(engine(y))
        values.append(root.engine.log_evidence(np.empty((25, 0)))[0] - brute(np.sqrt(y)))
    assert values[0] == pytest.approx(values[1], abs=1e-6)


@pytest.mark.parametrize(
    "y",
    [
        np.linspace(-0.1, 5.0, 40),
        np.linspace(100.0, 150.0, 40),
        np.zeros(40),
        np.linspace(0.0, 5.0, 12),
    ],
    ids=["negative", "nearly straight", "nothing", "few rows"],
)
def test_no_root(y):
    assert RootScale.of(engine(y)) is None


def test_none_beside_an_offset():
    y = np.linspace(0.0, 5.0, 40)
    assert RootScale.of(engine(y)) is not None
    assert RootScale.of(engine(y, offset=np.ones(40))) is None


def test_zeros_have_a_finite_jacobian():
    counts = np.random.default_rng(4).poisson(2.0, size=60)
    assert RootScale.of(engine(counts)).origin == 0.375
    assert RootScale.of(engine(counts + 1.0)).origin == 0.0


def test_tiny_values_are_zeros():
    """Rounding errors, alone or beside zeros, do not make a root infinitely dense."""
    counts = np.random.default_rng(4).poisson(2.0, size=60)
    expected = RootScale.of(engine(counts))
    for which in (counts == 0, np.arange(60) == np.argmin(counts)):
        found = RootScale.of(engine(np.where(which, 1e-12, counts)))
        assert found.origin == expected.origin
        assert found.log_jacobian == pytest.approx(expected.log_jacobian, abs=1e-9)


def test_rows_of_weight_zero_do_not_count():
    """Whether negative, zero or huge."""
    rng, x, eta = data(2)
    y = (eta + 0.5 * rng.normal(size=len(x))) ** 2
    weights = np.ones(y.size)
    weights[:3] = 0.0
    expected = RootScale.of(engine(y[3:]))
    for outside in (-1.0, 0.0, 1e6):
        y[:3] = outside
        found = RootScale.of(engine(y, weights=weights))
        assert found.origin == expected.origin
        assert found.log_jacobian == pytest.approx(expected.log_jacobian, rel=1e-12)


@pytest.mark.parametrize("prior", [BIC(), AIC(), Jeffreys(), HyperG(), GPrior(50.0)], ids=repr)
def test_units_do_not_matter_under_any_prior(prior):
    rng, x, eta = data(1)
    y = (eta + 0.5 * rng.normal(size=len(x))) ** 2

    def factor(unit):
        own = GaussianEngine(unit * y, prior)
        root = RootScale.of(own)
        evidences = root.engine.log_evidence(x)[0], own.log_evidence(x)[0]
        return evidences[0] + root.log_jacobian - evidences[1]

    assert factor(1e3) == pytest.approx(factor(1.0), abs=1e-6)


def test_no_root_where_squares_are_no_numbers():
    y = np.linspace(0.0, 5.0, 40)
    assert RootScale.of(engine(1e-100 * y)) is not None
    assert RootScale.of(engine(1e-170 * y)) is None
    assert RootScale.of(engine(1e160 * y)) is None


def test_no_root_beside_a_known_variance():
    y = np.linspace(0.0, 5.0, 40)
    assert RootScale.of(GaussianEngine(y, KnownVariance(1.0))) is None
