"""Student's t responses: real numbers with heavy tails."""

# ruff: noqa: ARG002 - all families share one set of signatures.

from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Self, final

import numpy as np
import scipy.optimize
import scipy.special

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import Family, register

__all__ = ["StudentT", "estimate_df"]

# Degrees of freedom that are looked for: with more the tails are those of a normal.
_FEWEST, _MOST = 2.1, 100.0
# Rows for each column of the fit whose residuals tell the degrees of freedom.
_ROWS_PER_COLUMN, _MOST_KNOTS = 8, 6
_ITERATIONS = 100


@register
@final
@dataclass(frozen=True, slots=True)
class StudentT(Family):
    r"""Location :math:`\mu`, squared scale :math:`\phi = \sigma^2`, degrees of freedom :math:`\nu`.

    .. math:: p(y) = \frac{\Gamma(\frac{\nu+1}2)}{\Gamma(\frac\nu2)\sqrt{\pi\nu\phi}}
        \Bigl(1 + \frac{(y-\mu)^2}{\nu\phi}\Bigr)^{-(\nu+1)/2}

    (Lange, Little and Taylor 1989). The score of a row, :math:`(\nu+1)r/(\nu\phi+r^2)`, vanishes
    for large residuals :math:`r`: an outlier does not buy a feature. Its information
    :math:`(\nu+1)/\{(\nu+3)\phi\}` is the expected one, the observed one being negative where
    :math:`r^2 > \nu\phi`.

    Parameters
    ----------
    df
        Degrees of freedom, more than two so that there is a variance; four are a common choice.
        ``None`` estimates them from the data, once for all models of a run: see `estimate_df`.
    dispersion
        A known :math:`\phi`; ``None`` estimates it in every model.
    """

    df: float | None = None
    dispersion: float | None = None
    name = "student_t"
    default_link = "identity"
    mean_interval = (-np.inf, np.inf)
    has_dispersion = True
    dispersion_divides_information = True

    def __post_init__(self) -> None:
        if self.df is not None and not 2.0 < self.df < inf:
            msg = (
                "StudentT needs finite degrees of freedom above 2, where there is a variance; got "
                f"df={self.df!r}. Try df=4, or family='gaussian' for infinitely many."
            )
            raise InvalidSettingError(msg)
        if self.dispersion is not None and not 0.0 < self.dispersion < inf:
            msg = f"StudentT needs a positive finite dispersion or None; got {self.dispersion!r}."
            raise InvalidSettingError(msg)

    @property
    def label(self) -> str:
        return "Student's t" if self.df is None else f"Student's t ({self.df:.3g} df)"

    @property
    def degrees(self) -> float:
        """The degrees of freedom; four where they are not known yet."""
        return 4.0 if self.df is None else self.df

    def adapted_to(self, columns: Matrix, response: Column, weights: Column | None) -> Self:
        if self.df is not None:
            return self
        given = np.ones_like(response) if weights is None else weights
        return replace(self, df=estimate_df(columns, response, given))

    @property
    def given_dispersion(self) -> float | None:
        return self.dispersion

    def log_density(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        df = self.degrees
        constant = scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)
        constant -= 0.5 * log(np.pi * df)
        tail = np.log1p((y - mean) ** 2 / (df * dispersion))
        return np.asarray(constant - 0.5 * (np.log(dispersion) + (df + 1) * tail))

    def score(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        residual = y - mean
        return np.asarray((self.degrees + 1) * residual / (self.degrees * dispersion + residual**2))

    def information(
        self, mean: FloatArray, dispersion: float = 1.0, trials: Column | None = None
    ) -> FloatArray:
        return np.full(np.shape(mean), (self.degrees + 1) / ((self.degrees + 3) * dispersion))

    def variance(self, mean: FloatArray, dispersion: float = 1.0) -> FloatArray:
        return np.full(np.shape(mean), dispersion * self.degrees / (self.degrees - 2))

    def cdf(
        self,
        y: Column,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(scipy.special.stdtr(self.degrees, (y - mean) / np.sqrt(dispersion)))

    def quantile(
        self,
        probability: FloatArray,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(
            mean + np.sqrt(dispersion) * scipy.special.stdtrit(self.degrees, probability)
        )

    def rvs(
        self,
        rng: np.random.Generator,
        mean: FloatArray,
        dispersion: float = 1.0,
        trials: Column | None = None,
    ) -> FloatArray:
        return np.asarray(mean + np.sqrt(dispersion) * rng.standard_t(self.degrees, np.shape(mean)))

    def estimate_dispersion(self, y: Column, mean: FloatArray, weights: Column) -> float:
        r"""Solve :math:`\sum (\nu+1) r^2/(\nu\phi + r^2) = n`, whose left side falls in
        :math:`\phi`, by Newton's method on :math:`\log\phi`.
        """
        if self.dispersion is not None:
            return self.dispersion
        squares, total = (y - mean) ** 2, float(weights.sum())
        phi = max(float(weights @ squares) / total, np.finfo(np.float64).tiny)
        for _ in range(200):
            share = squares / (self.degrees * phi + squares)
            excess = (self.degrees + 1) * float(weights @ share) - total
            slope = (self.degrees + 1) * float(weights @ (share * (1.0 - share)))
            move = excess / slope if slope > 0 else float(np.sign(excess))
            phi *= float(np.exp(np.clip(move, -2.0, 2.0)))
            if abs(move) < 1e-11 or not phi > np.finfo(np.float64).tiny:
                break
        return max(phi, np.finfo(np.float64).tiny)


def estimate_df(columns: Matrix, response: Column, weights: Column) -> float:
    r"""Degrees of freedom of the errors, before it is known which features matter.

    Location, scale and :math:`\nu` are fitted together by ECME (Liu and Rubin 1995), the location
    being piecewise linear in each covariate as far as there are rows enough. :math:`\nu` has the
    prior Gamma(2, 0.1) of Juarez and Steel (2010), which keeps it finite.
    """
    live = weights > 0
    y, weights = response[live], weights[live]
    design = _additive_design(columns[live], y)
    scale, df = float(np.average(np.abs(y - np.median(y)), weights=weights)) ** 2, 4.0
    tiny = np.finfo(np.float64).tiny
    residual = y - np.median(y)
    for _ in range(_ITERATIONS):
        scale = max(scale, tiny)
        share = weights * (df + 1.0) / (df + residual**2 / scale)
        root = np.sqrt(share)
        fitted = design @ np.linalg.lstsq(root[:, None] * design, root * y, rcond=1e-8)[0]
        residual = y - fitted
        scale = float(share @ residual**2) / float(weights.sum())
        before, df = df, _best_df(residual**2 / max(scale, tiny), weights)
        if abs(log(df / before)) < 1e-4:
            break
    return df


def _best_df(squares: Column, weights: Column) -> float:
    """Posterior mode of the degrees of freedom for given squares of standardised residuals."""
    total = float(weights.sum())

    def loss(log_df: float) -> float:
        df = exp(log_df)
        constant = scipy.special.gammaln((df + 1) / 2) - scipy.special.gammaln(df / 2)
        value = total * (constant - 0.5 * log_df)
        value -= 0.5 * (df + 1) * float(weights @ np.log1p(squares / df))
        return -float(value + log_df - 0.1 * df)

    found = scipy.optimize.minimize_scalar(
        loss, bounds=(log(_FEWEST), log(_MOST)), method="bounded"
    )
    return exp(float(found.x))


def _additive_design(columns: Matrix, y: Column) -> Matrix:
    """A constant, the covariates, and their hinges at quantiles; as many as the rows allow."""
    most = y.size // _ROWS_PER_COLUMN - 1
    spread = columns.std(axis=0) if columns.size else np.zeros(columns.shape[1])
    used = columns[:, spread > 0]
    used = (used - used.mean(axis=0)) / used.std(axis=0)
    ranks = np.argsort(np.argsort(y)) - 0.5 * (y.size - 1)
    used = used[:, np.argsort(-np.abs(ranks @ used), kind="stable")[: max(most, 0)]]
    n_knots = min(most // max(used.shape[1], 1) - 1, _MOST_KNOTS)
    levels = (np.arange(n_knots) + 0.5) / max(n_knots, 1)
    knots = np.quantile(used, levels, axis=0) if used.size else np.empty((0, 0))
    hinges = [np.maximum(used - knot, 0.0) for knot in knots]
    return np.hstack([np.ones((y.size, 1)), used, *hinges])
