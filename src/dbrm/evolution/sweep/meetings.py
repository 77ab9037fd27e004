r"""Laws without noise as two expressions that meet in the middle.

With :math:`t` what is left of the response once a small expression is divided or taken off and a
function undone,

.. math:: t = c \pm a \pm b \qquad\text{or}\qquad t = c\, a^{\pm 1} b^{\pm 1}

for two of all expressions of few nodes. A random combination of the rows is one number for each
expression, of the centred values and of their logarithms, so that the two are found in one pass
over the sorted numbers: all pairs of a hundred thousand expressions in less than a millisecond.
A second combination tells chance from meetings, all rows decide. The law must be exact: with noise
nothing meets. Numbers in expressions are few and simple, and :math:`c` is any number. Nothing of
it is random in the end, and it only decides where chains look first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import pi
from typing import final

import numpy as np

from dbrm._kernels.meeting import pairs_with_sum
from dbrm._typing import Column, Matrix
from dbrm.data import Table
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.expressions import Apply, Expression, Expressions, Leaf, Number, Pair
from dbrm.evolution.sweep.inverses import Function, invertible_functions
from dbrm.evolution.sweep.law_columns import law_covariates, law_rows
from dbrm.evolution.sweep.law_targets import reduced_targets
from dbrm.evolution.sweep.levels import Index
from dbrm.evolution.sweep.reductions import merged_pairs
from dbrm.evolution.sweep.spelt_sums import Speller
from dbrm.features import Feature, covariate, evaluate
from dbrm.features.numbers import shortest_within
from dbrm.status import Status

__all__ = ["sweep_meetings"]

# Rows that expressions are computed on, expressions at most, and those of which pairs are tried
# first once something is peeled off.
_ROWS, _MOST, _FEWER = 16, 150_000, 20_000
# Numbers in expressions: with fewer of them these are longer.
_ALL_NUMBERS, _FEW_NUMBERS = (1.0, 2.0, 3.0, 5.0, 0.5, pi), (1.0, 2.0)
# Most covariates or groups.
_MOST_LEAVES = 6
# Nodes of the expressions that are divided or taken off, most of them, and of those in pairs.
_PEELED_NODES, _MOST_PEELED, _MOST_IN_PAIRS = 3, 200, 30
# Meetings of one target that are looked at, and meetings whose laws are spelt in all.
_PER_TARGET, _SPELT = 6, 60
# Distance of two numbers that are equal, as a share of the target's size.
_EQUAL = 1e-10
# Share of the variation that an exact law leaves.
_EXACT = 1e-18
# A constant below this share of a sum is none; error of one that is known to rounding.
_NOTHING, _ROUNDING = 1e-9, 1e-11

Outside = Callable[[Expression], Expression]


def sweep_meetings(problem: Problem, pause: Pause = never, *, peels: bool = False) -> list[Feature]:
    """The features of the first exact laws that are found, the shortest spelling first.

    None for responses that are not Gaussian, with many covariates, or with noise.

    Parameters
    ----------
    pause
        When it returns true, the laws found until then are returned.
    peels
        Whether more small expressions are divided or taken off: that takes seconds.
    """
    engine = problem.engine
    if not isinstance(engine, GaussianEngine) or not problem.grammar.fits_numbers or pause():
        return []
    with np.errstate(all="ignore"):
        settings = _settings(problem)
        if peels:
            searches = [_Search(problem, *setting, _ALL_NUMBERS, pause) for setting in settings]
            # Fewer pairs first: there are many targets.
            for most in (_FEWER, _MOST):
                for search in searches:
                    found = search.features(search.peeled(), most)
                    if found or pause():
                        return found
            return []
        # The first setting has the fewest leaves, the last is sure to have all that are needed.
        ends, kept = list(dict.fromkeys([*settings[:1], *settings[-1:]])), list[_Search]()
        options = [*product([_ALL_NUMBERS], settings), *product([_FEW_NUMBERS], ends)]
        for numbers, setting in options:
            search = _Search(problem, *setting, numbers, pause)
            found = search.features(search.whole(), 8 * _MOST)
            if found or pause():
                return found
            kept += [search] if numbers is _ALL_NUMBERS and setting in ends else []
        for search in kept:
            found = search.features(search.peeled_once(), _FEWER)
            if found or pause():
                return found
    return []


def _settings(problem: Problem) -> list[tuple[tuple[Feature, ...], tuple[Expression, ...]]]:
    """Factors with what expressions beside them are made of.

    Those that stand apart with the groups of what is left, sums and differences of these where the
    data show them; and all covariates.
    """
    covariates = tuple(covariate(name) for name in law_covariates(problem))
    found: dict[tuple[tuple[Feature, ...], tuple[Expression, ...]], None] = {}
    engine, table = problem.engine, problem.table.take(law_rows(problem))
    assert isinstance(engine, GaussianEngine)
    options = {(law.factor, law.bases): None for law in reduced_targets(problem)[:1]}
    options[(), covariates] = None
    for factor, bases in options:
        response = engine.response[law_rows(problem)]
        for feature in factor:
            response = response / evaluate([feature], table)[0][:, 0]
        merged = merged_pairs(evaluate(list(bases), table)[0], response)
        leaves: list[Expression] = []
        for row in merged:
            first, *others = np.flatnonzero(row).tolist()
            leaf: Expression = Leaf(bases[first])
            for other in others:
                leaf = Pair("+" if row[other] == row[first] else "-", leaf, Leaf(bases[other]))
            leaves.append(leaf)
        found[factor, tuple(leaves)] = None
        found[factor, tuple(Leaf(base) for base in bases)] = None
    return [setting for setting in found if 0 < len(setting[1]) <= _MOST_LEAVES]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Target:
    """Values on a few rows, and the law that an expression with these values makes."""

    values: Column
    outside: Outside


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Sorted:
    """Two numbers for each expression and its opposite, in the order of the first."""

    keys: Column
    others: Column
    # Position of the expression, -1 for a constant; and its sign.
    places: Index
    signs: Column

    @classmethod
    def of(cls, columns: Matrix, mixtures: Matrix) -> "_Sorted":
        keys = columns @ mixtures
        sound = np.flatnonzero(np.all(np.isfinite(keys), axis=1))
        keys = np.vstack([keys[sound], -keys[sound], np.zeros((1, 2))])
        places = np.concatenate([sound, sound, [-1]])
        signs = np.repeat([1.0, -1.0, 1.0], [sound.size, sound.size, 1])
        order = np.argsort(keys[:, 0], kind="stable")
        first, second = (np.ascontiguousarray(keys[order, k]) for k in (0, 1))
        return cls(first, second, places[order], signs[order])

    def alone(self, total: float, other: float, tolerance: float) -> Index:
        """Expressions with these numbers, each as a pair with a constant."""
        constant = int(np.searchsorted(self.keys, 0.0))
        low, high = np.searchsorted(self.keys, [total - tolerance, total + tolerance])
        near = np.flatnonzero(np.abs(self.others[low:high] - other) <= 10.0 * tolerance)
        return np.array([(low + k, constant) for k in near.tolist()], dtype=np.int64)


class _Search:
    def __init__(
        self,
        problem: Problem,
        factor: Sequence[Feature],
        leaves: Sequence[Expression],
        numbers: Sequence[float],
        pause: Pause,
    ) -> None:
        engine = problem.engine
        assert isinstance(engine, GaussianEngine)
        self._problem, self._engine = problem, engine
        self._pause, self._factor = pause, factor
        rows = law_rows(problem)
        rows = rows[np.linspace(0, rows.size - 1, min(rows.size, _ROWS)).astype(np.int64)]
        table = problem.table.take(rows)
        transforms = problem.grammar.transforms
        self._transforms = [
            g for g in transforms if g.base is None and not (g.affine or g.takes_knot)
        ]
        values = np.array([_value(leaf, table) for leaf in leaves])
        self._all = Expressions(leaves, values, numbers, self._transforms, _MOST, pause)
        rng = np.random.default_rng(1)
        mixtures = rng.standard_normal((rows.size, 2))
        # Without what is constant.
        self._mixtures = mixtures - mixtures.mean(axis=0)
        self._sorted: dict[tuple[int, bool], _Sorted] = {}
        response = engine.response[rows]
        for feature in factor:
            response = response / evaluate([feature], table)[0][:, 0]
        self._response = response
        self._n_spelt = 0

    def features(self, targets: Iterator[tuple[_Target, bool]], most: int) -> list[Feature]:
        """The features of the laws of the first target that has any.

        Parameters
        ----------
        targets
            Each with whether it is to be a product.
        most
            The first so many expressions are paired.
        """
        for target, on_logs in targets:
            if self._pause() or self._n_spelt >= _SPELT:
                break
            laws = list(self._meetings(target, self._table(most, on_logs=on_logs), on_logs=on_logs))
            found = [spelt for law in laws for spelt in self._spelt(law)]
            if found:
                return min(found, key=lambda law: law[0])[1]
        return []

    def _table(self, most: int, *, on_logs: bool) -> _Sorted:
        """The first so many expressions, or their logarithms, sorted once."""
        if (most, on_logs) not in self._sorted:
            columns = self._all.values[:most].copy()
            columns[: self._all.n_numbers] = np.nan
            columns = np.log(np.abs(columns)) if on_logs else columns
            self._sorted[most, on_logs] = _Sorted.of(columns, self._mixtures)
        return self._sorted[most, on_logs]

    @property
    def _functions(self) -> list[Function]:
        """Single functions that can be undone."""
        found = invertible_functions(self._transforms)
        return [function for function in found if len(function.transforms) == 1]

    def whole(self) -> Iterator[tuple[_Target, bool]]:
        """The response and what a function is undone of, and whether it is to be a product."""
        whole = _Target(self._response, lambda law: law)
        functions = invertible_functions(self._transforms)
        for target in (whole, *_undone(whole, functions)):
            yield from ((target, True), (target, False))
        for part in self._small()[: self._all.n_numbers]:
            yield from ((target, True) for target in _taken_off(whole, part))

    def peeled_once(self) -> Iterator[tuple[_Target, bool]]:
        """What is left once a small expression is taken off or divided."""
        whole = _Target(self._response, lambda law: law)
        functions, small = self._functions, self._small()
        for part in small:
            for target in _taken_off(whole, part):
                yield from ((target, True), (target, False))
        for part in small:
            divided = _divided(whole, part)
            yield from ((target, False) for target in (divided, *_undone(divided, functions)))

    def peeled(self) -> Iterator[tuple[_Target, bool]]:
        """The same, also before and after a function is undone, or twice."""
        yield from self.peeled_once()
        whole = _Target(self._response, lambda law: law)
        functions, small = self._functions, self._small()
        curved = [g for g in functions if not g.is_power]
        for part in small:
            for undone in _undone(whole, functions):
                for target in _taken_off(undone, part):
                    yield from ((target, True), (target, False))
            for less in _taken_off(whole, part):
                yield from ((target, False) for target in _undone(less, functions))
            yield from ((target, True) for target in _undone(_divided(whole, part), curved))
        for part in small[:_MOST_IN_PAIRS]:
            for other in small[:_MOST_IN_PAIRS]:
                for target in _taken_off(_divided(whole, part), other):
                    yield target, True

    def _small(self) -> list[tuple[Column, Expression]]:
        """Values and expressions of few nodes, numbers among them."""
        positions = np.flatnonzero(self._all.sizes <= _PEELED_NODES)[:_MOST_PEELED]
        return [(self._all.values[j], self._all.expression(j)) for j in positions.tolist()]

    def _meetings(self, target: _Target, table: _Sorted, *, on_logs: bool) -> Iterator[Expression]:
        """Laws of which the target is a sum or a product of two expressions."""
        values = np.log(np.abs(target.values)) if on_logs else target.values
        size = float(np.max(np.abs(values - values.mean())))
        if not (np.all(np.isfinite(values)) and size > 0.0):
            return
        total, other = (values @ self._mixtures).tolist()
        tolerance = _EQUAL * max(size, 1e-3 if on_logs else 0.0)
        pairs = table.alone(total, other, tolerance)
        if not len(pairs):
            pairs = pairs_with_sum(
                table.keys, table.others, total, other, tolerance, 10.0 * tolerance, _PER_TARGET
            )
        for pair in pairs:
            law = self._met(target, pair, table, on_logs=on_logs)
            if law is not None:
                yield target.outside(law)

    def _met(
        self, target: _Target, pair: Index, table: _Sorted, *, on_logs: bool
    ) -> Expression | None:
        """The sum or product of a pair, with its constant; ``None`` if they meet by chance."""
        law: Expression = Number(1.0 if on_logs else 0.0)
        values = np.full(target.values.size, 1.0 if on_logs else 0.0)
        for place, sign in zip(table.places[pair], table.signs[pair], strict=True):
            if place < 0:
                continue
            part, column = self._all.expression(int(place)), self._all.values[place]
            law = Pair(
                ("*" if sign > 0.0 else "/") if on_logs else ("+" if sign > 0.0 else "-"), law, part
            )
            values = values * column**sign if on_logs else values + sign * column
        rest = target.values / values if on_logs else target.values - values
        constant, scale = float(rest.mean()), 1.0 if on_logs else np.max(np.abs(target.values))
        if not np.ptp(rest) <= 1e-7 * max(abs(constant), scale):
            return None
        constant = shortest_within(constant, _ROUNDING * abs(constant)) if constant else 0.0
        if on_logs:
            return Pair("*", Number(constant), law)
        return law if abs(constant) < _NOTHING * scale else Pair("+", law, Number(constant))

    def _spelt(self, law: Expression) -> Iterator[tuple[float, list[Feature]]]:
        """The features of a law, if it is exact on all rows, and minus their log prior."""
        for feature in self._factor:
            law = Pair("*", Leaf(feature), law)
        problem, self._n_spelt = self._problem, self._n_spelt + 1
        prior = problem.model_prior.feature_log_prior
        for expands in (True, False):
            total = Speller(self._transforms, expands=expands).sum(law)
            if total is None or not total.features:
                continue
            found = [problem.column_of(problem.simplify(f)) for f in total.features]
            features = [whole for whole, _, _ in found]
            if any(status is not Status.OK for _, _, status in found):
                continue
            if not all(problem.grammar.admits_law(feature) for feature in features):
                continue
            fraction, status = self._engine.fraction(evaluate(features, problem.table)[0])
            if status is Status.OK and fraction <= _EXACT:
                yield -sum(prior(feature) for feature in features), features


def _value(leaf: Expression, table: Table) -> Column:
    """Values of a sum or difference of features."""
    if isinstance(leaf, Leaf):
        return np.asarray(evaluate([leaf.feature], table)[0][:, 0])
    assert isinstance(leaf, Pair)
    left, right = _value(leaf.left, table), _value(leaf.right, table)
    return left + right if leaf.sign == "+" else left - right


def _undone(target: _Target, functions: Sequence[Function]) -> Iterator[_Target]:
    """The target before each function that can be undone."""
    sign = 1.0 if float(np.median(target.values)) >= 0.0 else -1.0
    for function in functions:
        values = function.inverse(sign * target.values)
        if np.all(np.isfinite(values)):
            yield _Target(values, _applied(function, sign, target.outside))


def _applied(function: Function, sign: float, outside: Outside) -> Outside:
    def applied(law: Expression) -> Expression:
        for transform in reversed(function.transforms):
            law = Apply(transform, law)
        return outside(Pair("*", Number(sign), law))

    return applied


def _divided(target: _Target, by: tuple[Column, Expression]) -> _Target:
    values, part = by
    return _Target(target.values / values, lambda law: target.outside(Pair("*", part, law)))


def _taken_off(target: _Target, part: tuple[Column, Expression]) -> Iterator[_Target]:
    values, p = part
    yield _Target(target.values - values, lambda law: target.outside(Pair("+", law, p)))
    yield _Target(target.values + values, lambda law: target.outside(Pair("-", law, p)))
