r"""Powers of features, and products of powers found on the log scale.

If :math:`y = c \prod_j x_j^{k_j}` then :math:`\log|y|` is linear in the :math:`\log|x_j|`, so that
the exponents of a product of any length are found by one regression. If
:math:`y = \prod_{j \in A} x_j^{k_j}\, h(x_B)`, a regression on all terms of second order of the
logarithms has none that involve a covariate of :math:`A` beside its own slope. Exponents are
multiples of one half. Both are proposals: what they propose is fitted and compared like everything
else.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.features import Feature, Transform, modify, multiply, project

__all__ = ["Powers", "log_linear_exponents", "separable_exponents"]

# Largest exponent, and largest distance of an estimate from a multiple of one half, as a number and
# in standard errors.
_LARGEST, _FAR, _NEAR, _STANDARD_ERRORS = 6.0, 0.15, 0.02, 4.0
# Rows for every term of second order that separability is judged by.
_ROWS_PER_TERM = 4
# What dropping a term may add to the squares, beside what it does by chance.
_CHANCE = 8.0
# Share of the log response's variation that a product must explain to be worth a fit.
_WORTH = 0.9
# Distances of a constant from the extremes of the data, as shares of their range; constants that
# are refined, and how often.
_DISTANCES, _TRIED, _HALVINGS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 2, 10
# Eigenvalues below this share of the largest one are zero to rounding.
_SINGULAR = 1e-15
# Share of rows of one sign that makes the others outliers.
_ONE_SIGN = 0.95
# Most that a row weighs, beside that in the middle.
_HEAVIEST = 10.0


@final
class Powers:
    """Powers that the transforms of a run can spell: squares, roots, inverses, one of another."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self._by_exponent = {
            exponent: transform
            for transform in reversed(transforms)
            if transform.base is None and np.isfinite(exponent := exponent_of(transform))
        }

    def feature(self, base: Feature, exponent: float) -> Feature | None:
        """A feature to this power, a multiple of one half; ``None`` if it cannot be spelt."""
        if exponent == 1.0:
            return base
        if exponent in self._by_exponent:
            return modify(self._by_exponent[exponent], base)
        if exponent < 0.0:
            positive = self.feature(base, -exponent)
            inverse = self._by_exponent.get(-1.0)
            return None if positive is None or inverse is None else modify(inverse, positive)
        if not exponent.is_integer():
            root, power = self._by_exponent.get(0.5), self.feature(base, 2.0 * exponent)
            return None if root is None or power is None else modify(root, power)
        square = self._by_exponent.get(2.0)
        if square is None:
            return multiply(*[base] * int(exponent))
        half = self.feature(base, exponent // 2.0)
        assert half is not None
        return multiply(modify(square, half), *[base] * int(exponent % 2.0))

    def of_sum(
        self,
        features: Sequence[Feature],
        weights: Sequence[float],
        bias: float | None,
        exponent: float,
    ) -> Feature | None:
        """A weighted sum to a power other than one, up to a scale; ``None`` if there is none."""
        if bias is None and len(features) == 1:
            return self.feature(features[0], exponent)
        options = []
        for inner, transform in self._by_exponent.items():
            if inner == 1.0 or not (2.0 * exponent / inner).is_integer():
                continue
            total = project(transform, features, weights, bias, weights_in_identity=True)
            found = self.feature(total, exponent / inner)
            options += [] if found is None else [found]
        return min(options, key=lambda feature: feature.complexity, default=None)

    def product(self, bases: Sequence[Feature], exponents: FloatArray) -> Feature | None:
        """The product of features to these powers; ``None`` if it cannot be spelt or is one.

        Features of one exponent share a function, and those below the line their inverse:
        ``x*power[-1](y*square(z*w))``. So do all of them, if that is shorter:
        ``square(x*power[-1](y))``.
        """
        options = [self._product(bases, exponents)]
        for common in (2.0, 0.5):
            if np.any(exponents < 0.0) and np.all(exponents % common == 0.0):
                inner = self._product(bases, exponents / common)
                options += [None if inner is None else self.feature(inner, common)]
        spelt = [feature for feature in options if feature is not None]
        return min(spelt, key=lambda feature: feature.complexity, default=None)

    def _product(self, bases: Sequence[Feature], exponents: FloatArray) -> Feature | None:
        above = self._grouped(bases, exponents)
        below = self._grouped(bases, -exponents)
        if above is None or below is None:
            return None
        inverse = self._by_exponent.get(-1.0)
        if below:
            if inverse is None:
                return None
            above.append(modify(inverse, multiply(*below)))
        return multiply(*above) if above else None

    def _grouped(self, bases: Sequence[Feature], exponents: FloatArray) -> list[Feature] | None:
        """Powers of the products of features that have one positive exponent."""
        found = []
        for exponent in np.unique(exponents[exponents > 0.0]).tolist():
            alike = [b for b, k in zip(bases, exponents, strict=True) if k == exponent]
            found.append(self.feature(multiply(*alike), float(exponent)))
        spelt = [feature for feature in found if feature is not None]
        return spelt if len(spelt) == len(found) else None


def log_linear_exponents(logs: Matrix, target: Column, weight: Column) -> FloatArray | None:
    """Exponents of the product that a target is, up to a constant; ``None`` if it looks like none.

    Parameters
    ----------
    logs
        Logarithms of the candidate factors, one column each, without missing values.
    weight
        Weight of each row: its error on the scale of the target, inverted. Zero for rows left out.
    """
    sound = np.isfinite(target) & (weight > 0.0)
    if sound.sum() < 2 * logs.shape[1] + 5:
        return None
    logs, target, weight = logs[sound], target[sound], weight[sound]
    low, high = float(target.min()), float(target.max())
    # Constants are tried nearer and nearer to the extremes, on a scale of their distances.
    distances = (high - low) * np.array(_DISTANCES)
    constants = [0.0, *(low - distances), *(high + distances)]
    fits = _product_fits(logs, target, constants, weight)
    for k in np.argsort([left for left, _, _ in fits], kind="stable")[:_TRIED]:
        left, estimate, error = _refined(fits[k], constants[k], logs, target, weight)
        if not left < 1.0 - _WORTH:
            return None
        rounded, sure = _rounded(estimate, error)
        if sure.all() and rounded.any():
            return rounded
    return None


_Fit = tuple[float, FloatArray, FloatArray]


def _product_fits(
    logs: Matrix, target: Column, constants: Sequence[float], weight: Column
) -> list[_Fit]:
    """Share of the variation of the target, less each constant, that a product leaves.

    Also its exponents and their errors.
    """
    shifted = target - np.array(constants)[:, None]
    outside = np.all(shifted > 0.0, axis=1) | np.all(shifted < 0.0, axis=1)
    with np.errstate(all="ignore"):
        found = iter(_fits_of_one_sign(logs, shifted[outside], weight) if outside.any() else ())
        return [
            next(found) if of_one_sign else _fit_of_most(logs, values, weight)
            for values, of_one_sign in zip(shifted, outside, strict=True)
        ]


def _fit_of_most(logs: Matrix, target: Column, weight: Column) -> _Fit:
    """The fit to the rows of one sign, where nearly all are; to all that are not zero otherwise."""
    positive, negative = target > 0.0, target < 0.0
    used = positive | negative
    if used.sum() <= logs.shape[1] + 2:
        return np.inf, np.zeros(0), np.zeros(0)
    for sign in (positive, negative):
        # A few rows of the other sign are noise.
        if sign.mean() > _ONE_SIGN:
            used = sign
    return _fits_of_one_sign(logs[used], target[None, used], weight[used])[0]


def _fits_of_one_sign(logs: Matrix, targets: Matrix, weight: Column) -> list[_Fit]:
    """Regressions of several targets, none of them zero, which are the rows of a matrix."""
    sizes = np.abs(targets)
    # An error of the target is divided by it on the log scale.
    roots = weight * sizes
    roots = np.minimum(roots, _HEAVIEST * np.median(roots, axis=1, keepdims=True))
    responses = np.log(sizes)
    design = np.column_stack([np.ones(len(logs)), logs])
    first, second = np.triu_indices(design.shape[1])
    squares = roots * roots
    grams = np.empty((len(targets), design.shape[1], design.shape[1]))
    grams[:, first, second] = squares @ (design[:, first] * design[:, second])
    grams[:, second, first] = grams[:, first, second]
    estimates, inverses = _solved(grams, (squares * responses) @ design)
    left = np.sum(((responses - estimates @ design.T) * roots) ** 2, axis=1)
    centred = responses - np.sum(squares * responses, axis=1, keepdims=True) / np.sum(
        squares, axis=1, keepdims=True
    )
    variation = np.maximum(np.sum((centred * roots) ** 2, axis=1), 1e-300)
    variance = left / max(design.shape[0] - design.shape[1], 1)
    errors = np.sqrt(np.maximum(inverses, 0.0) * variance[:, None])
    shares = np.where(np.isfinite(left), left / variation, np.inf)
    return list(zip(shares.tolist(), estimates[:, 1:], errors[:, 1:], strict=True))


def _refined(fit: _Fit, constant: float, logs: Matrix, target: Column, weight: Column) -> _Fit:
    """The fit with a better constant, unless that is zero, nearer to the data or further away."""
    if constant == 0.0:
        return fit
    edge = float(target.min() if constant < target.mean() else target.max())
    distance, factor = constant - edge, 1.5
    for _ in range(_HALVINGS):
        tried = (distance * factor, distance / factor)
        others = _product_fits(logs, target, [edge + changed for changed in tried], weight)
        for other, changed in zip(others, tried, strict=True):
            if other[0] < fit[0]:
                fit, distance = other, changed
                break
        else:
            factor = np.sqrt(factor)
    return fit


def separable_exponents(logs: Matrix, response: Column, *, weighted: bool = False) -> FloatArray:
    """Exponents of covariates that are factors of the response, zero for the others.

    Parameters
    ----------
    weighted
        Whether rows count by the size of the response: errors of it are divided by it on the log
        scale. Misfit of large ones counts more, then.
    """
    n_logs = logs.shape[1]
    exponents = np.zeros(n_logs)
    sound = np.isfinite(response) & (response != 0.0)
    pairs = list(combinations_with_replacement(range(n_logs), 2))
    if sound.sum() < _ROWS_PER_TERM * (1 + n_logs + len(pairs)):
        return exponents
    logs, size = (logs - logs.mean(axis=0))[sound], np.abs(response[sound])
    squares = np.column_stack([logs[:, i] * logs[:, j] for i, j in pairs])
    root = np.ones((size.size, 1))
    if weighted:
        root = np.minimum(size / np.median(size), _HEAVIEST)[:, None]
    design = np.column_stack([np.ones(len(logs)), logs, squares]) * root
    target = np.log(size) * root[:, 0]
    _, _, rest = _regression(design, target)
    for j in range(n_logs):
        own = np.array([j in pair for pair in pairs])
        kept = design[:, np.concatenate([np.ones(1 + n_logs, dtype=np.bool_), ~own])]
        estimate, error, more = _regression(kept, target)
        rounded, sure = _rounded(estimate[[1 + j]], error[[1 + j]])
        spare = len(logs) - design.shape[1]
        by_chance = _CHANCE * own.sum() * rest / spare + 1e-12 * float(target @ target)
        if sure[0] and more - rest <= by_chance:
            exponents[j] = rounded[0]
    return exponents


def _regression(design: Matrix, response: Column) -> tuple[FloatArray, FloatArray, float]:
    """Least-squares estimates, their standard errors, and the squares that are left."""
    lengths = np.linalg.norm(design, axis=0)
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    if not (np.all(np.isfinite(lengths)) and np.isfinite(response @ response)):
        nothing = np.full(lengths.size, np.nan)
        return nothing, nothing, np.inf
    design = design / lengths
    estimates, inverses = _solved((design.T @ design)[None], (design.T @ response)[None])
    estimate, inverse = estimates[0], inverses[0]
    rest = response - design @ estimate
    left = float(rest @ rest)
    variance = left / max(len(response) - design.shape[1], 1)
    error = np.sqrt(np.maximum(inverse, 0.0) * variance)
    return estimate / lengths, error / lengths, left


def _solved(grams: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
    """Solutions of several normal equations, and the diagonals of the inverse matrices.

    By the pseudoinverse, as columns may depend on others; not a number where a matrix is none.
    """
    lengths = np.sqrt(np.einsum("kii->ki", grams))
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    grams = grams / (lengths[:, :, None] * lengths[:, None, :])
    sound = np.asarray(np.isfinite(grams).all(axis=(1, 2)) & np.isfinite(right).all(axis=1))
    values, axes = np.linalg.eigh(np.where(sound[:, None, None], grams, 0.0))
    kept = values > _SINGULAR * values[:, -1:]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    turned = np.einsum("kij,ki->kj", axes, right / lengths) * inverse
    solutions = np.einsum("kij,kj->ki", axes, turned) / lengths
    diagonals = np.einsum("kij,kj->ki", axes * axes, inverse) / lengths**2
    solutions[~sound] = diagonals[~sound] = np.nan
    return solutions, diagonals


def _rounded(estimate: FloatArray, error: FloatArray) -> tuple[FloatArray, Mask]:
    """The nearest multiples of one half, and whether each is near enough."""
    rounded = np.round(2.0 * estimate) / 2.0
    distance = np.abs(estimate - rounded)
    sure = (distance <= _FAR) & (distance <= _STANDARD_ERRORS * error + _NEAR)
    return rounded, sure & (error < _FAR) & (np.abs(rounded) <= _LARGEST)
