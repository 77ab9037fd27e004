"""Small latent models for the tests here, and their dense twins."""

import numpy as np
import scipy.stats

from dbrm.evidence.coefficient_priors.classical import Jeffreys
from dbrm.evidence.coefficient_priors.radial import Normal
from dbrm.evidence.families import find_family
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.latent.layout import Layout
from dbrm.evidence.latent.nodes import bind, columns_of
from dbrm.evidence.links import find_link
from dbrm.evidence.nested_laplace import Conditional, Noise, Response

PLAIN = Jeffreys(constant="none")


def conditional(
    y,
    effects,
    places,
    X=None,
    *,
    family="gaussian",
    prior=PLAIN,
    offset=None,
    trials=None,
    weights=None,
    noise=None,
):
    """A model over columns that are used as they are."""
    n = y.size
    chosen = find_family(family)
    link = find_link(chosen.default_link)
    weights = np.ones(n) if weights is None else weights
    counts = np.ones(n) if trials is None else trials
    mean = y / counts
    response = Response(
        chosen.code,
        link.code,
        mean,
        weights * counts,
        np.zeros(n) if offset is None else offset,
        chosen.constants(y, weights, counts, mean),
    )
    X = np.empty((n, 0)) if X is None else X
    sizes = np.arange(X.shape[1] + 1)
    layout = Layout([bind(e, columns_of(e, places), n) for e in effects], n)
    table = glm_prior(prior, sizes, float(weights.sum()), dispersed=False)
    ones = np.ones(X.shape[1])
    return Conditional(response, layout, X, ones, table, X.shape[1], noise or Noise())


def dense_precision(effect, psi, positions):
    band = effect.precision(psi, positions)
    full = np.diag(band[:, 0])
    for d in range(1, band.shape[1]):
        full += np.diag(band[d:, d], -d) + np.diag(band[d:, d], d)
    return full


def dense_covariance(bounds, psis):
    """Covariance of the sum of effects in the rows, constraints by the pseudo-inverse."""
    total = 0.0
    for bound, psi in zip(bounds, psis, strict=True):
        precision = dense_precision(bound.effect, psi, bound.positions)
        values, vectors = np.linalg.eigh(precision)
        kept = slice(bound.effect.nullity, None)
        covariance = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        rows = np.zeros((bound.index.shape[0], bound.size))
        for index, loading in zip(bound.index.T, bound.loadings.T, strict=True):
            rows[np.arange(index.size), index] += loading
        total = total + rows @ covariance @ rows.T
    return total


def dense_log_evidence(y, X, covariance, variance, prior=PLAIN):
    """Gaussian log evidence: flat intercept; slopes flat (at the maximum) or normal."""
    n = y.size
    V = covariance + variance * np.eye(n)
    if isinstance(prior, Normal):
        V = V + prior.variance * X @ X.T
        X = np.empty((n, 0))
    B = np.column_stack([np.ones(n), X])
    beta = np.linalg.solve(B.T @ np.linalg.solve(V, B), B.T @ np.linalg.solve(V, y))
    value = scipy.stats.multivariate_normal(B @ beta, V).logpdf(y)
    if isinstance(prior, Normal):
        information = np.ones(n) @ np.linalg.solve(V, np.ones(n))
        value += 0.5 * np.log(2 * np.pi / information)
    return value
