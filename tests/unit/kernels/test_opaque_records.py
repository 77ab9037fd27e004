"""Records handed over by address: read back whole, alive as long as their words, freed with it."""

import gc
import weakref
from collections import namedtuple

import numba as nb
import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from dbrm._kernels.glm import evaluate_glm
from dbrm._kernels.opaque_records import check_layout, from_words, owned, to_words
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
    return to_words(record, KIND)


@nb.njit
def contents(opaque):
    record = from_words(opaque, KIND)
    record.inner.vector[0] += 1.0
    second = record.pair[1]
    return record.count, record.inner.flag, record.inner.vector.sum(), record.matrix[1, 0], second


def record_of(vector):
    return Outer(7, Inner(vector, True), np.arange(6.0).reshape(3, 2), (np.ones(1), np.arange(4.0)))


def test_reads_what_was_written_and_writes_to_the_same_arrays():
    vector = np.array([1.0, 2.0])
    record = record_of(vector)
    count, flag, total, corner, second = contents(owned(record, filled(record)))
    assert (count, flag, total, corner) == (7, True, 4.0, 2.0)
    np.testing.assert_array_equal(second, np.arange(4.0))
    assert vector[0] == 2.0


def test_an_opaque_record_keeps_its_record_alive_and_frees_it():
    vector = np.array([1.0, 2.0])
    alive = weakref.ref(vector)
    record = record_of(vector)
    opaque = owned(record, filled(record))
    del vector, record
    gc.collect()
    assert alive() is not None
    assert contents(opaque)[2] == 4.0
    del opaque
    gc.collect()
    assert alive() is None


def test_the_layout_of_numbas_arrays_is_the_one_relied_on():
    record = record_of(np.array([1.0, 2.0]))
    check_layout(record, filled(record))


@pytest.mark.parametrize("place", range(-4, 3))
def test_another_layout_is_noticed(place):
    """Negative control: one word before or after an address is not what it should be."""
    record = record_of(np.array([1.0, 2.0]))
    words = filled(record)
    words[np.flatnonzero(words == record.matrix.ctypes.data)[0] + place] += 1
    with pytest.raises(RuntimeError, match="rely on how Numba lays out arrays"):
        check_layout(record, words)


def test_refuses_another_kind_of_record():
    with pytest.raises(TypingError, match="An opaque record of type"):
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
