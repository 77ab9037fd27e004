r"""Sweep of one-term laws: a product times a function of a weighted sum, by inverting the function.

For a Gaussian response, a product :math:`F` of few covariates and an invertible :math:`g`,

.. math:: y = F\, g\Bigl(\alpha_0 + \sum_r \alpha_r F_r\Bigr)
    \quad\Longleftrightarrow\quad
    g^{-1}(y / F) = \alpha_0 + \sum_r \alpha_r F_r ,

and the right side is a linear model: its inputs are chosen among the simple features one by one,
by weighted least squares (weights :math:`|F g'|`, so that errors count as they do in
:math:`y`). Every pair of :math:`F` and :math:`g` is screened, the best are fitted to :math:`y`
itself. Without a :math:`g` a sum with a common factor comes apart into features :math:`F F_r`.
Where simple features that share no covariate with others explain the response together, a law is
also looked for in the place of those that do share one: on the response minus the terms of
the others, which are fitted anew beside the law. Like the sweep this only decides where chains
look first, and nothing of it is random.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import combinations
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.groups import group_exponents
from dbrm.evolution.sweep.inverses import IDENTITY, Function, exponent_of, invertible_functions
from dbrm.evolution.sweep.levels import Index, Maker, build_levels, level_sizes
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.powers import Powers, log_linear_exponents, separable_exponents
from dbrm.evolution.sweep.reductions import reduce_covariates
from dbrm.evolution.sweep.screening import invert, share_left
from dbrm.evolution.sweep.snapping import snapped_numbers
from dbrm.evolution.sweep.spelling import without_logarithms
from dbrm.features import Feature, Transform, covariate, evaluate, multiply
from dbrm.status import Status

__all__ = [
    "LawTarget",
    "law_covariates",
    "law_rows",
    "law_targets",
    "plain_targets",
    "reduced_targets",
    "sweep_projections",
]

_MOST_ROWS, _MOST_COVARIATES = 1_000, 8
# Candidates for the inputs of a sum: beside a factor of two or three covariates, and beside less.
_MOST_INPUTS, _MOST_INPUTS_ALONE = 800, 6_000
# Rows on which factors and functions are screened, most inputs meanwhile, and fewest rows for each.
_SCREEN_ROWS, _SCREEN_INPUTS, _ROWS_PER_INPUT = 250, 24, 3
# Attempts of each function whose inputs are chosen; those whose weights are fitted to the response
# itself; most features returned.
_KEPT, _FITTED, _TAKE = 6, 3, 24
# Simple features beside which laws are looked for; groups of them in whose place; attempts there,
# and rounds of fitting.
_MOST_SIMPLE, _PLACES, _KEPT_BESIDE, _ROUNDS = 10, 4, 3, 5
# A column whose weighted remainder is less than this share of it is a sum of others.
_DEPENDENT = 1e-10
# Factors that stand apart of which sums are looked for beside.
_MOST_APART = 4
# Covariates that are few enough without groups of them.
_FEW_COVARIATES = 4
# Products found on the log scale that have a column of their own.
_MOST_PRODUCTS = 60


@final
@dataclass(frozen=True, slots=True, eq=False)
class LawTarget:
    r"""What a sum must be if the response is a factor times a function of it.

    Parameters
    ----------
    factor, factor_column
        The factor's parts, none for one; and its column, with the sign that the response has.
    bases
        What the sum is made of: covariates but for those of a factor that stands apart, or groups
        of them.
    target, weight
        :math:`g^{-1}(y / F)`, and :math:`|F g'|`, zero in rows that cannot be inverted.
    """

    factor: tuple[Feature, ...]
    factor_column: Column
    function: Function
    bases: tuple[Feature, ...]
    target: Column
    weight: Column


def law_targets(problem: Problem, kept: int, pause: Pause = never) -> list[LawTarget]:
    """Factors and functions under which few columns explain much, those of each function in turn.

    None unless `sweep_projections` applies. On the rows that `law_rows` gives.
    """
    search = _search(problem)
    if search is None:
        return []
    with np.errstate(all="ignore"):
        return search.targets(kept, pause)


def reduced_targets(problem: Problem) -> list[LawTarget]:
    """Targets of every function with the factor that stands apart, over the groups of the others.

    None unless there is a factor or a group, or few covariates, and `sweep_projections` applies.
    """
    search = _search(problem)
    if search is None:
        return []
    with np.errstate(all="ignore"):
        return search.reduced()


def plain_targets(problem: Problem) -> list[LawTarget]:
    """Targets of every function without a factor, over few covariates."""
    search = _search(problem)
    if search is None:
        return []
    with np.errstate(all="ignore"):
        return search.plain()


def law_rows(problem: Problem) -> Index:
    """The rows on which laws are looked for: evenly thinned out if there are many."""
    n_rows = problem.table.n_rows
    return np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.int64)


def law_covariates(problem: Problem) -> list[str]:
    """Names of the covariates that laws are made of, the strongest ones if there are many."""
    strength = problem.marginal_strength()
    chosen = np.sort(np.argsort(-strength, kind="stable")[:_MOST_COVARIATES])
    return [problem.table.names[j] for j in chosen]


def _search(problem: Problem) -> "_Search | None":
    engine, table = problem.engine, problem.table
    if (
        not isinstance(engine, GaussianEngine)
        or engine.always is not None
        or engine.offset is not None
        or table.n_columns == 0
        or not np.ptp(engine.response) > 0
        or not invertible_functions(problem.grammar.transforms)
    ):
        return None
    rows = law_rows(problem)
    return _Search(problem, law_covariates(problem), rows, engine.response[rows])


def sweep_projections(
    problem: Problem, simple: Sequence[Feature] = (), pause: Pause = never
) -> list[Feature]:
    """The one-term laws of largest expected gain, best first; none unless the response is Gaussian.

    Parameters
    ----------
    simple
        Simple features, best first: laws are also looked for in places of the best model of them.
    pause
        When it returns true, the laws found until then are returned.
    """
    search = _search(problem)
    if search is None:
        return []
    rows, pool = law_rows(problem), SweepPool(problem)
    numbers = pool.add(list(simple), _MOST_SIMPLE)
    numbers = pool.best_subset(numbers, numbers)
    groups = _groups([pool.feature(number) for number in numbers])
    beside = search.beside(pool.columns(numbers)[rows], groups, pause)
    return search.admitted([*search.alone(pause), *beside])


def _groups(features: list[Feature]) -> list[list[int]]:
    """Positions of features that share covariates, with each other or through others."""
    groups: list[tuple[set[str], list[int]]] = []
    for position, feature in enumerate(features):
        names, members = set(feature.covariates), [position]
        apart = []
        for known, others in groups:
            if known & names:
                names |= known
                members += others
            else:
                apart.append((known, others))
        groups = [*apart, (names, members)]
    return [members for _, members in groups]


class _Sum:
    """A weighted linear model of what the function is applied to, by positions of inputs."""

    def __init__(self, search: "_Search", target: Column, weight: Column, inputs: Index) -> None:
        self._search = search
        self._inputs = inputs
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
        block = search.columns[:, self._inputs] * self._weight[:, None]
        sound, complexity = search.sound[self._inputs], search.complexity[self._inputs]
        norms = np.einsum("nk,nk->k", block, block)
        basis, _ = np.linalg.qr(self.design(chosen))
        residual = self._total - basis @ (basis.T @ self._total)
        inside = basis.T @ block
        left = norms - np.einsum("kn,kn->n", inside, inside)
        while len(chosen) < most:
            before = float(residual @ residual)
            usable = sound & (left > _DEPENDENT * norms)
            if before <= 1e-22 * search.variation or not usable.any():
                break
            share = (residual @ block) ** 2 / np.where(usable, left, np.inf) / before
            gain = -0.5 * residual.size * np.log(np.maximum(1.0 - share, 1e-12))
            gain -= search.unit * complexity
            best = int(np.argmax(np.where(usable, gain, -np.inf)))
            if not gain[best] > 0.0:
                break
            rest = block[:, best] - basis @ (basis.T @ block[:, best])
            rest -= basis @ (basis.T @ rest)
            direction = rest / np.linalg.norm(rest)
            chosen.append(int(self._inputs[best]))
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
    # Rows that cannot be inverted.
    lost: Mask


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """Features with their weights, what they gain and cost, and the column of the law."""

    gain: float
    cost: float
    features: list[Feature]
    column: Column


class _Search:
    """Tries all factors and functions on one response."""

    def __init__(self, problem: Problem, names: list[str], rows: Index, response: Column) -> None:
        self._problem = problem
        self._names = names
        self._y = response
        transforms = problem.grammar.transforms
        sizes = level_sizes(len(names), len(transforms), 4)
        held = max(k for k in range(1, 5) if k == 1 or sum(sizes[:k]) <= _MOST_INPUTS_ALONE)
        levels = build_levels(problem.table, names, rows, transforms, held)
        self._maker = Maker(levels, names, transforms)
        room = np.full((rows.size, _MOST_PRODUCTS), np.nan)
        columns = np.hstack([*(level.columns for level in levels), room])
        with np.errstate(all="ignore"):
            size = np.max(np.abs(columns), axis=0)
            self.sound = np.isfinite(size) & (size > 0)
            self._scale = np.where(self.sound, size, 1.0)
            self.columns = np.where(self.sound, columns, 0.0) / self._scale
        sizes = [level.size for level in levels]
        self.complexity = np.repeat([*range(1, held + 1), 0], [*sizes, _MOST_PRODUCTS])
        self._table, self._powers = problem.table.take(rows), Powers(transforms)
        self._products: list[Feature] = []
        self._first_product = int(sum(sizes))
        self._bases, self._logs = self._positive(len(names))
        self._signed, self._signed_logs = self._never_zero(len(names))
        self._groups = self._dimensionless()
        self.variation = float(np.sum((response - response.mean()) ** 2))
        self._counts = [int(n) for n in np.cumsum([level.size for level in levels])]
        self._counts_short = [n for n in self._counts if n <= _MOST_INPUTS]
        self._atoms = self._factors(len(names), transforms)
        self._functions = [IDENTITY, *invertible_functions(transforms)]
        self.unit = problem.complexity_price

    def _positive(self, count: int) -> tuple[list[Feature], Matrix]:
        """The covariates that are never zero and have one sign, and their logarithms."""
        one_sign = [
            j
            for j in range(count)
            if self.sound[j] and np.all(self.columns[:, j] * self.columns[0, j] > 0.0)
        ]
        return self._with_logs(one_sign)

    def _never_zero(self, count: int) -> tuple[list[Feature], Matrix]:
        """The covariates that are never zero, and the logarithms of their sizes."""
        return self._with_logs(
            [j for j in range(count) if self.sound[j] and np.all(self.columns[:, j] != 0.0)]
        )

    def _with_logs(self, positions: list[int]) -> tuple[list[Feature], Matrix]:
        logs = np.log(np.abs(self.columns[:, positions] * self._scale[positions]))
        return [self._maker.feature(j) for j in positions], logs

    def feature(self, position: int) -> Feature:
        """The feature of a column."""
        if position < self._first_product:
            return self._maker.feature(position)
        return self._products[position - self._first_product]

    def _position_of(
        self, exponents: FloatArray | None, bases: Sequence[Feature] | None = None
    ) -> int | None:
        """The column of a product of powers; a new one unless it is known or there is no room.

        Of the covariates of one sign unless others are given.
        """
        bases = self._bases if bases is None else bases
        feature = None if exponents is None else self._powers.product(bases, exponents)
        if feature is None or not self._problem.grammar.admits_law(feature):
            return None
        if feature not in self._products:
            if len(self._products) == _MOST_PRODUCTS:
                return None
            column = evaluate([feature], self._table)[0][:, 0]
            size = float(np.max(np.abs(column)))
            if not 0.0 < size < np.inf:
                return None
            position = self._first_product + len(self._products)
            self.columns[:, position] = column / size
            self._scale[position], self.sound[position] = size, True
            self.complexity[position] = feature.complexity
            self._products.append(feature)
        return self._first_product + self._products.index(feature)

    def _dimensionless(self) -> list[int]:
        """Columns of the dimensionless groups of the covariates, where units are given."""
        units = self._problem.grammar.units
        if units is None or not self._bases:
            return []
        names = tuple(base.covariates[0] for base in self._bases)
        found = [self._position_of(vector) for vector in group_exponents(units, names)]
        return [position for position in found if position is not None]

    def _separable(self) -> list[tuple[int, ...]]:
        """Products of powers that the response may be a multiple of, by regressions of logarithms.

        All covariates that seem to be factors, and all of them but one.
        """
        vectors = self._apart()
        if vectors and np.count_nonzero(vectors[0]) > 1:
            each = np.flatnonzero(vectors[0])
            vectors += [np.where(np.arange(len(vectors[0])) == j, 0.0, vectors[0]) for j in each]
        found = [self._position_of(vector, self._signed) for vector in vectors]
        return [(position,) for position in dict.fromkeys(found) if position is not None]

    def _apart(self) -> list[FloatArray]:
        """Exponents of the covariates that are never zero in a factor that stands apart."""
        if not self._signed:
            return []
        logs = self._signed_logs
        found = [separable_exponents(logs, self._y, weighted=on) for on in (True, False)]
        # Where both see another exponent it is none.
        doubtful = (found[0] != 0.0) & (found[1] != 0.0) & (found[0] != found[1])
        found = [np.where(doubtful, 0.0, exponents) for exponents in found]
        # Either may see a factor that the other does not.
        found.append(np.where(found[0] != 0.0, found[0], found[1]))
        return [exponents for exponents in found if exponents.any()]

    def _factors(self, count: int, transforms: Sequence[Transform]) -> list[list[int]]:
        """For each covariate the positions of itself and its powers."""
        powers = [k for k, g in enumerate(transforms) if exponent_of(g) in (-1.0, 2.0)]
        return [[j, *(count + k * count + j for k in powers)] for j in range(count)]

    def _short_products(self, most: int) -> Iterator[tuple[int, ...]]:
        yield ()
        for size in range(1, min(most, len(self._atoms)) + 1):
            for covariates in combinations(self._atoms, size):
                yield from _one_of_each(covariates)

    def alone(self, pause: Pause) -> list["_Law"]:
        """Screen all attempts, exchange inputs of the best ones, fit their weights."""
        with np.errstate(all="ignore"):
            attempts = [
                attempt if pause() else self._exchange(attempt)
                for attempt in self._best_attempts(3, _KEPT, pause)
            ]
            return [self._made(attempt) for attempt in attempts]

    def targets(self, kept: int, pause: Pause) -> list[LawTarget]:
        """What sums must be under each function with its best factors, the most explained first.

        Before them those without a factor, and with one that stands apart.
        """
        products, separable = list(self._short_products(2)), self._separable()[:_MOST_APART]
        apart = {p: set(self.feature(*p).covariates) for p in separable}
        covariates = [covariate(name) for name in self._names]
        found: list[tuple[bool, float, LawTarget]] = []
        for function in self._functions:
            if pause():
                break
            tried = dict.fromkeys((*separable, (), *self._screened(products, function, kept)))
            lefts = self._screening_left(list(tried), function)
            for positions, left in zip(tried, lefts.tolist(), strict=True):
                taken = apart.get(positions, set())
                bases = tuple(base for base in covariates if base.name not in taken)
                target = self._target(positions, bases, function)
                if target is not None:
                    later = positions != () and positions not in separable[:1]
                    found.append((later, left, target))
        return [target for _, _, target in sorted(found, key=lambda found: found[:2])]

    def reduced(self) -> list[LawTarget]:
        """Targets of every function over the groups of covariates."""
        found = self._reduced()
        targets = [] if found is None else [self._target(*found, g) for g in self._functions]
        return [target for target in targets if target is not None]

    def plain(self) -> list[LawTarget]:
        """Targets of every function over the covariates, if these are few."""
        bases = tuple(covariate(name) for name in self._names)
        if len(bases) > _FEW_COVARIATES:
            return []
        targets = [self._target((), bases, function) for function in self._functions]
        return [target for target in targets if target is not None]

    def _target(
        self, positions: tuple[int, ...], bases: tuple[Feature, ...], function: Function
    ) -> LawTarget | None:
        factor = np.prod(self.columns[:, list(positions)] * self._scale[list(positions)], axis=1)
        targets, weights, signs, usable = invert(function, self._y, factor[:, None])
        if not (bases and usable[0] and all(self.sound[p] for p in positions)):
            return None
        parts = tuple(self.feature(p) for p in positions)
        column = signs[0] * factor
        return LawTarget(parts, column, function, bases, targets[:, 0], weights[:, 0])

    def _reduced(self) -> tuple[tuple[int, ...], tuple[Feature, ...]] | None:
        """A factor that stands apart, and groups of the other covariates on which the rest depends.

        ``None`` if there are neither, and not few covariates, or if nothing is left but the factor.
        """
        vectors = self._apart()
        apart = vectors[0] if vectors else np.zeros(len(self._signed))
        taken = {base.text for base, k in zip(self._signed, apart, strict=True) if k}
        free = [j for j, base in enumerate(self._bases) if base.text not in taken]
        bases = [self._bases[j] for j in free]
        others = [
            j for j, name in enumerate(self._names) if name not in taken | {b.text for b in bases}
        ]
        values = self.columns[:, others] * self._scale[others]
        response = self._y / np.exp(self._signed_logs @ apart)
        found = reduce_covariates(self._logs[:, free], values, response)
        if found is None and not vectors and len(self._names) > _FEW_COVARIATES:
            return None
        groups: list[Feature | None] = list(bases)
        if found is not None:
            groups = [self._powers.product(bases, row) for row in found.groups]
            factor = dict(zip([base.text for base in bases], found.factor.tolist(), strict=True))
            apart = apart + np.array([factor.get(base.text, 0.0) for base in self._signed])
        position = self._position_of(apart, self._signed) if apart.any() else None
        spelt = [group for group in groups if group is not None]
        if len(spelt) < len(groups) or (apart.any() and position is None):
            return None
        plain = [self._maker.feature(j) for j in others]
        if found is not None and len(found.groups) == 1 and not plain:
            # A function of one group may be one of its inverse.
            inverse = self._powers.product(bases, -found.groups[0])
            spelt += [] if inverse is None else [inverse]
        return () if position is None else (position,), (*spelt, *plain)

    def beside(self, columns: Matrix, groups: list[list[int]], pause: Pause) -> list["_Law"]:
        """Laws in the place of each group of columns, beside all others."""
        found: list[_Law] = []
        slopes = self._slopes(columns)
        for group in groups[:_PLACES] if len(groups) > 1 else []:
            if pause():
                break
            kept = [j for j in range(columns.shape[1]) if j not in group]
            others = columns[:, kept]
            search = self._with_response(self._y - others @ slopes[kept])
            with np.errstate(all="ignore"):
                attempts = [a for a in search._best_attempts(1, 2, pause) if a.function.transforms]
                attempts.sort(key=lambda attempt: -attempt.expected_gain)
                for attempt in attempts[:_KEPT_BESIDE]:
                    law = self._beside(search._made(attempt), others)
                    found.append(self._alternate(law, attempt, others))
        return found

    def _alternate(self, law: "_Law", attempt: _Attempt, others: Matrix) -> "_Law":
        """Fit the terms of the others beside the law, then the law, in turns."""
        for _ in range(_ROUNDS):
            slopes = self._slopes(np.column_stack([others, law.column]))
            search = self._with_response(self._y - others @ slopes[:-1])
            factor = np.abs(attempt.factor_column)
            again = search._attempt(attempt.factor, factor, attempt.function)
            better = None if again is None else self._beside(search._made(again), others)
            if better is None or not better.gain > law.gain:
                break
            law = better
        return law

    def _beside(self, law: "_Law", others: Matrix) -> "_Law":
        """The law with its gain beside other columns."""
        columns = np.nan_to_num(np.column_stack([others, law.column]))
        rest = self._y - columns @ self._slopes(columns)
        rest = rest - rest.mean()
        left = max(float(rest @ rest) / self.variation, 1e-20)
        return replace(law, gain=float(-0.5 * self._y.size * np.log(left)) - law.cost)

    def _slopes(self, columns: Matrix) -> FloatArray:
        """Least-squares coefficients of these columns beside a constant."""
        design = np.column_stack([columns, np.ones(len(columns))])
        return np.asarray(np.linalg.lstsq(np.nan_to_num(design), self._y, rcond=None)[0][:-1])

    def _with_response(self, response: Column) -> "_Search":
        """The same search for another response on the same rows."""
        search = copy(self)
        search._y = response
        search.variation = max(float(np.sum((response - response.mean()) ** 2)), 1e-300)
        return search

    def admitted(self, laws: list["_Law"]) -> list[Feature]:
        """The features of the best laws that are admitted, each once."""
        found: dict[int, Feature] = {}
        ordered = sorted(laws, key=lambda law: -law.gain)
        for feature in (feature for law in ordered for feature in law.features):
            other = without_logarithms(feature, self._powers)
            for spelling in (feature,) if other is None else (feature, other):
                if len(found) < _TAKE:
                    fitted, _, status = self._problem.column_of(self._problem.simplify(spelling))
                    if status is Status.OK and self._problem.grammar.admits_law(fitted):
                        found.setdefault(fitted.key, fitted)
        return list(found.values())

    def _best_attempts(self, most_factors: int, kept: int, pause: Pause) -> list[_Attempt]:
        """The best of each function: gains under different functions are not comparable."""
        best: list[_Attempt] = []
        products = list(self._short_products(most_factors))
        separable = self._separable()
        for function in self._functions:
            attempts = []
            # A plain sum without a factor is a law only if it has a long product in it.
            alone = () if function.transforms else ((),)
            for positions in (*alone, *separable, *self._screened(products, function, kept)):
                if pause():
                    return best
                column = np.prod(self.columns[:, list(positions)], axis=1)
                attempt = self._attempt(positions, column, function)
                if attempt is not None:
                    attempts.append(attempt)
            best += sorted(attempts, key=self._order, reverse=True)[:_FITTED]
        return best

    def _admits(self, attempt: _Attempt) -> bool:
        """Whether the law of an attempt keeps to the grammar, whatever its weights."""
        children = [self.feature(p) for p in attempt.children]
        factor = [self.feature(p) for p in attempt.factor]
        if not attempt.function.transforms:
            return True
        law = attempt.function.feature(children, [1.0] * len(children), 1.0)
        return self._problem.grammar.admits_law(multiply(*factor, law))

    def _screened(
        self, products: list[tuple[int, ...]], function: Function, kept: int
    ) -> list[tuple[int, ...]]:
        """The factors of which some inputs together explain most under this function."""
        # Factors of three only for plain sums; a plain sum without a factor is no law.
        most = 2 if function.transforms else 3
        products = [p for p in products if len(p) <= most and (p or function.transforms)]
        if not products:
            return []
        left = self._screening_left(products, function)
        cost = np.array([sum(self.complexity[list(p)]) if p else 0 for p in products])
        gain = -0.5 * self._y.size * np.log(np.maximum(left, 1e-20)) - self.unit * cost
        order = np.argsort(-gain, kind="stable")[:kept]
        return [products[k] for k in order if np.isfinite(gain[k])]

    def _screening_left(self, products: list[tuple[int, ...]], function: Function) -> FloatArray:
        """Share of the response's variance that a sum of some inputs leaves beside each factor."""
        rows = np.linspace(0, self._y.size - 1, min(self._y.size, _SCREEN_ROWS)).astype(np.int64)
        atoms = [p for group in zip(*self._atoms, strict=True) for p in group if self.sound[p]]
        inputs = atoms[: min(_SCREEN_INPUTS, rows.size // _ROWS_PER_INPUT)]
        columns = self.columns[rows]
        factors = np.column_stack([np.prod(columns[:, list(p)], axis=1) for p in products])
        return share_left(function, self._y[rows], factors, columns[:, inputs])

    def _attempt(
        self, positions: tuple[int, ...], factor: Column, function: Function
    ) -> _Attempt | None:
        targets, weights, signs, usable = invert(function, self._y, factor[:, None])
        if not usable[0] or not all(self.sound[p] for p in positions):
            return None
        target, weight, factor = targets[:, 0], weights[:, 0], signs[0] * factor
        most = self._problem.grammar.max_projection
        best = None
        # Simple inputs first: among many inputs a wrong one may fit better by chance.
        counts = self._counts if len(positions) < 2 else self._counts_short
        atoms = np.sort(np.concatenate(self._atoms))
        product = self._position_of(self._exponents(target, weight))
        products = [*self._groups, *([] if product is None else [product])]
        long = (np.append(atoms, products),) if products else ()
        if not (positions or function.transforms or long):
            return None
        for inputs in (*long, atoms, *(np.arange(count) for count in counts)):
            sum_ = _Sum(self, target, weight, inputs)
            children = sum_.grow([], most)
            attempt = _Attempt(0.0, positions, factor, function, sum_, children, weight == 0.0)
            weighed = self._weighed(attempt)
            if weighed is not None and (best is None or self._order(weighed) > self._order(best)):
                best = weighed
        return best

    def _exponents(self, target: Column, weight: Column) -> FloatArray | None:
        """Exponents of the product that a function may be applied to."""
        return log_linear_exponents(self._logs, target, weight) if self._bases else None

    def _order(self, attempt: _Attempt) -> tuple[bool, float]:
        """Laws that keep to the grammar come first, then those of larger gain."""
        return self._admits(attempt), attempt.expected_gain

    def _weighed(self, attempt: _Attempt) -> _Attempt | None:
        """The attempt with its expected gain, up to a constant; none without inputs."""
        if not attempt.children:
            return None
        left = attempt.sum.left(attempt.children)
        if attempt.lost.any():
            # Rows without weight count by what the law says of them.
            weights = attempt.sum.weights(attempt.children)
            inputs = self.columns[attempt.lost][:, attempt.children]
            value = attempt.function.value(weights[0] + inputs @ weights[1:])
            error = self._y[attempt.lost] - attempt.factor_column[attempt.lost] * value
            error = np.where(np.isfinite(error), error, self._y[attempt.lost] - self._y.mean())
            left += float(error @ error) / self.variation
        return replace(attempt, expected_gain=self._expected_gain(attempt, left))

    def _cost(self, attempt: _Attempt, *, constant: bool = True) -> float:
        features = [self.feature(p) for p in (*attempt.children, *attempt.factor)]
        return self.unit * (constant + sum(feature.complexity for feature in features))

    def _expected_gain(self, attempt: _Attempt, left: float, *, constant: bool = True) -> float:
        cost = self._cost(attempt, constant=constant)
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

    def _made(self, attempt: _Attempt) -> "_Law":
        """The features of an attempt, with weights fitted to the response, and their gain."""
        children = [self.feature(p) for p in attempt.children]
        factor = [self.feature(p) for p in attempt.factor]
        if not attempt.function.transforms:
            parts = ((), *((child,) for child in children))
            plain = [multiply(*factor, *part) for part in parts if factor or part]
            return _Law(attempt.expected_gain, self._cost(attempt), plain, self._y)
        best = _Law(-np.inf, np.inf, [], self._y)
        for constant in (True, False):
            left, weights = self._fit(attempt, constant=constant)
            gain = self._expected_gain(attempt, left, constant=constant)
            if gain > best.gain and np.all(np.isfinite(weights)):
                numbers = np.concatenate([weights if constant else [0.0, *weights]])
                best = self._spelt(attempt, numbers, gain, constant=constant)
        return best

    def _spelt(
        self, attempt: _Attempt, weights: FloatArray, gain: float, *, constant: bool
    ) -> "_Law":
        """The law with its fitted weights, the constant first: without what its coefficient says,
        and with short numbers where these fit as well.
        """
        function, inputs = attempt.function, self.columns[:, attempt.children]
        design = np.column_stack([np.ones(len(inputs)), inputs * self._scale[attempt.children]])
        weights = np.concatenate([weights[:1], weights[1:] / self._scale[attempt.children]])
        fixed = np.zeros(weights.size, dtype=np.bool_)
        fixed[0] = not constant
        if function.is_power:
            # A power's scale belongs to its coefficient.
            largest = 1 + int(np.argmax(np.abs(weights[1:]) * self._scale[attempt.children]))
            weights = weights / abs(weights[largest])
            fixed[largest] = True
        elif function.is_exponential:
            # So does an exponential's shift.
            weights[0], fixed[0], constant = 0.0, True, False

        def value(numbers: FloatArray) -> Column:
            return attempt.factor_column * function.value(design @ numbers)

        def slopes(numbers: FloatArray) -> Matrix:
            slope = attempt.factor_column * function.slope(design @ numbers)
            return np.asarray(slope[:, None] * design)

        weights = snapped_numbers(weights, fixed, value, slopes, self._y)
        children = [self.feature(p) for p in attempt.children]
        factor = [self.feature(p) for p in attempt.factor]
        bias = float(weights[0]) if constant else None
        feature = function.feature(children, [float(weight) for weight in weights[1:]], bias)
        cost = self._cost(attempt, constant=constant)
        return _Law(gain, cost, [multiply(*factor, feature)], value(weights))

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
        weights = fit_numbers(residual, slopes, start)
        rest = residual(weights)
        return float(rest @ rest), weights


def _one_of_each(groups: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    if not groups:
        yield ()
        return
    for rest in _one_of_each(groups[1:]):
        for position in groups[0]:
            yield (position, *rest)
