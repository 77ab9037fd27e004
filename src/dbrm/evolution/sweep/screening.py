r"""Screens factors and functions of a one-term law before any of its inputs are chosen.

For every factor :math:`F` and function :math:`g` at once, how well do all of a few columns
together explain :math:`g^{-1}(y / F)`? With weights :math:`w = |F g'|`, the weighted Gram
matrices of all factors under one function are one matrix product: squared weights times the
products of pairs of columns.

A row that cannot be inverted (a root of a negative number) has weight zero.
"""

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.evolution.sweep.inverses import Function

__all__ = ["invert", "share_left"]

# Least share of rows that must be invertible.
_MOST = 0.9
# Added to the diagonal of Gram matrices of columns of unit length.
_RIDGE = 1e-9


def invert(
    function: Function, response: Column, factors: Matrix
) -> tuple[Matrix, Matrix, FloatArray, Mask]:
    """What the function is applied to, with weights and signs, for each factor (columns).

    Also which factors are usable: nearly all rows can be inverted.
    """
    with np.errstate(all="ignore"):
        ratio = response[:, None] / factors
        signs = np.where(np.nansum(np.sign(ratio), axis=0) < 0, -1.0, 1.0)
        target = function.inverse(signs * ratio)
        weight = np.abs(factors * function.slope(target))
    sound = np.isfinite(target) & np.isfinite(weight)
    target, weight = np.where(sound, target, 0.0), np.where(sound, weight, 0.0)
    return target, weight, signs, sound.mean(axis=0) >= _MOST


def share_left(function: Function, response: Column, factors: Matrix, inputs: Matrix) -> FloatArray:
    """Share of the response's variance that a sum of all inputs leaves, for each factor.

    Rows that cannot be inverted are left as they are: they count as unexplained.
    """
    target, weight, _, usable = invert(function, response, factors)
    design = np.column_stack([np.ones(len(inputs)), inputs])
    size = design.shape[1]
    first, second = np.triu_indices(size)
    squares = weight * weight
    pairs = squares.T @ (design[:, first] * design[:, second])
    gram = np.empty((factors.shape[1], size, size))
    gram[:, first, second] = gram[:, second, first] = pairs
    cross = (squares * target).T @ design
    with np.errstate(all="ignore"):
        scale = np.sqrt(np.maximum(np.diagonal(gram, axis1=1, axis2=2), np.finfo(float).tiny))
        gram /= scale[:, :, None] * scale[:, None, :]
        gram[:, np.arange(size), np.arange(size)] += _RIDGE
        cross /= scale
        usable = usable & np.isfinite(gram).all(axis=(1, 2)) & np.isfinite(cross).all(axis=1)
        gram[~usable], cross[~usable] = np.eye(size), 0.0
        solved = np.linalg.solve(gram, cross[:, :, None])[:, :, 0]
        # By the residuals themselves: sums of squares cancel.
        fitted = design @ (solved / scale).T
        rest = np.sum(squares * (target - fitted) ** 2, axis=0)
        centred = response - response.mean()
        rest += np.where(weight == 0.0, (centred * centred)[:, None], 0.0).sum(axis=0)
        left = rest / float(centred @ centred)
    return np.where(usable & np.isfinite(left), left, np.inf)
