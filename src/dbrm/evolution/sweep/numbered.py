r"""Terms with numbers inside, :math:`g(\alpha_0 + \sum_r \alpha_r q_r)` of features :math:`q`.

Some of the weights are free, the others are given. Their starting values come from a grid; columns
and derivatives at any other values are computed here.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Self, final

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Matrix
from dbrm.data import Table
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import Feature, Transform, evaluate, modify, multiply, project

__all__ = ["NumberedTerm", "factor_terms", "is_exponent", "of_each_kind", "sum_terms"]

# Numbers on the grid: beside one feature, between two, and inside waves.
_CONSTANTS = tuple(s * c for c in (1.0, 2.0, 0.5, 3.0, 5.0, 10.0) for s in (1.0, -1.0))
_WEIGHTS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
_FREQUENCIES = (1.0, 0.5, 2.0, np.pi, 0.3, 0.7, 1.5, 5.0)
# Distances of a zero from the data, as shares of their range.
_DISTANCES = (0.07, 0.5)
# Centres of a square beside a constant, as shares of the range; the constants, of its square.
_CENTRES, _HEIGHTS = (0.2, 0.5, 0.8), (0.03, 0.3)
# Rates of exponentials, and further ones as shares of the inverse of the largest argument.
_RATES, _SHARES = (-1.0, 1.0, -0.5, 0.5, -2.0, 2.0, -0.1, 0.1), (-3.0, -1.0, 1.0, 3.0)
# Covariates with functions inside sums.
_FEW = 3


@final
@dataclass(frozen=True, slots=True, eq=False)
class NumberedTerm:
    """A function of a weighted sum, or the sum itself.

    Parameters
    ----------
    function
        The function, ``None`` for the sum itself.
    members, columns
        Features of the sum, and their columns; a column more is that of the constant.
    weights, free
        Weight of each column, and which of them are fitted.
    beside, factor
        A feature that the function is multiplied with, and its column.
    """

    function: Transform | None
    members: tuple[Feature, ...]
    columns: Matrix
    weights: FloatArray
    free: Mask
    beside: Feature | None = None
    factor: Column | float = 1.0

    @classmethod
    def plain(cls, feature: Feature, column: Column) -> Self:
        """A feature without numbers."""
        none = np.zeros(1, dtype=np.bool_)
        return cls(None, (feature,), column[:, None], np.ones(1), none)

    def times(self, feature: Feature, column: Column) -> "NumberedTerm":
        """The term multiplied with a feature."""
        return replace(self, beside=feature, factor=column)

    @property
    def complexity(self) -> int:
        """That of the members, one for the function and one for each number."""
        extra = max(self.n_numbers, 1) if self.function or self.n_numbers else 0
        members = (*self.members, *(() if self.beside is None else (self.beside,)))
        return extra + int(sum(member.complexity for member in members))

    @property
    def n_numbers(self) -> int:
        """How many numbers are fitted."""
        return int(np.count_nonzero(self.free))

    @property
    def start(self) -> FloatArray:
        """The numbers on the grid."""
        return self.weights[self.free]

    @property
    def kind(self) -> Hashable:
        """The same for terms that differ in their numbers only."""
        name = None if self.function is None else self.function.name
        return (
            name,
            tuple(m.key for m in self.members),
            None if self.beside is None else self.beside.key,
            self.has_constant,
        )

    def _all(self, numbers: FloatArray) -> FloatArray:
        weights = self.weights.copy()
        weights[self.free] = numbers
        return weights

    def value(self, numbers: FloatArray) -> Column:
        """The column."""
        argument = self.columns @ self._all(numbers)
        value = argument if self.function is None else self.function.apply(argument)
        return np.asarray(self.factor * value)

    def slopes(self, numbers: FloatArray) -> Matrix:
        """Its derivatives by the numbers."""
        slope = self.factor * np.ones(len(self.columns))
        if self.function is not None:
            slope = slope * self.function.derivative(self.columns @ self._all(numbers))
        return np.asarray(slope[:, None] * self.columns[:, self.free])

    def feature(self, numbers: FloatArray, powers: Powers) -> Feature | None:
        """The term as a feature; ``None`` if it cannot be spelt."""
        found = self.power(numbers, 1.0, powers)
        return found if found is None or self.beside is None else multiply(self.beside, found)

    def power(self, numbers: FloatArray, exponent: float, powers: Powers) -> Feature | None:
        """The function to a power as a feature; ``None`` if it cannot be spelt."""
        weights = [float(weight) for weight in self._all(numbers)]
        bias = weights[len(self.members)] if len(weights) > len(self.members) else None
        bias, weights = bias or None, weights[: len(self.members)]
        if self.function is None:
            return powers.of_sum(self.members, weights, bias, exponent)
        if weights == [1.0] and bias is None:
            return powers.feature(modify(self.function, self.members[0]), exponent)
        term = project(self.function, self.members, weights, bias, weights_in_identity=True)
        return powers.feature(term, exponent)

    @property
    def has_constant(self) -> bool:
        """Whether a constant is among the weights."""
        return bool(self.columns.shape[1] > len(self.members))


def is_exponent(term: NumberedTerm) -> bool:
    """Whether a factor is an exponential, whose one weight is a coefficient on the log scale."""
    return term.function is not None and term.function.name == "exp"


def of_each_kind(
    subsets: Sequence[tuple[float, tuple[int, ...]]], terms: Sequence[NumberedTerm], most: int
) -> list[tuple[int, ...]]:
    """The first subsets of terms, one for each combination of kinds: numbers are fitted anyway."""
    found: dict[Hashable, tuple[int, ...]] = {}
    for _, members in subsets:
        found.setdefault(frozenset(terms[j].kind for j in members), members)
    return list(found.values())[:most]


def factor_terms(
    bases: Sequence[Feature], table: Table, transforms: Sequence[Transform]
) -> list[NumberedTerm]:
    """Sums, waves and exponentials that a product may have as factors, the simplest first."""
    named = {g.name: g for g in transforms if g.base is None and not g.affine}
    squares = [modify(g, b) for g in named.values() if exponent_of(g) == 2.0 for b in bases]
    products = [multiply(one, other) for one, other in combinations(bases, 2)]
    powers = [*bases, *squares, *products]
    curved: list[Feature] = []
    if len(bases) <= _FEW:
        names = ("exp", "log_abs", "sin", "cos", "sqrt_abs")
        curved = [modify(named[name], base) for name in names if name in named for base in bases]
    features = [*powers, *curved]
    spelt = [Powers(transforms).product(p, np.array([1.0, -1.0])) for p in permutations(bases, 2)]
    ratios = [ratio for ratio in spelt if ratio is not None]
    every = [*features, *ratios]
    columns = dict(zip(every, evaluate(every, table)[0].T, strict=True))
    one = np.ones(table.n_rows)

    def sum_of(members: Sequence[Feature], numbers: Sequence[float]) -> NumberedTerm:
        """The first member has weight one; a number more is a constant."""
        block = np.column_stack([*(columns[m] for m in members), one])[:, : len(numbers) + 1]
        free = np.arange(len(numbers) + 1) > 0
        return NumberedTerm(None, tuple(members), block, np.array([1.0, *numbers]), free)

    def function_of(g: Transform, members: Sequence[Feature], *weights: float) -> NumberedTerm:
        block = np.column_stack([columns[member] for member in members])
        free = np.ones(len(weights), dtype=np.bool_)
        return NumberedTerm(g, tuple(members), block, np.array(weights), free)

    def made() -> Iterator[NumberedTerm]:
        for wave in (named[name] for name in ("sin", "cos") if name in named):
            for c in _FREQUENCIES:
                yield from (function_of(wave, [q], c) for q in (*powers, *ratios))
                for pair in combinations(bases, 2):
                    yield from (function_of(wave, pair, c, s * c) for s in (1.0, -1.0))
            for c in _FREQUENCIES[:3] if len(bases) > 2 else ():
                # Of a difference times another covariate.
                for pair in combinations(products, 2):
                    if set(pair[0].covariates) & set(pair[1].covariates):
                        yield function_of(wave, pair, c, -c)
        if "exp" in named:
            waves = [f for f in curved if f.text.startswith(("sin", "cos", "sqrt"))]
            inside = (*powers, *ratios, *waves)
            yield from (function_of(named["exp"], [q], 1.0) for q in inside)
        for q in features:
            yield from (sum_of([q], [c]) for c in (*_CONSTANTS, *_beyond(columns[q])))
        for c in _WEIGHTS if len(bases) <= _FEW else _WEIGHTS[:2]:
            yield from (sum_of(pair, [c]) for pair in combinations(features, 2))
        for square, base in zip(squares, bases, strict=False):
            low, width = float(np.min(columns[base])), float(np.ptp(columns[base]))
            for centre in (low + share * width for share in _CENTRES):
                for height in (share * width**2 for share in _HEIGHTS):
                    yield sum_of([square, base], [-2.0 * centre, centre**2 + height])

    return sorted(made(), key=lambda term: term.complexity)


def _beyond(column: Column) -> Iterator[float]:
    """Constants that a column's sum with has its zero a little beyond the data."""
    low, high = float(np.min(column)), float(np.max(column))
    for distance in (share * (high - low) for share in _DISTANCES):
        yield distance - low
        yield -distance - high


