r"""Laws beside terms that are certain: what these leave is a problem of its own.

Where :math:`y = \sum_j b_j F_j + h` and :math:`h` is approximated, the coefficients of the right
terms are near simple numbers, and those of an approximation are not. Terms whose coefficient has
one digit to within a hundredth per cent, or its error, are taken off with that number, and products
and sums are looked for in what is left. Nothing of it is random, and it only decides where chains
look first.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dbrm._typing import FloatArray
from dbrm.evidence import GaussianEngine
from dbrm.evolution.algorithms.base import Pause, never
from dbrm.evolution.problem import Problem
from dbrm.evolution.sweep.factorisations import sweep_factorisations
from dbrm.evolution.sweep.ratios import sweep_reduced
from dbrm.features import Feature, evaluate
from dbrm.features.numbers import count_digits, short_numbers

__all__ = ["sweep_remainder"]

# Largest relative distance of a coefficient from a simple number, and in standard errors.
_NEAR, _STANDARD_ERRORS = 1e-4, 2.0
# A standard error above this share of the coefficient says nothing of its digits.
_VAGUE = 0.01
# Digits of a simple number.
_DIGITS = 1
# Features of each search.
_TAKE = 4


def sweep_remainder(
    problem: Problem, model: Sequence[Feature], pause: Pause = never
) -> list[Feature]:
    """The certain terms of a model, and the best laws in what they leave.

    None if no term of it is certain, or all of them are.
    """
    engine = problem.engine
    if not isinstance(engine, GaussianEngine) or pause() or not model:
        return []
    certain, numbers = _certain_terms(problem, model)
    if not 0 < len(certain) < len(model):
        return []
    left = engine.response - evaluate(certain, problem.table)[0] @ numbers
    part = replace(problem, engine=replace(engine, response=left))
    found: list[Feature] = []
    for find in (sweep_factorisations, sweep_reduced):
        found += find(part, pause)[:_TAKE]
    return [*certain, *found] if found else []


def _certain_terms(problem: Problem, model: Sequence[Feature]) -> tuple[list[Feature], FloatArray]:
    """Terms whose coefficients are simple numbers up to their errors, and these numbers."""
    fit = problem.engine.fit(evaluate(list(model), problem.table)[0])
    errors = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0) * fit.dispersion)
    certain: list[Feature] = []
    numbers: list[float] = []
    for feature, value, error in zip(model, fit.coefficients[1:], errors[1:], strict=True):
        if not (np.isfinite(value) and abs(value) > 0.0) or error > _VAGUE * abs(value):
            continue
        allowed = max(_NEAR * abs(value), _STANDARD_ERRORS * float(error))
        near = [c for c in short_numbers(float(value)) if count_digits(c) <= _DIGITS]
        near = [c for c in near if c != 0.0 and abs(c - value) <= allowed]
        if near:
            certain.append(feature)
            numbers.append(near[0])
    return certain, np.array(numbers)
