r"""All subsets of columns beside given latent effects, by one expansion at their joint mode.

With the hyperparameters fixed and the effects integrated out, the log likelihood of the
coefficients near the fit :math:`\hat b` of one model is

.. math:: \ell(b) \approx c + s'(b - \hat b) - \tfrac12 (b - \hat b)'S(b - \hat b),

with :math:`S` the information and :math:`s` the gradient: every model is a subset of one Gram
matrix. Exact for a Gaussian response at these hyperparameters. For deciding which models to
evaluate, never reported.
"""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, final

import numpy as np

from dbrm._kernels.enumeration import prior_of_all
from dbrm._kernels.glm import TABLE
from dbrm._kernels.piecewise import glm_score_of_all
from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evidence.glm_expansion import free_of_fixed, residuals_of_subsets
from dbrm.evidence.nested_laplace import Conditional

if TYPE_CHECKING:
    from dbrm.evidence.latent_engine import LatentEngine

__all__ = ["Expansion"]

# Least residual sum of squares, as a share of that of the model expanded at.
_LEAST_RESIDUAL = 1e-3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    r"""The likelihood of the free columns, quadratic.

    Parameters
    ----------
    gram, cross
        :math:`S` and :math:`s + S\hat b` of the free columns, once those that every model
        contains are fitted.
    here
        What the model expanded at explains: :math:`b'Sb`.
    log_information
        Log of the information of the intercept.
    ridge
        Prior precision of each slope, zero under priors that are functions of the fit.
    """

    gram: Matrix
    cross: FloatArray
    here: float
    log_information: float
    ridge: FloatArray

    @classmethod
    def at(
        cls,
        model: Conditional,
        theta: FloatArray,
        delta: FloatArray,
        beta: FloatArray,
        n_fixed: int,
    ) -> "Expansion | None":
        """Expand a model of all columns at given variables; the first `n_fixed` stay in."""
        found = model.expand(theta, delta, beta)
        if found is None:
            return None
        schur, gradient = found
        own = beta[: model.n_fixed]
        linear = gradient + schur @ own
        gram, cross, _ = free_of_fixed(schur, linear, 0.0, n_fixed)
        inside = own[n_fixed:]
        here = float(inside @ gram @ inside)
        return cls(gram, cross, here, log(schur[0, 0]), model.slope_precision[n_fixed - 1 :])

    def select(self, most: int, least: float) -> IntArray:
        """At most so many columns, picked one by one while each explains enough."""
        gram, cross = self.gram.copy(), self.cross.copy()
        unit = np.diag(gram).copy()
        chosen: list[int] = []
        while len(chosen) < min(most, cross.size):
            left = np.maximum(np.diag(gram), 0.0)
            usable = left > 1e-6 * unit
            gains = np.where(usable, cross**2 / np.where(usable, left, 1.0), 0.0)
            gains[chosen] = 0.0
            best = int(np.argmax(gains))
            if gains[best] <= least:
                break
            chosen.append(best)
            factor = gram[:, best] / gram[best, best]
            cross = cross - factor * cross[best]
            gram = gram - np.outer(factor, gram[best])
        return np.array(sorted(chosen), dtype=np.int64)

    def score_all(self, engine: "LatentEngine", max_size: int) -> FloatArray:
        """Log evidence of all subsets up to a constant; ``-inf`` for too large ones.

        An unknown dispersion is profiled, in proportion to the variances of the effects.
        """
        n = engine.n
        whole = np.linalg.lstsq(self.gram, self.cross, rcond=None)[0]
        total = 2.0 * max(n + self.here, float(self.cross @ whole))
        left = residuals_of_subsets(self.gram, self.cross, total, max_size)
        possible = np.isfinite(left)
        explained = np.where(possible, total - left, 0.0)
        value = 0.5 * explained
        if engine.noise.free:
            share = np.maximum((n + self.here - explained) / n, _LEAST_RESIDUAL)
            value = -0.5 * n * np.log(share)
        value = np.where(possible, value, -np.inf)
        n_always = engine.always_columns[0].shape[1]
        prior = engine.prior_of_sizes(tuple(range(n_always, n_always + self.cross.size + 1)))
        if prior.kind == TABLE:
            wald = np.maximum(explained, 0.0)
            table = prior.table.arguments
            return np.asarray(glm_score_of_all(value, self.log_information, wald, table))
        shrinkage = 0.5 * np.log(self.ridge / np.diag(self.gram))
        terms = prior_of_all(shrinkage, np.zeros(shrinkage.size + 1), np.zeros(1))
        return np.asarray(value + terms)
