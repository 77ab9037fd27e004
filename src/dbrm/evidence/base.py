"""What every evidence engine offers: log p(y | model), one population at a time.

An engine holds the response and everything that stays the same during a run. It
prepares a population of columns once and then answers for many masks over it.
It sees columns and masks, never features, priors over models or the search.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.joint.fit import JointFit
from dbrm.evidence.latent.fit import LatentFit
from dbrm.evidence.predictor import AbstractPredictorLikelihood
from dbrm.status import Status

__all__ = [
    "AbstractEngine",
    "AbstractExpandable",
    "AbstractPrepared",
    "CountCallback",
    "ModelFit",
    "ScoreTest",
]

# Told how many of how many models are done.
CountCallback = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ModelFit:
    r"""One model fitted with care, for reports and predictions.

    Parameters
    ----------
    log_evidence, log_likelihood
        :math:`\log p(y \mid M)` and the maximised log likelihood.
    coefficients
        Posterior location of :math:`(\beta_0, \beta_1, \ldots)`, intercept first.
    covariance
        Posterior scale matrix of the coefficients, *without* the factor `dispersion`.
    dispersion
        Posterior location of the dispersion :math:`\phi` (:math:`\sigma^2` for a
        Gaussian response, one where the family has none).
    degrees_of_freedom
        Of the t distribution of the coefficients; ``inf`` means Gaussian.
    latent
        Posterior of the latent effects of the model, ``None`` if it has none.
    joint
        All parameters of a model with ancillary ones or several linear predictors, of which
        `coefficients` are the first; ``None`` for a generalised linear model.
    """

    log_evidence: float
    log_likelihood: float
    coefficients: FloatArray
    covariance: Matrix
    dispersion: float
    degrees_of_freedom: float
    status: Status
    latent: LatentFit | None = None
    joint: JointFit | None = None

    @property
    def has_intercept(self) -> bool:
        """Whether the model has an intercept; otherwise it is zero and certain."""
        return bool(self.coefficients[0] != 0.0 or self.covariance[0, 0] != 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTest:
    r"""Log likelihood around one model, to second order: where to look, never what is reported.

    With score :math:`s_i` and information :math:`w_i` of row :math:`i` at the model's linear
    predictor :math:`\eta`, a column :math:`x` beside the model explains the share

    .. math:: \frac{(\sum_i s_i x_i)^2}{S \sum_i w_i \tilde x_i^2}

    of what is left, :math:`\tilde x` being what the model's columns leave of it.

    Parameters
    ----------
    residual
        The scores :math:`s_i`: what a candidate should correlate with.
    change
        ``change(left, extra)``: expected change of the log evidence from this model to one with
        `extra` more columns, where `left` is its residual sum of squares as a multiple of this
        model's.
    total
        :math:`S`, for a Gaussian response the residual sum of squares.
    predictor
        :math:`\eta_i` without the offset: a combination of the model's columns.
    information
        The :math:`w_i`; ``None`` if they are all one.
    """

    residual: FloatArray
    change: Callable[[FloatArray, int], FloatArray]
    total: float
    predictor: FloatArray
    information: FloatArray | None = None

    def gain(self, share: FloatArray) -> FloatArray:
        """Expected gain in log evidence of a column that explains this share of the residual."""
        return self.change(1.0 - share, 1)


class AbstractPrepared(ABC):
    """A population of columns, ready for many evaluations."""

    #: Largest population whose ``2**size`` models are cheaper to enumerate than to search.
    enumeration_limit: int
    #: Models evaluated at a time where all are.
    chunk: int = 512

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of columns of the population."""

    @abstractmethod
    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        """Log evidence and status of each mask (rows); ``-inf`` where there is none."""

    def log_evidence_of_all(
        self, max_size: int, report: CountCallback | None = None
    ) -> tuple[FloatArray, StatusArray]:
        """Log evidence of all ``2**size`` masks; bit ``j`` of the index is column ``j``.

        Masks larger than `max_size` get ``-inf`` without being evaluated. `report` is told
        how many of how many models are done.
        """
        masks = unpack_index(np.arange(1 << self.size), self.size)
        values = np.full(len(masks), -np.inf)
        statuses = np.zeros(len(masks), dtype=np.uint8)
        allowed = np.flatnonzero(masks.sum(axis=1) <= max_size)
        for start in range(0, allowed.size, self.chunk):
            chunk = allowed[start : start + self.chunk]
            values[chunk], statuses[chunk] = self.log_evidence(masks[chunk])
            if report is not None:
                report(min(start + self.chunk, allowed.size), allowed.size)
        return values, statuses

    @property
    @abstractmethod
    def context(self) -> Any:
        """What the search evaluates masks on: arrays of a compiled engine, or the population."""


