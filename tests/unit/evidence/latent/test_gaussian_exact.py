"""Gaussian responses: nothing is approximated, so dense algebra and a Kalman filter agree."""

import numpy as np
import pytest
from tests.unit.evidence.latent.models import conditional, dense_covariance, dense_log_evidence

from dbrm.evidence.coefficient_priors.radial import Normal
from dbrm.evidence.latent import AR1, IID, OU, RW1, RW2, RandomIntercept, RandomSlope, Smooth
from dbrm.evidence.nested_laplace import Noise

EFFECTS = {
    "AR1": (AR1("t"), [0.4, 1.7]),
    "AR1 negative": (AR1("t"), [0.1, -1.2]),
    "OU": (OU("t"), [0.3, -0.5]),
    "RW1": (RW1("t"), [1.1]),
    "RW2": (RW2("t"), [1.5]),
    "IID": (IID("t"), [0.2]),
    "rows": (IID(), [0.9]),
    "groups": (RandomIntercept("site"), [0.6]),
    "crossed walk": (RW1("u"), [0.5]),
    "slopes": (RandomSlope("site", "u"), [0.6, 1.2, -0.9]),
    "slopes alone": (RandomSlope("site", "u", correlated=False), [0.8]),
    "curve": (Smooth("u", n_knots=12), [0.7]),
}
SUMS = [
    ("AR1",),
    ("AR1 negative",),
    ("OU",),
    ("RW1",),
    ("RW2",),
    ("IID",),
    ("rows",),
    ("groups",),
    ("RW1", "IID"),
    ("OU", "groups"),
    ("RW1", "rows"),
    ("RW2", "crossed walk"),
    ("AR1", "RW1", "IID"),
    ("OU", "RW2", "groups"),
    ("RW1", "rows", "crossed walk"),
    ("slopes",),
    ("slopes alone",),
    ("curve",),
    ("groups", "slopes alone"),
    ("RW1", "slopes"),
    ("slopes", "curve"),
]


@pytest.fixture
def data(rng):
    """Rows in no order, at irregular positions, some of them shared."""
    n = 90
    t = rng.choice(np.cumsum(rng.gamma(2.0, 0.4, 70)), n)
    places = {"t": t, "u": rng.choice(rng.normal(size=60), n), "site": rng.integers(0, 7, n)}
    X = rng.normal(size=(n, 2))
    y = 1.0 + X @ [0.5, -1.0] + np.sin(t) + rng.normal(size=n)
    return y, X, places


@pytest.mark.parametrize("prior", ["flat", "normal"])
@pytest.mark.parametrize("names", SUMS, ids="+".join)
def test_equals_the_dense_normal_density(data, names, prior):
    """To 1e-9, for each effect and for sums of two and three, whatever the positions."""
    y, X, places = data
    effects = [EFFECTS[name][0] for name in names]
    psi = [np.array(EFFECTS[name][1]) for name in names]
    chosen = Normal(3.0) if prior == "normal" else None
    options = {"prior": chosen} if chosen else {}
    variance = 0.7
    model = conditional(y, effects, places, X, noise=Noise(-np.log(variance)), **options)
    point = model.at(np.concatenate(psi))
    value = point.value - sum(e.log_hyperprior(p) for e, p in zip(effects, psi, strict=True))
    covariance = dense_covariance(model.layout.effects, psi)
    expected = dense_log_evidence(y, X, covariance, variance, *options.values())
    assert value == pytest.approx(expected, abs=1e-9 * max(1.0, abs(expected)))


def test_the_comparison_notices_a_wrong_variance(data):
    """Negative control: one per cent more noise is far outside the tolerance."""
    y, X, places = data
    effect, psi = EFFECTS["RW1"]
    model = conditional(y, [effect], places, X, noise=Noise(-np.log(0.7)))
    value = model.at(np.array(psi)).value - effect.log_hyperprior(np.array(psi))
    covariance = dense_covariance(model.layout.effects, [np.array(psi)])
    assert abs(value - dense_log_evidence(y, X, covariance, 0.707)) > 1e-3


