r"""Models that have a remainder beside their features: where many covariates matter a little.

A model of features either contains what matters or leaves it out. Where many covariates have
weak effects no set of features is sure, each leaves most of them out, and their average
predicts less than the covariates know together. Predictions therefore average over models with
and without a remainder of all covariates (`dbrm.evidence.remainder`), half and half before the
data. Formulas, and the probabilities of features, are those without.

The effects of a remainder are straight or broken lines, the bends with a share of their variance
(`dbrm.posterior.remainder_columns`). With a remainder, models are subsets of the leading
features. Those of a Gaussian response are found by adding and dropping one feature at a time, for
each share and each of a few ratios :math:`\tau`; of other families fewer are tried. Every model
that was met counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import logsumexp

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import Recipe, Table
from dbrm.evidence import GaussianEngine, GlmEngine, JointEngine, Link, ModelFit
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.evidence.joint.remainder import JointRemainder
from dbrm.evidence.remainder import Remainder, RemainderFit
from dbrm.evolution import Problem
from dbrm.features import Feature, Ranges, evaluate, training_ranges
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.limits import fitted_ranges
from dbrm.posterior.merge import Merged
from dbrm.posterior.prediction import AveragedModels
from dbrm.posterior.remainder_columns import RemainderColumns
from dbrm.status import Status

__all__ = ["RemainderModels", "find_remainder", "with_remainder"]

# Engines whose models may have a remainder.
_Engine = GaussianEngine | GlmEngine | JointEngine
# Prior ratios of the variances of remainder and noise, equally plausible; for other families the
# prior variance of the remainder.
RATIOS = tuple(4.0**k for k in range(-2, 4))
# Shares of bends in the variance of a covariate's effect, equally plausible.
SHARES = (0.0, 0.1, 0.5)
# A remainder less probable than this is left out of the predictions.
LEAST_PROBABILITY = 0.02
# Features that are tried beside the remainder, and those of a model at most.
_MOST_FEATURES, _MOST_IN_MODEL = 30, 20
# Models with a remainder that predictions average over: this share of them, and this number.
_SHARE, _MOST_MODELS = 0.98, 40
# With fewer covariates all of them can be in the formula.
_FEWEST_COVARIATES = 3
# Columns up to which a remainder is looked for; rows times columns; and rows times columns
# squared, where every model is fitted by Newton's method.
_MOST_COLUMNS, _MOST_NUMBERS, _MOST_PRODUCTS = 300, 5_000_000, 200_000_000


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
    ranges, fitted
        As in `AveragedModels`.
    """

    probability: FloatArray
    features: tuple[Feature, ...]
    models: Sequence[IntArray]
    fits: Sequence[ModelFit]
    ranges: Ranges
    fitted: Matrix


def find_remainder(
    problem: Problem, merged: Merged, inclusion: FloatArray, recipe: Recipe
) -> RemainderModels | None:
    """The models with a remainder; ``None`` if there is none, or if it is not probable."""
    engine = problem.engine
    if not (problem.remainder and len(recipe.needed) >= _FEWEST_COVARIATES):
        return None
    if not (isinstance(engine, _Engine) and _is_possible(problem, engine)):
        return None
    columns = _columns(problem, recipe, engine)
    if columns is None:
        return None
    leading = np.argsort(-inclusion, kind="stable")[:_MOST_FEATURES]
    search = _Search.of(problem, merged, leading)
    kinds = columns.kinds(SHARES)
    found = (
        _add_and_drop(search, engine, kinds)
        if isinstance(engine, GaussianEngine)
        else _thin_out(search, engine, kinds)
    )
    values = found.values - np.log(len(RATIOS) * len(kinds))
    without = merged.models.log_evidence[0] + merged.models.log_prior[0]
    without -= np.log(merged.probability[0])
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
    fitted = np.concatenate([averaged.fitted, found.fitted])
    order = np.argsort(-probability, kind="stable")
    # Effects of a column and of its logarithm need not cancel outside the range.
    straight = np.concatenate([averaged.is_linear, np.zeros(len(found.fits), dtype=np.bool_)])
    return replace(
        averaged,
        features=features,
        models=[models[j] for j in order],
        probability=probability[order],
        fits=[fits[j] for j in order],
        shifts=[np.zeros_like(fits[j].coefficients) for j in order],
        dispersions=[DispersionPosterior.known(fits[j].dispersion) for j in order],
        ranges={**averaged.ranges, **found.ranges},
        fitted=fitted[order],
        straight=straight[order],
    )


def _table(problem: Problem) -> Table:
    return problem.table if problem.whole is None else problem.whole


def _is_possible(problem: Problem, engine: _Engine) -> bool:
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


