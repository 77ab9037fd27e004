r"""Products of powers of sums and of waves, found on the log scale.

.. math:: y = c \prod_j x_j^{k_j} \prod_i f_i^{k_i}\, \exp\Bigl(\sum_l b_l q_l\Bigr)
    \quad\Longrightarrow\quad
    \log|y| = \log|c| + \sum_j k_j \log|x_j| + \sum_i k_i \log|f_i| + \sum_l b_l q_l ,

with factors :math:`f = q + c\, q'`, :math:`q + c`, :math:`\sin(c q)` or :math:`\cos(c q)` of simple
features :math:`q`: a linear model but for the number :math:`c` in each factor. All covariates are
in it, and up to three more columns are chosen exhaustively, with numbers on a grid. The best are
fitted with all numbers free, exponents moved to multiples of one half, and fitted to :math:`y`
itself. An error of :math:`y` is divided by it on the log scale, so rows weigh by their size.
Nothing of it is random, and it only decides where chains look first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.law_columns import law_covariates, law_rows
from dbrm.evolution.sweep.numbered import NumberedTerm, factor_terms, is_exponent, of_each_kind
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.snapping import snapped_numbers, squares_left
from dbrm.features import Feature, covariate, evaluate, multiply, project
from dbrm.status import Status

__all__ = ["sweep_factorisations"]

# Most covariates; columns of which one, two and three are chosen, and products of each size that
# are fitted.
_MOST_COVARIATES, _PAIRED = 6, 2_500
_SIZES = ((1, _PAIRED, 60), (2, _PAIRED, 40), (3, 400, 40))
# So many times as many are listed, of which one of each kind is fitted.
_WIDER = 6
# Functions of one covariate have more approximations: so many times as many products are fitted.
_OF_ONE = 3
# Steps of the first fit, products that have more, and laws whose features are returned.
_STEPS, _REFINED, _MORE_STEPS, _TAKE = 8, 10, 30, 4
# Furthest that an exponent is from a multiple of one half, and the largest one.
_FAR, _LARGEST = 0.2, 6.0
# The same of whole numbers.
_FURTHER = 0.45
# Most that a row weighs, beside that in the middle.
_HEAVIEST = 10.0
# Smallest share of the variance that counts: less is rounding; and that of an exact law.
_ROUNDING, _EXACT = 1e-20, 1e-18


def sweep_factorisations(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The features of the products of largest expected gain, best first; for Gaussian responses.

    Parameters
    ----------
    pause
        When it returns true, the laws found until then are returned.
    """
    engine, names = problem.engine, law_covariates(problem)
    if (
        not isinstance(engine, GaussianEngine)
        or not problem.grammar.fits_numbers
        or not 0 < len(names) <= _MOST_COVARIATES
        or pause()
    ):
        return []
    rows = law_rows(problem)
    with np.errstate(all="ignore"):
        search = _Search(problem, names, engine.response[rows])
        return search.features(pause) if search.factors else []


class _Search:
    def __init__(self, problem: Problem, names: Sequence[str], response: Column) -> None:
        self._problem, self._y = problem, response
        self._powers = Powers(problem.grammar.transforms)
        table = problem.table.take(law_rows(problem))
        bases: list[Feature] = [covariate(name) for name in names]
        columns = evaluate(bases, table)[0]
        kept = np.flatnonzero(np.all(columns != 0.0, axis=0))
        self._bases, self._columns = [bases[j] for j in kept], columns[:, kept]
        self._logs = np.log(np.abs(self._columns))
        size = np.abs(response)
        used = size > 0.0
        self._weight = np.minimum(size / np.median(size), _HEAVIEST)
        self._target = np.where(used, np.log(np.where(used, size, 1.0)), 0.0)
        self._variation = float(np.sum((response - response.mean()) ** 2))
        factors = factor_terms(bases, table, problem.grammar.transforms)
        values = [_log_value(factor, factor.start) for factor in factors]
        sound = [bool(np.all(np.isfinite(v)) and np.ptp(v) > 0.0) for v in values]
        self.factors = [f for f, ok in zip(factors, sound, strict=True) if ok][:_PAIRED]
        some = [v for v, ok in zip(values, sound, strict=True) if ok][:_PAIRED]
        self._values = np.column_stack(some) if some else np.empty((response.size, 0))

    def features(self, pause: Pause) -> list[Feature]:
        """The features of the best laws."""
        unit, found = self._problem.complexity_price, list[tuple[float, list[Feature]]]()
        prices = unit * np.array([1.0 + factor.complexity for factor in self.factors])
        more = _OF_ONE if len(self._bases) == 1 else 1
        for size, most, listed in ((size, most, more * count) for size, most, count in _SIZES):
            if pause() or any(gain > self._gain([], _EXACT) for gain, _ in found):
                break
            subsets = best_sums(
                self._target,
                self._weight,
                self._values[:, :most],
                prices[:most],
                size,
                _WIDER * listed,
                smallest=size,
                beside=self._logs,
            )
            chosen = of_each_kind(subsets, self.factors, listed)
            products = [self._product([self.factors[j] for j in members]) for members in chosen]
            products = [product for product in products if product.fit(_STEPS) < np.inf]
            products.sort(key=lambda product: product.left)
            for place, product in enumerate(products):
                if pause():
                    break
                if place < _REFINED:
                    product.fit(_MORE_STEPS)
                found += self._laws(product)
        found.sort(key=lambda law: -law[0])
        features: dict[int, Feature] = {}
        for _, parts in found[:_TAKE]:
            for feature in parts:
                whole, _, status = self._problem.column_of(self._problem.simplify(feature))
                if status is Status.OK and self._problem.grammar.admits_law(whole):
                    features.setdefault(whole.key, whole)
        return list(features.values())

    def _gain(self, features: Sequence[Feature], left: float) -> float:
        prior = self._problem.model_prior.feature_log_prior
        share = max(left / self._variation, _ROUNDING)
        price = -sum(prior(self._problem.simplify(feature)) for feature in features)
        return -0.5 * self._y.size * float(np.log(share)) - price

    def _product(self, factors: Sequence[NumberedTerm]) -> "_Product":
        data = _Data(self._logs, self._columns, self._target, self._weight, self._y)
        return _Product(factors, data)

    def _laws(self, product: "_Product") -> list[tuple[float, list[Feature]]]:
        """The product with simple exponents and numbers: its gain and its features."""
        found = []
        for exponents in product.exponents():
            numbers = product.fitted(exponents)
            left = squares_left(product.value(exponents, numbers), self._y)[0]
            if not (np.all(np.isfinite(numbers)) and np.isfinite(left)):
                continue
            for features in product.spelt(exponents, numbers, self._bases, self._powers):
                simple = [self._problem.simplify(feature) for feature in features]
                if all(self._problem.grammar.admits_law(feature) for feature in simple):
                    found.append((self._gain(features, left), features))
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Data:
    """Covariates that are never zero and their logarithms; the response, on the log scale, too."""

    logs: Matrix
    columns: Matrix
    target: Column
    weight: Column
    response: Column


