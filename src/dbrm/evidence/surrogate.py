r"""Cheap stand-ins for GLM evidence: where to look first, never what to report.

`after_steps` stops Newton's method early; two steps from the null model are within about
a tenth of a nat on average, even for strong signals. `quadratic_of_all` replaces the log
likelihood by its quadratic expansion at one point :math:`b_0` (approximate Laplace,
Rossell et al. 2021),

.. math:: \hat\ell(M) \approx \ell(b_0) + \tfrac12 g_M' H_M^{-1} g_M ,

with score :math:`g` and information :math:`H` at :math:`b_0`: all models of a population
from one Gram matrix. It orders weak signals well and strong ones badly (tens of nats
off), so it may screen or open a delayed acceptance, no more.
"""

from typing import Literal

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import residuals_of_all
from dbrm._kernels.glm import TABLE, evaluate_many_glm, linearise_in
from dbrm._kernels.glm_dispersion import log_likelihood, profile_shape
from dbrm._kernels.glm_problem import GlmContext, GlmStart, boxed
from dbrm._typing import FloatArray, Masks, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.glm_population import DEPENDENCE_TOLERANCE, GlmPopulation

__all__ = ["after_steps", "quadratic_of_all"]


def after_steps(population: GlmPopulation, masks: Masks, steps: int = 2) -> FloatArray:
    """Log evidence of each mask after this many Newton steps from the null model.

    The likelihood where the steps end, without extrapolation; ``-inf`` as in
    `GlmPopulation.log_evidence`. The first step needs no pass over the rows.
    """
    if steps < 1:
        msg = f"after_steps needs steps of at least 1; got steps={steps!r}."
        raise InvalidSettingError(msg)
    start: GlmStart = population.problem.start
    one_place = GlmStart(*start[:6], np.zeros((0, 0)), np.zeros(0))
    problem = population.problem._replace(start=one_place, max_iterations=steps - 1)
    values, _ = evaluate_many_glm(
        GlmContext(population.call, boxed(problem)), np.array(masks, dtype=np.bool_, order="C")
    )
    return np.asarray(values)


def quadratic_of_all(
    population: GlmPopulation, max_size: int, at: Literal["null", "zero"] = "null"
) -> FloatArray:
    """Approximate log evidence of all subsets; bit ``j`` of the index is column ``j``.

    Parameters
    ----------
    population
        Prepared with a prior that does not look at the Wald statistic.
    max_size
        Larger subsets, and dependent ones, get ``-inf``.
    at
        Expand at the fitted null model, or at coefficients of zero.
    """
    problem = population.problem
    if problem.prior != TABLE or problem.strict:
        msg = "quadratic_of_all needs a prior such as jeffreys, bic or aic."
        raise InvalidSettingError(msg)
    value, hessian, gradient = _expansion(population, at)
    gram, cross, gain = _without_fixed(hessian, gradient, problem.rows.n_fixed)
    # The kernel subtracts explained from total squares; with total zero minus the gain is left.
    explained = -residuals_of_all(gram, cross, 0.0, max_size, DEPENDENCE_TOLERANCE, 0.0)
    explained[~np.isfinite(explained)] = -np.inf
    likelihood = _full(population, value + 0.5 * (gain + explained))
    sizes = unpack_index(np.arange(1 << population.size), population.size).sum(axis=1)
    return np.asarray(likelihood + problem.table[0][sizes] + problem.dispersion)


def _expansion(population: GlmPopulation, at: str) -> tuple[float, Matrix, FloatArray]:
    """Value, information and score of all columns at the point of expansion."""
    problem, design = population.problem, population.design
    if at == "null":
        start = problem.start
        return float(start.value), start.hessian, start.gradient
    work = problem.work
    value = linearise_in(boxed(problem), problem.start.shape, design.offset)
    return float(value), design.gram(work.weight), design.flat @ work.score


def _without_fixed(
    hessian: Matrix, gradient: FloatArray, n_fixed: int
) -> tuple[Matrix, FloatArray, float]:
    """Schur complement of the fixed columns, and what they gain by themselves."""
    fixed, free = slice(None, n_fixed), slice(n_fixed, None)
    solved = np.linalg.solve(
        hessian[fixed, fixed], np.column_stack([hessian[fixed, free], gradient[fixed]])
    )
    gram = hessian[free, free] - hessian[free, fixed] @ solved[:, :-1]
    cross = gradient[free] - hessian[free, fixed] @ solved[:, -1]
    return np.ascontiguousarray(gram), cross, float(gradient[fixed] @ solved[:, -1])


def _full(population: GlmPopulation, values: FloatArray) -> FloatArray:
    """Log likelihoods from their moving parts; dispersion profiled, or as in the null model."""
    rows, start = population.problem.rows, population.problem.start
    out = np.full(values.size, -np.inf)
    for i in np.flatnonzero(np.isfinite(values)):
        shape = start.shape
        if rows.family in (0, 3) and np.isnan(rows.shape):
            shape = profile_shape(
                rows.family, rows.constants, values[i], rows.mean, rows.total, rows.mean, shape
            )
        out[i] = log_likelihood(rows.family, rows.constants, values[i], shape)
    return out
