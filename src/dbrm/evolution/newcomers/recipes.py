r"""Candidate features by the thousand: numbers that say how each is made, and columns in batches.

A recipe is a row ``(transform, first, second, factor)`` of positions: the feature
:math:`g(B_i B_j) B_k` of base features, with -1 for no function and for bases that are left out.
Bases are the features of a population, covariates, promising features, and parts of the
population's features: products with one factor dropped, and what functions are applied to. One
recipe over these is a step from a population: multiply, transform, drop a factor, replace one,
take a function off or exchange it, change what is inside a function. Only recipes that are drawn
become features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evolution.operators import Grammar, Parents, bent_transforms, straight_transforms
from dbrm.features import Feature, Modification, Product, Transform, modify, multiply
from dbrm.features.projection import Standardized

__all__ = [
    "Bases",
    "arguments_of",
    "complexity_of",
    "draw_recipes",
    "feature_of",
    "fill_columns",
    "find_bases",
]

_NONE = -1
# Columns made at once: they stay in the processor's cache.
_AT_ONCE = 64


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bases:
    """What recipes are made of: base features, and how likely each is drawn.

    `whole` and `part` are the probabilities with which a base is drawn as a feature and as a
    factor or an argument. `inside` lists, for the functions in the population's features, the
    positions of the transform, of its argument, and of what it is multiplied by.
    """

    features: tuple[Feature, ...]
    whole: FloatArray
    part: FloatArray
    inside: IntArray


def find_bases(rng: np.random.Generator, parents: Parents, grammar: Grammar, n_pool: int) -> Bases:
    """The bases for one population: its features and their parts, covariates, some of the pool."""
    position: dict[str, int] = {}
    features: list[Feature] = []
    whole: list[float] = []
    part: list[float] = []

    def add(feature: Feature, as_whole: float, as_part: float) -> int:
        j = position.setdefault(feature.text, len(features))
        if j == len(features):
            features.append(feature)
            whole.append(0.0)
            part.append(0.0)
        whole[j] += as_whole
        part[j] += as_part
        return j

    weights = parents.weights / max(float(np.sum(parents.weights)), 1e-300)
    for feature, weight in zip(parents.population, weights.tolist(), strict=True):
        add(feature, 0.0, (1.0 - parents.outside) * weight)
    chosen = parents.covariates
    if len(chosen) > _MOST_COVARIATES:
        chosen = [chosen[j] for j in rng.choice(len(chosen), _MOST_COVARIATES, replace=False)]
    for feature in chosen:
        add(feature, 0.25 / len(chosen), parents.outside / len(chosen))
    for _ in range(n_pool):
        add(parents.draw_candidate(rng), 0.5 / n_pool, 0.25 / n_pool)
    inside: set[tuple[int, int, int]] = set()
    functions = _numbers(grammar.transforms)
    for feature, weight in zip(parents.population, weights.tolist(), strict=True):
        for part_ in _parts(feature):
            add(part_, 0.5 * weight, 0.5 * weight)
        for k, argument, factor in _functions(feature, functions):
            j = _NONE if factor is None else add(factor, 0.0, 0.0)
            inside.add((k, add(argument, 0.0, 0.1 * weight), j))
    for transform in straight_transforms(grammar.transforms):
        for feature, weight in zip(list(features), list(part), strict=True):
            add(modify(transform, feature), 0.0, weight)
    return Bases(
        tuple(features),
        np.array(whole),
        np.array(part),
        np.array(sorted(inside), dtype=np.int64).reshape(-1, 3),
    )


# Covariates among the bases of one population, drawn if there are more.
_MOST_COVARIATES = 30


@lru_cache(maxsize=64)
def _numbers(transforms: tuple[Transform, ...]) -> dict[tuple[str, bool], int]:
    """Position of each transform, by its name and whether its argument is standardised."""
    return {
        ((g if g.base is None else g.base).name, g.base is not None): k
        for k, g in enumerate(transforms)
    }


def _parts(feature: Feature) -> list[Feature]:
    """A product with each factor dropped, the argument of a function, the terms of a sum."""
    return _without_each(feature) if isinstance(feature, Product) else arguments_of(feature)


def arguments_of(feature: Feature) -> list[Feature]:
    """The factors of a product, the argument of a function, the terms of a sum."""
    return [f.children[0] if isinstance(f, Standardized) else f for f in feature.children]


def _functions(
    feature: Feature, numbers: dict[tuple[str, bool], int]
) -> Iterator[tuple[int, Feature, Feature | None]]:
    """The functions g in g(A) or g(A)*B: number of g; A, whole and without a factor; B."""
    factors = feature.factors if isinstance(feature, Product) else (feature,)
    for j, factor in enumerate(factors):
        if not isinstance(factor, Modification):
            continue
        child = factor.children[0]
        standardized = isinstance(child, Standardized)
        if standardized:
            child = child.children[0]
        k = numbers.get((factor.transform.name, standardized))
        if k is None:
            continue
        others = (*factors[:j], *factors[j + 1 :])
        rest = multiply(*others) if others else None
        yield k, child, rest
        for shorter in _without_each(child) if isinstance(child, Product) else ():
            yield k, shorter, rest


def _without_each(product: Product) -> list[Feature]:
    """The product with one factor dropped, for each of them."""
    factors = product.factors
    return [multiply(*factors[:j], *factors[j + 1 :]) for j in range(len(factors))]


def draw_recipes(rng: np.random.Generator, bases: Bases, grammar: Grammar, count: int) -> IntArray:
    """Draw recipes by the weights of the operators; each at most once."""
    operators = grammar.operators
    bent = bent_transforms(grammar.transforms)
    curved = np.array([k for k, g in enumerate(grammar.transforms) if g in bent], dtype=np.int64)
    weights = np.array(
        [operators.mutation, operators.crossover, operators.modification * (curved.size > 0)]
    )
    if not weights.any():
        return np.empty((0, 4), dtype=np.int64)
    kinds = rng.choice(3, size=count, p=weights / weights.sum())
    recipes = np.full((count, 4), _NONE, dtype=np.int64)
    recipes[:, 1] = _draw(rng, bases.part, count)
    second = _draw(rng, bases.part, count)
    alone, pair, single = (np.flatnonzero(kinds == kind) for kind in range(3))
    recipes[alone, 1] = _draw(rng, bases.whole, alone.size)
    recipes[pair, 2] = second[pair]
    if single.size:
        recipes[single, 0] = curved[rng.integers(curved.size, size=single.size)]
        # Half of the functions are those of the population, with something else inside; some of
        # the others are multiplied by a feature.
        known = rng.random(single.size) < 0.5 * (len(bases.inside) > 0)
        new, old = single[~known], single[known]
        multiplied = new[rng.random(new.size) < 0.25 * (operators.crossover > 0)]
        recipes[multiplied, 3] = second[multiplied]
        if old.size:
            chosen = bases.inside[rng.integers(len(bases.inside), size=old.size)]
            recipes[old, 0], recipes[old, 1], recipes[old, 3] = chosen.T
            # Another function, something else inside, or both.
            what = rng.random(old.size)
            other = old[what < 0.5]
            recipes[other, 0] = curved[rng.integers(curved.size, size=other.size)]
            if operators.crossover > 0:
                changed = old[what > 0.4]
                recipes[changed, 2] = second[changed]
    both = recipes[:, 2] != _NONE
    recipes[both, 1:3] = np.sort(recipes[both, 1:3], axis=1)
    # One number for each recipe, in the order of its parts.
    places = np.append(np.cumprod([len(bases.features) + 1] * 3)[::-1], 1)
    _, chosen = np.unique((recipes + 1) @ places, return_index=True)
    return recipes[chosen]


def _draw(rng: np.random.Generator, weights: FloatArray, count: int) -> IntArray:
    cumulative = np.cumsum(weights)
    drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    return np.asarray(np.minimum(drawn, weights.size - 1))


def feature_of(recipe: Sequence[int], bases: Bases, grammar: Grammar) -> Feature:
    """Build the feature of one recipe."""
    transform, first, second, factor = recipe
    made = bases.features[first]
    if second != _NONE:
        made = multiply(made, bases.features[second])
    if transform != _NONE:
        made = modify(grammar.transforms[transform], made)
    return made if factor == _NONE else multiply(made, bases.features[factor])


def complexity_of(recipes: IntArray, bases: Bases) -> IntArray:
    """Complexity of each recipe's feature, as long as nothing cancels."""
    known = np.array([*(feature.complexity for feature in bases.features), 0])
    # The last entry, at position -1, is that of a base that is left out.
    total = known[recipes[:, 1:]].sum(axis=1) + (recipes[:, 0] != _NONE)
    return np.asarray(total, dtype=np.int64)


