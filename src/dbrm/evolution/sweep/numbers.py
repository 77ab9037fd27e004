"""Functions with fitted numbers inside, beside the best simple features: knots, constants, weights.

The sweep of simple features has no numbers to fit. Here a model is grown from nothing, and beside
each step the best functions with knots, constants and weights of two covariates are proposed.
Among few covariates constants are also fitted inside functions of their products and ratios, as
in ``sin{6.28*x*power[-1](y)}``.
"""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.newcomers import Screener, propose_constants, propose_numbers
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.features import Feature, evaluate, modify, multiply

__all__ = ["sweep_numbers"]

# Covariates that are arguments, simple features that compete, and features proposed of each kind.
_MOST_COVARIATES, _MOST_OTHERS, _PROPOSED = 8, 40, 3
# Most steps of the model's growth, and populations of a chain for each: a short search has a short
# sweep.
_STEPS, _POPULATIONS_PER_STEP = 3, 5
# With at most so many covariates products and ratios of up to so many of them are arguments, too.
_FEW_COVARIATES, _MOST_FACTORS = 4, 3


def sweep_numbers(problem: Problem, swept: list[Feature], pause: Pause = never) -> list[Feature]:
    """Features with numbers that explain what the best simple features leave, in order of finding.

    Parameters
    ----------
    swept
        Simple features of large expected gain, which compete for places in the model.
    """
    n_steps = min(_STEPS, problem.budget.n_populations // _POPULATIONS_PER_STEP)
    if not problem.grammar.fits_numbers or problem.table.n_columns == 0 or n_steps == 0:
        return []
    strength = problem.marginal_strength()
    names = [problem.table.names[j] for j in np.argsort(-strength, kind="stable")]
    arguments = [f for f in problem.covariates if f.covariates[0] in names[:_MOST_COVARIATES]]
    table, screener = problem.screening_table, Screener(problem)
    columns, _ = evaluate(arguments, table)
    ratios = list(_ratios(problem)) if problem.grammar.operators.projection > 0.0 else []
    model: list[Feature] = []
    found: dict[int, Feature] = {}
    for _ in range(n_steps):
        if pause():
            break
        screen = screener.look_at(model, evaluate(model, problem.table)[0], np.ones(len(model)))
        proposed = propose_numbers(problem, screen.target(0), arguments, columns, _PROPOSED)
        if not model and ratios and not pause():
            values, _ = evaluate(ratios, table)
            functions = problem.grammar.transforms
            more = propose_constants(ratios, values, [screen.target(0)], functions, _PROPOSED)
            proposed += [feature for feature in more if problem.grammar.admits(feature)]
        found.update((feature.key, feature) for feature in proposed)
        rivals = [f for f in (*proposed, *swept[:_MOST_OTHERS]) if f not in model]
        if not rivals:
            break
        prices = np.array([problem.model_prior.feature_log_prior(f) for f in rivals])
        values = np.ascontiguousarray(evaluate(rivals, table)[0].T)
        gains = screen.weigh(values, prices).gains()
        if not np.max(gains) > 0.0:
            break
        model.append(rivals[int(np.argmax(gains))])
    return list(found.values())


def _ratios(problem: Problem) -> Iterator[Feature]:
    """Products and ratios of few covariates."""
    if len(problem.covariates) > _FEW_COVARIATES:
        return
    inverses = [g for g in problem.grammar.transforms if g.base is None and exponent_of(g) == -1.0]
    for size in range(2, _MOST_FACTORS + 1):
        for factors in combinations(problem.covariates, size):
            options = [[f, *(modify(g, f) for g in inverses[:1])] for f in factors]
            yield from (multiply(*chosen) for chosen in product(*options))
