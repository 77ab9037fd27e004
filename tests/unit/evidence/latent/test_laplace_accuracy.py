"""Counts and successes: Laplace's method against quadrature and importance sampling."""

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu
from scipy.special import gammaln, logsumexp
from tests.unit.evidence.latent.models import conditional, dense_precision

from dbrm.evidence.coefficient_priors.radial import Normal
from dbrm.evidence.families import find_family
from dbrm.evidence.hyper_integration import integrate
from dbrm.evidence.latent import AR1, IID, OU, RW1
from dbrm.evidence.links import find_link


def _joint(y, trials, family, effect, psi, positions, x):
    """Log of likelihood times density of the effects, at draws of (intercept, effects)."""
    chosen = find_family(family)
    link = find_link(chosen.default_link)
    Q = dense_precision(effect, psi, positions)
    mean = link.mean(x[:, :1] + x[:, 1:])
    log_density = chosen.log_density(y, mean, 1.0, trials).sum(axis=1)
    constant = 0.5 * (effect.log_determinant(psi, positions) - y.size * np.log(2 * np.pi))
    return log_density - 0.5 * np.einsum("ni,ni->n", x[:, 1:] @ Q, x[:, 1:]) + constant


def _mode_and_root(model, point, y, family, trials, effect, psi, positions):
    """Mode and inverse root of the negative Hessian of the joint density, by differences."""
    centre = np.concatenate([point.beta[:1], point.delta])
    size, h = centre.size, 1e-4

    def value(x):
        return _joint(y, trials, family, effect, psi, positions, x[None])[0]

    hessian = np.empty((size, size))
    for i, j in product(range(size), repeat=2):
        a, b = h * np.eye(size)[i], h * np.eye(size)[j]
        hessian[i, j] = (
            value(centre + a + b)
            - value(centre + a - b)
            - value(centre - a + b)
            + value(centre - a - b)
        ) / (4 * h * h)
    return centre, np.linalg.cholesky(np.linalg.inv(-hessian))


@pytest.mark.parametrize(
    ("family", "y", "trials"),
    [
        ("poisson", [48.0, 62.0, 94.0], None),
        ("binomial", [88.0, 100.0, 152.0], [240.0, 200.0, 220.0]),
    ],
)
@pytest.mark.parametrize(
    ("effect", "psi"), [(AR1("t"), [2.0, 1.0]), (OU("t"), [1.5, -0.5]), (IID("t"), [2.0])]
)
def test_three_rows_against_quadrature(family, y, trials, effect, psi):
    """Within 0.005 of Gauss-Hermite quadrature over intercept and three effects.

    The error of Laplace's method falls with the counts: a few units, as in the control below,
    are too few.
    """
    trials = None if trials is None else np.array(trials)
    value, exact = _both(np.array(y), trials, family, effect, np.array(psi))
    assert value == pytest.approx(exact, abs=0.005)


def test_the_quadrature_tells_an_approximation_from_the_truth():
    """Negative control: with counts of one or two the error is well above 0.005."""
    y = np.array([1.0, 0.0, 2.0])
    value, exact = _both(y, None, "poisson", AR1("t"), np.array([0.0, 1.0]))
    assert abs(value - exact) > 0.01


def _both(y, trials, family, effect, psi):
    """Laplace's value and that of quadrature."""
    positions = np.array([0.0, 1.0, 2.5])
    # A normal prior without slopes leaves the flat intercept, integrated out.
    model = conditional(y, [effect], {"t": positions}, family=family, prior=Normal(), trials=trials)
    point = model.at(psi)
    value = point.value - effect.log_hyperprior(psi)
    arguments = (y, family, trials, effect, psi, positions)
    centre, root = _mode_and_root(model, point, *arguments)
    nodes, weights = np.polynomial.hermite_e.hermegauss(14)
    grid = np.array(list(product(nodes, repeat=4)))
    log_weight = np.log(np.array(list(product(weights, repeat=4)))).sum(axis=1)
    joint = _joint(y, trials, family, effect, psi, positions, centre + grid @ root.T)
    terms = joint + log_weight + 0.5 * (grid**2).sum(axis=1)
    return value, logsumexp(terms) + np.log(np.diag(root)).sum()


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_five_hundred_rows_against_importance_sampling(family, rng):
    """Within 0.1, effects drawn around their mode; the estimate is good to about 0.02.

    For modest effects: with a standard deviation of 0.6 instead of 0.14 the binomial value
    would be off by one nat.
    """
    n, psi, effect = 500, np.array([4.0, 2.0]), AR1("t")
    rho = np.tanh(0.5 * psi[1])
    walk = np.empty(n)
    walk[0] = rng.normal()
    for i in range(1, n):
        walk[i] = rho * walk[i - 1] + np.sqrt(1 - rho**2) * rng.normal()
    walk *= np.exp(-0.5 * psi[0])
    trials = np.full(n, 100.0) if family == "binomial" else None
    chosen = find_family(family)
    mean = find_link(chosen.default_link).mean(walk + (2.5 if family == "poisson" else 0.0))
    y = chosen.rvs(rng, mean, 1.0, trials)
    positions = np.arange(float(n))
    model = conditional(y, [effect], {"t": positions}, family=family, prior=Normal(), trials=trials)
    point = model.at(psi)
    value = point.value - effect.log_hyperprior(psi)
    # The Gaussian approximation of intercept and effects, from dense matrices.
    eta = point.beta[0] + point.delta
    mu = find_link(chosen.default_link).mean(eta)
    weight = mu if family == "poisson" else 100.0 * mu * (1 - mu)
    B = np.hstack([np.ones((n, 1)), np.eye(n)])
    H = B.T @ (weight[:, None] * B)
    H[1:, 1:] += dense_precision(effect, psi, positions)
    root = np.linalg.inv(np.linalg.cholesky(H)).T
    z = rng.normal(size=(4000, n + 1))
    draws = np.concatenate([point.beta[:1], point.delta]) + z @ root.T
    joint = _joint(y, trials, family, effect, psi, positions, draws)
    log_ratio = joint + 0.5 * (z**2).sum(axis=1)
    exact = logsumexp(log_ratio) - np.log(len(z)) + 0.5 * (n + 1) * np.log(2 * np.pi)
    exact -= 0.5 * np.linalg.slogdet(H)[1]
    share = np.exp(log_ratio - logsumexp(log_ratio))
    assert 1.0 / (share @ share) > 400
    assert value == pytest.approx(exact, abs=0.1)


