"""Tests of `dbrm._kernels.gaussian`: one mask from the Gram matrix."""

import numpy as np
import pytest

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.gaussian import evaluate_gaussian, evaluate_many
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.status import Status


@pytest.fixture
def prepared(rng):
    columns = rng.normal(size=(25, 6))
    columns[:, 5] = columns[:, 0] + columns[:, 2]
    return GaussianEngine(rng.normal(size=25), Jeffreys()).prepare(columns)


def test_one_mask_at_a_time_equals_all_at_once(prepared):
    """Cholesky of one mask and elimination of all: two routes, one number and status."""
    masks = unpack_index(np.arange(64), 6)
    values, statuses = prepared.log_evidence(masks)
    of_all, all_statuses = prepared.log_evidence_of_all(6)
    np.testing.assert_allclose(values, of_all, rtol=1e-11)
    np.testing.assert_array_equal(statuses, all_statuses)
    dependent = masks[:, 0] & masks[:, 2] & masks[:, 5]
    np.testing.assert_array_equal(statuses == Status.RANK_DEFICIENT, dependent)
    assert np.all(values[dependent] == -np.inf)


def test_compiled_equals_plain(prepared):
    context = prepared.context
    masks = unpack_index(np.arange(64), 6)
    values, statuses = evaluate_many(context, masks)
    for mask, value, status in zip(masks, values, statuses, strict=True):
        plain = evaluate_gaussian.py_func(context, mask)
        assert plain[0] == pytest.approx(value, rel=1e-12)
        assert plain[1] == status


def test_a_model_too_large_for_the_rows_is_undefined(rng):
    prepared = GaussianEngine(rng.normal(size=4), Jeffreys()).prepare(rng.normal(size=(4, 3)))
    value, status = evaluate_gaussian(prepared.context, np.ones(3, dtype=np.bool_))
    assert value == -np.inf
    assert status == Status.UNDEFINED
