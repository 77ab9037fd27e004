"""Records of many arrays, handed over as one.

Numba passes a record of fifty arrays as several hundred numbers, and every function that
only hands it on takes longer to compile for it than for what it does. A box holds these
numbers in memory; who needs the record reads it there.
"""

import numba as nb
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from dbrm._kernels.internal import INTERNAL

__all__ = ["fill", "own", "read"]


class _Owner:
    """Shows the words as an array and keeps the record's arrays alive beside them."""

    def __init__(self, record, words):
        self.parts = record, words
        self.__array_interface__ = words.__array_interface__


def own(record, words):
    """The same words, as an array that keeps the record in them alive."""
    return np.asarray(_Owner(record, words))


@nb.njit(**INTERNAL)
def fill(record, kind):
    """Words with a record of this kind, valid while the record's arrays live (`own`)."""
    words = np.empty(_n_words(record), dtype=np.int64)
    _write(record, kind, words)
    return words


def _unowned(context, builder, kind, value):
    """The same value with arrays that nobody counts references to: the box's owner holds them."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind.types):
            inner = _unowned(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, inner, i)
    return value


def _pointer(context, builder, kind, words_kind, words):
    """Where a record of this kind begins in the words."""
    data = context.make_array(words_kind)(context, builder, words).data
    return builder.bitcast(data, context.get_value_type(kind).as_pointer())


@intrinsic
def _n_words(typing_context, record):  # noqa: ARG001
    def generate(context, builder, signature, arguments):  # noqa: ARG001
        size = context.get_abi_sizeof(context.get_value_type(record))
        return context.get_constant(types.intp, -(-size // 8))

    return types.intp(record), generate


@intrinsic
def _write(typing_context, record, kind, words):  # noqa: ARG001
    if record != kind.instance_type:
        msg = f"A box of {kind.instance_type} was given {record}."
        raise TypingError(msg)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        value = _unowned(context, builder, record, arguments[0])
        builder.store(value, _pointer(context, builder, record, words, arguments[2]))
        return context.get_dummy_value()

    return types.void(record, kind, words), generate


@intrinsic
def read(typing_context, words, kind):  # noqa: ARG001
    """The record of this kind in a box; for compiled functions."""
    record = kind.instance_type

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.load(_pointer(context, builder, record, words, arguments[0]))

    return record(words, kind), generate