class _Product:
    """Factors with their numbers: the scale and those of the exponentials, then all others."""

    def __init__(self, factors: Sequence[NumberedTerm], data: _Data) -> None:
        self._inside = [factor for factor in factors if is_exponent(factor)]
        self._others = [factor for factor in factors if not is_exponent(factor)]
        self._data, self._logs, self._columns = data, data.logs, data.columns
        self._y = data.response
        ends = np.cumsum([0, *(factor.n_numbers for factor in self._others)]).tolist()
        self._places = [slice(a, b) for a, b in pairwise(ends)]
        inside = [factor.columns[:, 0] for factor in self._inside]
        self._raw = np.column_stack([np.ones(self._y.size), *inside])
        self._n_linear = self._raw.shape[1] + self._logs.shape[1] + len(self._others)
        inner = np.concatenate([np.empty(0), *(factor.start for factor in self._others)])
        block = self._design(inner) * data.weight[:, None]
        start = np.linalg.lstsq(block, data.target * data.weight, rcond=None)[0]
        self._numbers = self._given = np.concatenate([start, inner])
        self.left = np.inf

    def _split(self, numbers: FloatArray) -> list[FloatArray]:
        """The numbers of each factor."""
        return [numbers[place] for place in self._places]

    def _design(self, inner: FloatArray) -> Matrix:
        pairs = zip(self._others, self._split(inner), strict=True)
        return np.column_stack([self._raw, self._logs, *(_log_value(f, c) for f, c in pairs)])

    def fit(self, steps: int) -> float:
        """Fit all exponents and numbers on the log scale; the squares that are left."""
        weight, n_linear, n_others = self._data.weight, self._n_linear, len(self._others)

        def residual(numbers: FloatArray) -> Column:
            value = self._design(numbers[n_linear:]) @ numbers[:n_linear] - self._data.target
            return _finite(value * weight)

        def slopes(numbers: FloatArray) -> Matrix:
            inner, powers = numbers[n_linear:], numbers[n_linear - n_others : n_linear]
            parts = zip(self._others, self._split(inner), powers, strict=True)
            more = [k * _log_slopes(f, c) for f, c, k in parts]
            return np.nan_to_num(np.column_stack([self._design(inner), *more]) * weight[:, None])

        self._numbers = fit_numbers(residual, slopes, self._numbers, steps)
        rest = residual(self._numbers)
        self.left = float(rest @ rest)
        return self.left

    @property
    def _start(self) -> FloatArray:
        """Scale, numbers of exponentials, then those of the other factors."""
        scale = self._numbers[: self._raw.shape[1]]
        return np.concatenate([scale, self._numbers[self._n_linear :]])

    def exponents(self) -> list[FloatArray]:
        """Those of the covariates and of the factors, where they are near simple ones.

        With the numbers of the grid and with fitted ones: beside noise a factor whose number is
        free may have any exponent. Those of factors are also whole numbers, if that is near.
        """
        first = self._raw.shape[1]
        found = [numbers[first : self._n_linear] for numbers in (self._given, self._numbers)]
        simple: dict[bytes, FloatArray] = {}
        n_logs = self._logs.shape[1]
        for estimate, whole in ((one, whole) for one in found for whole in (False, True)):
            rounded = np.round(2.0 * estimate) / 2.0 + 0.0
            near = np.abs(estimate - rounded) < _FAR
            if whole:
                rounded[n_logs:] = np.round(estimate[n_logs:]) + 0.0
                near = np.abs(estimate - rounded) < _FURTHER
            present = rounded[self._logs.shape[1] :] != 0.0
            if near.all() and present.all() and np.all(np.abs(rounded) <= _LARGEST):
                simple.setdefault(rounded.tobytes(), rounded)
        return list(simple.values())

    def value(self, exponents: FloatArray, numbers: FloatArray) -> Column:
        """The law's column."""
        n_raw, n_logs = self._raw.shape[1], self._logs.shape[1]
        column = np.exp(self._raw @ numbers[:n_raw])
        for base, k in zip(self._columns.T, exponents[:n_logs].tolist(), strict=True):
            column = column * _power(base, k)
        inner = self._split(numbers[n_raw:])
        for factor, k, c in zip(self._others, exponents[n_logs:].tolist(), inner, strict=True):
            column = column * _power(factor.value(c), k)
        return np.asarray(column)

    def slopes(self, exponents: FloatArray, numbers: FloatArray) -> Matrix:
        """Derivatives of the law by its numbers."""
        n_raw, n_logs = self._raw.shape[1], self._logs.shape[1]
        parts = zip(self._others, exponents[n_logs:], self._split(numbers[n_raw:]), strict=True)
        more = [k * _log_slopes(factor, c) for factor, k, c in parts]
        value = self.value(exponents, numbers)
        return np.asarray(value[:, None] * np.column_stack([self._raw, *more]))

    def fitted(self, exponents: FloatArray) -> FloatArray:
        """Numbers fitted to the response, simple ones where these fit as well."""
        size = np.sqrt(max(float(np.sum((self._y - self._y.mean()) ** 2)), 1e-300))
        sign = -1.0 if float(self.value(exponents, self._start) @ self._y) < 0.0 else 1.0

        def value(numbers: FloatArray) -> Column:
            return self.value(exponents, numbers)

        def residual(numbers: FloatArray) -> Column:
            return _finite((sign * value(numbers) - self._y) / size)

        def slopes(numbers: FloatArray) -> Matrix:
            return np.asarray(np.nan_to_num(sign * self.slopes(exponents, numbers) / size))

        numbers = fit_numbers(residual, slopes, self._start)
        # The scale is the coefficient's.
        numbers[0] = 0.0
        if numbers.size == 1:
            return numbers
        fixed = np.arange(numbers.size) == 0
        return snapped_numbers(numbers, fixed, value, lambda c: self.slopes(exponents, c), self._y)

    def spelt(
        self, exponents: FloatArray, numbers: FloatArray, bases: Sequence[Feature], powers: Powers
    ) -> Iterator[list[Feature]]:
        """The law as one feature, and with its one plain sum multiplied out."""
        n_raw, n_logs = self._raw.shape[1], self._logs.shape[1]
        shared: list[Feature | None] = []
        if exponents[:n_logs].any():
            shared.append(powers.product(bases, exponents[:n_logs]))
        if self._inside:
            members = [factor.members[0] for factor in self._inside]
            weights = [float(weight) for weight in numbers[1:n_raw]]
            exp = self._inside[0].function
            assert exp is not None
            shared.append(project(exp, members, weights, weights_in_identity=True))
        inner = self._split(numbers[n_raw:])
        rest = list(zip(self._others, exponents[n_logs:].tolist(), inner, strict=True))
        parts = [factor.power(c, k, powers) for factor, k, c in rest]
        whole = [part for part in (*shared, *parts) if part is not None]
        if whole and len(whole) == len(shared) + len(parts):
            yield [multiply(*whole)]
        sums = [i for i, (factor, k, _) in enumerate(rest) if factor.function is None and k == 1.0]
        if len(sums) == 1:
            beside = [*shared, *(part for i, part in enumerate(parts) if i != sums[0])]
            others = [part for part in beside if part is not None]
            plain = rest[sums[0]][0]
            if others and len(others) == len(beside):
                constant = [multiply(*others)] if plain.has_constant else []
                yield [*constant, *(multiply(*others, member) for member in plain.members)]


def _log_value(factor: NumberedTerm, numbers: FloatArray) -> Column:
    """The column of a factor on the log scale; an exponential's is what is inside it."""
    if is_exponent(factor):
        return factor.columns[:, 0]
    return np.asarray(np.log(np.abs(factor.value(numbers))))


def _log_slopes(factor: NumberedTerm, numbers: FloatArray) -> Matrix:
    return np.asarray(factor.slopes(numbers) / factor.value(numbers)[:, None])


def _finite(values: Column) -> Column:
    return np.asarray(np.nan_to_num(values, nan=1e6, posinf=1e6, neginf=-1e6))


def _power(column: Column, exponent: float) -> Column:
    """A power as the transforms have it: roots are those of absolute values."""
    return np.asarray((column if exponent.is_integer() else np.abs(column)) ** exponent)
