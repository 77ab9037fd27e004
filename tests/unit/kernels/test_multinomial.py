"""Tests of `dbrm._kernels.multinomial`, against the likelihood in NumPy."""

import numpy as np
import pytest

from dbrm._kernels.multinomial import climb
from dbrm.evidence import Observations, find_family
from dbrm.evidence.joint.newton import maximise


@pytest.fixture
def rows(rng):
    """Columns by rows, four classes, weights, an offset, and a penalty that couples classes."""
    columns = rng.normal(size=(3, 120))
    y = rng.integers(0, 4, size=120)
    y[columns[0] + 0.5 * rng.normal(size=120) > 1.0] = 2
    weights = rng.integers(1, 4, size=120).astype(float)
    alike = np.eye(3) - 0.25
    penalty = np.zeros((12, 12))
    penalty[3:, 3:] = np.kron(np.eye(3), alike)
    return columns, y, weights, 0.3 * rng.normal(size=120), penalty


def bound(y, weights):
    return find_family("multinomial").bind(Observations(y.astype(float), weights))


def test_steps_end_at_the_penalised_maximum(rows):
    columns, y, weights, offset, penalty = rows
    likelihood = bound(y, weights)
    start = np.concatenate([likelihood.start(), np.zeros(9)])
    found = climb(columns, y, weights, offset, start, penalty, 1e-18, 60)
    point = likelihood.at(found[:3], found[3:].reshape(3, 3).T @ columns + offset)
    slopes = columns @ point.score.T
    gradient = np.concatenate([point.ancillary_score, slopes.ravel()]) - penalty @ found
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


def test_one_step_is_newtons(rows):
    """From the null model, with derivatives by NumPy; the step is not halved there."""
    columns, y, weights, offset, penalty = rows
    likelihood = bound(y, weights)
    start = np.concatenate([likelihood.start(), np.zeros(9)])
    point = likelihood.at(start[:3], np.tile(offset, (3, 1)))
    gradient = np.concatenate([point.ancillary_score, (columns @ point.score.T).ravel()])
    step = np.linalg.solve(point.information(columns) + penalty, gradient)
    np.testing.assert_allclose(
        climb(columns, y, weights, offset, start, penalty, 1e-14, 1), start + step, rtol=1e-10
    )


def test_without_compiled_steps_the_maximum_is_the_same(rows, monkeypatch):
    columns, y, weights, offset, penalty = rows
    likelihood = bound(y, weights)
    start = np.concatenate([likelihood.start(), np.zeros(9)])
    found = maximise(likelihood, columns, offset, start, penalty)
    monkeypatch.setattr(type(likelihood), "approach", lambda self, c, o, start, p: start)
    plain = maximise(likelihood, columns, offset, start, penalty)
    np.testing.assert_allclose(found.parameters, plain.parameters, rtol=1e-8, atol=1e-10)
    assert found.status is plain.status


def test_columns_that_depend_stop_the_steps(rows):
    columns, y, weights, offset, _ = rows
    start = np.concatenate([bound(y, weights).start(), np.zeros(6)])
    twice = columns[[0, 0]]
    found = climb(twice, y, weights, offset, start, np.zeros((9, 9)), 1e-14, 60)
    np.testing.assert_array_equal(found, start)
