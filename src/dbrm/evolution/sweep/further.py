"""Looks at what the first sweep has no time for, one after the other, cheap ones first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import final

import numpy as np

from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.edits import sweep_edits
from dbrm.evolution.sweep.factorisations import sweep_factorisations
from dbrm.evolution.sweep.inverses import has_squares_and_inverses
from dbrm.evolution.sweep.meetings import sweep_meetings
from dbrm.evolution.sweep.numbered_sums import sweep_numbered_sums
from dbrm.evolution.sweep.polynomials import sweep_polynomials
from dbrm.evolution.sweep.pool import SweepPool
from dbrm.evolution.sweep.ratios import sweep_expression_sums, sweep_plain, sweep_ratios
from dbrm.evolution.sweep.remainders import sweep_remainder
from dbrm.evolution.sweep.simple import sweep_features
from dbrm.features import Feature

__all__ = ["Look", "best_with", "further_looks"]

# Units of complexity by which further sweeps of simple features go beyond the first, if these are
# not too many, and seconds that each takes at the least.
_DEEPER = ((2, 0.4), (4, 1.2))
# Seconds for changes of the best model before other looks.
_EDITS = 1.5
# Features of a look that are weighed beside the best model.
_WEIGHED = 12


@final
@dataclass(frozen=True, slots=True)
class Look:
    """A search for features beside a model, and the seconds that it takes at the least.

    It pauses now and then.

    Parameters
    ----------
    needs_exact
        Whether it finds nothing beside noise.
    most_seconds
        Time that it may take.
    """

    find: Callable[[Problem, Sequence[Feature], Pause], list[Feature]]
    least_seconds: float = 0.0
    needs_exact: bool = False
    most_seconds: float = inf


def further_looks(problem: Problem, complexity: int) -> list[Look]:
    """The looks; none unless squares and inverses are among the transforms, as in laws.

    Nor for responses that are not Gaussian.

    Parameters
    ----------
    complexity
        What the first sweep of simple features went up to.
    """
    gaussian = isinstance(problem.engine, GaussianEngine)
    if not (gaussian and has_squares_and_inverses(problem.grammar.transforms)):
        return []

    def deeper(by: int, seconds: float) -> Look:
        return _alone(
            lambda problem, pause: sweep_features(problem, complexity + by, pause), seconds
        )

    def peeled(problem: Problem, pause: Pause) -> list[Feature]:
        return sweep_meetings(problem, pause, peels=True)

    (first, second) = (deeper(by, seconds) for by, seconds in _DEEPER)
    return [
        _alone(sweep_polynomials, 0.1),
        Look(sweep_edits, most_seconds=_EDITS),
        replace(_alone(sweep_meetings, 1.0), needs_exact=True),
        _alone(sweep_factorisations, 0.4),
        _alone(sweep_plain, 0.4),
        _alone(sweep_numbered_sums, 0.8),
        _alone(sweep_expression_sums, 1.0),
        Look(sweep_remainder, 0.8),
        replace(_alone(peeled, 1.5), needs_exact=True),
        first,
        second,
        _alone(sweep_ratios, 0.8),
        Look(sweep_edits),
    ]


def _alone(find: Callable[[Problem, Pause], list[Feature]], seconds: float) -> Look:
    """A look at the whole response, whatever the model."""
    return Look(lambda problem, _, pause: find(problem, pause), seconds)


def best_with(
    problem: Problem, model: Sequence[Feature], features: Sequence[Feature]
) -> tuple[list[Feature], float]:
    """The most probable model of features, beside those of a model or without them, or of all.

    Also the nats by which its log posterior exceeds that of the given model.
    """
    pool = SweepPool(problem)
    before = pool.add(list(model), len(model), fresh_only=False)
    after = pool.add(list(features), _WEIGHED, fresh_only=False)
    both = [*before, *(number for number in after if number not in before)]
    subsets = [pool.best_subset(numbers, before) for numbers in (after, both)]
    # Perfect fits are told apart from the rows only.
    subsets += [after] if len(after) <= problem.max_model_size else []
    gains = [pool.log_posterior(subset) for subset in subsets]
    best = int(np.argmax(np.nan_to_num(gains, nan=-np.inf)))
    gain = gains[best] - pool.log_posterior(before)
    found = [pool.feature(number) for number in subsets[best]]
    return found, gain if np.isfinite(gain) else np.inf
