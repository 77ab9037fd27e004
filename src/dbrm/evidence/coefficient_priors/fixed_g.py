r"""Zellner's g-prior with a fixed or an estimated :math:`g`.

The intercept is flat, :math:`\pi(\sigma^2) = \sigma^{-2}`, and the slopes of centred
columns are :math:`N(0, g\sigma^2 (X_c'X_c)^{-1})`; in a generalised linear model
:math:`N(0, g\,(X_c'\mathrm{diag}(w)X_c)^{-1})` (Li and Clyde 2018). With :math:`f` the
residual fraction and :math:`W` the Wald statistic the log Bayes factors against the
model without columns are

.. math:: \tfrac{n-1-p}{2}\log(1+g) - \tfrac{n-1}{2}\log(1+gf)
    \quad\text{and}\quad -\tfrac p2\log(1+g) - \tfrac{W}{2(1+g)} .
"""

from dataclasses import dataclass
from math import inf, log, log1p, pi
from typing import final

import numpy as np

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import (
    COEFFICIENT_PRIORS,
    CoefficientPrior,
    GaussianShape,
    GaussianSummary,
    log_evidence_of_null,
    where_estimable,
)
from dbrm.evidence.score import (
    NO_PIECES,
    GlmTable,
    ScoreTable,
    closed_form_table,
    glm_closed_form,
)

__all__ = ["EBLocal", "GPrior", "shrunken_summary"]

# The null model of a GLM under a flat intercept: sqrt(2 pi / sum of weights).
GLM_CONSTANT = 0.5 * log(2 * pi)


@final
@COEFFICIENT_PRIORS.register("g-prior", "g")
@dataclass(frozen=True, slots=True)
class GPrior(CoefficientPrior):
    r"""Zellner's g-prior with a fixed :math:`g`.

    Undefined for :math:`p > n - 2`.

    Parameters
    ----------
    g
        A positive number; ``"n"``, the unit information prior; or ``"benchmark"`` (also
        ``"max(n,p^2)"``), :math:`\max(n, k^2)` of Fernandez, Ley and Steel (2001).
    candidates
        The :math:`k` of ``"benchmark"``: the number of columns that models are chosen
        from, not the size of a model. It must be given there, because a search that
        builds its own features has no natural count of them.
    """

    g: float | str = "n"
    candidates: int | None = None
    name = "g-prior"

    def __post_init__(self) -> None:
        if isinstance(self.g, str):
            self._check_rule(self.g)
        elif not 0.0 < self.g < inf:
            msg = f"GPrior needs a positive finite g, 'n' or 'benchmark'; got g={self.g!r}."
            raise InvalidSettingError(msg)

    def _check_rule(self, rule: str) -> None:
        if rule not in ("n", "benchmark", "max(n,p^2)"):
            msg = f"GPrior needs g to be a positive number, 'n' or 'benchmark'; got g={rule!r}."
            raise InvalidSettingError(msg)
        if rule != "n" and (self.candidates is None or self.candidates < 1):
            msg = (
                f"GPrior with g={rule!r} needs candidates, the number of columns that models "
                f"are chosen from; got candidates={self.candidates!r}. Try g='n'."
            )
            raise InvalidSettingError(msg)

    def value_of_g(self, n: float) -> float:
        """The number that `g` stands for with `n` observations."""
        if not isinstance(self.g, str):
            return float(self.g)
        return n if self.g == "n" else max(n, float(self.candidates or 0) ** 2)

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        g = self.value_of_g(shape.n)
        half = 0.5 * (shape.n - 1)
        # log(1 + g f) = log g + log(f + 1/g); the null model has no g at all.
        constant = log_evidence_of_null(shape) + np.where(
            sizes > 0, (half - 0.5 * sizes) * log1p(g) - half * log(g), 0.0
        )
        slope = np.where(sizes > 0, -half, 0.0)
        return closed_form_table(where_estimable(constant, sizes, shape.n), slope, shift=1.0 / g)

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        g = self.value_of_g(shape.n)
        return shrunken_summary(1.0 / (1.0 + g) if size else 0.0, fraction, shape)

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:
        g = self.value_of_g(n)
        constant = GLM_CONSTANT - 0.5 * log1p(g) * sizes.astype(np.float64)
        slope = np.where(sizes > 0, -0.5 / (1.0 + g), 0.0)
        return glm_closed_form(constant, information_slope=-0.5, wald_slope=slope)


@final
@COEFFICIENT_PRIORS.register("eb-local", "eb")
@dataclass(frozen=True, slots=True)
class EBLocal(CoefficientPrior):
    r"""A g-prior whose :math:`g` maximises the evidence of each model by itself.

    :math:`\hat g = \max(F - 1, 0)` with the usual :math:`F = \frac{(1-f)/p}{f/(n-1-p)}`,
    or :math:`\max(W/p - 1, 0)` in a generalised linear model (Hansen and Yu 2003). A
    model whose :math:`F` is below one ties with the null model. Undefined for
    :math:`p > n - 2`.
    """

    name = "eb-local"

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        half = 0.5 * (shape.n - 1)
        p = 0.5 * sizes.astype(np.float64)
        rest = np.maximum(half - p, 0.0)
        # Above F = 1 the plug-in score is -(p/2) log(1 - f) - ((n-1-p)/2) log f + const.
        gain = _xlogx(rest) + _xlogx(p) - _xlogx(np.full(sizes.size, half))
        return ScoreTable(
            constant=where_estimable(log_evidence_of_null(shape) + gain, sizes, shape.n),
            log_slope=np.where(sizes > 0, -rest, 0.0),
            complement_slope=-p,
            shift=0.0,
            linear=0.0,
            ceiling=np.where(rest > 0, rest / max(half, 0.5), 1.0),
            pieces=NO_PIECES,
            scale=1.0,
            inverse_width=1.0,
        )

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        if size == 0:
            return shrunken_summary(0.0, fraction, shape)
        rest = max(shape.n - shape.of_mean - size, 0.0)
        ratio = fraction * size / max((1.0 - fraction) * rest, fraction * size)
        return shrunken_summary(ratio, fraction, shape)

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:  # noqa: ARG002
        p = 0.5 * sizes.astype(np.float64)
        zeros = np.zeros(sizes.size)
        return GlmTable(
            constant=GLM_CONSTANT + _xlogx(p) + p * (log(2.0) - 1.0),
            information_slope=-0.5,
            wald_slope=zeros,
            log_wald_slope=-p,
            bend=sizes.astype(np.float64),
            pieces=NO_PIECES,
            inverse_width=1.0,
        )


def shrunken_summary(taken: float, fraction: float, shape: GaussianShape) -> GaussianSummary:
    r"""Summary of a model whose least-squares slopes are multiplied by :math:`s = 1 - u`.

    A :math:`t_{n-1}` with variance :math:`\mathrm{TSS}(u + s f)/(n-1)`, where :math:`u` is
    `taken`: :math:`1/(1+g)`, or for a mixture its posterior mean.
    """
    df = max(shape.n - shape.of_mean, 1.0)
    variance = shape.total * (taken + (1.0 - taken) * fraction) / df
    return GaussianSummary(1.0 - taken, variance, df)


def _xlogx(x: FloatArray) -> FloatArray:
    return x * np.log(np.where(x > 0, x, 1.0))
