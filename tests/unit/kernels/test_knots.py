"""Tests of `dbrm._kernels.knots`."""

import numpy as np
import pytest

from dbrm._kernels.knots import knot_shares


def basis_of(rng, n, q):
    """Orthonormal columns of an intercept and of others."""
    return np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, q))]))[0]


def brute_force(values, factor, residual, span, least):
    """Shares of hinges and steps, each knot by itself with columns written out."""
    shares = np.full((2, values.size), -1.0)
    live = factor != 0
    for i in range(values.size - 1):
        above = values > values[i]
        if values[i + 1] == values[i] or min(np.sum(above & live), np.sum(~above & live)) < least:
            continue
        columns = (factor * np.maximum(values - values[i], 0.0), factor * above)
        for kind, column in enumerate(columns):
            left = column - span @ (span.T @ column)
            shares[kind, i] = (left @ residual) ** 2 / ((left @ left) * (residual @ residual))
    return shares


@pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("with_factor", [False, True], ids=["alone", "times a factor"])
def test_every_knot_agrees_with_its_column_written_out(rng, tied, with_factor):
    n, least = 120, 4
    values = np.sort(rng.integers(0, 25, n) / 8.0 if tied else 1e3 + rng.normal(size=n))
    factor = rng.normal(size=n) * (rng.random(n) < 0.7) if with_factor else np.ones(n)
    spans = [basis_of(rng, n, q) for q in (0, 3, 1)]
    residuals = rng.normal(size=(n, 3))
    for k, span in enumerate(spans):
        residuals[:, k] -= span @ (span.T @ residuals[:, k])
    found = knot_shares(
        values, factor, residuals, np.hstack(spans), np.array([0, 1, 5, 7]), least, 1e-6
    )
    for k, span in enumerate(spans):
        expected = brute_force(values, factor, residuals[:, k], span, least)
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-7, atol=1e-10)
    assert np.sum(found[0, 0] >= 0) > 15


def test_no_knot_without_rows_on_both_sides(rng):
    residuals = rng.normal(size=(9, 1))
    intercept = np.full((9, 1), 1 / 3)
    for values in (np.zeros(9), np.array([0.0] * 7 + [1.0] * 2)):
        found = knot_shares(values, np.ones(9), residuals, intercept, np.array([0, 1]), 3, 1e-6)
        assert np.all(found == -1.0)


def test_a_column_inside_the_model_explains_nothing(rng):
    """A hinge that the model contains has no share of its own."""
    values = np.sort(rng.normal(size=50))
    inside = np.maximum(values - values[20], 0.0)
    span = np.linalg.qr(np.column_stack([np.ones(50), inside]))[0]
    residuals = rng.normal(size=(50, 1))
    residuals -= span @ (span.T @ residuals)
    found = knot_shares(values, np.ones(50), residuals, span, np.array([0, 2]), 3, 1e-6)
    assert found[0, 0, 20] == -1.0
    assert found[0, 0, 30] >= 0.0
