"""Nonlinear least squares for the few numbers of a law, by Levenberg and Marquardt's method.

Hundreds of laws are fitted in a second, each from a good start: a general optimiser would spend
most of its time on what they do not need.
"""

from collections.abc import Callable

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix

__all__ = ["fit_numbers"]

# Steps at most, their damping at first, its factors after success and failure, and its most.
_STEPS, _DAMPING, _LESS, _MORE, _MOST = 30, 1e-4, 0.1, 10.0, 1e8
# Relative fall of the squares below which nothing is gained, and squares that are rounding.
_FALL, _ROUNDING = 1e-10, 1e-28


def fit_numbers(
    residual: Callable[[FloatArray], Column],
    slopes: Callable[[FloatArray], Matrix],
    start: FloatArray,
    steps: int = _STEPS,
) -> FloatArray:
    """Numbers near the start that make the squares of the residual least.

    Parameters
    ----------
    residual, slopes
        Finite residuals of order one, and their derivatives by the numbers.
    steps
        Most of them.
    """
    numbers, rest = start, residual(start)
    squares, damping = float(rest @ rest), _DAMPING
    for _ in range(steps):
        if squares < _ROUNDING:
            break
        design = slopes(numbers)
        lengths = np.linalg.norm(design, axis=0)
        lengths = np.where(lengths > 0.0, lengths, 1.0)
        design = design / lengths
        wanted = np.concatenate([rest, np.zeros(numbers.size)])
        fall = 0.0
        while damping < _MOST:
            damped = np.vstack([design, np.sqrt(damping) * np.eye(numbers.size)])
            step = np.linalg.lstsq(damped, wanted, rcond=None)[0] / lengths
            tried = numbers - step
            after = residual(tried)
            fall = squares - float(after @ after)
            if fall >= 0.0:
                numbers, rest, squares = tried, after, squares - fall
                damping *= _LESS
                break
            if fall > -_FALL * squares:
                break
            damping *= _MORE
        if not fall > _FALL * squares:
            break
    return numbers
