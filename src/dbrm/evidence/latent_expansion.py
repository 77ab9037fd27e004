r"""The likelihood of all columns beside given latent effects, expanded at their joint mode.

With the hyperparameters fixed and the effects integrated out, the log likelihood of the
coefficients near the fit :math:`\hat b` of one model is

.. math:: \ell(b) \approx c + s'(b - \hat b) - \tfrac12 (b - \hat b)'S(b - \hat b),

with :math:`S` their information and :math:`s` the gradient: every model is a subset of one Gram
matrix. For a Gaussian response nothing is approximated.
"""

import numpy as np

from dbrm._kernels.glm import NORMAL
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evidence.glm_expansion import Expansion
from dbrm.evidence.nested_laplace import Conditional
from dbrm.evidence.score import GlmTable

__all__ = ["expand", "select"]

# Share of the observations that the sum of squares left by all columns is at least.
_LEAST_LEFT = 0.1


def expand(
    model: Conditional,
    theta: FloatArray,
    delta: FloatArray,
    beta: FloatArray,
    table: GlmTable,
    *,
    n_fixed: int,
    n: float,
) -> Expansion | None:
    """Expand a model of all columns at given variables; ``None`` where that is impossible.

    An unknown dispersion is profiled, in proportion to the variances of the effects.

    Parameters
    ----------
    table
        The coefficient prior by the number of free columns in a model.
    n_fixed, n
        Number of columns that every model contains, the intercept among them; of observations.
    """
    found = model.expand(theta, delta, beta)
    if found is None:
        return None
    information, gradient = found
    own = beta[: model.n_fixed]
    cross = gradient + information @ own
    penalty = None
    if model.prior.kind == NORMAL:
        penalty = model.slope_precision[n_fixed - 1 :]
        places = np.arange(n_fixed, model.n_fixed)
        information[places, places] -= penalty
    # The sum of squares that is left is about the number of observations.
    whole = np.linalg.lstsq(information, cross, rcond=None)[0]
    total = max(n + float(own @ information @ own), n * _LEAST_LEFT + float(cross @ whole))
    return Expansion(
        information,
        cross,
        total,
        n_fixed,
        table.arguments,
        profiled=n if model.noise.free else None,
        penalty=penalty,
    )


def select(expansion: Expansion, most: int, least: float) -> IntArray:
    """At most so many free columns, picked one by one while each explains enough."""
    n_fixed = expansion.n_fixed
    gram, cross = expansion.gram.copy(), expansion.cross.copy()
    unit = np.diag(gram).copy()
    usable = np.arange(cross.size) >= n_fixed
    picked: list[int] = []
    for best in range(n_fixed):
        gram, cross = _sweep(gram, cross, best)
    while len(picked) < most:
        left = np.diag(gram)
        usable &= left > 1e-6 * unit
        gains = np.where(usable, cross**2 / np.where(usable, left, 1.0), 0.0)
        best = int(np.argmax(gains))
        if gains[best] <= least:
            break
        usable[best] = False
        picked.append(best - n_fixed)
        gram, cross = _sweep(gram, cross, best)
    return np.array(sorted(picked), dtype=np.int64)


def _sweep(gram: Matrix, cross: FloatArray, column: int) -> tuple[Matrix, FloatArray]:
    """Cross products of what one column leaves of the others."""
    factor = gram[:, column] / max(gram[column, column], np.finfo(float).tiny)
    return gram - np.outer(factor, gram[column]), cross - factor * cross[column]
