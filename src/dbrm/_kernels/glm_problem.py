"""The record that all evaluations of one population share, and its opaque form."""

from collections import namedtuple
from functools import cache

import numba as nb
import numpy as np
from numba import types

from dbrm._kernels.compilation import INTERNAL
from dbrm._kernels.glm_dispersion import Constants
from dbrm._kernels.opaque_records import from_words, owned, to_words

__all__ = [
    "CONTEXT",
    "EVALUATION",
    "FIT",
    "GRAM",
    "LINEARISE",
    "OPAQUE",
    "GlmContext",
    "GlmProblem",
    "GlmRows",
    "GlmStart",
    "GlmWork",
    "new_work",
    "opaque_problem",
    "problem_of",
]

# family, link: codes of `glm_rows`; quadratic: the curvature is the observed information; shape:
# the given shape, or nan; mean, total, offset: one value per (grouped, padded) row;
# columns: column x block x row, fixed ones first; flat: the same as column x row;
# linearise, gram: addresses of the two row loops (`glm_pointers`).
GlmRows = namedtuple(
    "GlmRows",
    "family link quadratic shape mean total offset columns flat n_fixed constants linearise gram",
)
# Where all masks start: coefficients and linear predictor of the null model, its information and
# gradient for all columns; information and right-hand side of a scoring step from a second place
# (the full model). numbers: value and shape of the null model, and whether there is a second place.
GlmStart = namedtuple("GlmStart", "beta eta numbers hessian gradient second_hessian second_right")
GlmWork = namedtuple(
    "GlmWork",
    "chosen beta trial direction gradient penalty eta moved score weight step scaled "
    "hessian factor",
)
# unit_gram: cross products of the columns scaled to unit length, for the rank; strict:
# information is needed at the maximum; dispersion: what an unknown one adds; table: of the
# prior, as `glm_score_one` takes it; scale: units of the raw columns, or ones where the prior
# does not see them; fit: address of the way to the maximum (`glm_pointers`).
GlmProblem = namedtuple(
    "GlmProblem",
    "rows start unit_gram tolerance prior strict dispersion table scale prior_shape "
    "prior_rate max_iterations fit work",
)
# What search loops hold: the address of the evaluation, and its first argument, an opaque record.
GlmContext = namedtuple("GlmContext", "call problem")

# Numba's types of all these. Declared, because an opaque record does not know its type.
OPAQUE = types.int64[::1]
_NUMBER, _COUNT, _FLAG = types.float64, types.int64, types.boolean
_VECTOR, _MATRIX, _BLOCKS = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
LINEARISE = _NUMBER(_COUNT, _COUNT, _NUMBER, *[_VECTOR] * 5)
GRAM = types.void(_BLOCKS, types.int64[::1], _COUNT, _MATRIX, _MATRIX, _MATRIX)
FIT = types.Tuple((_NUMBER, _NUMBER, types.uint8))(OPAQUE, _COUNT, _NUMBER, _NUMBER, _NUMBER)
EVALUATION = types.Tuple((_NUMBER, types.uint8))(OPAQUE, types.boolean[::1])


def _record(cls, *kinds):
    return types.BaseTuple.from_types(kinds, cls)


_CONSTANTS = _record(Constants, *[_NUMBER] * 5, _VECTOR, _VECTOR)
_ROWS = _record(
    GlmRows,
    *(_COUNT, _COUNT, _FLAG, _NUMBER, _VECTOR, _VECTOR, _VECTOR, _BLOCKS, _MATRIX, _COUNT),
    *(_CONSTANTS, types.FunctionType(LINEARISE), types.FunctionType(GRAM)),
)
_START = _record(GlmStart, *[_VECTOR] * 3, _MATRIX, _VECTOR, _MATRIX, _VECTOR)
_TABLE = types.Tuple((_VECTOR, _NUMBER, _VECTOR, _VECTOR, _VECTOR, _BLOCKS, _NUMBER))
_WORK = _record(GlmWork, types.int64[::1], *[_VECTOR] * 10, *[_MATRIX] * 3)
PROBLEM = _record(
    GlmProblem,
    *(_ROWS, _START, _MATRIX, _NUMBER, _COUNT, _FLAG, _NUMBER, _TABLE, _VECTOR, _NUMBER),
    *(_NUMBER, _COUNT, types.FunctionType(FIT), _WORK),
)
CONTEXT = _record(GlmContext, types.FunctionType(EVALUATION), OPAQUE)


@nb.njit(cache=True, nogil=True)
def _to_words(problem):
    return to_words(problem, PROBLEM)


@cache
def _writer():
    """The compiled `_to_words`. Called as a dispatcher, it would find out the type every time."""
    return _to_words.compile((PROBLEM,))


def opaque_problem(problem):
    """The problem as an opaque record."""
    return owned(problem, _writer()(problem))


@nb.njit(**INTERNAL)
def problem_of(opaque):
    """The problem in an opaque record."""
    return from_words(opaque, PROBLEM)


def new_work(n_columns: int, n_blocks: int, block: int) -> GlmWork:
    """Scratch space of one population."""
    wide = n_columns + 5
    rows = n_blocks * block
    return GlmWork(
        np.zeros(wide, dtype=np.int64),
        *(np.zeros(wide) for _ in range(5)),
        *(np.zeros(rows) for _ in range(5)),
        np.zeros((2, block)),
        *(np.zeros((wide, wide)) for _ in range(2)),
    )
