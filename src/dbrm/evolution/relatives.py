"""Relatives of a feature: the same with another function of one of its parts, or with none.

They are what few rows cannot tell apart from it: ``x*atan(z)`` from ``x*z``, or ``tanh(x)`` from
``x``.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dbrm._typing import Matrix
from dbrm.data import to_unit_length
from dbrm.evolution.newcomers.recipes import arguments_of
from dbrm.evolution.operators import Grammar, bent_transforms
from dbrm.evolution.problem import Problem
from dbrm.features import Covariate, Feature, Modification, Product, evaluate, modify, multiply
from dbrm.status import Status

__all__ = ["find_relatives"]

# Correlation with the feature from which on it may stand for it.
_RELATED = 0.7


def find_relatives(
    problem: Problem, features: Sequence[Feature], most: int
) -> tuple[list[Feature], Matrix]:
    """The first so many relatives of these features that may be in a model, with their columns."""
    found: dict[int, Feature] = {}
    columns: list[Matrix] = []
    for feature, own in zip(features, evaluate(features, problem.table)[0].T, strict=True):
        unit = to_unit_length(own[:, None], fill=0.0)[:, 0]
        for relative in _spelled(feature, problem.grammar):
            known = relative.key in found
            if known or len(found) == most or not problem.grammar.admits(relative):
                continue
            relative, column, status = problem.column_of(relative)
            if status is not Status.OK:
                continue
            column = column[:, None]
            if abs(float(unit @ to_unit_length(column, fill=0.0)[:, 0])) >= _RELATED:
                found[relative.key] = relative
                columns.append(column)
    return list(found.values()), np.hstack([np.empty((problem.table.n_rows, 0)), *columns])


def _spelled(feature: Feature, grammar: Grammar) -> Iterator[Feature]:
    """Each factor, and the whole product, inside another function or inside none."""
    bent = bent_transforms(grammar.transforms) if grammar.operators.modification else ()
    factors = feature.factors if isinstance(feature, Product) else (feature,)
    for j, factor in enumerate(factors):
        others = (*factors[:j], *factors[j + 1 :])
        if isinstance(factor, Modification):
            inner = arguments_of(factor)[0]
            yield multiply(*others, inner)
        elif isinstance(factor, Covariate):
            inner = factor
        else:
            continue
        for transform in bent:
            yield multiply(*others, modify(transform, inner))
    if len(factors) > 1:
        for transform in bent:
            yield modify(transform, feature)
