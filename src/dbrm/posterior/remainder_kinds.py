r"""Kinds of remainders: which columns take part, and how the variance is shared by their groups.

Effects are straight, or bend as well, with both scales of a long-tailed column or with its
logarithm alone; the most plausible of these has products of covariates beside it, too. The
variances of the groups of a kind are learnt (`dbrm.evidence.variance_components`), twice: where
there is nothing else, and beside the features of the best model.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence import GaussianEngine, GlmEngine, JointEngine
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.evidence.joint.remainder import JointMode, JointRemainder
from dbrm.evidence.remainder import Remainder, gaussian_quadratic
from dbrm.evidence.variance_components import (
    Components,
    Quadratic,
    components_at,
    find_components,
)
from dbrm.posterior.remainder_columns import Covariates, RemainderColumns

__all__ = ["Kind", "RemainderEngine", "find_kinds"]

#: Engines whose models may have a remainder.
RemainderEngine = GaussianEngine | GlmEngine | JointEngine

# Columns up to which a remainder is looked for; rows times columns; and rows times columns
# squared, where every model is fitted by Newton's method.
_MOST_COLUMNS, _MOST_NUMBERS, _MOST_PRODUCTS = 300, 5_000_000, 200_000_000
# Effects of several classes at most.
_MOST_EFFECTS = 700
# Products of columns in a remainder at most; of several classes these, and a share of those.
MOST_PRODUCTS = 120
_FEWER_PRODUCTS = 20
# Modes from which the variances of a generalised linear model's groups are learnt, and the change
# of a log variance that ends this.
_ROUNDS, _CLOSE = 5, 0.1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A remainder whose groups have learnt their variances.

    Parameters
    ----------
    columns, remainder
        In units in which all effects are alike.
    log_weight
        Log prior probability of these variances, given the ratio of the variances of the whole
        remainder and of the noise, times the width of their posterior.
    ratio
        The ratio at which they were learnt.
    squared
        Whether the response is the square of what the model is of (`dbrm.evidence.root_scale`).
    """

    columns: RemainderColumns
    remainder: Remainder | GlmRemainder | JointRemainder
    log_weight: float
    ratio: float
    squared: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Learnt:
    """Variances of groups, the log evidence there, and the strength of each covariate."""

    columns: RemainderColumns
    components: Components
    log_evidence: float
    strength: FloatArray


def find_kinds(engine: RemainderEngine, covariates: Covariates, beside: Matrix) -> list[Kind]:
    """The kinds of remainders of this table, learnt beside columns of a model.

    Those without products also with variances that are as expected, where nothing is learnt but
    their level. None if there were too many columns.
    """
    possible = list(_alternatives(engine, covariates))
    learnt = [(_learn(engine, columns, beside), b, logs) for columns, b, logs in possible]
    if not learnt:
        return []
    found = [one for one, _, _ in learnt]
    learnt.sort(key=lambda item: -item[0].log_evidence)
    for one, bends, logs in learnt:
        pairs = covariates.strongest_pairs(one.strength, _most_products(engine))
        columns = covariates.columns(bends=bends, logs=logs, pairs=pairs)
        if np.any(columns.owner < 0) and _is_small(engine, columns):
            found.append(_learn(engine, columns, beside))
            break
    kinds = [_kind(engine, one.columns, one.components) for one in found]
    for one, _, _ in learnt:
        expected = one.columns.centre
        level = logsumexp(one.components.log_variances) - logsumexp(expected)
        kinds.append(_kind(engine, one.columns, Components(expected + level, 0.0)))
    return kinds


def _alternatives(
    engine: RemainderEngine, covariates: Covariates
) -> Iterator[tuple[RemainderColumns, bool, bool]]:
    """Columns that are not too many, whether effects bend, and whether logarithms stand alone."""
    for logs in (False, True) if covariates.has_logs else (False,):
        for bends in (False, True):
            columns = covariates.columns(bends=bends, logs=logs)
            if bends and not np.any(columns.centre < columns.centre[0]):
                continue
            if _is_small(engine, columns):
                yield columns, bends, logs


def _most_products(engine: RemainderEngine) -> int:
    """Fewer where each has an effect on several predictors."""
    if isinstance(engine, JointEngine) and engine.joint.n_predictors > 1:
        return _FEWER_PRODUCTS + MOST_PRODUCTS // engine.joint.n_predictors
    return MOST_PRODUCTS


def _is_small(engine: RemainderEngine, columns: RemainderColumns) -> bool:
    size = len(columns.features)
    if isinstance(engine, JointEngine):
        effects = min(size, engine.n_rows) * engine.joint.n_predictors
        return size <= _MOST_COLUMNS and effects <= _MOST_EFFECTS
    if isinstance(engine, GaussianEngine):
        n = engine.n_rows if engine.weights is None else int(engine.weights.sum())
        return size <= _MOST_COLUMNS and n * size <= _MOST_NUMBERS
    return size <= _MOST_COLUMNS and len(columns.values) * size**2 <= _MOST_PRODUCTS


