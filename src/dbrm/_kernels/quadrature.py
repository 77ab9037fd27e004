"""Sums over the grid of a mixing density: evidence and shrinkage of mixtures of g-priors.

The grid (`dbrm.evidence.coefficient_priors.mixing`) carries the logarithm of everything
that does not depend on the data; here it meets a likelihood. Both sums leave out what
is more than 38 nats below the largest term.
"""

import numba as nb
import numpy as np

__all__ = ["gaussian_mixtures", "glm_mixtures"]

# A coarse look at every eighth node finds the mode to within a nat or two.
STRIDE = 8
DEPTH = 38.0


@nb.njit(cache=True, nogil=True, inline="always")
def _gaussian_term(u, half, odds):
    r"""Log of :math:`\{1 - R^2(1-u)\}^{-(n-1)/2}` with :math:`R^2/(1-R^2)` given."""
    determination = odds / (1.0 + odds)
    removed = determination * (1.0 - u)
    if removed < 0.5:
        return -half * np.log1p(-removed)
    return -half * np.log(1.0 / (1.0 + odds) + determination * u)


@nb.njit(cache=True, nogil=True)
def gaussian_mixtures(base, u, half, odds):
    """Log Bayes factor and posterior mean of u for each value of R²/(1-R²)."""
    values = np.empty(odds.size)
    means = np.empty(odds.size)
    looks = (base.size - 1) // STRIDE + 1
    seen = np.empty(looks + 1)
    # Beyond the last look there is less than one stride of tail.
    seen[looks] = -np.inf
    for i in range(odds.size):
        peak = -np.inf
        for look in range(looks):
            j = look * STRIDE
            seen[look] = base[j] + _gaussian_term(u[j], half, odds[i])
            peak = max(peak, seen[look])
        total = 0.0
        moment = 0.0
        for look in range(looks):
            if max(seen[look], seen[look + 1]) < peak - DEPTH:
                continue
            j = look * STRIDE
            weight = np.exp(seen[look] - peak)
            total += weight
            moment += weight * u[j]
            for j in range(look * STRIDE + 1, min((look + 1) * STRIDE, base.size)):
                weight = np.exp(base[j] + _gaussian_term(u[j], half, odds[i]) - peak)
                total += weight
                moment += weight * u[j]
        values[i] = peak + np.log(total)
        means[i] = moment / total
    return values, means


@nb.njit(cache=True, nogil=True)
def glm_mixtures(base, u, wald):
    r"""Log of :math:`\int u^{p/2} e^{-Wu/2}\pi(u)du` and posterior mean of u for each W."""
    values = np.empty(wald.size)
    means = np.empty(wald.size)
    for i in range(wald.size):
        rate = 0.5 * wald[i]
        peak = -np.inf
        for j in range(base.size):
            peak = max(peak, base[j] - rate * u[j])
        total = 0.0
        moment = 0.0
        for j in range(base.size):
            exponent = base[j] - rate * u[j] - peak
            if exponent > -DEPTH:
                weight = np.exp(exponent)
                total += weight
                moment += weight * u[j]
        values[i] = peak + np.log(total)
        means[i] = moment / total
    return values, means
