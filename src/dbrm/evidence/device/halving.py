"""All models of a population, by leaving out one column after the other on the device."""

from typing import Any

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.glm_device import profile_many
from dbrm._typing import FloatArray, IntArray, Mask, Matrix, StatusArray
from dbrm.evidence.base import CountCallback
from dbrm.evidence.device.platform import load_program
from dbrm.evidence.device.problem import DeviceProblem, Maxima

__all__ = ["can_halve", "evaluate_all"]

# Largest error of a log likelihood.
_ACCURATE = 1e-9
# Models after which it is clear whether one step is enough for most of them.
_ENOUGH = 512


def can_halve(problem: DeviceProblem) -> bool:
    """Whether the programs can leave out columns, one after the other, of this population."""
    simple = problem.likelihood.quadratic and not problem.is_scaled and not problem.alternates
    return simple and problem.is_independent and problem.base.problem.start.numbers[2] > 0.0


def evaluate_all(
    problem: DeviceProblem, report: CountCallback | None
) -> tuple[FloatArray, StatusArray, Mask]:
    """Log evidence and status of all models by their index, and which of them have converged."""
    beta, inverse = _expand(problem)
    order = _order(problem, beta, inverse)
    codes, found = _halve(problem, order, beta, inverse, report)
    if codes.size < 1 << problem.base.size:
        nothing = np.zeros(1 << problem.base.size)
        return nothing, nothing.astype(np.uint8), nothing.astype(np.bool_)
    free = problem.half_log_penalty[problem.n_fixed :]
    sizes, half = np.array([problem.base.size]), free.sum(keepdims=True)
    for column in order:
        sizes = np.concatenate([sizes, sizes - 1])
        half = np.concatenate([half, half - free[column]])
    values, statuses = np.empty(codes.size), np.empty(codes.size, dtype=np.uint8)
    converged = np.empty(codes.size, dtype=np.bool_)
    values[codes], statuses[codes] = problem.score(found, sizes, half)
    converged[codes] = found.converged
    return values, statuses, converged


def _expand(problem: DeviceProblem) -> tuple[FloatArray, Matrix]:
    """Coefficients and inverse information of the expansion at the fit of all columns."""
    start = problem.base.problem.start
    penalty = problem.penalty[: len(problem.base.design.flat)]
    inverse = np.linalg.inv(start.second_hessian + np.diag(penalty))
    return inverse @ start.second_right, inverse


def _order(problem: DeviceProblem, beta: FloatArray, inverse: Matrix) -> list[int]:
    """Free columns in the order in which they leave, those that matter most first.

    Then nearly all models lack a column that hardly mattered to the model they start from.
    """
    wald = (beta**2 / np.diag(inverse))[problem.n_fixed :]
    return [int(column) for column in np.argsort(-wald, kind="stable")]


def _halve(
    problem: DeviceProblem,
    order: list[int],
    beta: FloatArray,
    inverse: Matrix,
    report: CountCallback | None,
) -> tuple[IntArray, Maxima]:
    """Maxima of all subsets, and their codes; all columns together come first.

    Ends early where few models converge.
    """
    on, size, batches = load_program(), len(order), problem.batches
    shape = float(problem.base.problem.start.numbers[1])
    n_states = max(1 << max(size - 1, 0), 2 * batches[0])
    states = on.place_states(problem.device, n_states, problem.width, beta, inverse)
    codes = np.array([(1 << size) - 1])
    # The model with all columns, where the expansion was made, is evaluated as any other.
    parts: list[tuple[Any, ...]] = [(1, [-np.inf], [np.inf], [np.inf], *([0.0],) * 4)]
    for step, column in enumerate(order):
        if codes.size == _ENOUGH and np.mean(_gather(problem, parts).converged) < 0.5:
            break
        n_before, codes = codes.size, np.concatenate([codes, codes ^ (1 << column)])
        batch = max(b for b in batches if b <= max(n_before, batches[0]))
        for place in range(0, n_before, batch):
            # The last models have no smaller ones: they replace those they come from.
            target = n_before + place if step < size - 1 else place
            places = np.array([place, target, problem.n_fixed + column])
            *states, moved, numbers = on.halve(
                *(problem.likelihood, batch, problem.rows, problem.penalty),
                *(*states, shape, places),
            )
            models = codes[n_before + place : n_before + min(place + batch, n_before)]
            parts.append((models.size, *numbers, *_look(problem, models, moved, shape)))
        if report is not None:
            report(codes.size, 1 << size)
    return codes, _gather(problem, parts)


def _look(problem: DeviceProblem, models: IntArray, beta: Any, shape: float) -> tuple[Any, ...]:
    """What the prior looks at beside the likelihood, of models just maximised."""
    if not problem.is_strict:
        return ()
    mask = problem.widen(unpack_index(models, problem.base.size))
    found: tuple[Any, ...] = load_program().finish(
        *(problem.likelihood, problem.rows, mask, problem.penalty * mask, beta),
        *(np.full(len(mask), shape), np.ones(len(mask))),
        determined=problem.is_normal,
    )
    return found


def _gather(problem: DeviceProblem, parts: list[tuple[Any, ...]]) -> Maxima:
    """The maxima of batches in one, from the device."""
    host = load_program().to_host([part[1:] for part in parts])
    value, error, move, *looked = (
        np.concatenate(
            [np.asarray(batch)[: part[0]] for batch, part in zip(column, parts, strict=True)]
        )
        for column in zip(*host, strict=False)
    )
    value, *looks = looked or [value]
    converged = (error < _ACCURATE) & (move <= problem.near)
    shape = profile_many(problem.base.opaque, value)
    return Maxima(converged, np.zeros_like(converged), value, shape, *looks)
