r"""Integration over hyperparameters: a lattice around the mode of their posterior.

Newton's method with finite differences comes near the mode :math:`\hat\theta`; with
:math:`V\Lambda V'` the negative Hessian there, the posterior is summed over the lattice
:math:`\theta = \hat\theta + V\Lambda^{-1/2}hz`, :math:`z \in \mathbb Z^d`, which grows from the
centre until it leaves the mass. For smooth integrands that vanish in all directions this
trapezoidal sum converges exponentially as :math:`h` shrinks; at :math:`h = 1.4` standard
deviations a normal posterior is integrated to four digits, a skewed one to two or three. Mode
and Hessian need not be exact. Beyond two dimensions the sum is replaced by a product of
split normals, one for each axis (Rue, Martino and Chopin 2009).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from math import exp, inf, log, pi, sqrt
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.coefficient_priors.radial import NormalLogGamma
from dbrm.evidence.nested_laplace import LOG_LIMIT, Conditional, Point
from dbrm.status import Status

__all__ = ["Integral", "find_mode", "integrate", "integrate_precision"]

Evaluate = Callable[[FloatArray, Point], Point]

_DIFFERENCE = 0.05
_LONGEST_STEP = 2.0
# Distances from the mode, in standard deviations, that are near enough for a lattice or an
# anchor, and for split normals.
_NEAR, _CLOSE = 0.25, 0.04
_ITERATIONS = 25
# Flatter directions are given this standard deviation, and a hard wall ends them.
_WIDEST = 4.0
_STEP = {1: 1.2, 2: 1.4}
# Points so many nats below the best have no neighbours; points expected so far below are not
# evaluated.
_DROP, _SKIP = 5.5, 7.5
_MOST_POINTS = 400
# Grid of the logarithm of an unknown precision. Once the terms have fallen so far below the
# best one they do not rise again.
_PRECISION_STEP, _MOST_PRECISIONS, _PRECISION_DROP = 0.7, 40, 12.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Integral:
    """The points of a lattice, with the log of their weights in the sum."""

    log_value: float
    points: list[Point]
    log_weights: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Posterior probability of each point."""
        logs = self.log_weights + np.array([point.value for point in self.points])
        return np.asarray(np.exp(logs - self.log_value))


def find_mode(
    evaluate: Evaluate, start: Point, near: float = _NEAR, like: Matrix | None = None
) -> tuple[Point, Matrix]:
    """Come near the mode; return the point and the scaled eigenvectors of the covariance.

    `like` are those of a similar model: they save second differences on the way.
    """
    # A Newton step from here squares the distance, about.
    not_far = sqrt(near)
    point = start if like is None else _approach(evaluate, start, like, not_far)
    for _ in range(_ITERATIONS):
        gradient, hessian, best = _derivatives(evaluate, point)
        values, vectors = np.linalg.eigh(-hessian)
        curvature = np.maximum(values, _WIDEST**-2)
        scales = vectors / np.sqrt(curvature)
        towards = vectors.T @ gradient
        move = vectors @ (towards / curvature)
        distance = float(np.sqrt(np.sum(towards**2 / curvature)))
        if distance < near:
            return point, scales
        longest = float(np.max(np.abs(move)))
        move *= min(1.0, _LONGEST_STEP / longest)
        following = evaluate(np.clip(point.theta + move, -LOG_LIMIT, LOG_LIMIT), point)
        for _ in range(6):
            if following.value >= point.value:
                break
            move = 0.3 * move
            following = evaluate(np.clip(point.theta + move, -LOG_LIMIT, LOG_LIMIT), point)
        if following.value < best.value:
            following = best
        is_close = distance < not_far and values[0] > _WIDEST**-2
        if following.value - point.value < 1e-4 or is_close:
            return (following if following.value > point.value else point), scales
        point = following
    return point, scales


