"""Any models of a population, by Newton's method on the device."""

from typing import Any

import numpy as np

from dbrm._kernels.glm_device import profile_many
from dbrm._kernels.glm_rows import NEGATIVE_BINOMIAL
from dbrm._typing import FloatArray, Masks, Matrix, StatusArray
from dbrm.evidence.device.platform import load_program
from dbrm.evidence.device.problem import DeviceProblem, Maxima
from dbrm.status import Status

__all__ = ["evaluate_models"]

# Largest change of the logarithm of a shape that has converged.
_SAME_SHAPE = 1e-8


def evaluate_models(problem: DeviceProblem, masks: Masks) -> tuple[FloatArray, StatusArray]:
    """Log evidence and status; of models that do not converge by the compiled path."""
    values = np.full(len(masks), -np.inf)
    statuses = np.full(len(masks), Status.RANK_DEFICIENT, dtype=np.uint8)
    masks = np.array(masks, dtype=np.bool_, order="C")
    possible = np.arange(len(masks))
    if not problem.is_independent:
        sizes = masks.sum(axis=1) + problem.base.n_settled
        undefined = np.asarray(problem.base.problem.table[0])[sizes] == -np.inf
        statuses[undefined] = Status.UNDEFINED
        possible = np.flatnonzero(~undefined & ~problem.dependent(masks))
    for rows in problem.cut(possible):
        found = _maximise(problem, problem.widen(masks[rows]), rows.size)
        half = masks[rows] @ problem.half_log_penalty[problem.n_fixed :][: problem.base.size]
        values[rows], statuses[rows] = problem.score(found, masks[rows].sum(axis=1), half)
        failed = rows[~found.converged]
        if failed.size:
            values[failed], statuses[failed] = problem.base.log_evidence(masks[failed])
    return values, statuses


def _maximise(problem: DeviceProblem, mask: Matrix, n_models: int) -> Maxima:
    """Newton's method, in turn with the dispersion where the two depend on each other."""
    on, settings = load_program(), problem.base.problem
    rows, likelihood, penalty = problem.rows, problem.likelihood, problem.penalty * mask
    shape = np.full(len(mask), float(settings.start.numbers[1]))
    scale = _scale(problem, shape)
    start = on.start_at(likelihood, rows, mask, penalty, problem.starts, shape, scale)
    for _ in range(settings.max_iterations if problem.alternates else 1):
        beta, values, done, separated = on.newton(
            likelihood, rows, mask, penalty, start, shape, scale, problem.limits
        )
        before, shape = shape, _profile(problem, beta, values, shape)
        scale = _scale(problem, shape)
        if np.all(np.abs(np.log(shape / before))[on.to_host(done)] < _SAME_SHAPE):
            break
        start = (beta, beta, np.full(len(mask), -np.inf))
    looked: tuple[Any, ...] = (values,)
    if problem.is_strict or problem.alternates:
        looked = on.finish(
            likelihood, rows, mask, penalty, beta, shape, scale, determined=problem.is_normal
        )
    found = on.to_host((done, separated, *looked))
    done, separated, value, *looks = (part[:n_models] for part in found)
    if looks:
        # Coefficients that are infinite are Firth's where a prior looks at them.
        separated = np.zeros_like(separated)
    return Maxima(done | separated, separated, value, shape[:n_models], *looks)


def _scale(problem: DeviceProblem, shape: FloatArray) -> FloatArray:
    """Factor of the likelihood beside the prior."""
    return shape if problem.is_scaled else np.ones(shape.size)


def _profile(problem: DeviceProblem, beta: Any, values: Any, shape: FloatArray) -> FloatArray:
    """The dispersion that maximises the likelihood of each model, as its shape."""
    on, rows = load_program(), problem.base.problem.rows
    if rows.family != NEGATIVE_BINOMIAL or not problem.alternates:
        return np.asarray(profile_many(problem.base.opaque, on.to_host(values)))
    table = rows.constants.squares, rows.constants.values, rows.constants.counts
    found = on.negative_binomial_shape(problem.likelihood, problem.rows, beta, shape, *table)
    return np.asarray(on.to_host(found))
