r"""Marginal likelihoods from MCMC output, as independent checks of exact and Laplace values.

Both methods evaluate the identity
:math:`p(y) = p(y \mid \theta^*) p(\theta^*) / p(\theta^* \mid y)` at one point and
estimate its denominator from draws: Chib (1995) from full conditionals, Chib and
Jeliazkov (2001) from the acceptance probabilities of a Metropolis-Hastings chain. They
share no code with the engines and are far too slow for a search.
"""

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import final

import numpy as np
import scipy.linalg

from dbrm._typing import Column, FloatArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families import Family, find_family
from dbrm.evidence.links import Link, find_link

__all__ = ["MarginalLikelihood", "NormalPrior", "chib_gaussian", "chib_jeliazkov"]

_BATCHES = 40
_PROPOSAL_DF = 8.0


@final
@dataclass(frozen=True, slots=True)
class MarginalLikelihood:
    """An estimated log marginal likelihood and its Monte Carlo standard error."""

    value: float
    standard_error: float


@final
@dataclass(frozen=True, eq=False)
class NormalPrior:
    """Proper normal prior of all coefficients, the intercept's among them."""

    mean: FloatArray
    covariance: Matrix

    def __post_init__(self) -> None:
        k = self.mean.size
        if self.covariance.shape != (k, k) or not np.all(np.linalg.eigvalsh(self.covariance) > 0):
            msg = f"NormalPrior needs a positive definite {k} x {k} covariance."
            raise InvalidSettingError(msg)

    def log_density(self, coefficients: Matrix) -> FloatArray:
        """Log density of each row."""
        return _log_normal(coefficients - self.mean, _cholesky(self.covariance))


