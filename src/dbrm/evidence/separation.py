r"""Are the classes separated? A linear program that proves it.

Maximum likelihood estimates of a binomial model are infinite exactly when some
coefficient vector classifies no row wrongly and at least one row strictly rightly
(Albert & Anderson 1984). With signs :math:`t_i = \pm 1` for rows of pure successes and
failures,

.. math:: \max_{b, s} \sum_i s_i, \qquad 0 \le s_i \le 1, \quad s_i \le t_i x_i' b,

and :math:`x_i' b = 0` for mixed rows: all :math:`s_i = 1` is complete separation, some
:math:`s_i > 0` quasi-complete separation.
"""

from enum import Enum

import numpy as np
import scipy.optimize
import scipy.sparse

from dbrm._typing import Column, Matrix

__all__ = ["Separation", "classify_separation"]


class Separation(Enum):
    """How far the classes are apart."""

    OVERLAP = "overlap"
    QUASI = "quasi-complete"
    COMPLETE = "complete"


def classify_separation(design: Matrix, rate: Column) -> Separation | None:
    """Solve the linear program for a design with intercept and success rates in [0, 1].

    Columns should be of comparable size. ``None`` where the program cannot be solved.
    """
    pure = (rate == 0.0) | (rate == 1.0)
    signed = design[pure] * np.where(rate[pure] > 0.5, 1.0, -1.0)[:, None]
    n, k = signed.shape
    if n == 0:
        return Separation.OVERLAP
    mixed = design[~pure]
    result = scipy.optimize.linprog(
        np.concatenate([np.zeros(k), -np.ones(n)]),
        A_ub=scipy.sparse.hstack([scipy.sparse.csr_array(-signed), scipy.sparse.eye_array(n)]),
        b_ub=np.zeros(n),
        A_eq=np.hstack([mixed, np.zeros((len(mixed), n))]) if len(mixed) else None,
        b_eq=np.zeros(len(mixed)) if len(mixed) else None,
        bounds=[(None, None)] * k + [(0.0, 1.0)] * n,
        method="highs",
    )
    if result.x is None:
        return None
    distance = result.x[k:]
    if len(mixed) == 0 and np.all(distance > 1.0 - 1e-6):
        return Separation.COMPLETE
    return Separation.QUASI if np.any(distance > 1e-6) else Separation.OVERLAP
