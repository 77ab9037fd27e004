r"""Models that have a remainder beside their features: where many covariates matter a little.

A model of features either contains what matters or leaves it out. Where many covariates have
weak effects no set of features is sure, each leaves most of them out, and their average
predicts less than the covariates know together. Predictions therefore average over models with
and without a remainder of all covariates (`dbrm.evidence.remainder`), half and half before the
data. Formulas, and the probabilities of features, are those without.

Which columns take part is in `dbrm.posterior.remainder_kinds`, which features are tried beside them
in `dbrm.posterior.remainder_search`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import logsumexp

from dbrm._typing import FloatArray, IntArray, Mask, Matrix
from dbrm.data import Recipe, Table
from dbrm.evidence import AbstractEngine, GaussianEngine, GlmEngine, JointEngine, Link, ModelFit
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.evidence.joint.remainder import JointRemainder
from dbrm.evidence.root_scale import RootScale
from dbrm.evolution import Problem
from dbrm.features import Feature, Ranges, evaluate, training_ranges
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.limits import fitted_ranges
from dbrm.posterior.merge import Merged
from dbrm.posterior.prediction import AveragedModels
from dbrm.posterior.remainder_columns import Covariates
from dbrm.posterior.remainder_kinds import Kind, RemainderEngine
from dbrm.posterior.remainder_search import Found, Search, add_and_drop, thin_out
from dbrm.status import Status

__all__ = ["RemainderModels", "find_remainder", "with_remainder"]

# A remainder less probable than this is left out of the predictions.
LEAST_PROBABILITY = 0.02
# With fewer covariates all of them can be in the formula, and laws are extrapolated.
_FEWEST_COVARIATES = 3
# Features that are tried beside the remainder.
_MOST_FEATURES = 30
# Models with a remainder that predictions average over: this share of them, and this number.
_SHARE, _MOST_MODELS = 0.98, 40
# Formulas whose evidence is found under a proper prior, to compare all of them with a remainder;
# and rows times formulas.
_FEWEST_COMPARED, _MOST_COMPARED, _ROWS_COMPARED = 20, 200, 200_000
# Relative distance of probabilities that are equal up to rounding.
_EQUAL = 1e-9


@final
@dataclass(frozen=True, eq=False)
class RemainderModels:
    """The leading models with a remainder, as models of features and all covariates.

    Parameters
    ----------
    probability
        Posterior probability of each; their sum is that of there being a remainder.
    features, models, fits
        Features, positions of those of each model, and its fit. The effect of a covariate that is
        a feature of the model, too, is the sum of both.
    shifts
        For each model how far the mean of its coefficients is from the fit.
    ranges, fitted, squares, origin
        As in `AveragedModels`.
    """

    probability: FloatArray
    features: tuple[Feature, ...]
    models: Sequence[IntArray]
    fits: Sequence[ModelFit]
    shifts: Sequence[FloatArray]
    ranges: Ranges
    fitted: Matrix
    squares: Mask | None = None
    origin: float = 0.0


def find_remainder(
    problem: Problem, merged: Merged, inclusion: FloatArray, recipe: Recipe
) -> RemainderModels | None:
    """The models with a remainder; ``None`` if there is none, or if it is not probable."""
    engine = problem.engine
    if not (problem.remainder and len(recipe.needed) >= _FEWEST_COVARIATES):
        return None
    if not (isinstance(engine, RemainderEngine) and _is_possible(problem, engine)):
        return None
    table = _table(problem)
    if not np.all(np.ptp(table.values, axis=0) > 0) or _is_constant(engine):
        return None
    leading = np.argsort(-inclusion, kind="stable")[:_MOST_FEATURES]
    search = Search.of(problem, Covariates.of(table, recipe), merged, leading)
    found = (
        add_and_drop(search, engine)
        if isinstance(engine, GaussianEngine)
        else thin_out(search, engine)
    )
    if found is None:
        return None
    values = found.values
    without = merged.models.log_evidence[0] + merged.models.log_prior[0]
    if isinstance(engine, GaussianEngine):
        without -= _of_digits(problem, merged, engine)
    # Of models with a remainder, too, only those that were visited count.
    without += np.log((1.0 - merged.unvisited) / merged.probability[0])
    if not (
        isinstance(engine, GaussianEngine)
        or (isinstance(engine, GlmEngine) and GlmRemainder.shares_prior(engine))
    ):
        without += _log_overclaim(problem, merged, engine)
    total = float(logsumexp(values))
    probability = 1.0 / (1.0 + np.exp(min(without - total, 700.0)))
    if not probability >= LEAST_PROBABILITY:
        return None
    order = np.argsort(-values, kind="stable")[:_MOST_MODELS]
    share = np.exp(values[order] - total)
    count = int(np.searchsorted(np.cumsum(share), _SHARE)) + 1
    order, share = order[:count], share[:count]
    link = None
    if not isinstance(engine, GaussianEngine):
        assert isinstance(engine.link, Link)
        link = engine.link
    return _fit_models(search, found.take(order), probability * share / share.sum(), link)


def _of_digits(problem: Problem, merged: Merged, engine: GaussianEngine) -> float:
    """Nats that the best model owes to the digits of its coefficients, which a remainder leaves."""
    if engine.short_coefficients is None:
        return 0.0
    features = [merged.features[j] for j in merged.models.features_of(0)]
    columns = evaluate(features, problem.table)[0]
    plain = replace(engine, short_coefficients=None)
    return engine.log_evidence(columns)[0] - plain.log_evidence(columns)[0]


def with_remainder(averaged: AveragedModels, found: RemainderModels) -> AveragedModels:
    """The models of both kinds, the most probable first."""
    position = {feature.key: j for j, feature in enumerate(averaged.features)}
    others = [feature for feature in found.features if feature.key not in position]
    features = (*averaged.features, *others)
    position |= {f.key: len(averaged.features) + j for j, f in enumerate(others)}
    places = np.array([position[feature.key] for feature in found.features], dtype=np.int64)
    models = [*averaged.models, *(places[members] for members in found.models)]
    left = (1.0 - found.probability.sum()) / averaged.probability.sum()
    probability = np.concatenate([left * averaged.probability, found.probability])
    fits = [*averaged.fits, *found.fits]
    shifts = [*averaged.shifts, *found.shifts]
    fitted = np.concatenate([averaged.fitted, found.fitted])
    order = np.argsort(-probability, kind="stable")
    # Effects of a column and of its logarithm need not cancel outside the range.
    straight = np.concatenate([averaged.is_linear, np.zeros(len(found.fits), dtype=np.bool_)])
    squares = None
    if found.squares is not None:
        squares = np.concatenate([np.zeros(len(averaged.fits), dtype=np.bool_), found.squares])
    return replace(
        averaged,
        features=features,
        models=[models[j] for j in order],
        probability=probability[order],
        fits=[fits[j] for j in order],
        shifts=[shifts[j] for j in order],
        dispersions=[DispersionPosterior.known(fits[j].dispersion) for j in order],
        ranges={**averaged.ranges, **found.ranges},
        fitted=fitted[order],
        straight=straight[order],
        squares=None if squares is None else squares[order],
        origin=found.origin,
    )


def _log_overclaim(problem: Problem, merged: Merged, engine: GlmEngine | JointEngine) -> float:
    """Log evidence of all formulas under a proper prior, minus that under Jeffreys' rule.

    By the leading formulas. It is far below zero where these separate classes.
    """
    count = max(_FEWEST_COMPARED, min(_MOST_COMPARED, _ROWS_COMPARED // engine.n_rows))
    last = merged.probability[min(count, merged.probability.size) - 1]
    # Of equally plausible ones all: rounding must not choose among them.
    count = int(np.sum(merged.probability >= (1.0 - _EQUAL) * last))
    models = [merged.models.features_of(row).astype(np.int64) for row in range(count)]
    used: IntArray = np.unique(np.concatenate(models))
    columns = evaluate([merged.features[j] for j in used], problem.table)[0]
    nothing = (
        GlmRemainder.nothing(engine)
        if isinstance(engine, GlmEngine)
        else JointRemainder.nothing(engine)
    )
    proper = [nothing.wide_log_evidence(columns[:, np.searchsorted(used, m)]) for m in models]
    differences = np.array(proper) - merged.models.log_evidence[:count]
    weights = merged.probability[:count] / merged.probability[:count].sum()
    return float(logsumexp(differences, b=weights))


def _is_constant(engine: RemainderEngine) -> bool:
    """Whether a response has nothing to explain."""
    if not isinstance(engine, GaussianEngine):
        return False
    offset = 0.0 if engine.offset is None else engine.offset
    return bool(np.ptp(engine.response - offset) == 0.0)


def _table(problem: Problem) -> Table:
    return problem.table if problem.whole is None else problem.whole


def _is_possible(problem: Problem, engine: RemainderEngine) -> bool:
    """Whether nothing was asked for that models with a remainder would not obey."""
    if isinstance(engine, JointEngine):
        suits = JointRemainder.is_possible(engine)
    else:
        weights = engine.weights
        suits = weights is None or bool(np.all(weights == np.floor(weights)))
        suits = suits and (isinstance(engine, GaussianEngine) or GlmRemainder.is_possible(engine))
    return (
        suits
        and problem.out_of_core is None
        and not problem.completed
        and problem.constraints is None
        and not problem.has_heredity_rule
        and not problem.always
        and not problem.grammar.excluded
        and problem.grammar.units is None
    )


def _fit_models(
    search: Search, found: Found, probability: FloatArray, link: Link | None
) -> RemainderModels | None:
    """Fit these models; one that cannot be fitted leaves its probability to the others."""
    used = [found.kinds[kind].columns for kind in np.unique(found.kind)]
    everything = [feature for columns in used for feature in columns.features]
    features = list({f.key: f for f in (*everything, *search.features)}.values())
    position = {feature.key: j for j, feature in enumerate(features)}
    own = np.array([position[feature.key] for feature in search.features], dtype=np.int64)
    models, fits, shifts, squares = [], [], [], []
    fitted = np.zeros(probability.size, dtype=np.bool_)
    for row, (mask, number, ratio) in enumerate(
        zip(found.masks, found.kind, found.ratio, strict=True)
    ):
        kind = found.kinds[number]
        places = np.array([position[feature.key] for feature in kind.columns.features])
        members = np.union1d(places, own[mask])
        change = _to_features(kind, own[mask], places, members)
        fit, shift = _fit_in_features(kind, search.columns[:, mask], float(ratio), change)
        fit = _with_unseen_levels(fit, kind, float(ratio), 1 + np.searchsorted(members, places))
        fitted[row] = fit.status is not Status.NOT_CONVERGED
        if fitted[row]:
            models.append(members)
            fits.append(fit)
            shifts.append(shift)
            squares.append(kind.squared)
    if not fits:
        return None
    probability = probability[fitted] * probability.sum() / probability[fitted].sum()
    table = _table(search.problem)
    ones, columns = np.ones((table.n_rows, 1)), evaluate(features, table)[0]
    return RemainderModels(
        probability=probability,
        features=tuple(features),
        models=models,
        fits=fits,
        shifts=shifts,
        ranges=training_ranges(features, table),
        fitted=fitted_ranges(ones, columns, models, fits, link),
        squares=np.array(squares) if any(squares) else None,
        origin=_origin(search.problem.engine) if any(squares) else 0.0,
    )


def _origin(engine: AbstractEngine) -> float:
    """What is added to the response before its root is taken."""
    assert isinstance(engine, GaussianEngine)
    root = RootScale.of(engine)
    assert root is not None
    return root.origin


def _to_features(kind: Kind, own: IntArray, places: IntArray, members: IntArray) -> Matrix:
    """What the columns of a model, and of its remainder, are of the constant and all features.

    Parameters
    ----------
    own, places, members
        Positions of the model's features, of those of the remainder, and of both.
    """
    columns, remainder = kind.columns, kind.remainder
    n_own = own.size
    change = np.zeros((1 + members.size, n_own + remainder.units.size))
    change[1 + np.searchsorted(members, own), np.arange(n_own)] = 1.0
    change[0, n_own:] = (columns.constants - remainder.means) / remainder.units
    change[1 + np.searchsorted(members, places), n_own:] += columns.change / remainder.units
    return change


def _fit_in_features(
    kind: Kind, columns: Matrix, ratio: float, change: Matrix
) -> tuple[ModelFit, FloatArray]:
    """The fit of a model in terms of all of its features, and the shift of its mean."""
    remainder = kind.remainder
    if isinstance(remainder, JointRemainder):
        found_joint = remainder.fit(columns, ratio)
        assert found_joint.joint is not None
        joint = found_joint.joint.transformed(change, remainder.engine.joint.shift)
        fit = remainder.report(joint, found_joint)
        return fit, np.zeros_like(fit.coefficients)
    found = remainder.fit(columns, ratio)
    full = np.hstack([np.eye(len(change), 1), change])
    covariance = np.block(
        [[found.fit.covariance, found.shared.T], [found.shared, found.effects_covariance]]
    )
    coefficients = np.concatenate([found.fit.coefficients, found.effects])
    fit = replace(
        found.fit,
        coefficients=full @ coefficients,
        covariance=full @ covariance @ full.T,
    )
    return fit, full @ found.shift


def _with_unseen_levels(fit: ModelFit, kind: Kind, ratio: float, positions: IntArray) -> ModelFit:
    r"""The fit with what is not known of levels that no training row has.

    Their effects are drawn as those of the others are, :math:`u \sim N(0, \tau \sigma^2)`. With
    :math:`\sum_j z_j = 1` in every row for the columns of the known levels, what such a level
    adds is :math:`u (1 - \sum_j z_j)`, zero at known levels, with mean zero elsewhere.
    Not of several classes.

    Parameters
    ----------
    positions
        Of the features of the remainder among the coefficients.
    """
    if fit.joint is not None:
        return fit
    covariance = fit.covariance.copy()
    for levels in kind.columns.levels:
        direction = np.zeros(len(covariance))
        direction[0] = 1.0
        direction[positions[levels]] = -1.0
        variance = ratio / kind.remainder.units[levels[0]] ** 2
        covariance += variance * np.outer(direction, direction)
    return replace(fit, covariance=covariance)
