"""Maximise a feature's likelihood over its weights, from several starts.

Gradients where there are any, simplices or lines where there are none. Sees vectors of
numbers in units in which one is a sensible size.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dbrm._typing import FloatArray

__all__ = ["Objective", "maximize"]

# Value and gradient at a vector; the value is -inf where there is none.
Objective = Callable[[FloatArray], tuple[float, FloatArray]]

# Weights stay within this, or twice where they start: tanh(30 z) is as good as a step.
_LARGEST = 30.0
# Stands for an impossible value, so that line searches turn back.
_IMPOSSIBLE = 1e10
_MOST_FOR_SIMPLEX = 5


def maximize(
    objective: Objective,
    starts: Sequence[FloatArray],
    *,
    smooth: bool,
    max_iterations: int,
    scale: float,
) -> list[tuple[float, FloatArray]]:
    """End points, best first; none is worse than its start.

    Parameters
    ----------
    scale
        Number of observations: values are divided by it, for the stopping rules.
    """
    ends = []
    for start in starts:
        value = objective(start)[0]
        if not np.isfinite(value):
            continue
        found = _maximize_from(objective, start, smooth, max_iterations, scale)
        reached = objective(found)[0]
        ends.append((reached, found) if reached >= value else (value, start))
    # Stable: of equal values the earlier start wins.
    return sorted(ends, key=lambda end: -end[0])


def _maximize_from(
    objective: Objective, start: FloatArray, smooth: bool, max_iterations: int, scale: float
) -> FloatArray:
    from scipy.optimize import minimize

    origin = objective(start)[0]

    def descend(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(x)
        if not np.isfinite(value):
            return _IMPOSSIBLE, np.zeros_like(x)
        return (origin - value) / scale, -gradient / scale

    limits = np.maximum(_LARGEST, 2.0 * np.abs(start))
    bounds = list(zip(-limits, limits, strict=True))
    if smooth:
        options = {"maxiter": max_iterations, "ftol": 1e-11, "gtol": 1e-7}
        found = minimize(
            descend, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return np.asarray(found.x, dtype=np.float64)
    evaluations: dict[str, Any] = {"maxfev": 4 * max_iterations}

    def height(x: FloatArray) -> float:
        return descend(np.asarray(x, dtype=np.float64))[0]

    if start.size <= _MOST_FOR_SIMPLEX:
        # Steps are flat between jumps: the first simplex must be wide.
        simplex = np.vstack([start, start + 0.5 * np.diag(np.maximum(1.0, np.abs(start)))])
        found = minimize(
            height,
            start,
            method="Nelder-Mead",
            options={**evaluations, "initial_simplex": simplex},
        )
    else:
        found = minimize(height, start, method="Powell", bounds=bounds, options=evaluations)
    return np.asarray(found.x, dtype=np.float64)
