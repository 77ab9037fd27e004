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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.fitting import fit_numbers
from dbrm.evolution.sweep.inverses import Function
from dbrm.evolution.sweep.law_columns import law_rows
from dbrm.evolution.sweep.law_targets import LawScreen
from dbrm.evolution.sweep.levels import Index
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.powers import log_linear_exponents
from dbrm.evolution.sweep.screening import invert
from dbrm.evolution.sweep.snapping import snapped_numbers
from dbrm.evolution.sweep.spelling import without_logarithms
from dbrm.features import Feature, multiply
from dbrm.status import Status

__all__ = ["sweep_projections"]

# Attempts of each function whose inputs are chosen; those whose weights are fitted to the response
# itself; most features returned.
_KEPT, _FITTED, _TAKE = 6, 3, 24
# Simple features beside which laws are looked for; groups of them in whose place; attempts there,
# and rounds of fitting.
_MOST_SIMPLE, _PLACES, _KEPT_BESIDE, _ROUNDS = 10, 4, 3, 5
# A column whose weighted remainder is less than this share of it is a sum of others.
_DEPENDENT = 1e-10


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
    screen = LawScreen.of(problem)
    if screen is None:
        return []
    search = _Search(problem, screen)
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

    def __init__(self, screen: LawScreen, target: Column, weight: Column, inputs: Index) -> None:
        self._screen, self._columns = screen, screen.columns
        self._inputs = inputs
        self._weight = weight
        self._total = target * weight

    def _block(self, positions: list[int]) -> Matrix:
        return self._columns.values[:, positions] * self._weight[:, None]

    def design(self, positions: list[int]) -> Matrix:
        return np.column_stack([self._weight, self._block(positions)])

    def weights(self, positions: list[int]) -> FloatArray:
        """By least squares, the constant first."""
        return np.asarray(np.linalg.lstsq(self.design(positions), self._total, rcond=None)[0])

    def left(self, positions: list[int]) -> float:
        """Share of the response's variance that is left."""
        rest = self._total - self.design(positions) @ self.weights(positions)
        return float(rest @ rest) / self._screen.variation

    def grow(self, chosen: list[int], most: int) -> list[int]:
        """Add the input of the largest expected gain, again and again, while it is positive."""
        screen, columns, chosen = self._screen, self._columns, list(chosen)
        block = columns.values[:, self._inputs] * self._weight[:, None]
        sound, complexity = columns.sound[self._inputs], columns.complexity[self._inputs]
        norms = np.einsum("nk,nk->k", block, block)
        basis, _ = np.linalg.qr(self.design(chosen))
        residual = self._total - basis @ (basis.T @ self._total)
        inside = basis.T @ block
        left = norms - np.einsum("kn,kn->n", inside, inside)
        while len(chosen) < most:
            before = float(residual @ residual)
            usable = sound & (left > _DEPENDENT * norms)
            if before <= 1e-22 * screen.variation or not usable.any():
                break
            share = (residual @ block) ** 2 / np.where(usable, left, np.inf) / before
            gain = -0.5 * residual.size * np.log(np.maximum(1.0 - share, 1e-12))
            gain -= screen.unit * complexity
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
    """Chooses what is inside functions, and fits their numbers, for one response."""

    def __init__(self, problem: Problem, screen: LawScreen) -> None:
        self._problem, self._screen, self._columns = problem, screen, screen.columns
        self._y = screen.response

    def alone(self, pause: Pause) -> list["_Law"]:
        """Screen all attempts, exchange inputs of the best ones, fit their weights."""
        with np.errstate(all="ignore"):
            attempts = [
                attempt if pause() else self._exchange(attempt)
                for attempt in self._best_attempts(3, _KEPT, pause)
            ]
            return [self._made(attempt) for attempt in attempts]

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
        left = max(float(rest @ rest) / self._screen.variation, 1e-20)
        return replace(law, gain=float(-0.5 * self._y.size * np.log(left)) - law.cost)

    def _slopes(self, columns: Matrix) -> FloatArray:
        """Least-squares coefficients of these columns beside a constant."""
        design = np.column_stack([columns, np.ones(len(columns))])
        return np.asarray(np.linalg.lstsq(np.nan_to_num(design), self._y, rcond=None)[0][:-1])

    def _with_response(self, response: Column) -> "_Search":
        """The same search for another response on the same rows."""
        return _Search(self._problem, self._screen.with_response(response))

    def admitted(self, laws: list["_Law"]) -> list[Feature]:
        """The features of the best laws that are admitted, each once."""
        found: dict[int, Feature] = {}
        ordered = sorted(laws, key=lambda law: -law.gain)
        for feature in (feature for law in ordered for feature in law.features):
            other = without_logarithms(feature, self._columns.powers)
            for spelling in (feature,) if other is None else (feature, other):
                if len(found) < _TAKE:
                    fitted, _, status = self._problem.column_of(self._problem.simplify(spelling))
                    if status is Status.OK and self._problem.grammar.admits_law(fitted):
                        found.setdefault(fitted.key, fitted)
        return list(found.values())

    def _best_attempts(self, most_factors: int, kept: int, pause: Pause) -> list[_Attempt]:
        """The best of each function: gains under different functions are not comparable."""
        best: list[_Attempt] = []
        products = list(self._columns.short_products(most_factors))
        separable = self._screen.separable()
        for function in self._screen.functions:
            attempts = []
            # A plain sum without a factor is a law only if it has a long product in it.
            alone = () if function.transforms else ((),)
            for positions in (*alone, *separable, *self._screen.screened(products, function, kept)):
                if pause():
                    return best
                column = np.prod(self._columns.values[:, list(positions)], axis=1)
                attempt = self._attempt(positions, column, function)
                if attempt is not None:
                    attempts.append(attempt)
            best += sorted(attempts, key=self._order, reverse=True)[:_FITTED]
        return best

    def _admits(self, attempt: _Attempt) -> bool:
        """Whether the law of an attempt keeps to the grammar, whatever its weights."""
        children = [self._columns.feature(p) for p in attempt.children]
        factor = [self._columns.feature(p) for p in attempt.factor]
        if not attempt.function.transforms:
            return True
        law = attempt.function.feature(children, [1.0] * len(children), 1.0)
        return self._problem.grammar.admits_law(multiply(*factor, law))

    def _attempt(
        self, positions: tuple[int, ...], factor: Column, function: Function
    ) -> _Attempt | None:
        targets, weights, signs, usable = invert(function, self._y, factor[:, None])
        if not usable[0] or not all(self._columns.sound[p] for p in positions):
            return None
        target, weight, factor = targets[:, 0], weights[:, 0], signs[0] * factor
        most = self._problem.grammar.max_projection
        best = None
        # Simple inputs first: among many inputs a wrong one may fit better by chance.
        counts = self._columns.counts if len(positions) < 2 else self._columns.counts_short
        atoms = np.sort(np.concatenate(self._columns.atoms))
        product = self._columns.position_of(self._exponents(target, weight))
        products = [*self._columns.groups, *([] if product is None else [product])]
        long = (np.append(atoms, products),) if products else ()
        if not (positions or function.transforms or long):
            return None
        for inputs in (*long, atoms, *(np.arange(count) for count in counts)):
            sum_ = _Sum(self._screen, target, weight, inputs)
            children = sum_.grow([], most)
            attempt = _Attempt(0.0, positions, factor, function, sum_, children, weight == 0.0)
            weighed = self._weighed(attempt)
            if weighed is not None and (best is None or self._order(weighed) > self._order(best)):
                best = weighed
        return best

    def _exponents(self, target: Column, weight: Column) -> FloatArray | None:
        """Exponents of the product that a function may be applied to."""
        return (
            log_linear_exponents(self._columns.logs, target, weight)
            if self._columns.bases
            else None
        )

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
            inputs = self._columns.values[attempt.lost][:, attempt.children]
            value = attempt.function.value(weights[0] + inputs @ weights[1:])
            error = self._y[attempt.lost] - attempt.factor_column[attempt.lost] * value
            error = np.where(
                np.isfinite(error),
                error,
                self._y[attempt.lost] - self._y.mean(),
            )
            left += float(error @ error) / self._screen.variation
        return replace(attempt, expected_gain=self._expected_gain(attempt, left))

    def _cost(self, attempt: _Attempt, *, constant: bool = True) -> float:
        features = [self._columns.feature(p) for p in (*attempt.children, *attempt.factor)]
        return self._screen.unit * (constant + sum(feature.complexity for feature in features))

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
        children = [self._columns.feature(p) for p in attempt.children]
        factor = [self._columns.feature(p) for p in attempt.factor]
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
        function, inputs = attempt.function, self._columns.values[:, attempt.children]
        design = np.column_stack(
            [np.ones(len(inputs)), inputs * self._columns.scale[attempt.children]]
        )
        weights = np.concatenate([weights[:1], weights[1:] / self._columns.scale[attempt.children]])
        fixed = np.zeros(weights.size, dtype=np.bool_)
        fixed[0] = not constant
        if function.is_power:
            # A power's scale belongs to its coefficient.
            largest = 1 + int(
                np.argmax(np.abs(weights[1:]) * self._columns.scale[attempt.children])
            )
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
        children = [self._columns.feature(p) for p in attempt.children]
        factor = [self._columns.feature(p) for p in attempt.factor]
        bias = float(weights[0]) if constant else None
        feature = function.feature(children, [float(weight) for weight in weights[1:]], bias)
        cost = self._cost(attempt, constant=constant)
        return _Law(gain, cost, [multiply(*factor, feature)], value(weights))

    def _fit(self, attempt: _Attempt, *, constant: bool) -> tuple[float, FloatArray]:
        """Share of the response's variance that is left, and the weights."""
        factor, function = attempt.factor_column, attempt.function
        size = np.sqrt(self._screen.variation)
        first = 0 if constant else 1
        inputs = self._columns.values[:, attempt.children]
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
