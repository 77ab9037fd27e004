r"""Models that have a remainder beside their features: where many covariates matter a little.

A model of features either contains what matters or leaves it out. Where many covariates have
weak effects no set of features is sure, each leaves most of them out, and their average
predicts less than the covariates know together. Predictions therefore average over models with
and without a remainder of all covariates (`dbrm.evidence.remainder`), half and half before the
data. Formulas, and the probabilities of features, are those without.

With a remainder, models are subsets of the leading features, found by adding and dropping one
feature at a time, for each of a few ratios :math:`\tau`; every model that was met counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import logsumexp

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import Recipe, Table
from dbrm.evidence import GaussianEngine, ModelFit
from dbrm.evidence.remainder import Remainder
from dbrm.evolution import Problem
from dbrm.features import Feature, Ranges, covariate, evaluate, training_ranges
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.limits import fitted_ranges
from dbrm.posterior.merge import Merged
from dbrm.posterior.prediction import AveragedModels

__all__ = ["RemainderModels", "find_remainder", "with_remainder"]

# Prior ratios of the variances of remainder and noise, equally plausible.
RATIOS = tuple(4.0**k for k in range(-2, 4))
# A remainder less probable than this is left out of the predictions.
LEAST_PROBABILITY = 0.02
# Features that are tried beside the remainder, and those of a model at most.
_MOST_FEATURES, _MOST_IN_MODEL = 30, 20
# Models with a remainder that predictions average over: this share of them, and this number.
_SHARE, _MOST_MODELS = 0.98, 40
# With fewer covariates all of them can be in the formula.
_FEWEST_COVARIATES = 3
# Rows times columns of a table up to which a remainder is looked for, and columns.
_MOST_NUMBERS, _MOST_COLUMNS = 5_000_000, 300


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
    if not (problem.remainder and isinstance(engine, GaussianEngine)):
        return None
    if not (len(recipe.needed) >= _FEWEST_COVARIATES and _is_possible(problem, engine)):
        return None
    table = _table(problem)
    leading = np.argsort(-inclusion, kind="stable")[:_MOST_FEATURES]
    remainder = Remainder.of(engine, table.values, _units(table, recipe))
    search = _Search.of(problem, remainder, [merged.features[j] for j in leading])
    found = [search.run(ratio) for ratio in RATIOS]
    masks = np.concatenate([own for own, _ in found])
    values = np.concatenate([own for _, own in found]) - np.log(len(RATIOS))
    ratios = np.repeat(RATIOS, [len(own) for own, _ in found])
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
    return search.models(
        masks[order], ratios[order].tolist(), probability * share / share.sum(), table
    )


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


def _is_possible(problem: Problem, engine: GaussianEngine) -> bool:
    """Whether nothing was asked for that models with a remainder would not obey."""
    weights, values = engine.weights, _table(problem).values
    n = engine.n_rows if weights is None else float(weights.sum())
    return (
        1 < values.shape[1] <= _MOST_COLUMNS
        and n * values.shape[1] <= _MOST_NUMBERS
        and (weights is None or bool(np.all(weights == np.floor(weights))))
        and problem.out_of_core is None
        and not problem.completed
        and problem.constraints is None
        and not problem.has_heredity_rule
        and not problem.always
        and not problem.grammar.excluded
        and problem.grammar.units is None
        and bool(np.all(np.ptp(values, axis=0) > 0))
    )


def _units(table: Table, recipe: Recipe) -> FloatArray:
    """Units of the columns in which every covariate of the user's table varies alike.

    The levels of a factor have one unit, so that all their effects are alike before the data;
    other columns are standardised.
    """
    units = table.values.std(axis=0)
    place: Mapping[str, int] = {name: j for j, name in enumerate(table.names)}
    for rule in recipe.columns:
        own = [place[name] for name in rule.outputs if name in place]
        if rule.kind == "categorical":
            units[own] = np.sqrt(np.sum(units[own] ** 2))
        else:
            units[own] *= np.sqrt(len(own))
    return np.asarray(units)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Models over a few features, beside the remainder."""

    problem: Problem
    remainder: Remainder
    features: tuple[Feature, ...]
    columns: Matrix
    log_prior: FloatArray

    @classmethod
    def of(cls, problem: Problem, remainder: Remainder, leading: Sequence[Feature]) -> "_Search":
        """Models over the leading features of the posterior."""
        columns = evaluate(leading, problem.table)[0]
        terms = [problem.model_prior.feature_log_prior(feature) for feature in leading]
        return cls(problem, remainder, tuple(leading), columns, np.array(terms, dtype=float))

    def run(self, ratio: float) -> tuple[Masks, FloatArray]:
        """Models and their log posterior, up to a constant: climb from nothing, and neighbours."""
        size = len(self.features)
        prepared = self.remainder.prepare(self.columns, ratio)
        most = min(_MOST_IN_MODEL, self.problem.max_model_size, size)

        def score(masks: Masks) -> FloatArray:
            sizes = masks.sum(axis=1)
            prior = masks @ self.log_prior + self.problem.model_prior.size_log_prior(sizes)
            values = self.remainder.log_evidence(prepared, masks, ratio) + prior
            return np.where(sizes <= most, values, -np.inf)

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

    def models(
        self, masks: Masks, ratios: Sequence[float], probability: FloatArray, table: Table
    ) -> RemainderModels:
        """Fit these models."""
        features: list[Feature] = [*map(covariate, table.names)]
        position = {feature.key: j for j, feature in enumerate(features)}
        for feature in self.features:
            if feature.key not in position:
                position[feature.key] = len(features)
                features.append(feature)
        own = [position[feature.key] for feature in self.features]
        models, fits = [], []
        for mask, ratio in zip(masks, ratios, strict=True):
            members, fit = self._fit(mask, ratio, np.array(own, dtype=np.int64), table.n_columns)
            models.append(members)
            fits.append(fit)
        ones = np.ones((table.n_rows, 1))
        return RemainderModels(
            probability=probability,
            features=tuple(features),
            models=models,
            fits=fits,
            ranges=training_ranges(features, table),
            fitted=fitted_ranges(ones, evaluate(features, table)[0], models, fits, None),
        )

    def _fit(
        self, mask: Mask, ratio: float, own: IntArray, n_covariates: int
    ) -> tuple[IntArray, ModelFit]:
        """Positions of features and covariates, and the fit in terms of both."""
        remainder = self.remainder
        found = remainder.fit(self.columns[:, mask], ratio)
        members = np.union1d(np.arange(n_covariates), own[mask])
        n_own = 1 + int(mask.sum())
        change = np.zeros((1 + members.size, n_own + n_covariates))
        change[0, 0] = 1.0
        change[1 + np.searchsorted(members, own[mask]), np.arange(1, n_own)] = 1.0
        places = n_own + np.arange(n_covariates)
        change[0, places] = -remainder.means / remainder.units
        change[1 + np.arange(n_covariates), places] += 1.0 / remainder.units
        covariance = np.block(
            [[found.fit.covariance, found.shared.T], [found.shared, found.effects_covariance]]
        )
        coefficients = np.concatenate([found.fit.coefficients, found.effects])
        fit = replace(
            found.fit,
            coefficients=change @ coefficients,
            covariance=change @ covariance @ change.T,
        )
        return members, fit
