r"""Sums of functions with numbers inside, beside a factor and inside a function.

With :math:`t = g^{-1}(y / F)`,

.. math:: t = a_0 + \sum_{i \le 3} a_i f_i(\mathbf x; c_i) ,

a linear model but for the numbers :math:`c`. Terms are chosen exhaustively with numbers on a grid,
the best sums are fitted with free numbers, and their features spelt with simple ones:
:math:`e^{x/10}` beside :math:`x e^y`, or :math:`1 / (e^{x / 2\pi} - 1)`. Nothing of it is random,
and it only decides where chains look first.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.law_columns import law_rows
from dbrm.evolution.sweep.law_targets import LawTarget, reduced_targets
from dbrm.evolution.sweep.numbered import NumberedTerm, of_each_kind, sum_terms
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.snapping import snapped_numbers, squares_left
from dbrm.evolution.sweep.terms import Terms, wide_terms
from dbrm.features import Feature, multiply
from dbrm.status import Status

__all__ = ["sweep_numbered_sums"]

# Plain terms and those with numbers; sums of one and two terms that are fitted, pairs that one more
# is tried beside, and how many.
_PLAIN, _NUMBERED = 250, 700
_LISTED, _EXTENDED, _ONE_MORE = (12, 24), 8, 5
# So many times as many are listed, of which one of each kind is fitted.
_WIDER = 8
# Functions of one covariate have more approximations: so many times as many sums are fitted.
_OF_ONE = 4
# Steps of the first fit, sums that have more, and laws whose features are returned.
_STEPS, _REFINED, _MORE_STEPS, _TAKE = 4, 5, 30, 4
# Sums whose gain seems to be further below the best one (nats) are not spelt.
_WINDOW = 30.0
# Shares of the largest argument below which a constant is zero, and may be.
_NO_CONSTANT, _SMALL = 1e-9, 0.1
# Smallest share of the variance that counts: less is rounding; and that of an exact law.
_ROUNDING, _EXACT = 1e-20, 1e-18


def sweep_numbered_sums(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The features of the sums of largest expected gain, best first.

    Parameters
    ----------
    pause
        When it returns true, the laws found until then are returned.
    """
    if pause() or not problem.grammar.fits_numbers:
        return []
    targets = reduced_targets(problem)
    if not targets:
        return []
    with np.errstate(all="ignore"):
        return _Search(problem, targets[0].bases).features(targets, pause)


class _Search:
    def __init__(self, problem: Problem, bases: tuple[Feature, ...]) -> None:
        engine, rows = problem.engine, law_rows(problem)
        assert isinstance(engine, GaussianEngine)
        self._problem, self._y = problem, engine.response[rows]
        self._more = _OF_ONE if len(bases) == 1 else 1
        self._variation = float(np.sum((self._y - self._y.mean()) ** 2))
        table, grammar = problem.table.take(rows), problem.grammar
        self._powers = Powers(grammar.transforms)
        plain = Terms.of(wide_terms(bases, grammar.transforms), grammar.admits_law, table, _PLAIN)
        pairs = zip(plain.features, (plain.columns * plain.scale).T, strict=True)
        numbered = sum_terms(bases, table, grammar.transforms)[:_NUMBERED]
        terms = [*(NumberedTerm.plain(*pair) for pair in pairs), *numbered]
        terms.sort(key=lambda term: term.complexity)
        values = [term.value(term.start) for term in terms]
        sound = [bool(np.all(np.isfinite(v)) and np.ptp(v) > 0.0) for v in values]
        self._terms = [term for term, ok in zip(terms, sound, strict=True) if ok]
        self._values = np.column_stack([v for v, ok in zip(values, sound, strict=True) if ok])
        self._values /= np.max(np.abs(self._values), axis=0)

    def features(self, targets: Sequence[LawTarget], pause: Pause) -> list[Feature]:
        """The features of the best laws."""
        unit, found = self._problem.complexity_price, list[tuple[float, list[Feature]]]()
        prices = unit * np.array([1.0 + term.complexity for term in self._terms])
        for target in targets:
            for subsets in self._subsets(target, prices):
                if pause() or any(gain > self._gain([], _EXACT) for gain, _ in found):
                    break
                best = max((gain for gain, _ in found), default=-np.inf)
                found += self._laws(target, subsets, best - _WINDOW, pause)
        found.sort(key=lambda law: -law[0])
        features: dict[int, Feature] = {}
        for _, parts in found[:_TAKE]:
            for feature in parts:
                whole, _, status = self._problem.column_of(self._problem.simplify(feature))
                if status is Status.OK and self._problem.grammar.admits_law(whole):
                    features.setdefault(whole.key, whole)
        return list(features.values())

    def _subsets(self, source: LawTarget, prices: FloatArray) -> Iterator[list[tuple[int, ...]]]:
        """The best sums of one term, of two, and of two and one more."""
        target, pairs = (source.target, source.weight), list[tuple[int, ...]]()
        for size, listed in enumerate(_LISTED, 1):
            count = self._more * listed
            wide = _WIDER * count
            sums = best_sums(*target, self._values, prices, size, wide, smallest=size)
            pairs = of_each_kind(sums, self._terms, count)
            yield pairs
        longer = []
        for members in pairs[:_EXTENDED]:
            beside = self._values[:, members]
            more = best_sums(*target, self._values, prices, 1, _WIDER * _ONE_MORE, beside=beside)
            longer += [(*members, *one) for one in of_each_kind(more, self._terms, _ONE_MORE)]
        yield longer

    def _laws(
        self, target: LawTarget, subsets: Sequence[tuple[int, ...]], least: float, pause: Pause
    ) -> list[tuple[float, list[Feature]]]:
        """The sums with fitted numbers: their gains and their features; `least` is worth one."""
        sums = [_Sum([self._terms[j] for j in members], target, self._y) for members in subsets]
        # Without numbers other searches have found them.
        sums = [one for one in sums if one.n_inner and one.fit(_STEPS) < np.inf]
        sums.sort(key=lambda one: one.left)
        found = []
        for one in sums[: self._more * _REFINED]:
            if pause():
                break
            if self._gain([], one.fit(_MORE_STEPS)) < least:
                continue
            for features, left in one.spelt(self._powers):
                simple = [self._problem.simplify(feature) for feature in features]
                if features and all(self._problem.grammar.admits_law(f) for f in simple):
                    found.append((self._gain(features, left), features))
        return found

    def _gain(self, features: Sequence[Feature], left: float) -> float:
        prior = self._problem.model_prior.feature_log_prior
        share = max(left / self._variation, _ROUNDING)
        price = -sum(prior(self._problem.simplify(feature)) for feature in features)
        return -0.5 * self._y.size * float(np.log(share)) - price


