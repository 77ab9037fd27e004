r"""Waves with fitted frequencies, found in a periodogram over pairs of covariates.

Beside a polynomial of second order, with its residual :math:`r`, the share that a wave
:math:`\sin(a x + b y + c\, xy + \varphi)` explains is about

.. math:: \frac{2}{n \sum_i r_i^2}
    \Bigl| \sum_i r_i\, e^{\mathrm{i} (a x_i + b y_i + c x_i y_i)} \Bigr|^2 ,

and all of these for one :math:`c` are one matrix product. A product of two waves is two such sums
at :math:`(a, b)` and :math:`(a, -b)`. The frequencies of the highest ones are fitted and moved to
simple numbers. No other search finds a fast wave: between its frequencies nothing points to it.
Nothing of it is random, and it only decides where chains look first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from scipy.optimize import least_squares

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.law_columns import law_covariates, law_rows
from dbrm.evolution.sweep.snapping import snapped_numbers
from dbrm.features import Feature, Transform, covariate, evaluate, multiply, project
from dbrm.features.numbers import shortest_within
from dbrm.status import Status

__all__ = ["sweep_waves"]

# Covariates, and those whose products are inside waves, too.
_MOST_COVARIATES, _FEW = 5, 3
# Frequencies on each side of zero, in quarters of a period over the range of a column.
_FREQUENCIES, _STEP = 40, np.pi / 2.0
# So many times as many frequencies of one column alone.
_ALONE = 3
# Least share of what a polynomial leaves that a wave must explain; waves that are fitted.
_LEAST, _FITTED = 0.15, 2
# Rows that are needed, and the smallest share of the variance that is not rounding.
_ROWS, _ROUNDING = 60, 1e-18
# A phase below this may as well be zero.
_SMALL = 0.2


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Peak:
    """A wave on the grid: what it explains, what is inside it, and its frequencies."""

    share: float
    inputs: tuple[Feature, ...]
    columns: Matrix
    frequencies: FloatArray


def sweep_waves(problem: Problem, pause: Pause = never) -> list[Feature]:
    """Waves of one covariate, of two, of their product and squares, and products of two waves.

    None without sine and cosine, and for responses that are not Gaussian.
    """
    engine, grammar = problem.engine, problem.grammar
    waves = {g.name: g for g in grammar.transforms if g.name in ("sin", "cos") and g.base is None}
    names = law_covariates(problem)
    rows = law_rows(problem)
    if (
        not isinstance(engine, GaussianEngine)
        or len(waves) < 2
        or not grammar.fits_numbers
        or not 0 < len(names) <= _MOST_COVARIATES
        or rows.size < _ROWS
        or pause()
    ):
        return []
    bases: list[Feature] = [covariate(name) for name in names]
    columns = evaluate(bases, problem.table.take(rows))[0]
    response = engine.response[rows]
    smooth = _polynomial(columns)
    residual = response - smooth @ (smooth.T @ response)
    variation = float(np.sum((response - response.mean()) ** 2))
    if not residual @ residual > _ROUNDING * variation:
        return []
    peaks = sorted(_peaks(bases, columns, residual, pause), key=lambda peak: -peak.share)
    found: dict[int, Feature] = {}
    for peak in peaks[:_FITTED]:
        if peak.share < _LEAST:
            break
        for feature in (
            *_wave(peak, smooth, response, waves),
            *_products(peak, smooth, response, waves),
        ):
            whole, _, status = problem.column_of(problem.simplify(feature))
            if status is Status.OK and grammar.admits_law(whole):
                found.setdefault(whole.key, whole)
    return list(found.values())


def _polynomial(columns: Matrix) -> Matrix:
    """An orthonormal basis of the polynomials of second order."""
    pairs = [columns[:, i] * columns[:, j] for i in range(columns.shape[1]) for j in range(i + 1)]
    design = np.column_stack([np.ones(len(columns)), columns, *pairs])
    left, values, _ = np.linalg.svd(design / np.linalg.norm(design, axis=0), full_matrices=False)
    return np.asarray(left[:, values > 1e-10 * values[0]])


def _peaks(
    bases: list[Feature], columns: Matrix, residual: Column, pause: Pause
) -> Iterator[_Peak]:
    """The highest wave of each covariate or pair of covariates, without and with second powers."""
    if len(bases) == 1:
        yield _highest((bases[0],), columns, residual)
        # A wave whose frequency grows.
        yield _highest((multiply(bases[0], bases[0]),), columns * columns, residual)
    for i, j in combinations(range(len(bases)), 2):
        one, other = bases[i], bases[j]
        yield _highest((one, other), columns[:, [i, j]], residual)
        if len(bases) <= _FEW and not pause():
            both = columns[:, i] * columns[:, j]
            three = np.column_stack([columns[:, [i, j]], both])
            yield _highest((one, other, multiply(one, other)), three, residual)
            # Waves of a square beside the other one, and beside their product.
            for (k, first), (m, second) in (((i, one), (j, other)), ((j, other), (i, one))):
                squares, product = columns[:, k] ** 2, multiply(one, other)
                for beside, column in ((second, columns[:, m]), (product, both)):
                    inputs = np.column_stack([squares, column])
                    yield _highest((multiply(first, first), beside), inputs, residual)


def _highest(inputs: tuple[Feature, ...], columns: Matrix, residual: Column) -> _Peak:
    grids, tones = [], []
    for k, column in enumerate(columns.T):
        # Of a wave and its mirror image one is enough.
        steps = np.arange(0 if k == 0 or k == 2 else -_FREQUENCIES, _FREQUENCIES + 1)
        if len(inputs) == 1:
            steps = np.arange(0, _ALONE * _FREQUENCIES + 1)
        if k == 0 and len(inputs) == 3:
            steps = np.arange(-_FREQUENCIES, _FREQUENCIES + 1)
        grids.append(steps * _STEP / np.ptp(column))
        tones.append(np.exp(1j * np.outer(column - column.mean(), grids[-1])))
    second = tones[1] if len(inputs) > 1 else np.ones((residual.size, 1))
    third = tones[2] if len(inputs) > 2 else np.ones((residual.size, 1))
    best, place = -1.0, (0, 0, 0)
    for k in range(third.shape[1]):
        heights = np.abs((tones[0] * (residual * third[:, k])[:, None]).T @ second)
        i, j = np.unravel_index(int(np.argmax(heights)), heights.shape)
        if heights[i, j] > best:
            best, place = float(heights[i, j]), (int(i), int(j), k)
    share = 2.0 * best**2 / (residual.size * float(residual @ residual))
    frequencies = np.array([grid[at] for grid, at in zip(grids, place, strict=False)])
    kept = np.flatnonzero(frequencies != 0.0)
    return _Peak(share, tuple(inputs[k] for k in kept), columns[:, kept], frequencies[kept])


def _wave(
    peak: _Peak, smooth: Matrix, response: Column, waves: dict[str, Transform]
) -> Iterator[Feature]:
    """The wave with fitted frequencies and phase, as a sine and as a cosine."""

    def tones(frequencies: FloatArray) -> list[Column]:
        argument = peak.columns @ frequencies
        return [np.sin(argument), np.cos(argument)]

    frequencies, _ = _fitted(peak.frequencies, tones, smooth, response)
    design = np.column_stack([*tones(frequencies), smooth])
    solved = np.linalg.lstsq(design, response, rcond=None)[0]
    inputs = np.column_stack([np.ones(response.size), peak.columns])
    phase = float(np.arctan2(solved[1], solved[0]))
    for name, shift in (("sin", 0.0), ("cos", -np.pi / 2.0)):
        own = (phase + shift + np.pi / 2.0) % np.pi - np.pi / 2.0
        for start in (own, 0.0) if abs(own) < _SMALL else (own,):
            numbers = np.concatenate([[start], frequencies])
            numbers = _snapped(numbers, waves[name], inputs, smooth, response)
            weights = [float(number) for number in numbers[1:]]
            bias = float(numbers[0]) or None
            yield project(waves[name], peak.inputs, weights, bias, weights_in_identity=True)


def _snapped(
    numbers: FloatArray, wave: Transform, inputs: Matrix, smooth: Matrix, response: Column
) -> FloatArray:
    """Simple numbers inside a wave beside a polynomial; a phase of zero stays."""

    def beside(values: FloatArray) -> FloatArray:
        return np.asarray(values - smooth @ (smooth.T @ values))

    def value(numbers: FloatArray) -> Column:
        return beside(wave.apply(inputs @ numbers))

    def slopes(numbers: FloatArray) -> Matrix:
        return beside(wave.derivative(inputs @ numbers)[:, None] * inputs)

    return snapped_numbers(numbers, numbers == 0.0, value, slopes, beside(response))


def _products(
    peak: _Peak, smooth: Matrix, response: Column, waves: dict[str, Transform]
) -> Iterator[Feature]:
    """Products of a wave of one covariate and one of another."""
    if [feature.complexity for feature in peak.inputs] != [1, 1]:
        return

    def tones(frequencies: FloatArray) -> list[Column]:
        first, second = (peak.columns * frequencies).T
        parts = [(np.sin(values), np.cos(values)) for values in (first, second)]
        return [one * other for one in parts[0] for other in parts[1]]

    frequencies, errors = _fitted(peak.frequencies, tones, smooth, response)
    numbers = [
        abs(shortest_within(*pair)) for pair in zip(frequencies.tolist(), errors, strict=True)
    ]
    for one in waves.values():
        for other in waves.values():
            parts = zip((one, other), peak.inputs, numbers, strict=True)
            yield multiply(
                *(
                    project(g, [base], [number], weights_in_identity=True)
                    for g, base, number in parts
                )
            )


def _fitted(
    frequencies: FloatArray,
    tones: Callable[[FloatArray], list[Column]],
    smooth: Matrix,
    response: Column,
) -> tuple[FloatArray, list[float]]:
    """Frequencies by least squares, everything else solved for, and their errors."""
    size = float(np.linalg.norm(response))

    def residual(changed: FloatArray) -> Column:
        design = np.column_stack([smooth, *tones(changed)])
        solved = np.linalg.lstsq(design, response, rcond=None)[0]
        return np.asarray((response - design @ solved) / size)

    limits = {"xtol": 1e-12, "ftol": 1e-14, "gtol": 1e-14, "max_nfev": 25}
    found = least_squares(residual, frequencies, x_scale="jac", **limits)
    variance = float(found.fun @ found.fun) / max(response.size - smooth.shape[1] - 4, 1)
    covariance = np.linalg.pinv(found.jac.T @ found.jac) * variance
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0)) + 1e-11 * np.abs(found.x)
    return np.asarray(found.x), errors.tolist()