def _approach(evaluate: Evaluate, start: Point, scales: Matrix, not_far: float) -> Point:
    """Quasi-Newton steps (BFGS) with forward differences, until the mode is not far."""
    covariance, point = scales @ scales.T, start
    gradient = _forward(evaluate, point)
    for _ in range(_ITERATIONS):
        if not (np.isfinite(gradient).all() and gradient @ covariance @ gradient > not_far**2):
            break
        move = covariance @ gradient
        move *= min(1.0, _LONGEST_STEP / float(np.max(np.abs(move))))
        following = evaluate(np.clip(point.theta + move, -LOG_LIMIT, LOG_LIMIT), point)
        if not following.value > point.value:
            break
        ahead = _forward(evaluate, following)
        step, change = following.theta - point.theta, gradient - ahead
        along = float(step @ change)
        if along > 0.0:
            left = np.eye(step.size) - np.outer(step, change) / along
            covariance = left @ covariance @ left.T + np.outer(step, step) / along
        point, gradient = following, ahead
    return point


def _forward(evaluate: Evaluate, point: Point) -> FloatArray:
    """Gradient by forward differences; not finite beside a wall."""
    steps = _DIFFERENCE * np.eye(point.theta.size)
    ahead = np.array([evaluate(point.theta + step, point).value for step in steps])
    return np.asarray((ahead - point.value) / _DIFFERENCE)


def _derivatives(evaluate: Evaluate, point: Point) -> tuple[FloatArray, Matrix, Point]:
    """Gradient and Hessian by differences, and the best point met on the way."""
    # Differences of impossible points are no numbers; they are looked for below.
    with np.errstate(invalid="ignore"):
        return _differences(evaluate, point)


def _differences(evaluate: Evaluate, point: Point) -> tuple[FloatArray, Matrix, Point]:
    d, h = point.theta.size, _DIFFERENCE
    gradient, hessian = np.empty(d), np.empty((d, d))
    ahead, best = np.empty(d), point
    for i in range(d):
        step = h * np.eye(d)[i]
        up, down = evaluate(point.theta + step, point), evaluate(point.theta - step, point)
        ahead[i] = up.value
        gradient[i] = (up.value - down.value) / (2 * h)
        hessian[i, i] = (up.value - 2 * point.value + down.value) / h**2
        best = max(best, up, down, key=lambda found: found.value)
    for i, j in combinations(range(d), 2):
        step = h * (np.eye(d)[i] + np.eye(d)[j])
        both = evaluate(point.theta + step, point).value
        hessian[i, j] = hessian[j, i] = (both - ahead[i] - ahead[j] + point.value) / h**2
    # Beside a wall there are no derivatives; the lattice finds its way.
    finite = np.isfinite(gradient).all() and np.isfinite(hessian).all()
    return (gradient, hessian, best) if finite else (np.zeros(d), -np.eye(d), best)


def integrate(evaluate: Evaluate, start: Point, like: Matrix | None = None) -> Integral:
    """Integrate the posterior of the hyperparameters, beginning at a point near its mode.

    `like` as in `find_mode`.
    """
    if start.theta.size == 0 or start.value == -inf:
        return Integral(start.value, [start], np.zeros(1))
    if start.theta.size > max(_STEP):
        return _split_normals(evaluate, *find_mode(evaluate, start, _CLOSE, like))
    return _lattice(evaluate, *find_mode(evaluate, start, _NEAR, like))


def _lattice(evaluate: Evaluate, centre: Point, scales: Matrix) -> Integral:
    d = centre.theta.size
    axes = _STEP[d] * scales
    found = {(0,) * d: centre}
    front, best = [(0,) * d], centre.value
    while front and len(found) < _MOST_POINTS:
        following = []
        for place in front:
            if found[place].value < best - _DROP:
                continue
            for i in range(d):
                for sign in (-1, 1):
                    near = (*place[:i], place[i] + sign, *place[i + 1 :])
                    if near not in found:
                        theta = centre.theta + axes @ np.array(near)
                        behind = found.get((*place[:i], place[i] - sign, *place[i + 1 :]))
                        if _expected(found[place], behind, _STEP[d]) < best - _SKIP:
                            continue
                        found[near] = evaluate(theta, _beyond(found[place], behind))
                        best = max(best, found[near].value)
                        following.append(near)
        front = following
    points = [point for point in found.values() if point.value > -inf]
    weight = float(np.linalg.slogdet(axes)[1])
    log_weights = np.full(len(points), weight)
    total = weight + _log_sum([point.value for point in points])
    return Integral(total, points, log_weights)


