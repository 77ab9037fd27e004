r"""Sweep of laws that are a factor times a function of a ratio of sums.

With :math:`t = g^{-1}(y / F)`,

.. math:: t = \frac{a_0 + \sum_i a_i N_i}{D_0 + \sum_j b_j D_j}
    \quad\Longleftrightarrow\quad
    t D_0 = a_0 + \sum_i a_i N_i - \sum_j b_j\, t D_j ,

the right side is a linear model for every choice of :math:`D_0`. Its terms are chosen exhaustively:
all subsets of a few among all candidates. Without a denominator that is a sum inside a function,
for which there are more candidates. The best are fitted to :math:`y` itself, the numbers of the
denominator and inside functions moved to simple ones. Nothing of it is random, and it only decides
where chains look first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.expression_terms import ExpressionTerms
from dbrm.evolution.sweep.factored import factored_targets
from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.inverses import has_squares_and_inverses
from dbrm.evolution.sweep.law_columns import law_rows
from dbrm.evolution.sweep.law_targets import LawTarget, law_targets, plain_targets, reduced_targets
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.snapping import snapped_numbers, squares_left
from dbrm.evolution.sweep.spelling import without_logarithms
from dbrm.evolution.sweep.terms import (
    Terms,
    algebraic_terms,
    function_factors,
    inner_terms,
    short_terms,
    wide_terms,
)
from dbrm.features import Feature, multiply
from dbrm.status import Status

__all__ = ["sweep_expression_sums", "sweep_plain", "sweep_ratios", "sweep_reduced"]

# Factors of each function; candidates of ratios and of plain sums, and most terms chosen.
_FACTORS, _TARGETS, _THOROUGH = 4, 40, 24
_ALGEBRAIC, _ALGEBRAIC_TERMS = 40, 4
_SHORT, _SHORT_TERMS = 60, 3
_WIDE, _FEWER = 600, 250
# Subsets of each size whose gain is looked at, ratios whose numbers are estimated, those fitted to
# the response, and laws returned.
_LISTED, _CHECKED, _FITTED, _TAKE = 8, 24, 16, 8
# Ratios that are fitted even if time is over, and most of them, as some are too long for the
# grammar; factors that are powers of sums, and terms in these.
_AT_LEAST, _TRIED, _MORE, _INSIDE = 14, 48, 12, 60
# Laws whose gain is further below the best one (nats) are left out.
_WINDOW = 30.0
# Smallest share of the variance that counts: less is rounding.
_ROUNDING, _EXACT = 1e-20, 1e-18
# A constant smaller than this share of what it is added to is zero.
_NO_CONSTANT = 1e-7
# Rounds of weighted least squares for the numbers of a ratio.
_REWEIGHTED = 2


def sweep_ratios(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The features of the laws of largest expected gain, best first.

    Parameters
    ----------
    pause
        When it returns true, the laws found until then are returned.
    """
    return _found(problem, law_targets(problem, _FACTORS, pause), pause)


