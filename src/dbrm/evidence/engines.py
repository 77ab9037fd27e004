"""Which engine answers for which family."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from dbrm._typing import Column, FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.data import AbstractRows, Block
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence.base import AbstractEngine, AbstractPrepared, ModelFit, ScoreTest
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.device import choose_platform
from dbrm.evidence.families import (
    FAMILIES,
    AbstractFamily,
    CompiledFamily,
    Family,
    JointFamily,
    find_family,
)
from dbrm.evidence.gaussian import GaussianEngine
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.joint.engine import JointEngine
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.evidence.latent.nodes import BoundEffect
from dbrm.evidence.latent_engine import LatentEngine
from dbrm.evidence.links import Link, find_link
from dbrm.evidence.observations import Observations
from dbrm.evidence.out_of_core import AbstractColumns, AbstractOutOfCoreEngine
from dbrm.evidence.out_of_core.gaussian import OutOfCoreGaussianEngine
from dbrm.evidence.out_of_core.glm import OutOfCoreGlmEngine
from dbrm.evidence.predictor import AbstractPredictorLikelihood
from dbrm.evidence.short_coefficients import ShortCoefficients
from dbrm.evidence.solvers import DampedNewton, PlainIRLS
from dbrm.status import Status

__all__ = [
    "EvidenceFunction",
    "FunctionEngine",
    "Observations",
    "add_latent",
    "build_engine",
    "build_out_of_core",
]

# A user's own log evidence of the model with these columns and an intercept.
EvidenceFunction = Callable[[Matrix, Column], float]
# Links whose inverse takes exponentials, and the largest argument that has one.
_BOUNDED = ("log", "logit", "probit", "cloglog")
_LARGEST_PREDICTOR = 700.0


def build_engine(
    observations: Observations,
    prior: CoefficientPrior,
    *,
    family: AbstractFamily | str = "gaussian",
    link: Link | str | None = None,
    always: Matrix | None = None,
    as_published: bool = False,
    evidence: EvidenceFunction | None = None,
    device: str = "cpu",
    zero_intercept: float = 0.0,
    short_coefficients: ShortCoefficients | None = None,
) -> AbstractEngine:
    """Return the exact engine for Gaussian responses with identity link, Laplace otherwise.

    Parameters
    ----------
    as_published
        Fit by undamped reweighted least squares, 25 iterations, as the paper's scripts did.
    evidence
        A function that replaces the log evidence; the family still serves projections,
        coefficients and predictions.
    device
        Where populations are evaluated: ``"cpu"``, ``"gpu"`` or ``"auto"``.
    zero_intercept
        Prior probability that a Gaussian model has no intercept.
    short_coefficients
        Prior of the digits of the coefficients of a Gaussian model.
    """
    family = find_family(family)
    _check_times(observations, family)
    link = find_link(link or family.default_link)
    if isinstance(family, JointFamily):
        family = family.with_link(link.name)
    _check_offset(observations, link)
    _check_device(device, family)
    if isinstance(family, JointFamily):
        engine: AbstractEngine = JointEngine(observations, prior, family, link, always)
    elif link.name == family.exact_link:
        for name in ("trials", "exposure"):
            if getattr(observations, name) is not None:
                msg = (
                    f"family={family.name!r} has no {name}; leave it out or choose another family."
                )
                raise InvalidDataError(msg)
        engine = GaussianEngine(
            response=observations.response,
            prior=prior,
            weights=observations.weights,
            always=always,
            offset=observations.offset,
            zero_intercept=zero_intercept,
            short_coefficients=short_coefficients,
        )
    else:
        assert isinstance(family, Family)
        engine = GlmEngine(
            response=observations.response,
            prior=prior,
            family=family,
            link=link,
            weights=observations.weights,
            always=always,
            offset=observations.offset,
            trials=observations.trials,
            exposure=observations.exposure,
            solver=PlainIRLS() if as_published else DampedNewton(),
            platform=choose_platform(device, observations.response.size),
        )
    if evidence is None:
        return engine
    if always is not None:
        msg = "evidence= gets the columns of a model and cannot be combined with always=."
        raise InvalidSettingError(msg)
    return FunctionEngine(engine, evidence, observations.response)


def _check_times(observations: Observations, family: AbstractFamily) -> None:
    """Raise for events, entries or strata beside a response that is no survival time."""
    if isinstance(family, SurvivalFamily):
        return
    for name in ("event", "entry", "strata"):
        if getattr(observations, name) is not None:
            able = [key for key, other in FAMILIES.items() if isinstance(other, SurvivalFamily)]
            msg = (
                f"{name}= belongs to survival times, family={' or '.join(map(repr, able))}; "
                f"got family={family.name!r}."
            )
            raise InvalidSettingError(msg)


def _check_device(device: str, family: AbstractFamily) -> None:
    if device == "gpu" and not isinstance(family, CompiledFamily):
        msg = (
            f"device='gpu' has no program for family={family.name!r}; it has for: {_compiled()}. "
            "Leave device= out."
        )
        raise InvalidSettingError(msg)


def _compiled() -> str:
    """The names of the compiled families."""
    return ", ".join(n for n, family in FAMILIES.items() if isinstance(family, CompiledFamily))


def _check_offset(observations: Observations, link: Link) -> None:
    """Raise for an offset beside which the response, or the mean, has no digits."""
    offset, exposure = observations.offset, observations.exposure
    if link.name in _BOUNDED and exposure is not None:
        # Exposures that are not positive are refused by the engine.
        _check_range("exposure", np.log(exposure, where=exposure > 0, out=np.zeros(exposure.size)))
    if offset is None:
        return
    if link.name in _BOUNDED:
        _check_range("offset", offset)
    largest = float(np.max(np.abs(observations.response)))
    beside = float(np.max(np.abs(offset)))
    if link.name == "identity" and 0 < largest < beside * np.finfo(np.float64).eps:
        msg = (
            f"offset is as large as {beside:.3g}, the response only {largest:.3g}: in double "
            "precision nothing is left of the response beside it. Are they in the same unit?"
        )
        raise InvalidDataError(msg)


def _check_range(name: str, predictor: Column) -> None:
    outside = np.abs(predictor) > _LARGEST_PREDICTOR
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        what = "The logarithm of exposure" if name == "exposure" else "offset"
        msg = (
            f"{what} must lie between -{_LARGEST_PREDICTOR:g} and {_LARGEST_PREDICTOR:g}, where "
            f"exp(offset) is a number; got {predictor[row]:.6g} in row {row} (rows count from 0). "
            "An offset is on the scale of the linear predictor: is it a logarithm?"
        )
        raise InvalidDataError(msg)


def build_out_of_core(
    engine: AbstractEngine,
    rows: AbstractRows,
    sample: Block,
    always: AbstractColumns,
    *,
    device: str = "cpu",
) -> AbstractOutOfCoreEngine:
    """The engine for all rows, where `engine` answers for a sample of them."""
    if isinstance(engine, GaussianEngine):
        return OutOfCoreGaussianEngine(rows, sample, engine.prior, always)
    assert isinstance(engine, GlmEngine)
    platform = choose_platform(device, rows.n_rows)
    return OutOfCoreGlmEngine(rows, sample, engine, always, platform)


def add_latent(
    engine: AbstractEngine,
    observations: Observations,
    prior: CoefficientPrior,
    effects: Sequence[BoundEffect],
    *,
    family: AbstractFamily | str,
    link: Link | str | None,
    always: Matrix | None,
    most: int | None = None,
    effect_log_prior: FloatArray | None = None,
    always_priors: Sequence[tuple[float, float] | None] = (),
    intercept: bool = True,
) -> LatentEngine:
    """An engine whose models may have latent effects, at most `most`, of these prior factors.

    Or normal priors of always-in columns, or no intercept. `engine` answers for columns alone.
    """
    asked = "latent=" if effects else "always= with priors" if intercept else "intercept=False"
    family = find_family(family)
    link = find_link(link or family.default_link)
    if isinstance(engine, FunctionEngine):
        msg = f"{asked} needs the evidence of a family and cannot be combined with evidence=."
        raise InvalidSettingError(msg)
    if not isinstance(family, CompiledFamily) or link.code is None:
        msg = (
            f"{asked} works with the families {_compiled()} and the built-in links; "
            f"got family={family.name!r}, link={link.name!r}."
        )
        raise InvalidSettingError(msg)
    n_rows = observations.response.size

    def filled(values: Column | None, value: float) -> Column:
        return np.full(n_rows, value) if values is None else np.asarray(values, dtype=np.float64)

    offset = filled(observations.offset, 0.0)
    if observations.exposure is not None:
        offset = offset + np.log(observations.exposure)
    return LatentEngine(
        base=engine,
        response=observations.response,
        prior=prior,
        family=family,
        link=link,
        weights=filled(observations.weights, 1.0),
        trials=filled(observations.trials, 1.0),
        offset=offset,
        effects=tuple(effects),
        always=np.empty((n_rows, 0)) if always is None else always,
        most=len(effects) if most is None else most,
        effect_log_prior=np.zeros(len(effects)) if effect_log_prior is None else effect_log_prior,
        always_priors=tuple(always_priors),
        intercept=intercept,
    )


@final
@dataclass(frozen=True, eq=False)
class FunctionEngine(AbstractEngine):
    """A user's function ``f(X, y) -> log evidence``; `base` does everything else."""

    base: AbstractEngine
    function: EvidenceFunction
    response: Column

    @property
    def n_rows(self) -> int:
        return self.base.n_rows

    def prepare(self, columns: Matrix) -> "FunctionPopulation":
        return FunctionPopulation(self, np.asarray(columns, dtype=np.float64))

    def log_evidence(self, columns: Matrix) -> tuple[float, Status]:
        value = float(self.function(columns, self.response))
        if np.isnan(value) or value == np.inf:
            return -np.inf, Status.UNDEFINED
        return value, Status.OK if value > -np.inf else Status.UNDEFINED

    def fit(self, columns: Matrix) -> ModelFit:
        return self.base.fit(columns)

    def fit_many(self, columns: Matrix, masks: Masks) -> list[ModelFit]:
        return self.base.fit_many(columns, masks)

    def project(self, columns: Matrix) -> FloatArray:
        return self.base.project(columns)

    def likelihood(self) -> AbstractPredictorLikelihood:
        return self.base.likelihood()

    def score_test(self, columns: Matrix) -> ScoreTest:
        return self.base.score_test(columns)


@final
@dataclass(frozen=True, eq=False)
class FunctionPopulation(AbstractPrepared):
    """Columns on which a user's function is evaluated."""

    engine: FunctionEngine
    columns: Matrix
    enumeration_limit = 8

    @property
    def size(self) -> int:
        return int(self.columns.shape[1])

    def evaluate(self, mask: Mask) -> tuple[float, Status]:
        """Log evidence and status of one mask; the uncompiled search calls this."""
        return self.engine.log_evidence(self.columns[:, mask])

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        pairs = [self.evaluate(mask) for mask in masks]
        values = np.array([value for value, _ in pairs], dtype=np.float64)
        return values, np.array([status for _, status in pairs], dtype=np.uint8)

    @property
    def context(self) -> Self:
        return self
