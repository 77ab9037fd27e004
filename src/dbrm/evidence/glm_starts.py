"""Where all models of a population start: the fitted null model and the fitted full model."""

import numpy as np

from dbrm._kernels.glm import NORMAL_LOG_GAMMA, TABLE, linearise_in, maximise, place
from dbrm._kernels.glm_linalg import cross_products
from dbrm._kernels.glm_problem import GlmProblem, GlmStart, boxed
from dbrm._typing import FloatArray
from dbrm.evidence.design import Design, independent_columns
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.links import Link
from dbrm.status import Status

__all__ = ["full_start", "null_start", "plain_start", "typical_precision"]

# Precision of the standardised slopes in the full model, which may be separated.
_RIDGE = 0.1


def typical_precision(problem: GlmProblem) -> float:
    """Prior precision of the slopes, its prior mean where it is unknown."""
    if problem.prior == NORMAL_LOG_GAMMA:
        return float(problem.prior_shape / problem.prior_rate)
    return float(problem.prior_rate)


def null_start(problem: GlmProblem, design: Design, inner_eta: float) -> GlmStart:
    """Fit intercept and always-in columns, from a constant mean."""
    rows, work, start, box = problem.rows, problem.work, problem.start, boxed(problem)
    nothing = np.zeros(len(design.flat) - rows.n_fixed, dtype=np.bool_)
    k, _ = place(box, nothing, typical_precision(problem))
    work.beta[:] = 0.0
    work.beta[0] = inner_eta - float(np.average(design.offset, weights=design.total))
    work.eta[:] = design.offset
    work.eta[: design.n_live] += work.beta[0]
    value = linearise_in(box, start.shape, work.eta)
    if not value > -np.inf:
        value = _step_from(problem, design, inner_eta, k)
    value, _, shape, _ = maximise(box, k, value, start.shape)
    value = linearise_in(box, shape, work.eta)
    return GlmStart(
        work.beta[:k].copy(),
        work.eta.copy(),
        value,
        shape,
        design.gram(work.weight),
        _times(design, work.score),
        start.second_hessian,
        start.second_right,
    )


def _step_from(problem: GlmProblem, design: Design, constant: float, k: int) -> float:
    """One scoring step from a constant predictor, where adding it to the offset is impossible."""
    work, box = problem.work, boxed(problem)
    linearise_in(box, problem.start.shape, np.full(work.eta.size, constant))
    right = _times(design, work.weight * (constant - design.offset) + work.score)[:k]
    work.beta[:k] = np.linalg.lstsq(design.gram(work.weight)[:k, :k], right, rcond=None)[0]
    work.eta[:] = design.offset + work.beta[:k] @ design.flat[:k]
    return float(linearise_in(box, problem.start.shape, work.eta))


def full_start(problem: GlmProblem, design: Design) -> GlmStart:
    """Fit all independent columns, with a little ridge so that there is a maximum."""
    rows, work, box = problem.rows, problem.work, boxed(problem)
    start: GlmStart = problem.start
    kept = independent_columns(problem.unit_gram, 1e-6, max(design.n_live // 3, 1))
    mask = np.zeros(len(design.flat) - rows.n_fixed, dtype=np.bool_)
    mask[kept[kept >= rows.n_fixed] - rows.n_fixed] = True
    k, independent = place(box, mask, typical_precision(problem))
    if mask.sum() < 2 or not independent:
        return start
    if problem.prior == TABLE:
        work.penalty[rows.n_fixed : k] = _RIDGE
    _, _, shape, status = maximise(box, k, np.nan, start.shape)
    if status != Status.OK:
        return start
    linearise_in(box, shape, work.eta)
    right = _times(design, work.weight * (work.eta - design.offset) + work.score)
    return GlmStart(*start[:6], design.gram(work.weight), right)


def plain_start(
    problem: GlmProblem, design: Design, family: CompiledFamily, link: Link
) -> GlmStart:
    """Start from R's initial means."""
    work = problem.work
    start: GlmStart = problem.start
    eta = link.eta(family.initial_mean(design.mean, design.total))
    value = linearise_in(boxed(problem), start.shape, eta)
    right = _times(design, work.weight * (eta - design.offset) + work.score)
    return GlmStart(*start[:2], value, *start[3:6], design.gram(work.weight), right)


def _times(design: Design, vector: FloatArray) -> FloatArray:
    """Inner products of all columns with a vector; compiled sums, as in `Design.gram`."""
    out = np.zeros(len(design.flat))
    cross_products(design.flat, np.arange(len(design.flat)), len(design.flat), vector, out)
    return out
