"""From a smooth function to the rows of a score table.

The function is sampled at Chebyshev nodes of panels that are halved until the series
has converged, and the series is then re-expanded on the equally wide panels that the
compiled loops want. This module sees a function of one argument and nothing else.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from dbrm._kernels.piecewise import COEFFICIENTS
from dbrm._typing import FloatArray, Matrix

__all__ = ["WIDEST", "panels_per_unit", "tabulate"]

# Nodes of a sampled panel.
NODES = 32
# The whole range is a multiple of this; sampled panels are this wide, or halves of it, and
# cover at most this many stored ones.
WIDEST = 8
MOST_STORED = 64
# Stored panels per unit where nothing finer is tried.
FINEST = 1024
# The last coefficients of a converged series, relative to its smallest value, and what
# rounding leaves of them, relative to its largest.
TOLERANCE = 2e-13
NOISE = 2e-15
# Error of a stored panel, and what it may be relative to the value.
STORED_TOLERANCE = 1e-10
STORED_NOISE = 5e-14


def panels_per_unit(largest_size: int) -> int:
    r"""Stored panels per unit of the argument with which to begin.

    A mixture turns from hopeless to supported around :math:`W = p`, over a distance of
    :math:`4/\sqrt p` in :math:`\log W`: larger models need narrower panels. Between two modes
    of the integrand whose masses differ by :math:`e^L` it turns over a distance of :math:`1/L`:
    such mixing densities need narrower ones still, as `tabulate` finds out.
    """
    per_unit = 8
    while per_unit**2 < largest_size:
        per_unit *= 2
    return per_unit


def tabulate(
    function: Callable[[FloatArray], FloatArray], length: int, per_unit: int
) -> Matrix | None:
    """Coefficients of `function` on ``[0, length]``, panels by powers.

    ``None`` if some panel is too wide to follow the function; the finest ones follow it as
    far as they can.

    Parameters
    ----------
    length
        A multiple of `WIDEST`.
    per_unit
        Stored panels per unit, a power of two.
    """
    # Widths in stored panels, the next one last.
    widest = min(WIDEST * per_unit, MOST_STORED)
    ahead = [widest] * (length * per_unit // widest)
    rows = np.empty((length * per_unit, COEFFICIENTS))
    ends = np.empty(length * per_unit)
    first = 0
    while ahead:
        width = ahead.pop()
        values = function((first + 0.5 * width * (_nodes(NODES) + 1)) / per_unit)
        if width > 1 and not _converged(values):
            ahead += [width // 2, width // 2]
            continue
        rows[first : first + width] = _reexpand(values, width)
        ends[first : first + width] = _at_ends(width) @ values
        first += width
    return rows if per_unit >= FINEST or _follows(rows, ends) else None


def _converged(values: FloatArray) -> bool:
    """Whether the last coefficients are small beside every value, or are rounding noise."""
    tail = float(np.abs(_last_rows() @ values).max())
    sizes = np.abs(values)
    return tail <= max(TOLERANCE * max(1.0, float(sizes.min())), NOISE * float(sizes.max()))


def _reexpand(values: FloatArray, width: int) -> Matrix:
    """Powers on each of `width` equal parts of a panel from values at its nodes."""
    samples = (_resampling(width) @ values).reshape(width, COEFFICIENTS)
    # Without its level a part loses nothing to cancellation in the high powers.
    level = samples.mean(axis=1, keepdims=True)
    rows: Matrix = np.asarray((samples - level) @ _to_powers().T, dtype=np.float64)
    rows[:, 0] += level[:, 0]
    return rows


def _follows(rows: Matrix, ends: FloatArray) -> bool:
    """Whether stored panels meet the function at their ends, where interpolation is worst."""
    error = np.abs(rows.sum(axis=1) - ends)
    allowed = np.maximum(STORED_TOLERANCE, STORED_NOISE * np.abs(rows[:, 0]))
    return bool(np.all(error <= allowed))


@cache
def _nodes(count: int) -> FloatArray:
    return np.cos(np.pi * (np.arange(count)[::-1] + 0.5) / count)


@cache
def _to_series(count: int) -> Matrix:
    """Chebyshev coefficients from values at the nodes."""
    matrix: Matrix = np.array(chebyshev.chebvander(_nodes(count), count - 1).T)
    matrix *= 2.0 / count
    matrix[0] /= 2
    return matrix


@cache
def _last_rows() -> Matrix:
    return np.ascontiguousarray(_to_series(NODES)[-3:])


@cache
def _resampling(width: int) -> Matrix:
    """Values at the nodes of `width` equal parts from values at the nodes of the whole."""
    parts = (np.arange(width)[:, None] + 0.5 * (_nodes(COEFFICIENTS) + 1)) * 2 / width - 1
    matrix: Matrix = chebyshev.chebvander(parts.ravel(), NODES - 1) @ _to_series(NODES)
    return matrix


@cache
def _at_ends(width: int) -> Matrix:
    """Values at the right ends of `width` equal parts from values at the nodes of the whole."""
    ends = np.arange(1, width + 1) * 2 / width - 1
    matrix: Matrix = chebyshev.chebvander(ends, NODES - 1) @ _to_series(NODES)
    return matrix


@cache
def _to_powers() -> Matrix:
    """Power coefficients from values at the nodes of a stored panel."""
    powers = np.zeros((COEFFICIENTS, COEFFICIENTS))
    for k in range(COEFFICIENTS):
        powers[: k + 1, k] = chebyshev.cheb2poly(np.eye(COEFFICIENTS)[k, : k + 1])
    matrix: Matrix = powers @ _to_series(COEFFICIENTS)
    return matrix
