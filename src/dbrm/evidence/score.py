r"""Evidence as a function of model size and one statistic of the fit.

For every tabulated coefficient prior the Gaussian log evidence of a model with
:math:`p` columns depends on the data only through the residual fraction
:math:`f = \mathrm{RSS}/\mathrm{TSS} = 1 - R^2`, and that of a generalised linear model
only through its maximised likelihood, the total weight at the maximum and the Wald
statistic :math:`W`. The tables here hold those functions as numbers, so that all priors
cost about the same inside the compiled loops. They see neither columns nor rows.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._kernels.enumeration import score_one
from dbrm._kernels.piecewise import glm_score_one
from dbrm._typing import FloatArray

__all__ = ["NO_PIECES", "GlmTable", "Pieces", "ScoreTable", "closed_form_table", "glm_closed_form"]

# Sizes by panels by coefficients.
Pieces = npt.NDArray[np.float64]
NO_PIECES: Pieces = np.zeros((0, 0, 2))


@final
@dataclass(frozen=True, slots=True)
class ScoreTable:
    r"""Gaussian log evidence, one row for each model size asked for.

    .. math:: \log p(y \mid M) = c_p + a_p \log(f + e) + d_p \log(1 - f) + b f + h_p(y),
        \qquad y = \log\{1 + m (1 - f)/f\},

    where :math:`f` is first lowered to ``ceiling[p]`` (one, except where the score is
    constant for hopeless models) and :math:`h_p` is a piecewise polynomial. A table has
    either :math:`h_p` (mixtures of g-priors), then beside the constant nothing else and
    ceilings of one, or the closed form, then no :math:`h_p`. Near :math:`f = 1` the score
    of a mixture varies on the scale :math:`1 - f \sim 1/n`, near :math:`f = 0` on the scale
    of :math:`\log f`; the argument :math:`y` with ``scale`` :math:`m = n` resolves both.

    Parameters
    ----------
    constant, log_slope, complement_slope
        :math:`c_p, a_p, d_p`; ``constant`` is ``-inf`` where the prior is undefined.
    shift, linear
        :math:`e` (the :math:`1/g` of a fixed g-prior) and the coefficient :math:`b`.
    ceiling
        Largest residual fraction that can be distinguished from worse ones.
    pieces, scale, inverse_width
        Coefficients of :math:`h_p`, the :math:`m` of its argument, panels per unit of it.
    """

    constant: FloatArray
    log_slope: FloatArray
    complement_slope: FloatArray
    shift: float
    linear: float
    ceiling: FloatArray
    pieces: Pieces
    scale: float
    inverse_width: float

    def value(self, fraction: float, row: int) -> float:
        """Score of one model; the plain twin of the compiled `score_one`."""
        if self.constant[row] == -np.inf:
            return -np.inf
        return float(score_one.py_func(fraction, row, *self.arguments))

    def beyond(self, n: int) -> "ScoreTable":
        """The table of models that have `n` columns more than asked for."""
        return replace(
            self,
            constant=self.constant[n:],
            log_slope=self.log_slope[n:],
            complement_slope=self.complement_slope[n:],
            ceiling=self.ceiling[n:],
            pieces=self.pieces[n:],
        )

    @property
    def arguments(
        self,
    ) -> tuple[FloatArray, FloatArray, FloatArray, float, float, FloatArray, Pieces, float, float]:
        """The arrays in the order in which the kernels take them."""
        return (
            self.constant,
            self.log_slope,
            self.complement_slope,
            self.shift,
            self.linear,
            self.ceiling,
            self.pieces,
            self.scale,
            self.inverse_width,
        )


@final
@dataclass(frozen=True, slots=True)
class GlmTable:
    r"""Log evidence of generalised linear models, one row for each model size asked for.

    .. math:: \log p(y \mid M) = \hat\ell + c_p + a \log \textstyle\sum_i w_i + b_p W
        + d_p \log \max(W, m_p) - \tfrac12 \min(W - m_p, 0)\,[d_p \ne 0] + h_p(\log(1 + W))

    with :math:`\hat\ell` the maximised log likelihood, :math:`w` the working weights at
    the maximum and :math:`W = \hat\beta' X_c' \mathrm{diag}(w) X_c \hat\beta` the Wald
    statistic of the slopes, columns centred with the weights (Li and Clyde 2018).

    Parameters
    ----------
    constant, wald_slope, log_wald_slope, bend
        :math:`c_p, b_p, d_p, m_p`; ``constant`` is ``-inf`` where the prior is undefined.
    information_slope
        The coefficient :math:`a`; zero where :math:`\sum w` is not needed.
    pieces, inverse_width
        Coefficients of :math:`h_p` and panels per unit of its argument.
    """

    constant: FloatArray
    information_slope: float
    wald_slope: FloatArray
    log_wald_slope: FloatArray
    bend: FloatArray
    pieces: Pieces
    inverse_width: float

    @property
    def needs_wald(self) -> bool:
        """Whether the score looks at the Wald statistic at all."""
        used = self.wald_slope.any() or self.log_wald_slope.any() or self.pieces.shape[1] > 0
        return bool(used)

    def value(self, log_likelihood: float, log_information: float, wald: float, row: int) -> float:
        """Score of one model; the plain twin of the compiled `glm_score_one`."""
        score = glm_score_one.py_func(log_likelihood, log_information, wald, row, *self.arguments)
        return float(score)

    @property
    def arguments(
        self,
    ) -> tuple[FloatArray, float, FloatArray, FloatArray, FloatArray, Pieces, float]:
        """The arrays in the order in which `glm_score_one` takes them."""
        return (
            self.constant,
            self.information_slope,
            self.wald_slope,
            self.log_wald_slope,
            self.bend,
            self.pieces,
            self.inverse_width,
        )


def closed_form_table(
    constant: FloatArray, log_slope: FloatArray, *, shift: float = 0.0, linear: float = 0.0
) -> ScoreTable:
    """A Gaussian table without piecewise part."""
    zeros = np.zeros(constant.size)
    ones = np.ones(constant.size)
    return ScoreTable(constant, log_slope, zeros, shift, linear, ones, NO_PIECES, 1.0, 1.0)


def glm_closed_form(
    constant: FloatArray, *, information_slope: float = 0.0, wald_slope: FloatArray | None = None
) -> GlmTable:
    """A GLM table that is linear in the Wald statistic, or free of it."""
    zeros = np.zeros(constant.size)
    slope = zeros if wald_slope is None else wald_slope
    return GlmTable(constant, information_slope, slope, zeros, zeros, NO_PIECES, 1.0)