def _kalman(y, decay, spread, variance):
    """Log density of a first-order process plus noise, observed once at each step."""
    value, mean, var = 0.0, 0.0, spread[0]
    for i, observed in enumerate(y):
        if i:
            mean, var = decay[i] * mean, decay[i] ** 2 * var + spread[i]
        total = var + variance
        value -= 0.5 * (np.log(2 * np.pi * total) + (observed - mean) ** 2 / total)
        gain = var / total
        mean, var = mean + gain * (observed - mean), (1 - gain) * var
    return value


@pytest.mark.parametrize("effect", [AR1("t"), OU("t")], ids=["AR1", "OU"])
def test_equals_a_kalman_filter(rng, effect):
    """At the fitted intercept, to 1e-9."""
    n, variance, psi = 200, 0.4, np.array([0.3, -0.2])
    t = np.cumsum(rng.gamma(1.0, 1.0, n))
    y = rng.normal(size=n)
    model = conditional(y, [effect], {"t": t}, noise=Noise(-np.log(variance)))
    point = model.at(psi)
    if isinstance(effect, AR1):
        decay = np.full(n, np.tanh(0.5 * psi[1]))
    else:
        decay = np.exp(-np.exp(psi[1]) * np.diff(t, prepend=t[0]))
    spread = np.exp(-psi[0]) * (1 - decay**2)
    spread[0] = np.exp(-psi[0])
    expected = _kalman(y - point.beta[0], decay, spread, variance)
    value = point.value - effect.log_hyperprior(psi)
    assert value == pytest.approx(expected, abs=1e-9)


def test_random_walk_identity(rng):
    r"""Constrained with a flat intercept equals unconstrained without one.

    The normaliser is then :math:`(\tau/2\pi)^{(n-1)/2}\prod d_i^{-1/2}` alone: the
    :math:`\sqrt n` of the change of variables cancels :math:`\frac12\log n`.
    """
    n, variance, psi = 120, 0.5, np.array([0.8])
    t = np.cumsum(rng.gamma(1.0, 1.0, n))
    y = np.cumsum(rng.normal(size=n))
    model = conditional(y, [RW1("t")], {"t": t}, prior=Normal(1.0), noise=Noise(-np.log(variance)))
    value = model.at(psi).value - RW1("t").log_hyperprior(psi)
    differences = np.diff(np.eye(n), axis=0)
    Q = np.exp(psi[0]) * differences.T @ np.diag(1 / np.diff(t)) @ differences
    H = Q + np.eye(n) / variance
    mode = np.linalg.solve(H, y / variance)
    expected = -0.5 * n * np.log(2 * np.pi * variance) - 0.5 * np.sum((y - mode) ** 2) / variance
    expected += -0.5 * mode @ Q @ mode + 0.5 * (n - 1) * (psi[0] - np.log(2 * np.pi))
    expected += -0.5 * np.log(np.diff(t)).sum()
    expected += 0.5 * n * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(H)[1]
    assert value == pytest.approx(expected, abs=1e-9)


def test_normalisation_of_r_inla_leaves_the_determinant_out(rng):
    n, psi = 40, np.array([0.3])
    t = np.cumsum(rng.gamma(1.0, 1.0, n))
    proper, inla = (RW1("t", normalisation=kind) for kind in ("proper", "inla"))
    difference = proper.log_determinant(psi, t) - inla.log_determinant(psi, t)
    assert difference == pytest.approx(np.log(n) - np.log(np.diff(t)).sum())
    assert inla.log_determinant(psi, t) == pytest.approx((n - 1) * psi[0])


def test_weights_are_repeated_rows(data):
    y, X, places = data
    weights = np.random.default_rng(3).integers(1, 4, y.size).astype(float)
    repeated = np.repeat(np.arange(y.size), weights.astype(int))
    psi = np.array([0.4, 1.7])
    noise = Noise(0.3)
    once = conditional(y, [AR1("t")], places, X, weights=weights, noise=noise).at(psi)
    places = {name: values[repeated] for name, values in places.items()}
    again = conditional(y[repeated], [AR1("t")], places, X[repeated], noise=noise).at(psi)
    assert once.value == pytest.approx(again.value, abs=1e-9)