def _expected(point: Point, behind: Point | None, step: float) -> float:
    """Value one step further, if the posterior is normal."""
    if behind is None or behind.value == -inf:
        return point.value
    return 2.0 * point.value - behind.value - step**2


def _beyond(point: Point, behind: Point | None) -> Point:
    """A point whose variables are those one step further, extrapolated."""
    if behind is None or behind.mode is None:
        return point
    delta, beta = 2.0 * point.delta - behind.delta, 2.0 * point.beta - behind.beta
    return replace(point, delta=delta, beta=beta)


def _split_normals(evaluate: Evaluate, centre: Point, scales: Matrix) -> Integral:
    r"""Product over axes of :math:`\sqrt{\pi/2}(\sigma_- + \sigma_+)` times the centre's height.

    The standard deviation on each side comes from the drop at :math:`\sqrt 2` of the nominal
    one, where a normal density has fallen by one nat.
    """
    points = [centre]
    total = centre.value + float(np.linalg.slogdet(scales)[1])
    for axis in scales.T:
        spread = []
        for sign in (-1.0, 1.0):
            point = evaluate(centre.theta + sign * sqrt(2.0) * axis, centre)
            drop = min(max(centre.value - point.value, 0.05), 20.0)
            spread.append(1.0 / sqrt(drop))
            if point.value > -inf:
                points.append(point)
        total += 0.5 * log(pi / 2) + log(sum(spread))
    # As a discrete distribution: half of the weight at the centre, the other half on the axes.
    shares = np.full(len(points), 0.5 / max(len(points) - 1, 1))
    shares[0] = 1.0 - shares[1:].sum()
    logs = np.log(shares) + total - np.array([point.value for point in points])
    return Integral(total, points, logs)


def integrate_precision(
    integral: Callable[[Conditional, Point], Integral],
    model: Conditional,
    prior: NormalLogGamma,
    start: Point,
) -> tuple[float, Status, FloatArray]:
    """Log evidence where the slopes beside latent effects have an unknown common precision.

    As in models without latent effects, spike and tails of the prior often give two modes, so
    that the precision is summed over a grid of its logarithm, and the other hyperparameters are
    integrated at every node. `model` may have any precision; `start` is a point in it. Returned
    with the evidence: the status, and the mode of the other hyperparameters at the best node.
    """
    top = log(max(prior.shape, 1.0) / prior.rate) + 3.0
    terms: list[float] = []
    best, status = start.theta, Status.OK
    for node in range(_MOST_PRECISIONS):
        log_precision = top - _PRECISION_STEP * node
        at_node = replace(model, prior=replace(model.prior, rate=exp(log_precision)))
        point = at_node.at(start.theta, (start.delta, start.beta))
        if point.value == -inf:
            return -inf, point.status, point.theta
        found = integral(at_node, point)
        start, status = found.points[0], max(status, found.points[0].status)
        terms.append(found.log_value + prior.log_density_of_log_precision(log_precision))
        best = start.theta if terms[-1] == max(terms) else best
        if len(terms) > 12 and terms[-1] < max(terms) - _PRECISION_DROP and terms[-1] < terms[-2]:
            break
    peak = max(terms)
    return peak + log(_PRECISION_STEP * float(np.sum(np.exp(np.array(terms) - peak)))), status, best


def _log_sum(values: list[float]) -> float:
    peak = max(values)
    return peak + log(float(np.sum(np.exp(np.array(values) - peak))))
