r"""Sweep of one-term laws: a product times a function of a weighted sum, by inverting the function.

For a Gaussian response, a product :math:`F` of few covariates and an invertible :math:`g`,

.. math:: y = F\, g\Bigl(\alpha_0 + \sum_r \alpha_r F_r\Bigr)
    \quad\Longleftrightarrow\quad
    g^{-1}(y / F) = \alpha_0 + \sum_r \alpha_r F_r ,

and the right side is a linear model: its inputs are chosen among the simple features one by one,
by weighted least squares (weights :math:`|F g'|`, so that errors count as they do in
:math:`y`). Every pair of :math:`F` and :math:`g` is tried, the best are fitted to :math:`y` itself.
Without a :math:`g` a sum with a common factor comes apart into features :math:`F F_r`. Like the
sweep this only decides where chains look first, and nothing of it is random.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from typing import final

import numpy as np
from scipy.optimize import least_squares

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.inverses import IDENTITY, Function, exponent_of, invertible_functions
from dbrm.evolution.sweep.levels import Index, Maker, build_levels, level_sizes
from dbrm.features import Feature, Transform, multiply
from dbrm.status import Status

__all__ = ["sweep_projections"]

_MOST_ROWS, _MOST_COVARIATES = 1_000, 8
# Candidates for the inputs of a sum: beside a factor of two or three covariates, and beside less.
_MOST_INPUTS, _MOST_INPUTS_ALONE = 800, 6_000
# Attempts of each function whose weights are fitted to the response itself, most features returned.
_FITTED, _TAKE = 5, 24
# A column whose weighted remainder is less than this share of it is a sum of others.
_DEPENDENT = 1e-10


def sweep_projections(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The one-term laws of largest expected gain, best first; none unless the response is Gaussian.

    When `pause` returns true, those found until then are returned.
    """
    engine, table = problem.engine, problem.table
    if (
        not isinstance(engine, GaussianEngine)
        or engine.always is not None
        or engine.offset is not None
        or table.n_columns == 0
        or not np.ptp(engine.response) > 0
    ):
        return []
    strength = problem.marginal_strength()
    chosen = np.sort(np.argsort(-strength, kind="stable")[:_MOST_COVARIATES])
    rows = np.linspace(0, table.n_rows - 1, min(table.n_rows, _MOST_ROWS)).astype(np.int64)
    search = _Search(problem, [table.names[j] for j in chosen], rows, engine.response[rows])
    return search.features(pause)


class _Sum:
    """A weighted linear model of what the function is applied to, by positions of inputs."""

    def __init__(self, search: "_Search", target: Column, weight: Column, n_inputs: int) -> None:
        self._search = search
        self._n_inputs = n_inputs
        self._weight = weight
        self._total = target * weight

    def _block(self, positions: list[int]) -> Matrix:
        return self._search.columns[:, positions] * self._weight[:, None]

    def design(self, positions: list[int]) -> Matrix:
        return np.column_stack([self._weight, self._block(positions)])

    def weights(self, positions: list[int]) -> FloatArray:
        """By least squares, the constant first."""
        return np.asarray(np.linalg.lstsq(self.design(positions), self._total, rcond=None)[0])

    def left(self, positions: list[int]) -> float:
        """Share of the response's variance that is left."""
        rest = self._total - self.design(positions) @ self.weights(positions)
        return float(rest @ rest) / self._search.variation

    def grow(self, chosen: list[int], most: int) -> list[int]:
        """Add the input of the largest expected gain, again and again, while it is positive."""
        search, chosen = self._search, list(chosen)
        block = search.columns[:, : self._n_inputs] * self._weight[:, None]
        norms = np.einsum("nk,nk->k", block, block)
        basis, _ = np.linalg.qr(self.design(chosen))
        residual = self._total - basis @ (basis.T @ self._total)
        inside = basis.T @ block
        left = norms - np.einsum("kn,kn->n", inside, inside)
        while len(chosen) < most:
            before = float(residual @ residual)
            usable = search.sound[: self._n_inputs] & (left > _DEPENDENT * norms)
            if before <= 1e-22 * search.variation or not usable.any():
                break
            share = (residual @ block) ** 2 / np.where(usable, left, np.inf) / before
            gain = -0.5 * residual.size * np.log(np.maximum(1.0 - share, 1e-12))
            gain -= search.unit * search.complexity[: self._n_inputs]
            best = int(np.argmax(np.where(usable, gain, -np.inf)))
            if not gain[best] > 0.0:
                break
            rest = block[:, best] - basis @ (basis.T @ block[:, best])
            rest -= basis @ (basis.T @ rest)
            direction = rest / np.linalg.norm(rest)
            chosen.append(best)
            basis = np.column_stack([basis, direction])
            left = left - (direction @ block) ** 2
            residual = residual - direction * (direction @ residual)
        return chosen


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Attempt:
    """A factor, a function, and the inputs of the sum in it."""

    expected_gain: float
    factor: tuple[int, ...]
    factor_column: Column
    function: Function
    sum: _Sum
    children: list[int]


