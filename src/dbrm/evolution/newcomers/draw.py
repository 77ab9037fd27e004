"""Draw newcomers by expected gain: many recipes at once, scored, the promising ones first."""

from collections.abc import Iterator

import numpy as np

from dbrm._typing import FloatArray, IntArray
from dbrm.evolution.newcomers.recipes import (
    Bases,
    columns_of,
    complexity_of,
    draw_recipes,
    feature_of,
    find_bases,
)
from dbrm.evolution.newcomers.screen import Screen
from dbrm.evolution.operators import Parents
from dbrm.evolution.problem import Problem
from dbrm.features import ColumnCache, Feature, evaluate
from dbrm.priors import Complexity

__all__ = ["draw_newcomers"]

# Cells (rows times recipes) of one batch, and most recipes.
_CELLS, _MOST_RECIPES = 500_000, 2_000
# Draws from the pool among the bases.
_FROM_POOL = 20
# Draws for each newcomer that is wanted.
_TRIES = 3


def draw_newcomers(
    rng: np.random.Generator,
    problem: Problem,
    parents: Parents,
    screen: Screen,
    cache: ColumnCache,
    count: int,
) -> Iterator[Feature]:
    r"""Features drawn with probability proportional to :math:`\exp(\text{gain}/\tau)`.

    The temperature :math:`\tau` is at least one, and so large that as many features have a chance
    as are wanted. A feature that promises a gain counts as part of the model for those drawn after
    it, so that they are not all alike.

    Parameters
    ----------
    cache
        Known columns of the table on whose rows candidates are compared.
    count
        How many are wanted; more are offered, as some may be refused.
    """
    grammar = problem.grammar
    if not parents.covariates:
        return
    bases = find_bases(rng, parents, grammar, _FROM_POOL)
    values, _ = evaluate(bases.features, problem.screening_table, cache)
    n_recipes = min(_CELLS // len(values), _MOST_RECIPES)
    recipes = draw_recipes(rng, bases, grammar, n_recipes)
    complexity = complexity_of(recipes, bases)
    allowed = complexity <= grammar.max_complexity
    recipes, complexity = recipes[allowed], complexity[allowed]
    if not len(recipes):
        return
    columns = columns_of(recipes, np.ascontiguousarray(values.T), grammar.transforms)
    candidates = screen.weigh(columns, _log_priors(problem, recipes, complexity, bases))
    gains = candidates.gains()
    temperature = _temperature(gains, count)
    for _ in range(_TRIES * count):
        best = int(np.argmax(gains / temperature + rng.gumbel(size=gains.size)))
        if gains[best] == -np.inf:
            return
        yield feature_of(recipes[best].tolist(), bases, grammar)
        if gains[best] > 0.0:
            candidates.add_to_model(best)
            gains = candidates.gains()
        else:
            gains[best] = -np.inf
            candidates.remove(best)


def _log_priors(
    problem: Problem, recipes: IntArray, complexity: IntArray, bases: Bases
) -> FloatArray:
    """Log prior of each recipe's feature; under other priors than the paper's from an example."""
    prior = problem.model_prior
    if isinstance(prior, Complexity):
        return -prior.penalty * complexity
    kinds = np.column_stack([complexity, recipes[:, [0, 2, 3]] >= 0])
    _, examples, kind = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
    values = [
        prior.feature_log_prior(feature_of(recipes[j].tolist(), bases, problem.grammar))
        for j in examples
    ]
    return np.array(values)[kind.ravel()]


def _temperature(gains: FloatArray, count: int) -> float:
    """The smallest of 1, 2, 4, ... at which as many features have a chance as are wanted.

    The number that have a chance is the exponential of the entropy.
    """
    finite = gains[np.isfinite(gains)]
    temperature = 1.0
    while finite.size > count and temperature < 1e6:
        weights = np.exp((finite - finite.max()) / temperature)
        shares = weights / weights.sum()
        if np.exp(-np.sum(shares * np.log(np.maximum(shares, 1e-300)))) >= count:
            break
        temperature *= 2.0
    return temperature
