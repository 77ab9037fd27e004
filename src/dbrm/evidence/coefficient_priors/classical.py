r"""Jeffreys' prior, known variance, BIC and AIC.

All four depend on the data through RSS only, or through the maximised likelihood of a
generalised linear model. Write :math:`p_+` for the number of coefficients with the
intercept and :math:`n` for the number of observations.
"""

from dataclasses import dataclass
from math import inf, lgamma, log, pi
from typing import Literal, final

import numpy as np

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import (
    COEFFICIENT_PRIORS,
    CoefficientPrior,
    GaussianShape,
    GaussianSummary,
    where_estimable,
)
from dbrm.evidence.score import GlmTable, ScoreTable, closed_form_table, glm_closed_form

__all__ = ["AIC", "BIC", "Jeffreys", "KnownVariance"]

Constant = Literal["paper", "unit_information", "none"]
_CONSTANTS = ("paper", "unit_information", "none")


def _constant_of(sizes: IntArray, constant: Constant, n: float) -> FloatArray:
    r"""Log of what the flat directions contribute, the intercept's among them.

    The prior is improper, so this is a convention: :math:`\frac12\log 2\pi` for each
    coefficient in the paper, :math:`\frac12\log(2\pi/n)` with the information of one
    observation (BIC), zero in the published scripts.
    """
    each = {"paper": log(2 * pi), "unit_information": log(2 * pi / n), "none": 0.0}[constant]
    return 0.5 * each * (sizes + 1.0).astype(np.float64)


def _check_constant(owner: str, constant: str) -> None:
    if constant not in _CONSTANTS:
        msg = f"{owner} needs constant to be one of {', '.join(_CONSTANTS)}; got {constant!r}."
        raise InvalidSettingError(msg)


@final
@COEFFICIENT_PRIORS.register("jeffreys")
@dataclass(frozen=True, slots=True)
class Jeffreys(CoefficientPrior):
    r"""The paper's prior (Sec. 4.2), Jeffreys' rule for the coefficients.

    :math:`\pi(\sigma^2)=\sigma^{-2}` and :math:`p(\beta|\sigma^2)=|J|^{1/2}`. Determinant
    and :math:`\sigma^{-p_+}` cancel against the integral over :math:`\beta`, which leaves

    .. math:: \log p(y|M) = -\tfrac{n-p_+}{2}\log 2\pi + \log\Gamma(\tfrac n2)
              - \tfrac n2 \log\tfrac{\mathrm{RSS}}{2} .

    Parameters
    ----------
    constant
        The convention for the :math:`(2\pi)^{p_+/2}`: ``"paper"`` keeps it,
        ``"unit_information"`` divides it by :math:`n^{p_+/2}`, ``"none"`` drops it
        (published scripts).
    information
        ``"beta"`` reads :math:`J` as the information on :math:`\beta`; ``"joint"`` as
        that on :math:`(\beta,\sigma^2)`, which raises the power of RSS by one. Plays no
        part in generalised linear models.
    degrees_of_freedom
        Of a model's noise variance, for intervals; the evidence is the same.
        ``"residual"`` has :math:`\sigma^2 \sim \mathrm{RSS}/\chi^2_{n-p_+}`, the posterior
        under :math:`\pi(\beta,\sigma^2)=\sigma^{-2}`, whose intervals cover what they claim;
        ``"n"`` follows the formula above, :math:`\mathrm{RSS}/\chi^2_n` (:math:`n+2` with the
        joint information).

    Notes
    -----
    Under Jeffreys' rule for all parameters together every coefficient counts as one more
    observation of the noise: with ten observations for a coefficient, intervals of 90 %
    cover 80 %. Jeffreys himself advised against it, for :math:`\sigma^{-2}`.

    For a generalised linear model with known dispersion Laplace's method gives
    :math:`(2\pi)^{p_+/2} e^{\hat\ell}` whatever the columns.
    """

    constant: Constant = "paper"
    information: Literal["beta", "joint"] = "beta"
    degrees_of_freedom: Literal["residual", "n"] = "residual"
    name = "jeffreys"

    def __post_init__(self) -> None:
        _check_constant("Jeffreys", self.constant)
        if self.information not in ("beta", "joint"):
            msg = f"Jeffreys needs information 'beta' or 'joint'; got {self.information!r}."
            raise InvalidSettingError(msg)
        if self.degrees_of_freedom not in ("residual", "n"):
            given = self.degrees_of_freedom
            msg = f"Jeffreys needs degrees_of_freedom 'residual' or 'n'; got {given!r}."
            raise InvalidSettingError(msg)

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        joint = self.information == "joint"
        power = 0.5 * shape.n + joint
        base = -0.5 * shape.n * log(2 * pi) + lgamma(power) - power * log(0.5 * shape.total)
        base += 0.5 * log(0.5 * shape.n) * joint
        constant = base + _constant_of(sizes, self.constant, shape.n)
        slope = np.full(sizes.size, -power)
        return closed_form_table(where_estimable(constant, sizes, shape.n), slope)

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        if self.degrees_of_freedom == "residual":
            return _least_squares_summary(size, fraction, shape)
        df = shape.n + 2 * (self.information == "joint")
        return GaussianSummary(1.0, fraction * shape.total / df, df)

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:
        return glm_closed_form(_constant_of(sizes, self.constant, n))