def _columns(problem: Problem, recipe: Recipe, engine: _Engine) -> RemainderColumns | None:
    """The columns of the remainder, without bends if that were too many; none if still so."""
    table = _table(problem)
    if not (table.n_columns > 1 and np.all(np.ptp(table.values, axis=0) > 0)):
        return None

    def is_small(size: int) -> bool:
        if isinstance(engine, GaussianEngine):
            n = table.n_rows if engine.weights is None else int(engine.weights.sum())
            return size <= _MOST_COLUMNS and n * size <= _MOST_NUMBERS
        if isinstance(engine, JointEngine):
            size *= engine.joint.n_predictors
        return size <= _MOST_COLUMNS and table.n_rows * size**2 <= _MOST_PRODUCTS

    if not is_small(table.n_columns):
        return None
    columns = RemainderColumns.of(table, recipe)
    return columns if is_small(len(columns.features)) else columns.take(~columns.bent)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Models over a few features, beside the remainder.

    Parameters
    ----------
    features, columns, log_prior
        The leading features of the posterior, their columns, and terms of the prior.
    best
        Which of them are in the best model.
    """

    problem: Problem
    features: tuple[Feature, ...]
    columns: Matrix
    log_prior: FloatArray
    best: Mask

    @classmethod
    def of(cls, problem: Problem, merged: Merged, leading: IntArray) -> "_Search":
        """Models over these features of the posterior."""
        features = [merged.features[j] for j in leading]
        terms = [problem.model_prior.feature_log_prior(feature) for feature in features]
        return cls(
            problem,
            tuple(features),
            evaluate(features, problem.table)[0],
            np.array(terms, dtype=float),
            np.isin(leading, merged.models.features_of(0)),
        )

    def model_prior(self, masks: Masks) -> FloatArray:
        """Log prior of models; minus infinity for those that are too large."""
        sizes = masks.sum(axis=1)
        prior = masks @ self.log_prior + self.problem.model_prior.size_log_prior(sizes)
        most = min(_MOST_IN_MODEL, self.problem.max_model_size, len(self.features))
        return np.where(sizes <= most, prior, -np.inf)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Models with a remainder: features, kind and ratio of the remainder, log posterior."""

    kinds: Sequence[tuple[RemainderColumns, Remainder | GlmRemainder | JointRemainder]]
    masks: Masks
    kind: IntArray
    ratio: FloatArray
    values: FloatArray

    def take(self, order: IntArray) -> "_Found":
        """Some of them."""
        return replace(
            self,
            masks=self.masks[order],
            kind=self.kind[order],
            ratio=self.ratio[order],
            values=self.values[order],
        )


def _add_and_drop(
    search: _Search, engine: GaussianEngine, kinds: Sequence[RemainderColumns]
) -> _Found:
    """Gaussian models: climb from nothing, for every remainder; neighbours count, too."""
    remainders = [(own, Remainder.of(engine, own.values, own.units)) for own in kinds]
    parts = []
    for kind, (_, remainder) in enumerate(remainders):
        for ratio in RATIOS:
            masks, values = _climb(search, remainder, ratio)
            parts.append((masks, np.full(len(masks), kind), np.full(len(masks), ratio), values))
    return _Found(remainders, *(np.concatenate(own) for own in zip(*parts, strict=True)))


def _climb(search: _Search, remainder: Remainder, ratio: float) -> tuple[Masks, FloatArray]:
    """The models that are met, and their log posteriors."""
    size = len(search.features)
    prepared = remainder.prepare(search.columns, ratio)

    def score(masks: Masks) -> FloatArray:
        return remainder.log_evidence(prepared, masks, ratio) + search.model_prior(masks)

    here = np.zeros((1, size), dtype=np.bool_)
    masks, values = [here], [score(here)]
    best = float(values[0][0])
    while size:
        near = here ^ np.eye(size, dtype=np.bool_)
        found = score(near)
        masks.append(near)
        values.append(found)
        if not found.max() > best:
            break
        best, here = float(found.max()), near[[int(found.argmax())]]
    unique, first = np.unique(np.concatenate(masks), axis=0, return_index=True)
    return unique, np.concatenate(values)[first]


