"""Terms of sums inside laws: powers of few covariates, functions of them and of pairs.

More than the simple features of low complexity: they have up to three covariates, and functions of
sums of two, ``cos{1.0*x - 1.0*y}``, with weights of plus or minus one. Those that cannot be
computed are left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Self, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.data import Table
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.powers import Powers
from dbrm.features import ColumnCache, Feature, Transform, evaluate, modify, multiply, project

__all__ = [
    "Terms",
    "algebraic_terms",
    "function_factors",
    "functions_of_two",
    "inner_terms",
    "short_terms",
    "wide_terms",
]

# Exponents of products of two covariates, and of arguments of functions.
_OF_TWO, _SIGNS = (-2.0, -1.0, 1.0, 2.0), (-1.0, 1.0)
# More covariates than this have no products of three; more than that no functions of functions.
_FEW, _FEWEST = 6, 2


@final
@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """Features with their columns, divided by their largest absolute value, their scale."""

    features: list[Feature]
    columns: Matrix
    scale: FloatArray
    complexity: IntArray

    @classmethod
    def of(
        cls,
        features: Iterator[Feature],
        admits: Callable[[Feature], bool],
        table: Table,
        most: int,
    ) -> Self:
        """The first so many that are admitted and have a finite column, each once."""
        unique: dict[int, Feature] = {}
        for feature in features:
            if len(unique) == most:
                break
            if admits(feature):
                unique.setdefault(feature.key, feature)
        chosen = list(unique.values())
        if not chosen:
            return cls([], np.empty((table.n_rows, 0)), np.empty(0), np.empty(0, dtype=np.int64))
        with np.errstate(all="ignore"):
            columns = evaluate(chosen, table, ColumnCache())[0]
            size = np.max(np.abs(columns), axis=0)
        sound = np.flatnonzero(np.isfinite(size) & (size > 0.0))
        return cls(
            [chosen[j] for j in sound],
            columns[:, sound] / size[sound],
            size[sound],
            np.array([chosen[j].complexity for j in sound]),
        )


def algebraic_terms(bases: Sequence[Feature], transforms: Sequence[Transform]) -> Iterator[Feature]:
    """Covariates, products of two, and squares."""
    yield from bases
    for one, other in combinations(bases, 2):
        yield multiply(one, other)
    for g in transforms:
        if g.base is None and exponent_of(g) == 2.0:
            yield from (modify(g, base) for base in bases)


def short_terms(bases: Sequence[Feature], transforms: Sequence[Transform]) -> Iterator[Feature]:
    """Algebraic terms; waves and exponentials of a covariate or a product of two."""
    yield from algebraic_terms(bases, transforms)
    functions = [g for g in transforms if g.name in ("sin", "cos", "exp")]
    for g in functions:
        yield from (modify(g, base) for base in bases)
    for g in functions:
        for one, other in combinations(bases, 2):
            yield modify(g, multiply(one, other))
    for g in functions:
        for one, other in product(bases, repeat=2):
            yield multiply(one, modify(g, other))


def inner_terms(bases: Sequence[Feature], transforms: Sequence[Transform]) -> Iterator[Feature]:
    """What stands beside one in a factor: powers of one or two, waves, products with a wave."""
    powers = Powers(transforms)
    yield from _products(powers, bases, 1, _OF_TWO)
    waves = [modify(g, base) for g in transforms if g.name in ("sin", "cos") for base in bases]
    yield from waves
    yield from _products(powers, bases, 2, _SIGNS)
    for one, other in combinations(bases, 2):
        for chosen in product((-2.0, 2.0), repeat=2):
            feature = powers.product((one, other), np.array(chosen))
            if feature is not None:
                yield feature
    yield from (multiply(base, wave) for base in bases for wave in waves)


def function_factors(
    bases: Sequence[Feature], transforms: Sequence[Transform]
) -> Iterator[Feature]:
    """Functions that are no powers, of one base."""
    for g in transforms:
        if g.base is None and not (g.affine or g.takes_knot) and not np.isfinite(exponent_of(g)):
            yield from (modify(g, base) for base in bases)


def wide_terms(bases: Sequence[Feature], transforms: Sequence[Transform]) -> Iterator[Feature]:
    """Products of powers; functions of covariates, of their products and sums of two."""
    yield from algebraic_terms(bases, transforms)
    plain = [g for g in transforms if g.base is None and not g.affine]
    for g in plain:
        yield from (modify(g, base) for base in bases)
    powers = Powers(transforms)
    yield from _products(powers, bases, 1, (-2.0,))
    yield from _products(powers, bases, 2, _OF_TWO)
    yield from functions_of_two(bases, plain)
    ratios = list(_products(powers, bases, 2, _SIGNS))
    curved = [g for g in plain if not np.isfinite(exponent_of(g))]
    for g in curved:
        yield from (modify(g, ratio) for ratio in ratios)
    waves = [g for g in curved if g.name in ("sin", "cos")]
    for g in waves:
        for third in bases:
            for one, other in combinations(bases, 2):
                yield multiply(one, other, modify(g, third))
    longer = list(_products(powers, bases, 3, _SIGNS)) if len(bases) <= _FEW else []
    yield from longer
    for g in curved:
        yield from (multiply(one, modify(g, other)) for one, other in product(bases, repeat=2))
    for g in curved:
        yield from (modify(g, ratio) for ratio in longer)
    if len(bases) <= _FEWEST:
        yield from (
            multiply(power, modify(g, base))
            for base in bases
            for power in _products(powers, [base], 1, _OF_TWO)
            for g in curved
        )
        yield from _nested(bases, plain)
    yield from _products(powers, bases, 3, (*_SIGNS, 2.0))


def _nested(bases: Sequence[Feature], functions: Sequence[Transform]) -> Iterator[Feature]:
    """Functions of functions, and products of a base or a function with a function."""
    simple = [modify(g, base) for base in bases for g in functions]
    yield from (modify(g, inner) for inner in simple for g in functions)
    yield from (multiply(one, other) for one, other in combinations(simple, 2))
    yield from (
        multiply(base, modify(g, inner)) for base in bases for inner in simple for g in functions
    )


def functions_of_two(
    bases: Sequence[Feature], transforms: Sequence[Transform]
) -> Iterator[Feature]:
    """Functions of sums and differences of two covariates.

    Also waves of products of two, ``sin{1.0*x*y - 1.0*x - 1.0*y}``, of sums of three, and of a
    covariate and its square. Functions with a knot are left out: their numbers come from the rows.
    """
    transforms = [g for g in transforms if not g.takes_knot]
    for one, other in combinations(bases, 2):
        for g in transforms:
            for sign in _SIGNS:
                yield project(g, [one, other], [1.0, -sign], weights_in_identity=True)
    waves = [g for g in transforms if g.name in ("sin", "cos")]
    squares = [g for g in transforms if exponent_of(g) == 2.0]
    for g, square, base, sign in product(waves, squares[:1], bases, _SIGNS):
        parts = [modify(square, base), base]
        yield project(g, parts, [1.0, sign], weights_in_identity=True)
    sums = [(multiply(one, other), one, other) for one, other in combinations(bases, 2)]
    sums += list(combinations(bases, 3)) if len(bases) <= _FEW else []
    for terms in sums:
        for g in waves:
            for signs in product(_SIGNS, repeat=2):
                yield project(g, list(terms), [1.0, *signs], weights_in_identity=True)


def _products(
    powers: Powers, bases: Sequence[Feature], size: int, exponents: Sequence[float]
) -> Iterator[Feature]:
    for factors in combinations(bases, size):
        for chosen in product(exponents, repeat=size):
            feature = powers.product(factors, np.array(chosen))
            if feature is not None:
                yield feature