@pytest.fixture(scope="module")
def methylation(reference):
    """The data of Example 7; the reads are the offset."""
    return pd.read_csv(reference / "arabidopsis.csv")


def _log_evidence(data, effects, columns):
    y = data["methylated_bases"].to_numpy(float)
    X = data[columns].to_numpy(float)
    model = conditional(
        y,
        effects,
        {"pos": data["pos"].to_numpy(float)},
        X,
        family="poisson",
        prior=Normal(1000.0),
        offset=np.log(data["total_bases"].to_numpy(float)),
    )
    start = model.at(np.concatenate([[], *(effect.start for effect in effects)]))

    def evaluate(theta, near):
        return model.at(theta, (near.delta, near.beta))

    return integrate(evaluate, start).log_value


@pytest.mark.parametrize(
    ("name", "effects", "columns"),
    [
        ("none", [], ["CG", "CHG"]),
        ("iid", [IID("pos")], ["CG", "CHG"]),
        ("ar1", [AR1("pos")], ["CG", "CHG"]),
        ("ou", [OU("pos")], ["CG", "CHG"]),
        ("rw1 CG+CHG+DT1", [RW1("pos")], ["CG", "CHG", "DT1"]),
        ("rw1+iid", [RW1("pos"), IID("pos")], ["CG", "CHG"]),
    ],
)
def test_example_7(methylation, reference, name, effects, columns):
    """Stored log evidences, hyperparameters integrated out, to 0.05."""
    content = json.loads((reference / "exact_values.json").read_text())
    expected = content["example7_own_laplace"][name]
    assert _log_evidence(methylation, effects, columns) == pytest.approx(expected, abs=0.05)


def _hessian(B, weight, P):
    return (B.T @ sparse.diags_array(weight) @ B + P).tocsc()


@pytest.mark.parametrize("columns", [[], ["CG"], ["CG", "CHG"]], ids="+".join)
def test_example_7_random_walks_on_a_grid(methylation, columns):
    """Three stored values miss part of the integral over the precision; this has all of it.

    An unconstrained walk without intercept, by SciPy's sparse matrices, on a fine grid of the
    log precision.
    """
    data = methylation.sort_values("pos")
    y, reads = data["methylated_bases"].to_numpy(float), data["total_bases"].to_numpy(float)
    gaps, n, p = np.diff(data["pos"].to_numpy(float)), len(data), len(columns)
    B = sparse.hstack([sparse.eye_array(n), sparse.csr_array(data[columns].to_numpy(float))])
    steps = sparse.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
    R = steps.T @ sparse.diags_array(1.0 / gaps) @ steps
    x = np.zeros(n + p)
    x[:n] = np.log(y.sum() / reads.sum())
    terms, width = [], 0.2
    for psi in np.arange(4.0, -0.5, -width):
        P = sparse.block_diag([np.exp(psi) * R, sparse.eye_array(p) / 1000.0])
        for _ in range(50):
            mu = reads * np.exp(B @ x)
            gradient = B.T @ (y - mu) - P @ x
            move = splu(_hessian(B, mu, P)).solve(gradient)
            x = x + move * min(1.0, 2.0 / np.max(np.abs(move)))
            if gradient @ move < 1e-12:
                break
        mu = reads * np.exp(B @ x)
        factor = splu(_hessian(B, mu, P))
        log_determinant = np.log(np.abs(factor.U.diagonal())).sum()
        value = np.sum(y * np.log(mu) - mu - gammaln(y + 1)) - 0.5 * x @ P @ x
        value += 0.5 * (n - 1) * psi - 0.5 * np.log(gaps).sum() - 0.5 * p * np.log(1000.0)
        value += 0.5 * np.log(2 * np.pi) - 0.5 * log_determinant
        terms.append(value + np.log(5e-5) + psi - 5e-5 * np.exp(psi))
    expected = logsumexp(terms) + np.log(width)
    assert _log_evidence(methylation, [RW1("pos")], columns) == pytest.approx(expected, abs=0.01)
