"""Records of many arrays, passed to compiled functions as one array of words.

Numba passes a record of fifty arrays as several hundred numbers, and a function that only passes
it on takes longer to compile for that than for what it does. An opaque record holds these numbers
in memory as 64-bit words; functions that need the record read it from there.

The words hold Numba's arrays as Numba lays them out in memory, without their owner. That layout is
not part of Numba's interface: `owned` checks it on the first record of every process.
"""

import numba as nb
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from dbrm._kernels.compilation import INTERNAL

__all__ = ["check_layout", "from_words", "owned", "to_words"]

_checked = False


class _Owner:
    """Shows the words as an array and keeps the record's arrays alive beside them."""

    def __init__(self, record, words):
        self.parts = record, words
        self.__array_interface__ = words.__array_interface__


def owned(record, words):
    """The same words, as an array that keeps the record in them alive."""
    global _checked
    if not _checked:
        check_layout(record, words)
        _checked = True
    return np.asarray(_Owner(record, words))


def check_layout(record, words):
    """Raise unless the arrays of a record are in its words as `from_words` relies on.

    An array is the words owner (none), Python object (none), number of elements, bytes of one,
    address, then its shape and its strides.
    """
    for array in _arrays(record):
        head = [0, 0, array.size, array.itemsize, array.ctypes.data]
        wanted = np.array([*head, *array.shape, *array.strides], dtype=np.int64)
        windows = np.lib.stride_tricks.sliding_window_view(words, wanted.size)
        if not np.any(np.all(windows == wanted, axis=1)):
            msg = (
                "Generalised linear models rely on how Numba lays out arrays in memory, and Numba "
                f"{nb.__version__} does it in another way. Install an earlier version of Numba, "
                "for example with pip install 'numba<0.69', and report this to the authors of dbrm."
            )
            raise RuntimeError(msg)


def _arrays(record):
    if isinstance(record, np.ndarray):
        return [record]
    parts = record if isinstance(record, tuple) else ()
    return [array for part in parts for array in _arrays(part)]


@nb.njit(**INTERNAL)
def to_words(record, kind):
    """Words with a record of this type, valid while the record's arrays live (`owned`)."""
    words = np.empty(_n_words(record), dtype=np.int64)
    _write(record, kind, words)
    return words


def _without_owner(context, builder, kind, value):
    """The same value with arrays whose references Numba does not count."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for i, part in enumerate(kind.types):
            inner = _without_owner(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, inner, i)
    return value


def _pointer(context, builder, kind, words_kind, words):
    """Where a record of this type begins in the words."""
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
        msg = f"An opaque record of type {kind.instance_type} was given {record}."
        raise TypingError(msg)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        value = _without_owner(context, builder, record, arguments[0])
        builder.store(value, _pointer(context, builder, record, words, arguments[2]))
        return context.get_dummy_value()

    return types.void(record, kind, words), generate


@intrinsic
def from_words(typing_context, words, kind):  # noqa: ARG001
    """The record of this type in the words; for compiled functions."""
    record = kind.instance_type

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        return builder.load(_pointer(context, builder, record, words, arguments[0]))

    return record(words, kind), generate
