"""Records handed over by address: read back whole, alive as long as their box, freed with it."""

import gc
import weakref
from collections import namedtuple

import numba as nb
import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from dbrm._kernels.boxes import fill, own, read
from dbrm._kernels.glm import evaluate_glm
from dbrm.evidence import GlmEngine, resolve_prior

Inner = namedtuple("Inner", "vector flag")
Outer = namedtuple("Outer", "count inner matrix pair")
KIND = types.BaseTuple.from_types(
    (
        types.int64,
        types.BaseTuple.from_types((types.float64[::1], types.boolean), Inner),
        types.float64[:, ::1],
        types.UniTuple(types.float64[::1], 2),
    ),
    Outer,
)


@nb.njit
def filled(record):
    return fill(record, KIND)


@nb.njit
def contents(box):
    record = read(box, KIND)
    record.inner.vector[0] += 1.0
    second = record.pair[1]
    return record.count, record.inner.flag, record.inner.vector.sum(), record.matrix[1, 0], second


def record_of(vector):
    return Outer(7, Inner(vector, True), np.arange(6.0).reshape(3, 2), (np.ones(1), np.arange(4.0)))


def test_reads_what_was_written_and_writes_to_the_same_arrays():
    vector = np.array([1.0, 2.0])
    record = record_of(vector)
    count, flag, total, corner, second = contents(own(record, filled(record)))
    assert (count, flag, total, corner) == (7, True, 4.0, 2.0)
    np.testing.assert_array_equal(second, np.arange(4.0))
    assert vector[0] == 2.0


def test_a_box_keeps_its_record_alive_and_frees_it():
    vector = np.array([1.0, 2.0])
    alive = weakref.ref(vector)
    record = record_of(vector)
    box = own(record, filled(record))
    del vector, record
    gc.collect()
    assert alive() is not None
    assert contents(box)[2] == 4.0
    del box
    gc.collect()
    assert alive() is None


def test_refuses_another_kind_of_record():
    with pytest.raises(TypingError, match="A box of"):
        filled(record_of(np.array([1, 2])))


def test_an_evaluation_outlives_its_population(rng):
    columns = rng.normal(size=(60, 4))
    response = (rng.random(60) < 0.5) * 1.0
    masks = np.eye(4, dtype=np.bool_)

    def population():
        return GlmEngine(response, resolve_prior("jeffreys"), "binomial").prepare(columns)

    expected, _ = population().log_evidence(masks)
    context = population().context
    gc.collect()
    rubbish = [np.full(500, np.nan) for _ in range(200)]
    values = [evaluate_glm(context, mask)[0] for mask in masks]
    assert len(rubbish) == 200
    np.testing.assert_array_equal(values, expected)
