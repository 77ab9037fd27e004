"""Looks at what the first sweep has no time for, one after the other, cheap ones first."""

from collections.abc import Callable, Sequence

import numpy as np

from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.inverses import exponent_of
from dbrm.evolution.sweep.polynomials import sweep_polynomials
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.ratios import sweep_ratios
from dbrm.evolution.sweep.simple import sweep_features
from dbrm.features import Feature

__all__ = ["Look", "further_looks", "gain_of"]

# Units of complexity by which the second sweep of simple features goes beyond the first.
_DEEPER = 2
# Features of a look that are weighed beside the best model.
_WEIGHED = 12

Look = Callable[[Problem, Pause], list[Feature]]


def further_looks(problem: Problem, complexity: int) -> list[Look]:
    """The looks; none unless squares and inverses are among the transforms, as in laws.

    Nor for responses that are not Gaussian.

    Parameters
    ----------
    complexity
        What the first sweep of simple features went up to.
    """
    exponents = [exponent_of(g) for g in problem.grammar.transforms if g.base is None]
    if not isinstance(problem.engine, GaussianEngine) or not {-1.0, 2.0} <= set(exponents):
        return []

    def look_deeper(problem: Problem, pause: Pause) -> list[Feature]:
        return sweep_features(problem, complexity + _DEEPER, pause)

    return [sweep_polynomials, sweep_ratios, look_deeper]


def gain_of(problem: Problem, model: Sequence[Feature], features: Sequence[Feature]) -> float:
    """Nats by which features raise the log posterior of a model, in it or in its place."""
    pool = SweepPool(problem)
    before = pool.add(list(model), len(model), fresh_only=False)
    after = pool.add(list(features), _WEIGHED, fresh_only=False)
    both = [*before, *(number for number in after if number not in before)]
    best = max(pool.log_posterior(pool.best_subset(n, before)) for n in (after, both))
    gain = best - pool.log_posterior(before)
    return gain if np.isfinite(gain) else np.inf
