"""Tests of `dbrm._kernels.prediction` against plain NumPy."""

import numpy as np
import pytest
from scipy.special import expit

from dbrm._kernels.prediction import mixed_logistic_means, quadratic_forms


def test_quadratic_forms_of_models_of_different_sizes(rng):
    columns = rng.normal(size=(5, 40))
    models = [np.array([0]), np.array([0, 3, 4]), np.array([0, 1])]
    roots = [rng.normal(size=(own.size, own.size)) for own in models]
    covariances = [root @ root.T for root in roots]
    sizes = np.array([0, *(own.size for own in models)])
    out = np.full((3, 40), np.nan)
    flat = np.concatenate([covariance.reshape(-1) for covariance in covariances])
    quadratic_forms(
        columns, np.concatenate(models), np.cumsum(sizes), flat, np.cumsum(sizes**2), out
    )
    for row, (own, covariance) in enumerate(zip(models, covariances, strict=True)):
        expected = np.einsum("in,ij,jn->n", columns[own], covariance, columns[own])
        np.testing.assert_allclose(out[row], expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.5, 30.0])
def test_logistic_means_by_the_same_sum(rng, scale):
    """Models with other numbers of nodes, and limits that a certain mean would leave."""
    weights = rng.dirichlet(np.ones(2), size=6).T.copy()
    locations, scales = 40.0 * rng.normal(size=(2, 6)), np.full((2, 6), scale)
    halves, reach, low, high = np.array([8, 25]), 7.0, 1e-6, 1.0 - 1e-6
    expected = np.zeros(6)
    for model, half in enumerate(halves):
        nodes = np.linspace(-reach, reach, 2 * half + 1)
        shares = np.exp(-0.5 * nodes**2)
        means = np.clip(expit(locations[model] + nodes[:, None] * scale), low, high)
        expected += weights[model] * (shares @ means) / shares.sum()
    ours = mixed_logistic_means(weights, locations, scales, halves, reach, low, high)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
