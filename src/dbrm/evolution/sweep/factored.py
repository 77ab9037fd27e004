r"""Factors that are powers of a simple sum or a function, beside a function of another sum.

.. math:: y = F\, (1 \pm z)^p\, g\Bigl(\alpha_0 + \sum_r \alpha_r F_r\Bigr)

For every term :math:`z` and power :math:`p` at once, how well does one more term explain
:math:`g^{-1}\{y / (F (1 \pm z)^p)\}`? Without a :math:`g` two terms do. The best factors are those
that sums are looked for beside: :math:`\sqrt{1 - v^2/c^2}`, :math:`1 / (1 + x)`, or
:math:`1 / \sin x`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.evolution.sweep.exhaustive import best_sums
from dbrm.evolution.sweep.law_targets import LawTarget
from dbrm.evolution.sweep.powers import Powers
from dbrm.evolution.sweep.screening import invert
from dbrm.evolution.sweep.terms import Terms
from dbrm.features import Feature

__all__ = ["factored_targets"]

# Powers of a sum, terms beside it, and those of which pairs are tried.
_POWERS, _BESIDE, _PAIRED = (-0.5, 0.5, -1.0, 1.0, -2.0, 2.0), 150, 40
# Powers of functions.
_OF_FUNCTIONS = (1.0, -1.0, 2.0, -2.0)
# Smallest share of the squares that a difference of squares can tell.
_ROUNDING = 1e-10


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Factors:
    """Features that are powers of a sum, and their columns."""

    features: list[Feature]
    columns: Matrix


def factored_targets(
    sources: Sequence[LawTarget],
    inside: Terms,
    beside: Terms,
    terms: Terms,
    response: Column,
    powers: Powers,
    unit: float,
    kept: int,
) -> list[LawTarget]:
    """The best of the given targets with one more factor each, best first.

    Parameters
    ----------
    sources
        Targets that have one factor under several functions.
    inside, beside, terms
        What may stand beside one in the factor, what may be a factor itself, and what the targets
        may be sums of.
    unit
        What a unit of complexity costs, in nats.
    """
    factors = _factors(inside, beside, powers)
    if not factors.features:
        return []
    found: list[tuple[float, LawTarget]] = []
    variation = float(np.sum((response - response.mean()) ** 2))
    complexity = np.array([feature.complexity for feature in factors.features])
    for source in sources:
        columns = source.factor_column[:, None] * factors.columns
        target, weight, signs, usable = invert(source.function, response, columns)
        if source.function.transforms:
            left = _left_by_one(target, weight, terms.columns[:, :_BESIDE])
        else:
            left = _left_by_two(target, weight, terms, unit)
        lost = np.where(weight == 0.0, ((response - response.mean()) ** 2)[:, None], 0.0)
        share = np.maximum((left + lost.sum(axis=0)) / variation, _ROUNDING)
        gain = -0.5 * response.size * np.log(share) - unit * complexity
        gain = np.where(usable & np.isfinite(gain), gain, -np.inf)
        for k in np.argsort(-gain, kind="stable")[:kept].tolist():
            if gain[k] > -np.inf:
                parts = (*source.factor, factors.features[k])
                column = signs[k] * columns[:, k]
                law = LawTarget(
                    parts, column, source.function, source.bases, target[:, k], weight[:, k]
                )
                found.append((float(gain[k]), law))
    found.sort(key=lambda pair: -pair[0])
    return [law for _, law in found[:kept]]


def _factors(terms: Terms, functions: Terms, powers: Powers) -> _Factors:
    """Powers of one plus or minus a term, where that has one sign, and of functions."""
    features: list[Feature] = []
    columns: list[Column] = []
    for function, column, scale in zip(
        functions.features, functions.columns.T, functions.scale, strict=True
    ):
        for power in _OF_FUNCTIONS if np.all(column != 0.0) else ():
            feature = powers.feature(function, power)
            if feature is not None:
                features.append(feature)
                columns.append((column * scale) ** power)
    for j, term in enumerate(terms.features):
        for sign in (1.0, -1.0):
            total = 1.0 + sign * terms.columns[:, j] * terms.scale[j]
            if not (np.all(total > 0.0) or np.all(total < 0.0)):
                continue
            for power in _POWERS:
                feature = powers.of_sum([term], [sign], 1.0, power)
                if feature is not None:
                    features.append(feature)
                    columns.append(np.abs(total) ** power)
    return _Factors(features, np.column_stack(columns) if columns else np.empty((0, 0)))


def _left_by_one(target: Matrix, weight: Matrix, columns: Matrix) -> FloatArray:
    """Squares that the best column beside a constant leaves of each target, with its weights."""
    squares = weight * weight
    weighted = squares * target
    total, sums = squares.sum(axis=0), weighted.sum(axis=0)
    middle = squares.T @ columns
    spread = squares.T @ (columns * columns) - middle**2 / total[:, None]
    common = weighted.T @ columns - middle * (sums / total)[:, None]
    wanted = np.sum(weighted * target, axis=0) - sums**2 / total
    usable = spread > _ROUNDING * (squares.T @ (columns * columns))
    explained = np.where(usable, common**2 / np.where(usable, spread, 1.0), 0.0)
    return np.asarray(np.maximum(wanted - explained.max(axis=1), 0.0))


def _left_by_two(target: Matrix, weight: Matrix, terms: Terms, unit: float) -> FloatArray:
    """Squares that the best two terms beside a constant leave of each target."""
    columns = terms.columns[:, :_PAIRED]
    prices = np.asarray(unit * (1.0 + terms.complexity[:_PAIRED]), dtype=np.float64)
    found = np.full(target.shape[1], np.inf)
    for k in range(target.shape[1]):
        best = best_sums(target[:, k], weight[:, k], columns, prices, 2, 1, smallest=2)
        found[k] = min((left for left, _ in best), default=np.inf)
    return found
