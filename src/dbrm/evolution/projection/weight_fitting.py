"""Fit the free weights of one topology: scaling, starts, ascent, and the choice of a sound result.

Weights are maximised in units in which one is a sensible size (`Scaling`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self, final

import numpy as np

from dbrm._typing import FloatArray
from dbrm.evolution.projection.base import ProjectionContext
from dbrm.evolution.projection.objectives import (
    AbstractObjective,
    AffineObjective,
    PlainObjective,
)
from dbrm.evolution.projection.program import Program, read_weights, replace_weights
from dbrm.features import Feature, Projection, moments
from dbrm.status import Status

__all__ = ["Ascent", "Scaling", "fit_weights"]

# Value and gradient at a vector; the value is -inf where there is none.
ScaledObjective = Callable[[FloatArray], tuple[float, FloatArray]]

# Weights stay within this, or twice where they start: tanh(30 z) is as good as a step.
_LARGEST = 30.0
# Stands for an impossible value, so that line searches turn back.
_IMPOSSIBLE = 1e10
_MOST_FOR_SIMPLEX = 5

FreeWeights = Callable[[Feature], Sequence[Projection]]


@final
@dataclass(frozen=True, slots=True)
class Ascent:
    """How weights are fitted: see `TransformThenOptimize`."""

    outer_affine: bool
    restarts: int
    max_iterations: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    r"""Locations and scales of all inputs, in the order of the weights.

    With location :math:`m_r` and scale :math:`s_r` of each input, the weighted sum is also
    :math:`a_0 + \sum_r a_r (F_r - m_r)/s_r` with :math:`a_r = \alpha_r s_r` and
    :math:`a_0 = \alpha_0 + \sum_r \alpha_r m_r`. Optimisation happens in :math:`a`, features
    store :math:`\alpha`.

    Parameters
    ----------
    location, scale
        Zero and one for a bias.
    blocks
        Of each projection the positions of its bias and of its slopes.
    """

    location: FloatArray
    scale: FloatArray
    blocks: tuple[tuple[int, slice], ...]

    @classmethod
    def of(cls, program: Program, projections: Sequence[Projection]) -> Self:
        """Learn from the columns of the last forward pass."""
        pairs: list[tuple[float, float]] = []
        blocks: list[tuple[int, slice]] = []
        for number in range(len(projections)):
            start = len(pairs)
            pairs += [(0.0, 1.0), *(moments(column) for column in program.inputs(number))]
            blocks.append((start, slice(start + 1, len(pairs))))
        location, scale = np.array(pairs).T
        return cls(location, scale, tuple(blocks))

    def inward(self, weights: FloatArray) -> FloatArray:
        """From the weights of a feature to scaled ones."""
        scaled = weights * self.scale
        for bias, slopes in self.blocks:
            scaled[bias] += np.sum(weights[slopes] * self.location[slopes])
        return scaled

    def outward(self, scaled: FloatArray) -> FloatArray:
        """Undo `inward`."""
        weights = scaled / self.scale
        for bias, slopes in self.blocks:
            weights[bias] -= np.sum(weights[slopes] * self.location[slopes])
        return weights

    def pull_back(self, gradient: FloatArray) -> FloatArray:
        """Gradient in the scaled weights from that in the weights."""
        scaled = gradient.copy()
        for bias, slopes in self.blocks:
            scaled[slopes] -= self.location[slopes] * gradient[bias]
        return scaled / self.scale

    def normalised(self, scaled: FloatArray) -> FloatArray:
        """The same directions with sums of about unit size, centred."""
        unit = scaled.copy()
        for bias, slopes in self.blocks:
            length = float(np.linalg.norm(unit[slopes]))
            unit[slopes] /= length if length > 0.0 else 1.0
            unit[bias] = 0.0
        return unit

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Random directions and sizes, for another start."""
        scaled = rng.standard_normal(self.scale.size)
        for _, slopes in self.blocks:
            count = slopes.stop - slopes.start
            scaled[slopes] *= np.exp(0.5 * rng.standard_normal()) / np.sqrt(count)
        return scaled


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
    score = _objective(context, ascent, penalised=True)

    def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
        column = program.forward(scaling.outward(scaled))
        value, bar = score.value(column)
        if value == -np.inf:
            return value, np.zeros_like(scaled)
        return value, scaling.pull_back(program.backward(bar))

    starts = [scaling.inward(read_weights(free(candidate))) for candidate in candidates]
    starts += _more_starts(template, scaling, starts[0], ascent.restarts - len(starts))
    ends = _maximize(
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
    return _choose(context, _objective(context, ascent, penalised=False), fitted, candidates)


def _choose(
    context: ProjectionContext,
    objective: AbstractObjective,
    fitted: Iterable[Feature],
    candidates: Sequence[Feature],
) -> Feature:
    """The first sound end point, or a candidate that is better still."""
    trials = (context.trial(feature) for feature in fitted)
    sound = list(islice((trial for trial in trials if trial[2] == Status.OK), 1))
    sound += [trial for trial in map(context.trial, candidates) if trial[2] == Status.OK]
    # Of equal ones the first.
    best = max(sound, key=lambda trial: objective.value(trial[1])[0], default=None)
    return candidates[0] if best is None else best[0]


def _objective(context: ProjectionContext, ascent: Ascent, *, penalised: bool) -> AbstractObjective:
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


def _maximize(
    objective: ScaledObjective,
    starts: Sequence[FloatArray],
    *,
    smooth: bool,
    max_iterations: int,
    scale: float,
) -> list[tuple[float, FloatArray]]:
    """Maximise from several starts; returns the end points, best first, none worse than its start.

    By gradients if the objective is smooth, otherwise by simplices or line searches.

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
    objective: ScaledObjective, start: FloatArray, smooth: bool, max_iterations: int, scale: float
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
