r"""The likelihood as a function of the linear predictor, one value per row.

For whoever shapes columns rather than coefficients, such as the projections of the
search: value, slope and curvature of :math:`\ell(\eta)`, with an unknown dispersion
profiled out. Sees neither columns nor coefficients.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._kernels.glm_dispersion import log_likelihood, profile_shape
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, NEGATIVE_BINOMIAL, linearise
from dbrm._typing import Column
from dbrm.evidence.families import AbstractFamily, CompiledFamily, Family
from dbrm.evidence.links import Link

__all__ = ["AbstractPredictorLikelihood", "Slope", "predictor_likelihood"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Slope:
    r"""Log likelihood at one :math:`\eta`, with its derivative and curvature by row.

    Where a mean leaves its domain `value` is ``-inf`` and the rest means nothing. The
    derivative is exact also where the dispersion is profiled (envelope theorem); the
    curvature is the information for a given dispersion.
    """

    value: float
    score: Column
    information: Column


@dataclass(frozen=True, eq=False)
class AbstractPredictorLikelihood(ABC):
    """Rows of one response: ``total`` observations each, with this ``mean`` response."""

    family: AbstractFamily
    link: Link
    response: Column
    weights: Column
    trials: Column
    offset: Column

    @cached_property
    def total(self) -> Column:
        """Number of observations behind each row, trials counted."""
        return np.ascontiguousarray(self.weights * self.trials, dtype=np.float64)

    @cached_property
    def mean(self) -> Column:
        """Mean response of each row."""
        return np.asarray(self.response / np.maximum(self.trials, 1.0), dtype=np.float64)

    @abstractmethod
    def at(self, eta: Column) -> Slope:
        """Value, derivative and curvature at a linear predictor, to which the offset is added."""


def predictor_likelihood(
    family: Family,
    link: Link,
    response: Column,
    *,
    weights: Column | None = None,
    trials: Column | None = None,
    offset: Column | None = None,
) -> AbstractPredictorLikelihood:
    """Compiled where family and link are known to the kernels, plain NumPy otherwise."""

    def filled(values: Column | None, value: float) -> Column:
        # Copies are writable and contiguous: one compiled version is enough.
        if values is None:
            return np.full(response.size, value)
        return np.array(values, dtype=np.float64, order="C")

    compiled = isinstance(family, CompiledFamily) and link.code is not None
    kind = _Compiled if compiled else _Plain
    rows = filled(response, 0.0), filled(weights, 1.0), filled(trials, 1.0), filled(offset, 0.0)
    return kind(family, link, *rows)


@final
@dataclass(frozen=True, eq=False)
class _Compiled(AbstractPredictorLikelihood):
    @cached_property
    def _constants(self):  # type: ignore[no-untyped-def]
        assert isinstance(self.family, CompiledFamily)
        live = self.total > 0
        mean = self.mean[live]
        return self.family.constants(
            self.response[live], self.weights[live], self.trials[live], mean
        )

    @cached_property
    def _given(self) -> float | None:
        given = self.family.given_dispersion
        return None if given is None else 1.0 / given

    def at(self, eta: Column) -> Slope:
        eta = eta + self.offset
        assert isinstance(self.family, CompiledFamily)
        code, link = int(self.family.code), int(self.link.code or 0)
        score, information = np.empty_like(eta), np.empty_like(eta)
        shape = 1.0 if self._given is None else self._given
        if code == NEGATIVE_BINOMIAL and self._given is None:
            shape = self._shape(code, 0.0, eta)
        value = linearise(code, link, shape, self.mean, self.total, eta, score, information)
        if not np.isfinite(value):
            return Slope(-np.inf, score, information)
        if code in (GAUSSIAN, GAMMA):
            shape = self._shape(code, value, eta) if self._given is None else shape
            score *= shape
            information *= shape
        return Slope(float(log_likelihood(code, self._constants, value, shape)), score, information)

    def _shape(self, code: int, value: float, eta: Column) -> float:
        """Best shape (one over the dispersion); always from the same start, to be repeatable."""
        mean = self.link.mean(eta) if code == NEGATIVE_BINOMIAL else eta
        return float(profile_shape(code, self._constants, value, self.mean, self.total, mean, 1.0))


@final
@dataclass(frozen=True, eq=False)
class _Plain(AbstractPredictorLikelihood):
    def at(self, eta: Column) -> Slope:
        eta, family, weights = eta + self.offset, self.family, self.weights
        assert isinstance(family, Family)
        with np.errstate(all="ignore"):
            mean = family.clip_mean(self.link.mean(eta))
            if np.isnan(mean).any():
                return Slope(-np.inf, eta, eta)
            dispersion = family.estimate_dispersion(self.response, mean, weights)
            density, score, information = family.linearise(
                self.link, eta, self.response, dispersion, self.trials
            )
            value = float(np.sum(weights * density))
        return Slope(value if value < np.inf else -np.inf, weights * score, weights * information)
