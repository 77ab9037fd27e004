"""Fit the free weights of one topology: starts, ascent, and a choice of what is fit for use."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np

from dbrm._typing import FloatArray
from dbrm.evolution.projection.base import ProjectionContext
from dbrm.evolution.projection.climbing import maximize
from dbrm.evolution.projection.heads import AbstractObjective, AffineObjective, PlainObjective
from dbrm.evolution.projection.program import Program, read_weights, replace_weights
from dbrm.evolution.projection.scaling import Scaling
from dbrm.features import Feature, Projection
from dbrm.status import Status

__all__ = ["Ascent", "fit_weights"]

FreeWeights = Callable[[Feature], Sequence[Projection]]


@final
@dataclass(frozen=True, slots=True)
class Ascent:
    """How weights are fitted: see `TransformThenOptimize`."""

    outer_affine: bool
    restarts: int
    max_iterations: int


def fit_weights(
    context: ProjectionContext, candidates: Sequence[Feature], free: FreeWeights, ascent: Ascent
) -> Feature:
    """The best weights found; never worse than the best candidate whose column is sound.

    Parameters
    ----------
    candidates
        Features of one topology, to start from. The first is returned if no weights give
        a column that is fit for use.
    free
        Lists the projections whose weights are free.
    """
    template = candidates[0]
    projections = free(template)
    program = Program(template, projections, context.column)
    weights = read_weights(projections)
    program.forward(weights)
    scaling = Scaling.of(program, projections)
    head = _head(context, ascent, penalised=True)

    def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
        column = program.forward(scaling.outward(scaled))
        value, bar = head.value(column)
        if value == -np.inf:
            return value, np.zeros_like(scaled)
        return value, scaling.pull_back(program.backward(bar))

    starts = [scaling.inward(read_weights(free(candidate))) for candidate in candidates]
    starts += _more_starts(template, scaling, starts[0], ascent.restarts - len(starts))
    ends = maximize(
        objective,
        starts,
        smooth=program.smooth,
        max_iterations=ascent.max_iterations,
        scale=float(np.sum(context.projector.likelihood.total)),
    )
    found = [scaling.outward(vector) for _, vector in ends]
    fitted = (
        replace_weights(template, projections, vector)
        for vector in found
        if np.all(np.isfinite(vector))
    )
    return _choose(context, _head(context, ascent, penalised=False), fitted, candidates)


def _choose(
    context: ProjectionContext,
    head: AbstractObjective,
    fitted: Iterable[Feature],
    candidates: Sequence[Feature],
) -> Feature:
    """The first sound end point, or a candidate that is better still."""
    trials = (context.trial(feature) for feature in fitted)
    sound = list(islice((trial for trial in trials if trial[2] == Status.OK), 1))
    sound += [trial for trial in map(context.trial, candidates) if trial[2] == Status.OK]
    # Of equal ones the first.
    best = max(sound, key=lambda trial: head.value(trial[1])[0], default=None)
    return candidates[0] if best is None else best[0]


def _head(context: ProjectionContext, ascent: Ascent, *, penalised: bool) -> AbstractObjective:
    projector = context.projector
    if not ascent.outer_affine:
        return PlainObjective(projector.likelihood)
    return AffineObjective(projector.likelihood, projector.intercept, penalised=penalised)


def _more_starts(
    template: Feature, scaling: Scaling, first: FloatArray, count: int
) -> list[FloatArray]:
    """The first start with sums of unit size, then draws that depend on the topology only."""
    if count <= 0:
        return []
    rng = np.random.default_rng(np.random.SeedSequence(template.key))
    return [scaling.normalised(first), *[scaling.draw(rng) for _ in range(count - 1)]]
