"""The best sums of a few columns among many, by trying all of them."""

import numpy as np

from dbrm._kernels.subsets import best_subsets
from dbrm._typing import Column, FloatArray, Matrix

__all__ = ["best_sums"]

# Share of a column's squares beside others below which it is one of them.
_DEPENDENT = 1e-10
# Share of the squares below which differences of them have lost their digits; and what is left of
# these where nothing is: sums that leave less count as equal.
_CANCELLED, _NOTHING = 1e-8, 1e-14


def best_sums(
    target: Column,
    weight: Column,
    columns: Matrix,
    prices: FloatArray,
    most: int,
    listed: int,
    *,
    smallest: int = 1,
    beside: Matrix | None = None,
) -> list[tuple[float, tuple[int, ...]]]:
    r"""The best subsets of columns beside a constant, with the squares that they leave.

    By weighted least squares. Subsets :math:`S` of a size are ranked by
    :math:`\frac n2 \log \mathrm{RSS}(S) + \sum_{j \in S} c_j` with the prices :math:`c_j`.

    Parameters
    ----------
    weight
        Square root of each row's weight; rows where it is not finite have none.
    prices
        What each column costs, in nats.
    smallest, most
        Sizes of the subsets.
    listed
        Subsets of each size that are returned.
    beside
        Columns that all of them have beside the constant.
    """
    weight = np.where(np.isfinite(weight), weight, 0.0)
    design = columns * weight[:, None]
    wanted, base = target * weight, weight / max(float(np.linalg.norm(weight)), 1e-300)
    design = design - np.outer(base, base @ design)
    wanted = wanted - base * (base @ wanted)
    if beside is not None and beside.shape[1]:
        always = beside * weight[:, None]
        bases, _ = np.linalg.qr(always - np.outer(base, base @ always))
        design = design - bases @ (bases.T @ design)
        wanted = wanted - bases @ (bases.T @ wanted)
    lengths = np.linalg.norm(design, axis=0)
    sound = np.flatnonzero(np.isfinite(lengths) & (lengths > 0.0))
    if not (sound.size and np.isfinite(wanted @ wanted)):
        return []
    design = design[:, sound] / lengths[sound]
    gram, cross, total = design.T @ design, design.T @ wanted, float(wanted @ wanted)
    factors = np.exp(2.0 / target.size * (prices[sound] - prices[sound].min()))
    found = []
    for size in range(smallest, min(most, sound.size) + 1):
        left, members = best_subsets(
            gram, cross, total, factors, size, listed, _DEPENDENT, _NOTHING * total
        )
        for squares, chosen in zip(left.tolist(), members, strict=True):
            if not np.isfinite(squares):
                break
            if squares < _CANCELLED * total:
                # By the residual itself: sums of squares cancel.
                block = design[:, chosen]
                rest = wanted - block @ np.linalg.lstsq(block, wanted, rcond=None)[0]
                squares = float(rest @ rest)
            found.append((squares, tuple(int(sound[j]) for j in chosen)))
    return found