def sweep_reduced(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The same over groups of covariates, beside a factor that stands apart: there is less to try.

    None if the data show neither, and unless squares and inverses are among the transforms.
    """
    if pause() or not has_squares_and_inverses(problem.grammar.transforms):
        return []
    return _found(problem, reduced_targets(problem), pause, n_wide=_FEWER)


def sweep_plain(problem: Problem, pause: Pause = never) -> list[Feature]:
    """The same of few covariates, without a factor that seems to stand apart.

    Beside small values of the response, a sum that changes its sign may look like a factor.
    """
    return [] if pause() else _found(problem, plain_targets(problem), pause, n_wide=_FEWER)


def sweep_expression_sums(problem: Problem, pause: Pause = never) -> list[Feature]:
    """Functions of an expression of few nodes, or of a sum of two, alone or beside a factor."""
    found: list[Feature] = []
    bases: set[tuple[Feature, ...]] = set()
    for kind in (reduced_targets, plain_targets):
        targets = [] if pause() else kind(problem)
        if targets and targets[0].bases not in bases:
            bases.add(targets[0].bases)
            with np.errstate(all="ignore"):
                found += _RatioSearch(problem, _FEWER).of_expressions(targets, pause)
    return list(dict.fromkeys(found))


def _found(
    problem: Problem, targets: list[LawTarget], pause: Pause, n_wide: int = _WIDE
) -> list[Feature]:
    if not targets:
        return []
    search = _RatioSearch(problem, n_wide)
    with np.errstate(all="ignore"):
        return search.features(targets, pause)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Ratio:
    """Positions of the terms of a numerator and a denominator; the first of the latter has weight
    one, -1 is the constant. An empty denominator is one.
    """

    gain: float
    source: LawTarget
    terms: Terms
    above: tuple[int, ...]
    below: tuple[int, ...]
    exact: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Terms of ratios with most of them in one, and terms of plain sums."""

    short: list[tuple[Terms, int]]
    wide: Terms


class _RatioSearch:
    def __init__(self, problem: Problem, n_wide: int) -> None:
        self._problem, self._n_wide = problem, n_wide
        engine, rows = problem.engine, law_rows(problem)
        assert isinstance(engine, GaussianEngine)
        self._table = problem.table.take(rows)
        self._by_bases: dict[tuple[Feature, ...], _Candidates] = {}
        self._y: Column = engine.response[rows]
        self._unexplained: dict[LawTarget, float] = {}
        self._variation = float(np.sum((self._y - self._y.mean()) ** 2))
        self._powers = Powers(problem.grammar.transforms)
        # The gain that a ratio must exceed to be worth a fit.
        self._least = 0.0
        self._unit = problem.complexity_price

    def features(self, targets: Sequence[LawTarget], pause: Pause) -> list[Feature]:
        """The features of the best laws."""
        targets = targets[:_TARGETS]
        found: list[_Ratio] = []
        # What is cheap first: sums of two terms under all functions, then of three.
        for smallest, most, some in ((1, 2, targets), (3, 3, targets[:_THOROUGH])):
            for source in some:
                if pause() or any(ratio.exact for ratio in found):
                    break
                found += self._sums(source, self._candidates(source.bases).wide, smallest, most)
        for source in [] if pause() else self._factored(targets):
            found += self._sums(source, self._candidates(source.bases).wide, 1, 2)
        for source in targets:
            if pause() or any(ratio.exact for ratio in found):
                break
            found = sorted(found, key=lambda ratio: -ratio.gain)[:_FITTED]
            self._least = found[-1].gain if len(found) == _FITTED else 0.0
            candidates = self._candidates(source.bases)
            for terms, most in candidates.short:
                found += self._ratios(source, terms, most, pause)
        return self._best(found, pause)

    def of_expressions(self, targets: Sequence[LawTarget], pause: Pause) -> list[Feature]:
        """The features of the best sums of up to two expressions, over bases that targets share."""
        grammar, table = self._problem.grammar, self._table
        made = ExpressionTerms(targets[0].bases, table, grammar.transforms, pause)
        found: list[_Ratio] = []
        for source in targets:
            if pause() or any(ratio.exact for ratio in found):
                break
            features = made.best(source.target, source.weight, self._unit)
            terms = Terms.of(iter(features), grammar.admits_law, table, len(features))
            found += self._sums(source, terms, 1, 2)
        return self._best(found, pause)

    def _best(self, found: list[_Ratio], pause: Pause) -> list[Feature]:
        """The features of those of largest gain once they are fitted."""
        found.sort(key=lambda ratio: -ratio.gain)
        fitted: list[tuple[float, list[Feature]]] = []
        for place, ratio in enumerate(found[:_TRIED]):
            if len(fitted) >= 2 * _FITTED or (place >= _AT_LEAST and pause()):
                break
            fitted += self._law(ratio)
        fitted.sort(key=lambda law: -law[0])
        fitted = [law for law in fitted if law[0] > fitted[0][0] - _WINDOW]
        features: dict[int, Feature] = {}
        for _, parts in fitted[:_TAKE]:
            for feature in parts:
                other = without_logarithms(feature, self._powers)
                for spelling in (feature,) if other is None else (feature, other):
                    whole, _, status = self._problem.column_of(self._problem.simplify(spelling))
                    if status is Status.OK and self._problem.grammar.admits_law(whole):
                        features.setdefault(whole.key, whole)
        return list(features.values())

    def _factored(self, targets: Sequence[LawTarget]) -> list[LawTarget]:
        """Targets with one more factor, a power of a sum, of those that have the first one."""
        alike = [
            target
            for target in targets
            if (target.factor, target.bases) == (targets[0].factor, targets[0].bases)
        ]
        terms = self._candidates(targets[0].bases).wide
        inside = Terms.of(
            inner_terms(targets[0].bases, self._problem.grammar.transforms),
            self._problem.grammar.admits_law,
            self._table,
            _INSIDE,
        )
        bases, transforms = targets[0].bases, self._problem.grammar.transforms
        beside = Terms.of(
            function_factors(bases, transforms),
            self._problem.grammar.admits_law,
            self._table,
            _INSIDE,
        )
        return factored_targets(
            alike, inside, beside, terms, self._y, self._powers, self._unit, _MORE
        )

    def _candidates(self, bases: tuple[Feature, ...]) -> "_Candidates":
        """The candidates over covariates or groups of them, which are computed once."""
        if bases not in self._by_bases:
            grammar, table = self._problem.grammar, self._table
            functions = grammar.transforms
            # Groups of covariates are long themselves.
            long = any(base.complexity > 1 for base in bases)
            admits = grammar.admits_law if long else grammar.admits
            kinds = (
                (algebraic_terms, _ALGEBRAIC, _ALGEBRAIC_TERMS),
                (short_terms, _SHORT, _SHORT_TERMS),
            )
            self._by_bases[bases] = _Candidates(
                [
                    (Terms.of(kind(bases, functions), admits, table, count), most)
                    for kind, count, most in kinds
                ],
                Terms.of(wide_terms(bases, functions), admits, table, self._n_wide),
            )
        return self._by_bases[bases]

    def _sums(self, source: LawTarget, terms: Terms, fewest: int, most: int) -> list[_Ratio]:
        """Sums of few of many terms."""
        prices = np.asarray(self._unit * (1.0 + terms.complexity), dtype=np.float64)
        subsets = best_sums(
            source.target, source.weight, terms.columns, prices, most, _LISTED, smallest=fewest
        )
        return [self._weighed(source, terms, members, (), left) for left, members in subsets]

    def _ratios(self, source: LawTarget, terms: Terms, most: int, pause: Pause) -> list[_Ratio]:
        """Ratios of sums, with each covariate, their products and the constant leading below."""
        found: list[_Ratio] = []
        n_terms, n_bases = len(terms.features), len(source.bases)
        leads = [-1, *range(min(n_bases * (n_bases + 3) // 2, n_terms))]
        for lead in leads:
            if pause():
                break
            first = np.ones(self._y.size) if lead == -1 else terms.columns[:, lead]
            weight = source.weight / np.abs(first)
            others = [j for j in (-1, *range(n_terms)) if j != lead]
            below = np.column_stack(
                [source.target if j == -1 else source.target * terms.columns[:, j] for j in others]
            )
            columns = np.hstack([terms.columns, below])
            complexity = [0 if j == -1 else terms.complexity[j] for j in (*range(n_terms), *others)]
            prices = self._unit * (1.0 + np.array(complexity))
            subsets = best_sums(source.target * first, weight, columns, prices, most, _LISTED)
            for left, members in subsets:
                above = tuple(j for j in members if j < n_terms)
                under = tuple(others[j - n_terms] for j in members if j >= n_terms)
                if under or lead != -1:
                    found.append(self._weighed(source, terms, above, (lead, *under), left))
        found.sort(key=lambda ratio: -ratio.gain)
        return [self._checked(ratio) for ratio in found[:_CHECKED] if ratio.gain > self._least]

    def _checked(self, ratio: _Ratio) -> _Ratio:
        """Its gain by what the ratio leaves: on the linear scale zero over zero would do."""
        numbers = _Numbers(ratio, self._y)
        left = numbers.left_of_target(numbers.start())
        return self._weighed(ratio.source, ratio.terms, ratio.above, ratio.below, left)

    def _weighed(
        self,
        source: LawTarget,
        terms: Terms,
        above: tuple[int, ...],
        below: tuple[int, ...],
        left: float,
    ) -> _Ratio:
        left += self._lost(source)
        ratio = _Ratio(0.0, source, terms, above, below)
        exact = left < _EXACT * self._variation
        return replace(ratio, gain=self._gain(ratio, left), exact=exact)

    def _lost(self, source: LawTarget) -> float:
        """Squares of the rows that cannot be inverted, computed once: they are unexplained."""
        if source not in self._unexplained:
            lost = source.weight == 0.0
            self._unexplained[source] = float(np.sum((self._y[lost] - self._y.mean()) ** 2))
        return self._unexplained[source]

    def _gain(self, ratio: _Ratio, left: float) -> float:
        share = max(left / self._variation, _ROUNDING)
        complexity = sum(feature.complexity for feature in ratio.source.factor)
        for j in (*ratio.above, *ratio.below):
            complexity += 1 if j == -1 else 1 + int(ratio.terms.complexity[j])
        if ratio.below and not ratio.source.function.transforms:
            # Below every term of the numerator.
            complexity += (len(ratio.above) - 1) * (1 + len(ratio.below))
        return -0.5 * self._y.size * float(np.log(share)) - self._unit * complexity

    def _law(self, ratio: _Ratio) -> list[tuple[float, list[Feature]]]:
        """A ratio fitted to the response, with and without a constant: its gain, its features."""
        found: list[tuple[float, list[Feature]]] = []
        for constant in (True, False):
            fit = _Numbers(ratio, self._y, constant=constant)
            numbers = fit.fitted()
            if not fit.matter(numbers):
                continue
            for joined in (False, True) if _is_sum_of_terms(ratio) else (False,):
                snapped = fit.snapped(numbers, joined=joined)
                if not np.all(np.isfinite(snapped)):
                    continue
                features = _features(ratio, snapped, self._powers, joined=joined)
                if features and all(self._admits(feature) for feature in features):
                    left = squares_left(fit.value(snapped), self._y)[0]
                    found.append((self._gain_of(features, left), features))
        return found

    def _admits(self, feature: Feature) -> bool:
        return self._problem.grammar.admits_law(self._problem.simplify(feature))

    def _gain_of(self, features: Sequence[Feature], left: float) -> float:
        """By the prior of the features, numbers inside them included."""
        prior = self._problem.model_prior.feature_log_prior
        share = max(left / self._variation, _ROUNDING)
        price = -sum(prior(self._problem.simplify(feature)) for feature in features)
        return -0.5 * self._y.size * float(np.log(share)) - price


class _Numbers:
    """The numbers of a ratio: those above, the constant first, then those below but the first."""

    def __init__(self, ratio: _Ratio, response: Column, *, constant: bool = True) -> None:
        self._source, self._y = ratio.source, response
        terms, one = ratio.terms, np.ones(response.size)

        def column(j: int) -> Column:
            return one if j == -1 else terms.columns[:, j] * terms.scale[j]

        # Without a constant it stays zero: its column is.
        first = one if constant else np.zeros(response.size)
        self._above = np.column_stack([first, *(column(j) for j in ratio.above)])
        below = [column(j) for j in ratio.below] or [one]
        self._first, self._is_ratio = below[0], bool(ratio.below)
        self._below = np.column_stack([below[0] * 0.0, *below[1:]])[:, 1:]
        self._size = np.sqrt(float(np.sum((response - response.mean()) ** 2)))

    def _parts(self, numbers: FloatArray) -> tuple[Column, Column]:
        n_above = self._above.shape[1]
        below = self._first + self._below @ numbers[n_above:]
        return self._above @ numbers[:n_above] / below, below

    def value(self, numbers: FloatArray) -> Column:
        function, factor = self._source.function, self._source.factor_column
        return np.asarray(factor * function.value(self._parts(numbers)[0]))

    def slopes(self, numbers: FloatArray) -> Matrix:
        argument, below = self._parts(numbers)
        slope = self._source.factor_column * self._source.function.slope(argument) / below
        return np.hstack([self._above * slope[:, None], -self._below * (slope * argument)[:, None]])

    def matter(self, numbers: FloatArray) -> bool:
        """Whether numbers are finite and no term but the constant is negligible.

        Shorter ratios have been tried, too.
        """
        if not np.all(np.isfinite(numbers)):
            return False
        n_above = self._above.shape[1]
        for columns, weights, first in (
            (self._above, numbers[:n_above], 0.0),
            (self._below, numbers[n_above:], np.max(np.abs(self._first))),
        ):
            size = np.abs(weights) * np.max(np.abs(columns), axis=0, initial=0.0)
            largest = max(float(np.max(size, initial=0.0)), float(first))
            if np.any(size[1 if columns is self._above else 0 :] < _NO_CONSTANT * largest):
                return False
        return True

    def start(self) -> FloatArray:
        """Linear least squares on the undone scale; errors of t D are those of t times D."""
        target, weight = self._source.target, self._source.weight
        below = self._first
        design = np.hstack([self._above, -self._below * target[:, None]])
        scale = np.max(np.abs(design), axis=0)
        design = design / np.where(scale > 0.0, scale, 1.0)
        numbers: FloatArray = np.zeros(design.shape[1])
        for _ in range(_REWEIGHTED):
            root = np.nan_to_num(weight / np.abs(below), posinf=0.0)
            block = design * root[:, None]
            if not np.all(np.isfinite(block)):
                break
            solved = np.linalg.lstsq(block, target * self._first * root, rcond=None)[0]
            numbers = np.asarray(solved / np.where(scale > 0.0, scale, 1.0))
            below = self._parts(numbers)[1]
        return numbers

    def left_of_target(self, numbers: FloatArray) -> float:
        """Squares that are left on the undone scale, with its weights."""
        rest = (self._source.target - self._parts(numbers)[0]) * self._source.weight
        squares = float(rest @ rest)
        return squares if np.isfinite(squares) else np.inf

    def fitted(self) -> FloatArray:
        """Least squares on the scale of the response."""
        numbers = self.start()
        size = np.where(numbers != 0.0, np.abs(numbers), 1.0)

        def residual(shares: FloatArray) -> Column:
            rest = (self.value(numbers + shares * size) - self._y) / self._size
            return np.asarray(np.nan_to_num(rest, nan=1e6, posinf=1e6, neginf=-1e6))

        def slopes(shares: FloatArray) -> Matrix:
            found = self.slopes(numbers + shares * size) * size / self._size
            return np.asarray(np.nan_to_num(found))

        return np.asarray(numbers + fit_numbers(residual, slopes, np.zeros(numbers.size)) * size)

    def snapped(self, numbers: FloatArray, *, joined: bool = False) -> FloatArray:
        """Simple numbers where they fit as well, without what coefficients say.

        `joined` if a plain sum is one feature, so that its weights are no coefficients.
        """
        numbers, n_above = numbers.copy(), self._above.shape[1]
        fixed = np.zeros(numbers.size, dtype=np.bool_)
        function, size = self._source.function, np.max(np.abs(self._above), axis=0)
        if abs(numbers[0]) < _NO_CONSTANT * np.max(np.abs(numbers[:n_above]) * size):
            numbers[0], fixed[0] = 0.0, True
        if not (function.transforms or joined):
            # Those above are coefficients.
            fixed[:n_above] = True
        elif function.is_power:
            largest = int(np.argmax(np.abs(numbers[:n_above]) * size))
            numbers[:n_above] /= abs(numbers[largest])
            fixed[largest] = True
        elif function.is_exponential and not self._is_ratio:
            numbers[0], fixed[0] = 0.0, True
        return snapped_numbers(numbers, fixed, self.value, self.slopes, self._y)


def _is_sum_of_terms(ratio: _Ratio) -> bool:
    """Whether a law has several terms that share a factor or a denominator."""
    shared = bool(ratio.below or ratio.source.factor)
    return shared and not ratio.source.function.transforms and len(ratio.above) > 0


def _features(
    ratio: _Ratio, numbers: FloatArray, powers: Powers, *, joined: bool = False
) -> list[Feature]:
    """The features of a law with these numbers, plain sums as one if `joined`.

    None if it cannot be spelt.
    """
    source, terms, function = ratio.source, ratio.terms, ratio.source.function
    above = [terms.features[j] for j in ratio.above]
    inner = numbers[1 : 1 + len(above)].tolist()
    bias = float(numbers[0]) or None
    exponent = function.exponent
    # What is divided by the denominator; an exponential or logarithm is applied after that.
    power = exponent if np.isfinite(exponent) else 1.0
    below: list[Feature] = []
    if ratio.below:
        numbers_below = [1.0, *numbers[1 + len(above) :].tolist()]
        by_term = dict(zip(ratio.below, numbers_below, strict=True))
        constant = by_term.pop(-1, None)
        members = [terms.features[j] for j in by_term]
        found = powers.of_sum(members, list(by_term.values()), constant, -power)
        if found is None:
            return []
        below = [found]
    shared = [*source.factor, *below]
    if not (function.transforms or joined):
        parts: list[list[Feature]] = [[feature] for feature in above]
        parts += [[]] if bias is not None else []
        return [multiply(*shared, *part) for part in parts if shared or part]
    if np.isfinite(exponent) and not above:
        return [multiply(*shared)] if shared else []
    if np.isfinite(exponent):
        top = powers.of_sum(above, inner, bias, exponent)
        return [] if top is None else [multiply(*shared, top)]
    children = [multiply(feature, *below) for feature in above]
    if below and bias is not None:
        children, inner, bias = [*children, *below], [*inner, bias], None
    if not children:
        return []
    return [multiply(*source.factor, function.feature(children, inner, bias))]