def _thin_out(
    search: _Search, engine: GlmEngine | JointEngine, kinds: Sequence[RemainderColumns]
) -> _Found:
    """Other families: none of the features, those of the best model, and fewer.

    The best model loses the feature of the smallest Wald statistic, one after the other, beside the
    remainder that suits it best; the most probable of these models is tried beside all others.
    """
    remainders = [
        (
            own,
            GlmRemainder.of(engine, own.values, own.units)
            if isinstance(engine, GlmEngine)
            else JointRemainder.of(engine, own.values, own.units),
        )
        for own in kinds
    ]
    rows: list[tuple[Mask, int, float, float]] = []

    def visit(mask: Mask) -> tuple[int, float]:
        """Beside every remainder; returns the one that suits this model best."""
        prior = float(search.model_prior(mask[None])[0])
        first = len(rows)
        for kind, (_, remainder) in enumerate(remainders):
            start = None
            for ratio in RATIOS:
                mode = remainder.find_mode(search.columns[:, mask], ratio, start)
                start = mode.parameters if np.isfinite(mode.log_evidence) else None
                rows.append((mask, kind, ratio, mode.log_evidence + prior))
        _, kind, ratio, _ = max(rows[first:], key=lambda row: row[3])
        return kind, ratio

    visit(np.zeros(len(search.features), dtype=np.bool_))
    if search.best.any():
        kind, ratio = visit(search.best)
        fewer = _fewer_features(search, remainders[kind][1], ratio)
        if fewer is not None and not np.array_equal(fewer, search.best):
            visit(fewer)
    return _Found(
        remainders,
        np.array([mask for mask, *_ in rows], dtype=np.bool_),
        np.array([kind for _, kind, *_ in rows], dtype=np.int64),
        np.array([ratio for *_, ratio, _ in rows]),
        np.array([value for *_, value in rows]),
    )


def _fewer_features(
    search: _Search, remainder: GlmRemainder | JointRemainder, ratio: float
) -> Mask | None:
    """The most probable of the models that lose one feature after the other."""
    path: list[tuple[float, Mask]] = []
    here = search.best
    while here.any():
        mode = remainder.find_mode(search.columns[:, here], ratio)
        if not np.isfinite(mode.log_evidence):
            break
        path.append((mode.log_evidence + float(search.model_prior(here[None])[0]), here))
        here = here.copy()
        here[np.flatnonzero(here)[int(mode.wald.argmin())]] = False
    return max(path, key=lambda item: item[0])[1] if path else None


def _fit_models(
    search: _Search, found: _Found, probability: FloatArray, link: Link | None
) -> RemainderModels | None:
    """Fit these models; one that cannot be fitted leaves its probability to the others."""
    used = [found.kinds[kind][0] for kind in np.unique(found.kind)]
    everything = [feature for columns in used for feature in columns.features]
    features = list({feature.key: feature for feature in everything}.values())
    position = {feature.key: j for j, feature in enumerate(features)}
    for feature in search.features:
        if feature.key not in position:
            position[feature.key] = len(features)
            features.append(feature)
    own = np.array([position[feature.key] for feature in search.features], dtype=np.int64)
    models, fits, fitted = [], [], np.zeros(probability.size, dtype=np.bool_)
    for row, (mask, kind, ratio) in enumerate(
        zip(found.masks, found.kind, found.ratio, strict=True)
    ):
        columns, remainder = found.kinds[kind]
        places = np.array([position[f.key] for f in columns.features], dtype=np.int64)
        members = np.union1d(places, own[mask])
        if isinstance(remainder, JointRemainder):
            into = np.searchsorted(members, np.concatenate([own[mask], places]))
            fit = remainder.fit(search.columns[:, mask], float(ratio), into)
        else:
            found_fit = remainder.fit(search.columns[:, mask], float(ratio))
            fit = _in_features(remainder, found_fit, own[mask], places, members)
        fitted[row] = fit.status is not Status.NOT_CONVERGED
        if fitted[row]:
            models.append(members)
            fits.append(fit)
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
        ranges=training_ranges(features, table),
        fitted=fitted_ranges(ones, columns, models, fits, link),
    )


def _in_features(
    remainder: Remainder | GlmRemainder,
    found: RemainderFit,
    own: IntArray,
    places: IntArray,
    members: IntArray,
) -> ModelFit:
    """The fit in terms of all features of a model.

    Parameters
    ----------
    own, places, members
        Positions of the model's features, of the columns of the remainder, and of both.
    """
    n_own, n_places = 1 + own.size, places.size
    change = np.zeros((1 + members.size, n_own + n_places))
    change[0, 0] = 1.0
    change[1 + np.searchsorted(members, own), np.arange(1, n_own)] = 1.0
    effects = n_own + np.arange(n_places)
    change[0, effects] = -remainder.means / remainder.units
    change[1 + np.searchsorted(members, places), effects] += 1.0 / remainder.units
    covariance = np.block(
        [[found.fit.covariance, found.shared.T], [found.shared, found.effects_covariance]]
    )
    coefficients = np.concatenate([found.fit.coefficients, found.effects])
    return replace(
        found.fit,
        coefficients=change @ coefficients,
        covariance=change @ covariance @ change.T,
    )
