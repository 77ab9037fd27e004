r"""One change at a time: what a model lacks is looked for at every place of its terms.

A term is a tree, and a place one of its nodes :math:`s`. With a list of simple factors :math:`h`,
and of functions with the arguments of those in the model, every place is tried with :math:`s h`,
with :math:`h` or another function instead of it, without one of its parts, and, where it is inside
a function, with :math:`s + \delta h` to first order,

.. math:: F(s + \delta h) \approx F(s) + \delta\, \frac{\partial F}{\partial s}\, h .

A whole block of columns goes up through the functions above the place at once, and is compared by
least squares: in the place of the term, of it and another one, and beside all. Of the best changes
the numbers inside are fitted, the most probable models are changed again, and so on. Nothing of it
is random, and it only decides where chains look first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice
from math import log
from typing import Self, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.data import Table
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.inner_numbers import fit_inner_numbers
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.law_columns import law_covariates, law_rows
from dbrm.evolution.sweep.places import Place, places
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.terms import Terms
from dbrm.features import (
    Feature,
    Modification,
    Projection,
    Standardized,
    Transform,
    covariate,
    evaluate,
    fit_knots,
    modify,
    multiply,
    project,
    walk,
)
from dbrm.status import Status

__all__ = ["sweep_edits"]

# Rows on which changes are compared, most simple factors, and parts of the model among the factors.
_SCREEN_ROWS, _FACTORS, _PARTS = 250, 200, 60
# Models that wait to be changed, terms of the largest, and how far below the best one they may be.
_WAITING, _MOST_TERMS, _WINDOW = 6, 10, 12.0
# Models that are changed, one after the other, without finding a better one.
_IN_VAIN = 8
# Changes of each kind and place that are kept, those spelt, and those whose numbers are fitted.
_KEPT, _SPELT, _FITTED = 8, 160, 16
# Smallest gain of a change (nats).
_GAIN = 1e-3
# Smallest share of the variance that counts; of a column outside a model, less is inside.
_ROUNDING, _IN_SPAN = 1e-20, 1e-9
# Step of the difference that stands for a derivative, as a share of the largest value.
_STEP = 1e-5
# Digits that a number inside is expected to have, and their price.
_DIGITS = 2.0 * log(10.0)


def sweep_edits(problem: Problem, model: Sequence[Feature], pause: Pause = never) -> list[Feature]:
    """The terms of the most probable models a few changes away, the best model first.

    None if no change makes the model more probable, or unless the response is Gaussian. Terms with
    numbers that come from the rows stay as they are.
    """
    engine = problem.engine
    if (
        not isinstance(engine, GaussianEngine)
        or engine.always is not None
        or engine.offset is not None
        or not 0 < len(model) <= _MOST_TERMS
        or pause()
    ):
        return []
    with np.errstate(all="ignore"):
        return _Search(problem, engine).climb(tuple(model), pause)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """A changed term.

    Parameters
    ----------
    gain
        Expected gain in log posterior.
    price
        What the term is expected to cost in it; None if its numbers are yet to be rounded, so that
        nothing better is known.
    spell
        Makes the term.
    replaced
        The terms whose place it takes.
    """

    gain: float
    price: float | None
    spell: Callable[[], Feature | None]
    replaced: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Reference:
    """The model without some terms: what changed terms are set beside."""

    replaced: tuple[int, ...]
    basis: Matrix
    residual: Column
    # What the terms left out cost, and coefficients gained with one in their place.
    credit: float
    n_more: int

    @classmethod
    def of(
        cls, response: Column, columns: Matrix, prices: FloatArray, replaced: tuple[int, ...]
    ) -> Self:
        kept = np.delete(columns, replaced, axis=1)
        kept = kept / np.maximum(np.max(np.abs(kept), axis=0), 1e-300)
        basis, _ = np.linalg.qr(np.column_stack([np.ones(response.size), kept]))
        residual = response - basis @ (basis.T @ response)
        credit = float(np.sum(prices[list(replaced)]))
        return cls(replaced, basis, residual, credit, 1 - len(replaced))

    @property
    def left(self) -> float:
        """Squares that it leaves."""
        return float(self.residual @ self.residual)

    def gains(self, columns: Matrix, left: float, n_rows: int) -> FloatArray:
        """Expected gain in log evidence with each column over a model that leaves so much."""
        inside = self.basis.T @ columns
        squares = np.einsum("nm,nm->m", columns, columns)
        outside = squares - np.einsum("km,km->m", inside, inside)
        usable = np.isfinite(squares) & (outside > _IN_SPAN * squares)
        explained = (self.residual @ columns) ** 2 / np.where(usable, outside, 1.0)
        least = _ROUNDING * self.residual.size
        after = np.maximum(self.left - np.where(usable, explained, 0.0), least * self.left)
        gains = -0.5 * n_rows * np.log(after / left) - 0.5 * self.n_more * log(n_rows)
        return np.where(usable & np.isfinite(gains), gains + self.credit, -np.inf)


class _Search:
    def __init__(self, problem: Problem, engine: GaussianEngine) -> None:
        self._problem, rows = problem, law_rows(problem)
        self._y, self._table = engine.response[rows], problem.table.take(rows)
        few = rows[np.linspace(0, rows.size - 1, min(rows.size, _SCREEN_ROWS)).astype(np.int64)]
        self._few, self._few_table = engine.response[few], problem.table.take(few)
        self._pool, self._unit = SweepPool(problem), problem.complexity_price
        plain = [g for g in problem.grammar.transforms if g.base is None and not g.takes_knot]
        self._functions, self._powers = [g for g in plain if not g.affine], Powers(plain)
        bases = [covariate(name) for name in law_covariates(problem)]
        self._simple = list(islice(_factors(bases, self._functions, self._powers), _FACTORS))

    def climb(self, model: tuple[Feature, ...], pause: Pause) -> list[Feature]:
        """Change the most probable models again and again; the terms of those that are better."""
        first = self._log_posterior(model)
        waiting, better = [(first, model)], list[tuple[float, tuple[Feature, ...]]]()
        known = {frozenset(feature.key for feature in model)}
        best, in_vain = first, 0
        while waiting and in_vain < _IN_VAIN and not pause():
            _, terms = waiting.pop(0)
            in_vain += 1
            for changed in self._changed(terms, pause):
                key = frozenset(feature.key for feature in changed)
                value = -np.inf if key in known else self._log_posterior(changed)
                known.add(key)
                if value > best - _WINDOW:
                    waiting.append((value, changed))
                if value > first + _GAIN:
                    better.append((value, changed))
                if value > best + _GAIN:
                    best, in_vain = value, 0
            waiting.sort(key=lambda state: -state[0])
            waiting = [state for state in waiting[:_WAITING] if state[0] > best - _WINDOW]
        better.sort(key=lambda state: -state[0])
        return list(dict.fromkeys(feature for _, terms in better for feature in terms))

    def _columns(self, terms: Sequence[Feature], table: Table) -> Matrix:
        """Columns of terms on some rows; numbers from the rows come from all."""
        return evaluate([fit_knots(term, self._problem.table) for term in terms], table)[0]

    def _log_posterior(self, terms: Sequence[Feature]) -> float:
        numbers = self._pool.add(list(terms), len(terms), fresh_only=False)
        return self._pool.log_posterior(numbers) if len(numbers) == len(terms) else -np.inf

    def _changed(self, terms: tuple[Feature, ...], pause: Pause) -> Iterator[tuple[Feature, ...]]:
        """Models one change away, the most promising first, without terms that they can spare."""
        for feature, replaced in self._best_features(terms, pause):
            if pause():
                return
            others = [term for j, term in enumerate(terms) if j not in replaced]
            columns = self._columns(others, self._table)
            fitted = fit_inner_numbers(feature, columns, self._y, self._table)
            fitted = self._problem.simplify(fitted)
            if self._problem.column_of(fitted)[2] is Status.OK:
                numbers = self._pool.add([fitted, *others], 1 + len(others), fresh_only=False)
                kept = self._pool.best_subset(numbers, numbers)
                yield tuple(self._pool.feature(number) for number in kept)

    def _best_features(
        self, terms: tuple[Feature, ...], pause: Pause
    ) -> list[tuple[Feature, tuple[int, ...]]]:
        """Changed terms of the largest expected gain, and the terms whose place they take."""
        columns = self._columns(terms, self._few_table)
        grammar, prior = self._problem.grammar, self._problem.model_prior.feature_log_prior
        prices = np.array([-prior(term) for term in terms])
        whole = _Reference.of(self._few, columns, prices, ())
        plain = [k for k, term in enumerate(terms) if _is_plain(term)]
        parts = _parts([terms[k] for k in plain], self._functions, self._powers)
        most = _FACTORS + _PARTS
        made = chain(islice(parts, _PARTS), self._simple)
        factors = Terms.of(made, grammar.admits_law, self._few_table, most)
        changes: list[_Change] = []
        for k in plain:
            left_out = [(k,), (), *((k, j) for j in range(len(terms)) if j != k)]
            references = [_Reference.of(self._few, columns, prices, out) for out in left_out]
            for place in places(terms[k], self._few_table, self._powers):
                if pause():
                    break
                changes += self._exchanges(terms[k], place, factors, references, whole)
                changes += self._additions(place, factors, k, columns, whole)
        changes.sort(key=lambda change: -change.gain)
        found: dict[tuple[int, tuple[int, ...]], tuple[float, Feature]] = {}
        for change in changes[:_SPELT]:
            spelt = change.spell()
            feature = None if spelt is None else self._problem.simplify(spelt)
            if feature is not None and grammar.admits_law(feature):
                # What cancels is not paid for.
                gain = change.gain
                if change.price is not None:
                    gain += change.price + prior(feature)
                found.setdefault((feature.key, change.replaced), (gain, feature))
        ranked = sorted(found.items(), key=lambda item: -item[1][0])
        return [(feature, replaced) for (_, replaced), (_, feature) in ranked[:_FITTED]]

    def _exchanges(
        self,
        term: Feature,
        place: Place,
        factors: Terms,
        references: Sequence[_Reference],
        whole: _Reference,
    ) -> Iterator[_Change]:
        """Changes to something else in this place."""
        node = place.node
        sizes = term.complexity + factors.complexity
        values = factors.columns * factors.scale
        kinds = [
            (place.column[:, None] * values, sizes, True),
            (values, sizes - node.complexity, False),
        ]
        for inside, complexity, multiplied in kinds:
            blocks = place.lift(inside)

            def spell(j: int, multiplied: bool = multiplied) -> Feature:
                factor = factors.features[j]
                return place.rebuild(multiply(node, factor) if multiplied else factor)

            yield from self._best(blocks, complexity, references, whole, spell)
        variants = [*place.variants, *(modify(g, node) for g in self._functions)]
        columns = evaluate(variants, self._few_table)[0]
        complexity = term.complexity - node.complexity + np.array([v.complexity for v in variants])

        def spell_variant(j: int) -> Feature:
            return place.rebuild(variants[j])

        yield from self._best(place.lift(columns), complexity, references, whole, spell_variant)

    def _best(
        self,
        columns: Matrix,
        complexity: IntArray,
        references: Sequence[_Reference],
        whole: _Reference,
        spell: Callable[[int], Feature],
    ) -> Iterator[_Change]:
        prices = self._unit * complexity
        for reference in references:
            gains = reference.gains(columns, whole.left, self._problem.n_rows)
            gains -= prices
            for j in _largest(gains):
                made = partial(spell, j)
                yield _Change(float(gains[j]), float(prices[j]), made, reference.replaced)

    def _additions(
        self, place: Place, factors: Terms, k: int, columns: Matrix, whole: _Reference
    ) -> Iterator[_Change]:
        """Changes to a sum in this place, to first order."""
        if place.add is None:
            return
        add = place.add
        added = np.column_stack([factors.columns * factors.scale, np.ones(len(columns))])
        step = _STEP * np.max(np.abs(place.column)) / np.max(np.abs(added), axis=0)
        moved = (place.lift(place.column[:, None] + step * added) - columns[:, [k]]) / step
        gains = whole.gains(moved, whole.left, self._problem.n_rows)
        # The coefficient in front stays one.
        gains += 0.5 * log(self._problem.n_rows)
        gains -= self._unit * (1.0 + np.append(factors.complexity, 0)) + _DIGITS
        features = [*factors.features, None]
        for j in _largest(gains):

            def spell(j: int = j) -> Feature | None:
                design = np.column_stack([np.ones(len(columns)), columns, moved[:, j]])
                weights = np.linalg.lstsq(design, self._few, rcond=None)[0]
                weight = float(weights[-1] / weights[1 + k])
                return add(features[j], weight) if np.isfinite(weight) else None

            yield _Change(float(gains[j]), None, spell, (k,))


def _largest(gains: FloatArray) -> list[int]:
    """Positions of the largest gains that are not far below none, the largest first."""
    sound = np.where(np.isfinite(gains), gains, -np.inf)
    some = np.argsort(-sound, kind="stable")[:_KEPT]
    return [int(j) for j in some if sound[j] > -_WINDOW]


def _is_plain(term: Feature) -> bool:
    """Whether no function of a term has a knot, or an argument that is standardised."""
    return not any(
        isinstance(node, Standardized)
        or (isinstance(node, Modification | Projection) and node.knot is not None)
        for node in walk(term)
    )


def _to(exponents: Sequence[float], feature: Feature, powers: Powers) -> Iterator[Feature]:
    """Powers of a feature that can be spelt."""
    spelt = (powers.feature(feature, exponent) for exponent in exponents)
    yield from (power for power in spelt if power is not None)


def _parts(
    terms: Sequence[Feature], functions: Sequence[Transform], powers: Powers
) -> Iterator[Feature]:
    """The functions in a model, others of the same arguments, and powers of them."""
    curved = [g for g in functions if not np.isfinite(exponent_of(g))]
    for node in dict.fromkeys(node for term in terms for node in walk(term)):
        if not isinstance(node, Modification | Projection):
            continue
        for g in (node.transform, *curved):
            changed: Feature = modify(g, node.children[0])
            if isinstance(node, Projection):
                numbers = node.weights, node.bias
                changed = project(g, node.children, *numbers, weights_in_identity=True)
            yield from _to((1.0, -1.0, -2.0), changed, powers)


def _factors(
    bases: Sequence[Feature], functions: Sequence[Transform], powers: Powers
) -> Iterator[Feature]:
    """Powers and functions of a covariate, and of these; products and ratios of two covariates."""
    for base in bases:
        yield from _to((1.0, -1.0, 2.0, 0.5, -2.0, -0.5, 3.0), base, powers)
    curved = [g for g in functions if not np.isfinite(exponent_of(g))]
    for base in bases:
        for g in curved:
            yield from _to((1.0, -1.0), modify(g, base), powers)
    for one, other in combinations(bases, 2):
        yield multiply(one, other)
        for signs in ((1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
            ratio = powers.product((one, other), np.array(signs))
            if ratio is not None:
                yield ratio
    for base in bases:
        for g in curved:
            yield from _to((2.0, -2.0), modify(g, base), powers)