def fill_columns(
    made: Matrix, recipes: IntArray, columns: Matrix, transforms: Sequence[Transform]
) -> None:
    """Compute the columns of recipes, one per row of `made`; `columns` has one row per base.

    Recipes come in the order of their transforms, as they are drawn.
    """
    kinds, starts = np.unique(recipes[:, 0], return_index=True)
    with np.errstate(all="ignore"):
        for k, first, last in zip(kinds, starts, [*starts[1:], len(recipes)], strict=True):
            for start in range(first, last, _AT_ONCE):
                here = slice(start, min(start + _AT_ONCE, last))
                block = made[here]
                np.take(columns, recipes[here, 1], axis=0, out=block)
                _multiply(block, columns, recipes[here, 2])
                if k != _NONE:
                    block[:] = _transformed(transforms[k], block)
                _multiply(block, columns, recipes[here, 3])


def _multiply(block: Matrix, columns: Matrix, positions: IntArray) -> None:
    """Multiply rows of a block by the bases at these positions, where there are any."""
    both = np.flatnonzero(positions != _NONE)
    if both.size == len(block):
        block *= columns[positions]
    elif both.size:
        block[both] *= columns[positions[both]]


def _transformed(transform: Transform, rows: Matrix) -> Matrix:
    """A transform of each row; knots at quantiles and standardised arguments row by row."""
    if transform.base is not None:
        # The rows are overwritten by the result.
        rows -= rows.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.einsum("mn,mn->m", rows, rows) / rows.shape[1])
        rows *= 1.0 / spread[:, None]
    if transform.quantile is None:
        return transform.apply(rows)
    # One knot per row; broadcasting does the rest.
    knots: Any = np.nanquantile(rows, transform.quantile, axis=1)[:, None]
    return transform.apply(rows, knots)