def sum_terms(
    bases: Sequence[Feature], table: Table, transforms: Sequence[Transform]
) -> list[NumberedTerm]:
    """Functions with numbers inside that a sum may have as terms, the simplest first."""
    named = {g.name: g for g in transforms if g.base is None and not g.affine}
    waves = [named[name] for name in ("exp", "sin", "cos") if name in named]
    roots = [g for g in named.values() if exponent_of(g) in (-1.0, 0.5) or g.name == "log_abs"]
    powers = Powers(transforms)
    signs = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0))
    pairs = list(combinations(bases, 2)) if len(bases) <= _FEW else []
    ratios = [powers.product(pair, np.array(k)) for pair in pairs for k in signs]
    squares = [powers.feature(base, 2.0) for base in bases]
    features = [*bases, *(f for f in (*squares, *ratios) if f is not None)]
    columns = dict(zip(features, evaluate(features, table)[0].T, strict=True))
    one = np.ones(table.n_rows)

    def made() -> Iterator[NumberedTerm]:
        for q in features:
            size = 1.0 / float(np.max(np.abs(columns[q])))
            for g in waves:
                numbers = _RATES if g.name == "exp" else _FREQUENCIES
                for c in (*numbers, *(size * share for share in _SHARES)):
                    free = np.ones(1, dtype=np.bool_)
                    yield NumberedTerm(g, (q,), columns[q][:, None], np.array([c]), free)
            for g in roots:
                for c in (*_CONSTANTS, *_beyond(columns[q])):
                    block, free = np.column_stack([columns[q], one]), np.array([False, True])
                    yield NumberedTerm(g, (q,), block, np.array([1.0, c]), free)
        for q, r in combinations([*bases, *(f for f in squares if f is not None)], 2):
            block, free = np.column_stack([columns[q], columns[r]]), np.array([False, True])
            for g in roots:
                for c in _WEIGHTS:
                    yield NumberedTerm(g, (q, r), block, np.array([1.0, c]), free)

    found = sorted(made(), key=lambda term: term.complexity)
    simple = [term for term in found if term.members[0] in bases and len(term.members) == 1]
    with_factor = [t.times(base, columns[base]) for t in simple for base in bases]
    return [*found, *with_factor]
