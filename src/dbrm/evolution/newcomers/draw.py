"""Draw newcomers by expected gain: many recipes at once, scored, the promising ones first."""

from collections.abc import Iterator, Sequence

import numpy as np

from dbrm._typing import FloatArray, IntArray, Matrix
from dbrm.evolution.newcomers.constants import propose_constants
from dbrm.evolution.newcomers.knots import propose_knots
from dbrm.evolution.newcomers.projections import propose_projections
from dbrm.evolution.newcomers.recipes import (
    Bases,
    arguments_of,
    complexity_of,
    draw_recipes,
    feature_of,
    fill_columns,
    find_bases,
)
from dbrm.evolution.newcomers.screen import Screen, Screener
from dbrm.evolution.newcomers.targets import Target
from dbrm.evolution.operators import Parents
from dbrm.evolution.problem import Problem
from dbrm.features import ColumnCache, Feature, evaluate
from dbrm.priors import Complexity

__all__ = ["draw_newcomers", "propose_numbers"]

# Cells (rows times recipes) of one batch, and most recipes.
_CELLS, _MOST_RECIPES = 600_000, 2_000
# Draws from the pool among the bases.
_FROM_POOL = 20
# Share of populations for which numbers inside functions are fitted; arguments, and features each.
_NUMBERS_SHARE, _ARGUMENTS, _PROPOSED = 0.12, 4, 2
# Draws for each newcomer that is wanted.
_TRIES = 3


def draw_newcomers(
    rng: np.random.Generator,
    problem: Problem,
    parents: Parents,
    screener: Screener,
    cache: ColumnCache,
    count: int,
) -> Iterator[Feature]:
    r"""Features drawn with probability proportional to :math:`\exp(\text{gain}/\tau)`.

    The temperature :math:`\tau` is at least one, and so large that as many features have a chance
    as are wanted. A feature that promises a gain counts as part of the model for those drawn after
    it, so that they are not all alike.

    Parameters
    ----------
    screener
        Knows the model.
    cache
        Known columns of the table on whose rows candidates are compared.
    count
        How many are wanted; more are offered, as some may be refused.
    """
    grammar, screen = problem.grammar, screener.current
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
    log_prior = _log_priors(problem, recipes, complexity, bases)
    numbers = _with_numbers(rng, problem, screen, bases, values)
    columns = screener.workspace(len(recipes) + len(numbers))
    fill_columns(
        columns[: len(recipes)], recipes, np.ascontiguousarray(values.T), grammar.transforms
    )
    if numbers:
        columns[len(recipes) :] = evaluate(numbers, problem.screening_table, cache)[0].T
        prices = [problem.model_prior.feature_log_prior(feature) for feature in numbers]
        log_prior = np.concatenate([log_prior, prices])
    candidates = screen.weigh(columns, log_prior)
    gains = candidates.gains()
    temperature = _temperature(gains, count)
    for _ in range(_TRIES * count):
        best = int(np.argmax(gains / temperature + rng.gumbel(size=gains.size)))
        if gains[best] == -np.inf:
            return
        if best < len(recipes):
            yield feature_of(recipes[best].tolist(), bases, grammar)
        else:
            yield numbers[best - len(recipes)]
        if gains[best] > 0.0:
            candidates.add_to_model(best)
            gains = candidates.gains()
        else:
            gains[best] = -np.inf
            candidates.remove(best)


def _with_numbers(
    rng: np.random.Generator, problem: Problem, screen: Screen, bases: Bases, values: Matrix
) -> list[Feature]:
    """Functions with fitted numbers inside: knots, constants, weights of two features.

    Of a few bases only, and not for every population: they take longer than recipes.
    """
    if not problem.grammar.fits_numbers or rng.random() > _NUMBERS_SHARE:
        return []
    place = int(rng.integers(len(screen.places)))
    drawn = rng.choice(
        len(bases.features),
        size=min(_ARGUMENTS, int(np.count_nonzero(bases.part))),
        replace=False,
        p=bases.part / bases.part.sum(),
    )
    # What is left out may be better said with numbers: it, and what its functions are applied to.
    replaced = [screen.features[j] for j in screen.places[place].left_out]
    related = {part.text for f in replaced for part in (f, *arguments_of(f))}
    own = [j for j, feature in enumerate(bases.features) if feature.text in related]
    drawn = np.unique([*own, *drawn[: max(_ARGUMENTS - len(own), 1)]]).astype(np.int64)
    chosen = [bases.features[j] for j in drawn]
    return propose_numbers(problem, screen.target(place), chosen, values[:, drawn], _PROPOSED)


def propose_numbers(
    problem: Problem,
    target: Target,
    arguments: Sequence[Feature],
    columns: Matrix,
    count: int,
) -> list[Feature]:
    """Functions of some features with fitted numbers inside that explain a residual.

    Parameters
    ----------
    target
        The residual that is to be explained.
    arguments, columns
        The features, and their columns on the rows for screening.
    count
        Most features of each kind: knots, constants, weights of two features.
    """
    grammar, functions = problem.grammar, problem.grammar.transforms
    found = []
    if grammar.knots:
        found += propose_knots(
            arguments,
            columns,
            [target],
            grammar.knots,
            count,
            partners=arguments,
            partner_columns=columns,
        )
    if grammar.operators.projection > 0.0:
        # A partner doubles the work: the first only.
        found += propose_constants(
            arguments,
            columns,
            [target],
            functions,
            count,
            partners=arguments[:1],
            partner_columns=columns[:, :1],
        )
        found += propose_projections(arguments, columns, target, functions, count)
    return [feature for feature in found if grammar.admits(feature)]


def _log_priors(
    problem: Problem, recipes: IntArray, complexity: IntArray, bases: Bases
) -> FloatArray:
    """Log prior of each recipe's feature; under other priors than the paper's from an example."""
    prior = problem.model_prior
    if isinstance(prior, Complexity):
        return np.asarray(-prior.penalty * complexity, dtype=np.float64)
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
