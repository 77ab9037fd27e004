r"""Evidence of models whose masks choose columns and latent effects together.

The last components of a mask are the indicators :math:`\lambda_k` of the paper's extended model
(Sec. 2.4). Models without effects are left to the engine for columns; a Gaussian response is
the exception: its error variance needs a proper prior once an effect could explain every
row, and the same one in all models. In units of the response's standard deviation, the error's
is exponential with mean one.

An unknown dispersion of other families is profiled, as without effects.

Models without an intercept, and those whose always-in columns have normal priors of their own,
are evaluated here too, with or without effects: such a coefficient is integrated out like an
effect with one node and a known precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log, pi
from typing import final

import numpy as np

from dbrm._kernels.glm import NORMAL, TABLE
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence.base import AbstractEngine, ModelFit, ScoreTest
from dbrm.evidence.coefficient_priors.base import CoefficientPrior, GaussianShape
from dbrm.evidence.coefficient_priors.classical import AIC, BIC, KnownVariance
from dbrm.evidence.coefficient_priors.radial import NormalLogGamma
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.glm_prior import GlmPrior, glm_prior
from dbrm.evidence.hyper_integration import Integral, find_mode, integrate
from dbrm.evidence.latent.columns import independent, standardise
from dbrm.evidence.latent.hyperpriors import ExponentialDeviation
from dbrm.evidence.latent.layout import Layout
from dbrm.evidence.latent.nodes import BoundEffect
from dbrm.evidence.latent_anchor import Anchor, Key, combine, parts_present
from dbrm.evidence.latent_population import Evaluation, LatentPopulation, Memory
from dbrm.evidence.links import Link
from dbrm.evidence.nested_laplace import Conditional, Noise, Point, Response
from dbrm.evidence.predictor import AbstractPredictorLikelihood
from dbrm.evidence.score import glm_closed_form
from dbrm.status import Status

__all__ = ["LatentEngine", "fit_with", "log_evidence_with"]

# Log precisions tried first for every effect.
_FIRST_LOOK = (-3.0, 0.0, 3.0, 6.0)
# Precision of an intercept that is zero.
_NO_INTERCEPT = 1e15


@final
@dataclass(frozen=True, eq=False)
class LatentEngine(AbstractEngine):
    """Log evidence by nested Laplace approximation.

    Parameters
    ----------
    base
        The engine for columns alone: projections, screening, models without effects.
    response, weights, trials, offset
        As for the base, every one of them given.
    effects
        The latent effects with their nodes.
    always
        Columns that every model contains besides the intercept.
    always_priors
        For each of them mean and standard deviation of a normal prior, or ``None`` for the
        common prior of the coefficients.
    intercept
        Whether models have an intercept.
    most, effect_log_prior
        Most effects in one model, and the log prior factor of each: says which are in reach.
    known, sketched
        Models evaluated, or only approximated, so far: values depend on the model alone.
    """

    base: AbstractEngine
    response: Column
    prior: CoefficientPrior
    family: CompiledFamily
    link: Link
    weights: Column
    trials: Column
    offset: Column
    effects: tuple[BoundEffect, ...]
    always: Matrix
    most: int
    effect_log_prior: FloatArray
    always_priors: tuple[tuple[float, float] | None, ...] = ()
    intercept: bool = True
    known: Memory = field(default_factory=Memory, repr=False)
    sketched: Memory = field(default_factory=Memory, repr=False)
    _layouts: dict[Key, Layout] = field(default_factory=dict, repr=False)
    _anchors: dict[Key, Anchor] = field(default_factory=dict, repr=False)
    _priors: dict[tuple[int, ...], GlmPrior] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        live = self.weights * self.trials > 0
        if np.ptp((self.response / np.maximum(self.trials, 1.0))[live]) == 0.0:
            msg = (
                "y is the same in every row: there is nothing that a latent effect could explain. "
                "Leave latent= out, or check the response."
            )
            raise InvalidDataError(msg)
        if self.exact and any(bound.effect.column is None for bound in self.effects):
            msg = (
                "An independent effect in every row is the error of a Gaussian response itself. "
                "Leave IID() out, or give it a column whose values several rows share."
            )
            raise InvalidSettingError(msg)
        kept = independent(self.always, intercept=self.intercept)
        special = not self.intercept or any(self.always_priors)
        if special and len(kept) < self.always.shape[1]:
            msg = (
                "The columns in always= depend on each other, or on the intercept; with priors of "
                "their own, or without an intercept, each must add something: leave one out."
            )
            raise InvalidSettingError(msg)

    @property
    def n_latent(self) -> int:  # type: ignore[override]
        return len(self.effects)

    @property
    def n_rows(self) -> int:
        return int(self.response.size)

    @property
    def exact(self) -> bool:
        """Whether the response is Gaussian with identity link."""
        return self.link.name == self.family.exact_link

    @cached_property
    def _prior_mean(self) -> Column:
        """Linear predictor at the means of the priors of always-in columns."""
        return np.asarray(self.always @ self.prior_means)

    @property
    def prior_means(self) -> FloatArray:
        """Prior mean of each always-in column; zero under the common prior."""
        means = [0.0 if prior is None else prior[0] for prior in self.always_priors]
        return np.array(means) if means else np.zeros(self.always.shape[1])

    @property
    def _offset_response(self) -> Column:
        return self.response - self.offset - self._prior_mean

    @cached_property
    def unit(self) -> float:
        """What a Gaussian response is divided by: its standard deviation."""
        if not self.exact:
            return 1.0
        y = self._offset_response
        centre = float(np.average(y, weights=self.weights)) if self.intercept else 0.0
        return float(np.sqrt(np.average((y - centre) ** 2, weights=self.weights))) or 1.0

    @cached_property
    def rows(self) -> Response:
        """The rows as the kernels take them."""
        y, offset = self.response, self.offset + self._prior_mean
        if self.exact:
            y, offset = self._offset_response / self.unit, np.zeros(self.n_rows)
        mean = y / np.maximum(self.trials, 1.0)
        live = self.weights * self.trials > 0
        constants = self.family.constants(
            y[live], self.weights[live], self.trials[live], mean[live]
        )
        return Response(
            self.family.code,
            int(self.link.code or 0),
            np.ascontiguousarray(mean),
            np.ascontiguousarray(self.weights * self.trials),
            np.ascontiguousarray(offset),
            constants,
        )

    @cached_property
    def n(self) -> float:
        """Number of observations, weights and trials counted."""
        return float((self.weights * self.trials).sum())

    @cached_property
    def noise(self) -> Noise:
        """How the dispersion is treated."""
        if isinstance(self.prior, KnownVariance):
            return Noise(log(self.unit**2 / self.prior.variance))
        if not self.family.has_dispersion:
            return Noise()
        if self.family.given_dispersion is not None:
            return Noise(log(self.unit**2 / self.family.given_dispersion))
        if self.exact and not isinstance(self.prior, (BIC, AIC)):
            return Noise(None, ExponentialDeviation())
        return Noise(None)

    @property
    def complete(self) -> bool:
        """Whether models without effects are evaluated here too."""
        return self.exact or not self.intercept or any(self.always_priors)

    def prepare(self, columns: Matrix) -> LatentPopulation:
        return LatentPopulation(self, np.asarray(columns, dtype=np.float64))

    def log_evidence(self, columns: Matrix) -> tuple[float, Status]:
        """Of the model with exactly these columns and no effect."""
        return self.log_evidence_with(columns, np.zeros(self.n_latent, dtype=np.bool_))

    def log_evidence_with(self, columns: Matrix, latent: Mask) -> tuple[float, Status]:
        """Of the model with exactly these columns and these effects."""
        population = self.prepare(columns)
        mask = np.concatenate([np.ones(columns.shape[1], np.bool_), latent])
        return population.evaluate(mask, thorough=True)

    def fit(self, columns: Matrix) -> ModelFit:
        return self.fit_with(columns, np.zeros(self.n_latent, dtype=np.bool_))

    def fit_with(self, columns: Matrix, latent: Mask) -> ModelFit:
        """Fit the model with exactly these columns and these effects."""
        masks = np.concatenate([np.ones(columns.shape[1], np.bool_), latent])[None]
        return self.fit_many(columns, masks)[0]

    def fit_many(self, columns: Matrix, masks: Masks) -> list[ModelFit]:
        """Fit many models; masks are over columns and effects."""
        size = columns.shape[1]
        fits: dict[int, ModelFit] = {}
        plain = [row for row, mask in enumerate(masks) if not mask[size:].any()]
        if plain and not self.complete:
            found = self.base.fit_many(columns, masks[plain][:, :size])
            fits.update(zip(plain, found, strict=True))
        population = self.prepare(columns)
        for row, mask in enumerate(masks):
            if row not in fits:
                fits[row] = population.fit(mask)
        return [fits[row] for row in range(len(masks))]

    def project(self, columns: Matrix) -> FloatArray:
        return self.base.project(columns)

    def likelihood(self) -> AbstractPredictorLikelihood:
        return self.base.likelihood()

    def score_test(self, columns: Matrix) -> ScoreTest:
        return self.base.score_test(columns)

    def layout(self, key: Key) -> Layout:
        """Where the variables of these effects stand."""
        if key not in self._layouts:
            self._layouts[key] = Layout([self.effects[k] for k in key], self.n_rows)
        return self._layouts[key]

    @cached_property
    def always_columns(self) -> tuple[Matrix, FloatArray, FloatArray]:
        """Always-in columns, standardised, with what was subtracted and divided by."""
        kept = independent(self.always, intercept=self.intercept)
        return standardise(self.always[:, kept], self.rows.total, centre=self.intercept)

    @cached_property
    def own_precision(self) -> FloatArray:
        """Precisions of intercept and always-in columns in the units of the kernels."""
        _, _, scale = self.always_columns
        precision = np.zeros(1 + scale.size)
        precision[0] = 0.0 if self.intercept else _NO_INTERCEPT
        for j, prior in enumerate(self.always_priors):
            if prior is not None:
                precision[1 + j] = (self.unit / (scale[j] * prior[1])) ** 2
        return precision

    def conditional(self, key: Key, columns: Matrix, scale: FloatArray) -> Conditional:
        """A model of these effects and standardised columns, besides the always-in ones."""
        always, _, units = self.always_columns
        own = self.own_precision
        size = always.shape[1] + columns.shape[1] - int(np.count_nonzero(own[1:]))
        constant = 0.0 if self.intercept else float(self.prior_of_sizes((0,)).table.constant[0])
        return Conditional(
            self.rows,
            self.layout(key),
            np.ascontiguousarray(np.hstack([always, columns])),
            np.concatenate([units, scale]),
            self.prior_of_sizes((size,)),
            0,
            self.noise,
            own,
            constant,
        )

    def prior_of_sizes(self, sizes: tuple[int, ...]) -> GlmPrior:
        """The coefficient prior for models with these numbers of slopes, a row of a table each."""
        if sizes not in self._priors:
            self._priors[sizes] = self._prior(np.array(sizes))
        return self._priors[sizes]

    def _prior(self, sizes: IntArray) -> GlmPrior:
        if isinstance(self.prior, KnownVariance):
            shape = GaussianShape(self.n, 1.0, 1e-12)
            constant = self.prior.score_table(sizes, shape).constant
            constant = constant + 0.5 * self.n * log(2 * pi * self.prior.variance)
            return GlmPrior(TABLE, glm_closed_form(constant), 1.0, 0.0, 0.0)
        if isinstance(self.prior, NormalLogGamma):
            # The precision is integrated out where it matters; one is good enough elsewhere.
            return GlmPrior(NORMAL, glm_closed_form(np.zeros(sizes.size)), 1.0, 1.0, 0.0)
        return glm_prior(self.prior, sizes, self.n, dispersed=self.noise.free)

    @cached_property
    def constant(self) -> float:
        """What does not depend on the model: the unit, and the price of a profiled dispersion."""
        value = -self.n * log(self.unit)
        if self.noise.profiled:
            value += self.prior_of_sizes((0,)).dispersion
        return value

    def integral(self, model: Conditional, start: Point, like: Matrix | None = None) -> Integral:
        """Integrate over the hyperparameters; a dispersion without prior is profiled.

        `like` are the scaled eigenvectors of their covariance in a similar model.
        """

        def evaluate(theta: FloatArray, near: Point) -> Point:
            return model.at(theta, (near.delta, near.beta))

        if not self.noise.profiled:
            return integrate(evaluate, start, like)
        centre, _ = find_mode(evaluate, start, like=like)
        fixed = centre.theta[:1]

        def given(psi: FloatArray, near: Point) -> Point:
            point = model.at(np.concatenate([fixed, psi]), (near.delta, near.beta))
            return _without_noise(point)

        inner = integrate(given, _without_noise(centre))
        points = [_with_noise(point, fixed) for point in inner.points]
        return Integral(inner.log_value, points, inner.log_weights)

    def evidence(self, model: Conditional, start: Point, like: Matrix | None = None) -> Evaluation:
        """Log evidence from a start near the mode."""
        if start.value == -np.inf:
            return -np.inf, start.status, start.theta
        found = self.integral(model, start, like)
        mode = found.points[0]
        return found.log_value + self.constant, mode.status, mode.theta

    def anchor(self, key: Key) -> Anchor:
        """Mode of the hyperparameters in the model without columns."""
        if key not in self._anchors:
            model = self.conditional(key, np.empty((self.n_rows, 0)), np.empty(0))
            looks = [model.at(theta) for theta in self._first_looks(key)]
            starts = [max(looks, key=lambda point: point.value)]
            if len(key) == 1:
                noise = [1.0] if self.noise.free else []
                parts = parts_present(self.effects[key[0]].effect)
                starts += [
                    model.at(np.concatenate([noise, part])) for part in parts if len(parts) > 2
                ]
            self._anchors[key] = Anchor.find_among(model, starts)
        return self._anchors[key]

    def start(self, model: Conditional, key: Key) -> Point:
        """A point from which the mode of the hyperparameters of a model can be searched."""
        looks = [self.anchor(key).point.theta]
        if len(key) > 1:
            singles = [self.anchor((k,)).point.theta for k in key]
            looks += combine(singles, int(self.noise.free))[1:]
        best = self.look(model, key, looks)
        height = best.value
        for theta, volume in self.anchor(key).others:
            point = self.look(model, key, [theta])
            if point.value + volume > height:
                best, height = point, point.value + volume
        return best

    def look(self, model: Conditional, key: Key, thetas: Sequence[FloatArray]) -> Point:
        """The best of a model at some values of the hyperparameters."""
        variables = self.anchor(key).variables(model, self.always_columns[0].shape[1])
        looks = [model.at(theta, variables) for theta in thetas]
        return max(looks, key=lambda point: point.value)

    def _first_looks(self, key: Key) -> list[FloatArray]:
        """Starting values: a scan for a single effect, the single effects' modes for several."""
        noise = [0.0] if self.noise.free else []
        if len(key) > 1:
            return combine([self.anchor((k,)).point.theta for k in key], len(noise))
        if not key:
            return [np.array(noise)]
        effect, looks = self.effects[key[0]].effect, []
        for level in _FIRST_LOOK:
            first = np.array(effect.start, dtype=np.float64)
            first[0] = level
            looks.append(np.concatenate([noise, first]))
        return looks


def log_evidence_with(
    engine: AbstractEngine, columns: Matrix, effects: Mask
) -> tuple[float, Status]:
    """Log evidence of the model with exactly these columns and latent effects, if any."""
    if isinstance(engine, LatentEngine):
        return engine.log_evidence_with(columns, effects)
    return engine.log_evidence(columns)


def fit_with(engine: AbstractEngine, columns: Matrix, effects: Mask) -> ModelFit:
    """Fit the model with exactly these columns and latent effects, if any."""
    if isinstance(engine, LatentEngine):
        return engine.fit_with(columns, effects)
    return engine.fit(columns)


def _without_noise(point: Point) -> Point:
    return replace(point, theta=point.theta[1:])


def _with_noise(point: Point, noise: FloatArray) -> Point:
    return replace(point, theta=np.concatenate([noise, point.theta]))