def chib_gaussian(
    rng: np.random.Generator,
    design: Matrix,
    y: Column,
    prior: NormalPrior,
    *,
    shape: float,
    rate: float,
    draws: int = 20_000,
) -> MarginalLikelihood:
    r"""Gaussian regression with independent :math:`\beta \sim N(m, V), \sigma^2 \sim IG(a, b)`.

    Gibbs sampling; :math:`p(\sigma^{2*} \mid y)` is the average of its full conditional
    over the draws, :math:`p(\beta^* \mid \sigma^{2*}, y)` is known.

    Parameters
    ----------
    design
        With its column of ones.
    shape, rate
        :math:`a` and :math:`b` of the inverse gamma prior.
    """
    precision = np.linalg.inv(prior.covariance)
    gram, cross = design.T @ design, design.T @ y
    posterior_shape = shape + 0.5 * y.size
    variance, rates = float(np.var(y)) + 1e-12, np.empty(draws)
    path = np.empty((draws, prior.mean.size))
    for draw in range(-draws // 10, draws):
        root, centre = _conditional(
            gram / variance + precision, cross / variance + precision @ prior.mean
        )
        beta = centre + scipy.linalg.solve_triangular(root.T, rng.standard_normal(centre.size))
        half = rate + 0.5 * float(np.sum((y - design @ beta) ** 2))
        variance = half / rng.gamma(posterior_shape)
        if draw >= 0:
            path[draw], rates[draw] = beta, half
    star = path.mean(axis=0)
    variance = float(np.mean(rates)) / (posterior_shape + 1)
    ordinates = (
        posterior_shape * np.log(rates)
        - lgamma(posterior_shape)
        - (posterior_shape + 1) * log(variance)
        - rates / variance
    )
    log_ordinate, error = _log_mean(ordinates)
    root, centre = _conditional(
        gram / variance + precision, cross / variance + precision @ prior.mean
    )
    log_beta = float(_log_normal_precision(star - centre, root))
    log_variance_prior = (
        shape * log(rate) - lgamma(shape) - (shape + 1) * log(variance) - rate / variance
    )
    residual = y - design @ star
    likelihood = -0.5 * (y.size * log(2 * pi * variance) + float(residual @ residual) / variance)
    value = likelihood + float(prior.log_density(star[None])[0]) + log_variance_prior
    return MarginalLikelihood(value - log_ordinate - log_beta, error)


def chib_jeliazkov(
    rng: np.random.Generator,
    design: Matrix,
    y: Column,
    prior: NormalPrior,
    *,
    family: Family | str = "binomial",
    link: Link | str | None = None,
    trials: Column | None = None,
    dispersion: float = 1.0,
    draws: int = 20_000,
) -> MarginalLikelihood:
    r"""One GLM with a proper normal prior and known dispersion.

    Independence Metropolis-Hastings with a t proposal :math:`q` tailored to the posterior
    mode :math:`\beta^*`. With :math:`\alpha` its acceptance probability,

    .. math:: p(\beta^* \mid y) = \frac{E_{\beta \mid y}\{\alpha(\beta, \beta^*)\, q(\beta^*)\}}
        {E_q\{\alpha(\beta^*, \beta)\}} .

    Parameters
    ----------
    design
        With its column of ones.
    draws
        Length of the chain, and number of draws from the proposal.
    """
    member = find_family(family)
    model = _Model(
        design, y, prior, member, find_link(link or member.default_link), trials, dispersion
    )
    mode = model.mode()
    root = _cholesky(np.asarray(np.linalg.inv(model.information(mode)), dtype=np.float64))
    proposals = mode + _t_draws(rng, 2 * draws, mode.size) @ root.T
    log_ratio = model.log_posterior(proposals) - _log_t(proposals - mode, root)
    star = float(model.log_posterior(mode[None])[0]) - float(
        _log_t(np.zeros((1, mode.size)), root)[0]
    )
    chain = _independence_chain(rng, log_ratio[:draws])
    top, top_error = _log_mean(np.minimum(0.0, star - chain))
    bottom, bottom_error = _log_mean(np.minimum(0.0, log_ratio[draws:] - star))
    # log p(y) = log posterior kernel at the mode - log q - (top - bottom).
    return MarginalLikelihood(star - top + bottom, float(np.hypot(top_error, bottom_error)))


@final
@dataclass(frozen=True, eq=False)
class _Model:
    """Unnormalised log posterior of one GLM."""

    design: Matrix
    y: Column
    prior: NormalPrior
    family: Family
    link: Link
    trials: Column | None
    dispersion: float

    def log_posterior(self, coefficients: Matrix) -> FloatArray:
        """Log likelihood plus log prior of each row."""
        out = self.prior.log_density(coefficients)
        low, high = self.family.mean_interval
        for start in range(0, len(coefficients), 2000):
            part = coefficients[start : start + 2000]
            mean = self.link.mean(part @ self.design.T)
            inside = np.clip(mean, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
            density = self.family.log_density(self.y, inside, self.dispersion, self.trials)
            out[start : start + 2000] += np.asarray(density).sum(axis=1)
        return out

    def information(self, beta: FloatArray) -> Matrix:
        """Expected information plus prior precision."""
        weight, _ = self._working(beta)
        return np.asarray(
            (self.design.T * weight) @ self.design + np.linalg.inv(self.prior.covariance)
        )

    def _working(self, beta: FloatArray) -> tuple[Column, Column]:
        eta = self.design @ beta
        mean, slope = self.link.mean(eta), self.link.slope(eta)
        trials = np.ones_like(self.y) if self.trials is None else self.trials
        pull = slope / np.maximum(self.family.variance(mean, self.dispersion), 1e-300)
        return trials * slope * pull, (self.y - trials * mean) * pull

    def mode(self) -> FloatArray:
        """Posterior mode by damped scoring."""
        beta = self.prior.mean.copy()
        value = float(self.log_posterior(beta[None])[0])
        for _ in range(200):
            _, score = self._working(beta)
            gradient = self.design.T @ score - np.linalg.solve(
                self.prior.covariance, beta - self.prior.mean
            )
            step = np.linalg.solve(self.information(beta), gradient)
            fraction = 1.0
            while fraction > 1e-10:
                new = float(self.log_posterior((beta + fraction * step)[None])[0])
                if new >= value - 1e-12 * (1 + abs(value)):
                    break
                fraction *= 0.5
            beta = beta + fraction * step
            value = new
            if float(gradient @ step) < 1e-16:
                break
        return beta


def _conditional(precision: Matrix, right: FloatArray) -> tuple[Matrix, FloatArray]:
    root = _cholesky(precision)
    return root, np.asarray(scipy.linalg.cho_solve((root, True), right))


def _cholesky(matrix: Matrix) -> Matrix:
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def _log_normal(deviation: Matrix, root: Matrix) -> FloatArray:
    """Log density of rows, from the Cholesky factor of the covariance."""
    scaled = scipy.linalg.solve_triangular(root, deviation.T, lower=True)
    constant = -0.5 * len(root) * log(2 * pi) - float(np.sum(np.log(np.diag(root))))
    return np.asarray(constant - 0.5 * np.sum(scaled**2, axis=0))


def _log_normal_precision(deviation: FloatArray, root: Matrix) -> float:
    """Log density of one vector, from the Cholesky factor of the precision."""
    scaled = root.T @ deviation
    constant = -0.5 * len(root) * log(2 * pi) + float(np.sum(np.log(np.diag(root))))
    return constant - 0.5 * float(scaled @ scaled)


def _t_draws(rng: np.random.Generator, n: int, k: int) -> Matrix:
    chi = rng.chisquare(_PROPOSAL_DF, n) / _PROPOSAL_DF
    return np.asarray(rng.standard_normal((n, k)) / np.sqrt(chi)[:, None])


def _log_t(deviation: Matrix, root: Matrix) -> FloatArray:
    k, df = len(root), _PROPOSAL_DF
    scaled = scipy.linalg.solve_triangular(root, deviation.T, lower=True)
    constant = lgamma(0.5 * (df + k)) - lgamma(0.5 * df) - 0.5 * k * log(df * pi)
    constant -= float(np.sum(np.log(np.diag(root))))
    return np.asarray(constant - 0.5 * (df + k) * np.log1p(np.sum(scaled**2, axis=0) / df))


def _independence_chain(rng: np.random.Generator, log_ratio: FloatArray) -> FloatArray:
    """Log ratios of posterior kernel and proposal along an independence chain."""
    threshold = np.log(rng.random(log_ratio.size))
    chain = np.empty_like(log_ratio)
    current = float(log_ratio[0])
    for i, candidate in enumerate(log_ratio):
        if threshold[i] < candidate - current:
            current = float(candidate)
        chain[i] = current
    return chain


def _log_mean(log_values: FloatArray) -> tuple[float, float]:
    """Log of a mean and its standard error, by batch means and the delta method."""
    peak = float(log_values.max())
    values = np.exp(log_values - peak)
    batches = np.array([b.mean() for b in np.array_split(values, _BATCHES)])
    mean = float(values.mean())
    error = float(batches.std(ddof=1)) / np.sqrt(_BATCHES)
    return peak + log(mean), float(error / mean)