class _Search:
    """Tries all factors and functions on one response."""

    def __init__(self, problem: Problem, names: list[str], rows: Index, response: Column) -> None:
        self._problem = problem
        self._y = response
        transforms = problem.grammar.transforms
        sizes = level_sizes(len(names), len(transforms), 4)
        held = max(k for k in range(1, 5) if k == 1 or sum(sizes[:k]) <= _MOST_INPUTS_ALONE)
        levels = build_levels(problem.table, names, rows, transforms, held)
        self._maker = Maker(levels, names, transforms)
        columns = np.hstack([level.columns for level in levels])
        with np.errstate(all="ignore"):
            size = np.max(np.abs(columns), axis=0)
            self.sound = np.isfinite(size) & (size > 0)
            self._scale = np.where(self.sound, size, 1.0)
            self.columns = np.where(self.sound, columns, 0.0) / self._scale
        self.complexity = np.repeat(np.arange(1, held + 1), [level.size for level in levels])
        self.variation = float(np.sum((response - response.mean()) ** 2))
        self._counts = [int(n) for n in np.cumsum([level.size for level in levels])]
        self._counts_short = [n for n in self._counts if n <= _MOST_INPUTS]
        self._atoms = self._factors(len(names), transforms)
        self._functions = [IDENTITY, *invertible_functions(transforms)]
        # What one unit of complexity costs, from an example.
        prior = problem.model_prior
        one = self._maker.feature(0)
        self.unit = -prior.feature_log_prior(multiply(one, one)) / 2.0

    def _factors(self, count: int, transforms: Sequence[Transform]) -> list[list[int]]:
        """For each covariate the positions of itself and its powers."""
        powers = [k for k, g in enumerate(transforms) if exponent_of(g) in (-1.0, 2.0)]
        return [[j, *(count + k * count + j for k in powers)] for j in range(count)]

    def _products(self) -> Iterator[tuple[int, ...]]:
        yield ()
        for size in (1, 2, 3):
            for covariates in combinations(self._atoms, min(size, len(self._atoms))):
                if len(covariates) == size:
                    yield from _one_of_each(covariates)

    def features(self, pause: Pause) -> list[Feature]:
        """Try all attempts, exchange inputs of the best ones, fit their weights."""
        with np.errstate(all="ignore"):
            attempts = [
                attempt if pause() else self._exchange(attempt)
                for attempt in self._best_attempts(pause)
            ]
            made = sorted((self._made(attempt) for attempt in attempts), key=lambda pair: -pair[0])
            found: dict[int, Feature] = {}
            for feature in (feature for _, features in made for feature in features):
                if len(found) < _TAKE:
                    fitted, _, status = self._problem.column_of(self._problem.simplify(feature))
                    if status is Status.OK and self._problem.grammar.admits(fitted):
                        found.setdefault(fitted.key, fitted)
        return list(found.values())

    def _best_attempts(self, pause: Pause) -> list[_Attempt]:
        """The best of each function: gains under different functions are not comparable."""
        tried = takewhile(lambda _: not pause(), self._attempts())
        attempts = [attempt for attempt in tried if attempt is not None]
        attempts.sort(key=lambda attempt: -attempt.expected_gain)
        counts: Counter[int] = Counter()
        best = []
        for attempt in attempts:
            counts[id(attempt.function)] += 1
            if counts[id(attempt.function)] <= _FITTED:
                best.append(attempt)
        return best

    def _attempts(self) -> Iterator[_Attempt | None]:
        for positions in self._products():
            column = np.prod(self.columns[:, list(positions)], axis=1)
            sound = all(self.sound[p] for p in positions) and bool(np.all(column != 0))
            for function in self._functions if sound else ():
                # Factors of three only for plain sums.
                if len(positions) < 3 or not function.transforms:
                    yield self._attempt(positions, column, function)

    def _attempt(
        self, positions: tuple[int, ...], factor: Column, function: Function
    ) -> _Attempt | None:
        if not function.transforms and not positions:
            return None
        ratio = self._y / factor
        sign = -1.0 if np.median(ratio) < 0 else 1.0
        target = function.inverse(sign * ratio)
        weight = np.abs(factor * function.slope(target))
        if not np.all(np.isfinite(target)) or not np.all(np.isfinite(weight)):
            return None
        most = self._problem.grammar.max_projection
        best = None
        # Simple inputs first: among many inputs a wrong one may fit better by chance.
        for n_inputs in self._counts if len(positions) < 2 else self._counts_short:
            sum_ = _Sum(self, target, weight, n_inputs)
            attempt = _Attempt(0.0, positions, sign * factor, function, sum_, sum_.grow([], most))
            weighed = self._weighed(attempt)
            if weighed is not None and (best is None or weighed.expected_gain > best.expected_gain):
                best = weighed
        return best

    def _weighed(self, attempt: _Attempt) -> _Attempt | None:
        """The attempt with its expected gain, up to a constant; none without inputs."""
        if not attempt.children:
            return None
        return replace(
            attempt, expected_gain=self._expected_gain(attempt, attempt.sum.left(attempt.children))
        )

    def _expected_gain(self, attempt: _Attempt, left: float, *, constant: bool = True) -> float:
        features = [self._maker.feature(p) for p in (*attempt.children, *attempt.factor)]
        cost = self.unit * (constant + sum(feature.complexity for feature in features))
        return float(-0.5 * self._y.size * np.log(max(left, 1e-20)) - cost)

    def _exchange(self, attempt: _Attempt) -> _Attempt:
        """Try to replace every input once."""
        for place in range(len(attempt.children)):
            others = [p for k, p in enumerate(attempt.children) if k != place]
            grown = attempt.sum.grow(others, len(attempt.children))
            for children in (others, grown):
                other = self._weighed(replace(attempt, children=children))
                if other is not None and other.expected_gain > attempt.expected_gain + 1e-9:
                    attempt = other
                    break
        return attempt

    def _made(self, attempt: _Attempt) -> tuple[float, list[Feature]]:
        """The features of an attempt, with weights fitted to the response, and their gain."""
        children = [self._maker.feature(p) for p in attempt.children]
        factor = [self._maker.feature(p) for p in attempt.factor]
        if not attempt.function.transforms:
            parts = ((), *((child,) for child in children))
            return attempt.expected_gain, [multiply(*factor, *part) for part in parts]
        scale = self._scale[attempt.children]
        best: tuple[float, list[Feature]] = -np.inf, []
        for constant in (True, False):
            left, weights = self._fit(attempt, constant=constant)
            expected_gain = self._expected_gain(attempt, left, constant=constant)
            if expected_gain > best[0] and np.all(np.isfinite(weights)):
                slopes = [float(weight) for weight in weights[int(constant) :] / scale]
                bias = float(weights[0]) if constant else None
                best = (
                    expected_gain,
                    [multiply(*factor, attempt.function.feature(children, slopes, bias))],
                )
        return best

    def _fit(self, attempt: _Attempt, *, constant: bool) -> tuple[float, FloatArray]:
        """Share of the response's variance that is left, and the weights."""
        factor, function = attempt.factor_column, attempt.function
        size = np.sqrt(self.variation)
        first = 0 if constant else 1
        inputs = self.columns[:, attempt.children]
        design = np.column_stack([np.ones(len(inputs)), inputs])[:, first:]

        def residual(weights: FloatArray) -> Column:
            value = factor * function.value(design @ weights) - self._y
            return np.asarray(np.nan_to_num(value / size, nan=1e6, posinf=1e6, neginf=-1e6))

        def slopes(weights: FloatArray) -> Matrix:
            slope = factor * function.slope(design @ weights) / size
            return np.asarray(np.nan_to_num(slope[:, None] * design))

        start = attempt.sum.weights(attempt.children)[first:]
        limits = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14, "max_nfev": 30}
        found = least_squares(residual, start, slopes, **limits)
        return float(found.fun @ found.fun), np.asarray(found.x)


def _one_of_each(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    if not groups:
        yield ()
        return
    for rest in _one_of_each(groups[1:]):
        for position in groups[0]:
            yield (position, *rest)