@final
@COEFFICIENT_PRIORS.register("known-variance")
@dataclass(frozen=True, slots=True)
class KnownVariance(CoefficientPrior):
    r"""Known noise variance and Jeffreys' (flat) prior on the coefficients.

    .. math:: \log p(y|M) = -\tfrac n2\log 2\pi\sigma^2 - \mathrm{RSS}/(2\sigma^2)
              + k_M

    with the constant :math:`k_M` of `Jeffreys`. ``variance=1, constant="none"`` is what the
    published scripts of Examples 4 and 5 ran.
    """

    variance: float = 1.0
    constant: Constant = "none"
    name = "known_variance"

    def __post_init__(self) -> None:
        _check_constant("KnownVariance", self.constant)
        if not 0.0 < self.variance < inf:
            msg = f"KnownVariance needs a positive variance; got variance={self.variance!r}."
            raise InvalidSettingError(msg)

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        base = -0.5 * shape.n * log(2 * pi * self.variance)
        constant = base + _constant_of(sizes, self.constant, shape.n)
        linear = -0.5 * shape.total / self.variance
        return closed_form_table(
            where_estimable(constant, sizes, shape.n), np.zeros(sizes.size), linear=linear
        )

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:  # noqa: ARG002
        return GaussianSummary(1.0, self.variance, inf)

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:  # noqa: ARG002
        msg = (
            "The prior 'known_variance' fixes the noise variance of a Gaussian response; "
            "this family has none. Use prior='jeffreys' with constant='none' for the bare "
            "maximised likelihood."
        )
        raise InvalidSettingError(msg)


def _profile_table(
    sizes: IntArray, shape: GaussianShape, penalty_per_parameter: float
) -> ScoreTable:
    r"""Maximised log likelihood less a penalty for :math:`p_+ + 1` parameters."""
    base = -0.5 * shape.n * (log(2 * pi) + log(shape.total / shape.n) + 1.0)
    constant = base - (sizes + 2.0).astype(np.float64) * penalty_per_parameter
    slope = np.full(sizes.size, -0.5 * shape.n)
    return closed_form_table(where_estimable(constant, sizes, shape.n), slope)


@final
@COEFFICIENT_PRIORS.register("bic")
@dataclass(frozen=True, slots=True)
class BIC(CoefficientPrior):
    r"""Schwarz's approximation, :math:`-\mathrm{BIC}/2 = \hat\ell - \tfrac{p_+ + 1}{2}\log n`.

    The noise variance counts as a parameter, as in R; a generalised linear model with
    known dispersion has :math:`p_+` parameters.
    """

    name = "bic"

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        return _profile_table(sizes, shape, 0.5 * log(shape.n))

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        return _least_squares_summary(size, fraction, shape)

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:
        return glm_closed_form(-0.5 * log(n) * (sizes + 1.0).astype(np.float64))


@final
@COEFFICIENT_PRIORS.register("aic")
@dataclass(frozen=True, slots=True)
class AIC(CoefficientPrior):
    r"""Akaike's criterion, :math:`-\mathrm{AIC}/2 = \hat\ell - (p_+ + 1)`."""

    name = "aic"

    def score_table(self, sizes: IntArray, shape: GaussianShape) -> ScoreTable:
        return _profile_table(sizes, shape, 1.0)

    def summary(self, size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
        return _least_squares_summary(size, fraction, shape)

    def glm_table(self, sizes: IntArray, n: float) -> GlmTable:  # noqa: ARG002
        return glm_closed_form(-(sizes + 1.0).astype(np.float64))


def _least_squares_summary(size: int, fraction: float, shape: GaussianShape) -> GaussianSummary:
    """The usual t intervals: flat prior on the coefficients, n - p - 1 degrees of freedom."""
    df = max(shape.n - size - shape.of_mean, 1.0)
    return GaussianSummary(1.0, fraction * shape.total / df, df)