class AbstractExpandable(AbstractPrepared):
    """A population whose models can be compared by one expansion, where each takes a fit."""

    #: Largest population of which `approximate_all` is affordable.
    expansion_limit: int
    #: Most models of a population that are fitted.
    max_fits: int = 2_000

    @abstractmethod
    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        """Log evidence of all subsets up to a constant, most accurate near `centre`."""


class AbstractEngine(ABC):
    """Log evidence of models for one response, family and coefficient prior."""

    #: Whether `log_evidence` from the rows is more accurate than inside a population.
    refines: bool = False
    #: Number of latent effects: the last components of every mask.
    n_latent: int = 0
    #: Platform of JAX on which models are evaluated; ``None`` for compiled code on the CPU.
    platform: str | None = None
    #: Largest population that is searched beside settled columns; zero where there are none.
    settling_limit: int = 0

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows of the response."""

    @property
    def has_row_terms(self) -> bool:
        """Whether the rows say more of a model than a population does."""
        return False

    @property
    def row_terms_at_most(self) -> float:
        """Nats that a model may gain over others by what its rows say, as far as that is common."""
        return 0.0

    def take(self, rows: IntArray) -> "AbstractEngine | None":  # noqa: ARG002
        """The same engine on some of the rows; ``None`` where it needs all of them."""
        return None

    @abstractmethod
    def prepare(self, columns: Matrix) -> AbstractPrepared:
        """Do once what all masks over these columns share."""

    def prepare_beside(self, columns: Matrix, n_settled: int) -> AbstractPrepared:
        """As `prepare`, but the first `n_settled` columns are in every model, not in the masks."""
        msg = f"{type(self).__name__} does not search beside settled columns."
        raise NotImplementedError(msg)

    @abstractmethod
    def log_evidence(self, columns: Matrix) -> tuple[float, Status]:
        """Log evidence of the model with exactly these columns, by the most accurate route."""

    def log_evidence_of(self, columns: Matrix, masks: Masks) -> tuple[FloatArray, StatusArray]:
        """Log evidence of several models over the same columns, as `log_evidence` of each."""
        pairs = [self.log_evidence(columns[:, mask]) for mask in masks]
        values = np.array([value for value, _ in pairs], dtype=np.float64)
        return values, np.array([status for _, status in pairs], dtype=np.uint8)

    @abstractmethod
    def fit(self, columns: Matrix) -> ModelFit:
        """Fit the model with exactly these columns, for reports and predictions."""

    @abstractmethod
    def fit_many(self, columns: Matrix, masks: Masks) -> list[ModelFit]:
        """Fit many models over the same columns, for averaging.

        As `fit`, except that a status may be a suspicion where its proof would take long.
        """

    @abstractmethod
    def project(self, columns: Matrix) -> FloatArray:
        r"""Maximum likelihood weights :math:`(\alpha_0, \alpha)` of a projection.

        Strategy 1 of the paper (Sec. 2.2): a plain fit of the family's own
        model to the children, the outer function plays no part.
        """

    @abstractmethod
    def likelihood(self) -> AbstractPredictorLikelihood:
        r"""The likelihood as a function of :math:`\eta`; always-in columns play no part."""

    @abstractmethod
    def score_test(self, columns: Matrix) -> "ScoreTest":
        """Prepare the screening of candidates to the model with these columns."""