def _kind(engine: RemainderEngine, columns: RemainderColumns, components: Components) -> Kind:
    own = columns.with_variances(components.log_variances)
    remainder: Remainder | GlmRemainder | JointRemainder
    if isinstance(engine, GaussianEngine):
        remainder = Remainder.of(engine, own.values, own.units)
    elif isinstance(engine, GlmEngine):
        remainder = GlmRemainder.of(engine, own.values, own.units)
    else:
        remainder = JointRemainder.of(engine, own.values, own.units)
    ratio = float(np.exp(components.log_variances).sum())
    return Kind(own, remainder, components.log_weight, ratio)


def _learn(engine: RemainderEngine, columns: RemainderColumns, beside: Matrix) -> _Learnt:
    if isinstance(engine, GlmEngine):
        return _learn_by_modes(engine, columns, beside)
    if isinstance(engine, JointEngine):
        return _learn_by_joint_modes(engine, columns, beside)
    quadratic = gaussian_quadratic(engine, columns.values, columns.units, beside)
    found = find_components(quadratic, columns.groups, columns.centre)
    value = quadratic.log_evidence(found.log_variances[columns.groups])[0] + found.log_weight
    return _Learnt(columns, found, value, _strength(quadratic, columns, found))


def _learn_by_modes(engine: GlmEngine, columns: RemainderColumns, beside: Matrix) -> _Learnt:
    """Learn from the quadratic at the mode, find the mode again, and so on; the best counts."""
    log_variances, start, scale = columns.centre, None, np.ones(columns.units.size)
    best: _Learnt | None = None
    for _ in range(_ROUNDS):
        own = columns.with_variances(log_variances)
        remainder = GlmRemainder.of(engine, own.values, own.units)
        ratio = float(np.exp(log_variances).sum())
        scale_now = np.exp(0.5 * log_variances)[columns.groups]
        if start is not None:
            start[-scale.size :] *= scale / scale_now
        scale = scale_now
        mode = remainder.find_mode(beside, ratio, start)
        if not np.isfinite(mode.log_evidence):
            break
        start = mode.parameters.copy()
        quadratic = mode.quadratic(scale)
        found = find_components(quadratic, columns.groups, columns.centre, log_variances)
        here = components_at(quadratic, columns.groups, columns.centre, log_variances)
        value = mode.log_evidence + here.log_weight
        if best is None or value > best.log_evidence:
            best = _Learnt(columns, here, value, _strength(quadratic, columns, here))
        if np.max(np.abs(found.log_variances - log_variances)) < _CLOSE:
            break
        log_variances = found.log_variances
    return _not_learnt(columns) if best is None else best


def _learn_by_joint_modes(
    engine: JointEngine, columns: RemainderColumns, beside: Matrix
) -> _Learnt:
    """The same for several classes."""
    log_variances, scale = columns.centre, np.ones(columns.units.size)
    before: tuple[JointMode, Matrix] | None = None
    best: _Learnt | None = None
    for _ in range(_ROUNDS):
        own = columns.with_variances(log_variances)
        remainder = JointRemainder.of(engine, own.values, own.units)
        ratio = float(np.exp(log_variances).sum())
        scale_now = np.exp(0.5 * log_variances)[columns.groups]
        start: FloatArray | None = None
        if before is not None:
            start = remainder.start(before[0], before[1] * (scale / scale_now)[:, None])
        scale = scale_now
        mode = remainder.find_mode(beside, ratio, start)
        if not np.isfinite(mode.log_evidence):
            break
        before = mode, remainder.effects(mode)
        quadratic = remainder.quadratic(mode, scale)
        found = find_components(quadratic, columns.groups, columns.centre, log_variances)
        here = components_at(quadratic, columns.groups, columns.centre, log_variances)
        value = mode.log_evidence + here.log_weight
        if best is None or value > best.log_evidence:
            strength = np.sum([_strength(part, columns, here) for part in quadratic.parts], axis=0)
            best = _Learnt(columns, here, value, strength)
        if np.max(np.abs(found.log_variances - log_variances)) < _CLOSE:
            break
        log_variances = found.log_variances
    return _not_learnt(columns) if best is None else best


def _not_learnt(columns: RemainderColumns) -> _Learnt:
    """Variances as expected, where no mode was found."""
    expected = Components(columns.centre, 0.0)
    return _Learnt(columns, expected, -np.inf, np.zeros(1 + int(columns.owner.max())))


def _strength(
    quadratic: Quadratic, columns: RemainderColumns, components: Components
) -> FloatArray:
    """How much the effects of each covariate vary over the rows."""
    scale = np.exp(0.5 * components.log_variances)[columns.groups]
    matrix = np.eye(scale.size) + scale[:, None] * quadratic.gram * scale
    effects = scale * np.linalg.solve(matrix, scale * quadratic.products)
    found = np.zeros(1 + int(columns.owner.max()))
    for j in range(found.size):
        own = np.flatnonzero(columns.owner == j)
        found[j] = effects[own] @ quadratic.gram[np.ix_(own, own)] @ effects[own]
    return np.maximum(found, 0.0)