@final
class _Sum:
    """A sum inside a function: its constant, coefficients, and numbers of its terms."""

    def __init__(self, terms: Sequence[NumberedTerm], source: LawTarget, response: Column) -> None:
        self._terms, self._source, self._y = terms, source, response
        self._n_linear = 1 + len(terms)
        ends = np.cumsum([0, *(term.n_numbers for term in terms)]).tolist()
        self._places = [slice(a, b) for a, b in pairwise(ends)]
        self.n_inner = int(ends[-1])
        inner = np.concatenate([np.empty(0), *(term.start for term in terms)])
        self._numbers = np.concatenate([self._coefficients(inner), inner])
        self.left = np.inf

    def _split(self, inner: FloatArray) -> list[FloatArray]:
        return [inner[place] for place in self._places]

    def _design(self, inner: FloatArray) -> Matrix:
        pairs = zip(self._terms, self._split(inner), strict=True)
        values = [term.value(numbers) for term, numbers in pairs]
        return np.column_stack([np.ones(self._y.size), *values])

    def _coefficients(self, inner: FloatArray) -> FloatArray:
        design, weight = self._design(inner), self._source.weight
        lengths = np.maximum(np.linalg.norm(design * weight[:, None], axis=0), 1e-300)
        block = np.nan_to_num(design * weight[:, None] / lengths)
        solved = np.linalg.lstsq(block, self._source.target * weight, rcond=None)[0]
        return np.asarray(solved / lengths)

    def _inner_slopes(self, numbers: FloatArray) -> Matrix:
        """Derivatives of the sum by all numbers."""
        inner, weights = numbers[self._n_linear :], numbers[1 : self._n_linear]
        parts = zip(self._terms, self._split(inner), weights, strict=True)
        return np.column_stack([self._design(inner), *(a * t.slopes(c) for t, c, a in parts)])

    def fit(self, steps: int) -> float:
        """Fit all numbers to the target; the squares that are left."""
        target, weight = self._source.target, self._source.weight
        size = max(float(np.linalg.norm(target * weight)), 1e-300)

        def residual(numbers: FloatArray) -> Column:
            value = self._design(numbers[self._n_linear :]) @ numbers[: self._n_linear]
            return _finite((value - target) * weight / size)

        def slopes(numbers: FloatArray) -> Matrix:
            return np.nan_to_num(self._inner_slopes(numbers) * (weight / size)[:, None])

        self._numbers = fit_numbers(residual, slopes, self._numbers, steps)
        rest = residual(self._numbers)
        self.left = float(rest @ rest) * size**2
        return self.left

    def spelt(self, powers: Powers) -> Iterator[tuple[list[Feature], float]]:
        """Its features with simple numbers, and the squares that they leave.

        Inside a function with a constant and, where it is small, without one.
        """
        if not self._source.function.transforms:
            yield self._as_terms(powers)
            return
        largest = float(np.max(np.abs(self._source.target)))
        share = abs(float(self._numbers[0])) / max(largest, 1e-300)
        if share > _NO_CONSTANT:
            yield self._as_function(powers, constant=True)
        if share < _SMALL:
            yield self._as_function(powers, constant=False)

    def _as_terms(self, powers: Powers) -> tuple[list[Feature], float]:
        """Every term a feature; coefficients are no numbers."""
        factor = self._source.factor_column

        def basis(inner: FloatArray) -> Matrix:
            columns = _finite_matrix(self._design(inner) * factor[:, None])
            return np.linalg.qr(np.column_stack([np.ones(self._y.size), columns]))[0]

        def value(inner: FloatArray) -> Column:
            columns = basis(inner)
            return np.asarray(columns @ (columns.T @ self._y))

        def slopes(inner: FloatArray) -> Matrix:
            numbers = np.concatenate([self._coefficients(inner), inner])
            slope = self._inner_slopes(numbers)[:, self._n_linear :] * factor[:, None]
            columns = basis(inner)
            return np.asarray(slope - columns @ (columns.T @ slope))

        inner = self._numbers[self._n_linear :]
        if not np.all(np.isfinite(inner)):
            return [], np.inf
        fixed = np.zeros(inner.size, dtype=np.bool_)
        inner = snapped_numbers(inner, fixed, value, slopes, self._y)
        parts = zip(self._terms, self._split(inner), strict=True)
        children = [term.feature(numbers, powers) for term, numbers in parts]
        spelt = [child for child in children if child is not None]
        if len(spelt) < len(children):
            return [], np.inf
        shared = self._source.factor
        alone = [multiply(*shared)] if shared else []
        rest = self._y - value(inner)
        return [*alone, *(multiply(*shared, child) for child in spelt)], float(rest @ rest)

    def _as_function(self, powers: Powers, *, constant: bool) -> tuple[list[Feature], float]:
        """One feature, with all numbers inside it."""
        function, factor = self._source.function, self._source.factor_column
        fixed = np.zeros(self._numbers.size, dtype=np.bool_)
        size = np.sqrt(max(float(np.sum((self._y - self._y.mean()) ** 2)), 1e-300))

        def argument(numbers: FloatArray) -> Column:
            inner = numbers[self._n_linear :]
            return np.asarray(self._design(inner) @ numbers[: self._n_linear])

        def value(numbers: FloatArray) -> Column:
            return np.asarray(factor * function.value(argument(numbers)))

        def slopes(numbers: FloatArray) -> Matrix:
            slope = factor * function.slope(argument(numbers))
            return np.asarray(slope[:, None] * self._inner_slopes(numbers))

        def residual(numbers: FloatArray) -> Column:
            return _finite((value(numbers) - self._y) / size)

        # A constant without a slope stays as it is.
        used = np.ones(self._numbers.size)
        start = self._numbers.copy()
        if not constant:
            used[0], start[0], fixed[0] = 0.0, 0.0, True
        numbers = fit_numbers(
            residual, lambda c: np.nan_to_num(used * slopes(c) / size), start, _MORE_STEPS
        )
        linear = slice(1, self._n_linear)
        if function.is_power:
            # Its scale is the coefficient's.
            largest = 1 + int(np.argmax(np.abs(numbers[linear])))
            numbers[: self._n_linear] /= abs(numbers[largest])
            fixed[largest] = True
        elif function.is_exponential:
            numbers[0], fixed[0] = 0.0, True
        numbers = snapped_numbers(numbers, fixed, value, slopes, self._y)
        if not np.all(np.isfinite(numbers)):
            return [], np.inf
        parts = zip(self._terms, self._split(numbers[self._n_linear :]), strict=True)
        children = [term.feature(inner, powers) for term, inner in parts]
        spelt = [child for child in children if child is not None]
        if len(spelt) < len(children):
            return [], np.inf
        weights = [float(weight) for weight in numbers[linear]]
        feature = function.feature(spelt, weights, float(numbers[0]) or None)
        left = squares_left(value(numbers), self._y)[0]
        return [multiply(*self._source.factor, feature)], left


def _finite(values: Column) -> Column:
    return np.asarray(np.nan_to_num(values, nan=1e6, posinf=1e6, neginf=-1e6))


def _finite_matrix(values: Matrix) -> Matrix:
    return np.asarray(np.nan_to_num(values, posinf=0.0, neginf=0.0))
