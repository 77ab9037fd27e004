r"""All subsets of a population, each by one small elimination step.

The residual sum of squares of every subset of ``s`` columns follows from the
Gram matrix alone. Subsets are visited in the order of the integers whose bits
they are. A subset ``m`` with lowest bit ``t`` is its parent ``m & (m - 1)``
plus column ``t``; only columns below ``t`` can still be added to it, so the
step from parent to child is one Schur complement of order ``t + 1``:

.. math:: A_{ij} \leftarrow A_{ij} - A_{it} A_{tj} / A_{tt}, \qquad i, j < t .

On average over subsets that is six multiplications, and no value ever depends
on more than ``s`` consecutive eliminations: unlike a Gray-code walk of sweeps
it does not drift and needs no refresh.
"""

import numba as nb
import numpy as np

from dbrm._kernels.bits import lowest_bit, popcount
from dbrm._kernels.piecewise import piecewise_one

__all__ = [
    "forbid_orphans",
    "inclusion_of_all",
    "prior_of_all",
    "residuals_of_all",
    "score_of_all",
    "score_one",
]

# Subsets scored together; small enough for the nearest cache.
BLOCK = 256


@nb.njit(cache=True, nogil=True)
def residuals_of_all(gram, cross, total, max_size, tolerance, rounding):
    r"""Residual sums of squares of all ``2**s`` subsets.

    Returns ``inf`` for subsets larger than ``max_size`` and ``nan`` for subsets
    whose columns are linearly dependent (a pivot below ``tolerance`` times its
    original diagonal, or below its rounding error).

    With ``rounding`` :math:`u`, the relative error of the entries given, the rounding error
    :math:`r_0^2` of a residual is added to it: lost digits never look like a good fit. Errors
    grow with the multipliers of the elimination:
    :math:`r_i \leftarrow r_i + |A_{it} / A_{tt}|\, r_t`, from :math:`r_i^2 = u A_{ii}`.
    """
    size = gram.shape[0]
    residuals = np.full(1 << size, np.inf)
    # Row and column 0 of each buffer belong to the response, 1 + j to column j.
    buffers = np.zeros((size + 1, size + 1, size + 1))
    errors = np.zeros((size + 1, size + 1))
    dependent = np.zeros(size + 1, dtype=np.bool_)
    root = buffers[size]
    root[0, 0] = total
    errors[size, 0] = np.sqrt(rounding * max(total, 0.0))
    for j in range(size):
        errors[size, j + 1] = np.sqrt(rounding * gram[j, j])
        root[0, j + 1] = cross[j]
        for i in range(j + 1):
            root[i + 1, j + 1] = gram[i, j]
    residuals[0] = total
    for subset in range(1, 1 << size):
        if popcount(subset) > max_size:
            continue
        bit = lowest_bit(subset)
        parent = subset & (subset - 1)
        above = size if parent == 0 else lowest_bit(parent)
        source = buffers[above]
        pivot = source[bit + 1, bit + 1]
        error = errors[above, bit + 1]
        least = max(tolerance * gram[bit, bit], error * error)
        if dependent[above] or not pivot > least:
            dependent[bit] = True
            residuals[subset] = np.nan
            continue
        dependent[bit] = False
        scale = 1.0 / pivot
        if bit == 0:
            residual = source[0, 0] - source[0, 1] * source[0, 1] * scale
            least = errors[above, 0] + abs(source[0, 1] * scale) * error
        else:
            target = buffers[bit]
            for i in range(bit + 1):
                factor = source[i, bit + 1] * scale
                errors[bit, i] = errors[above, i] + abs(factor) * error
                for j in range(i, bit + 1):
                    target[i, j] = source[i, j] - factor * source[j, bit + 1]
            residual = target[0, 0]
            least = errors[bit, 0]
        residuals[subset] = max(residual, 0.0) + least * least if rounding > 0.0 else residual
    return residuals


@nb.njit(cache=True, nogil=True, inline="always")
def score_one(
    fraction,
    row,
    constant,
    log_slope,
    complement_slope,
    shift,
    linear,
    ceiling,
    pieces,
    scale,
    inverse_width,
):
    """Log evidence from the residual fraction and the model size.

    The common form of every tabulated Gaussian coefficient prior; the formula is that
    of `dbrm.evidence.score.ScoreTable`.
    """
    fraction = min(fraction, ceiling[row])
    if pieces.shape[1] > 0:
        argument = np.log((fraction + scale * (1.0 - fraction)) / fraction)
        return constant[row] + piecewise_one(argument, row, pieces, inverse_width)
    value = constant[row] + linear * fraction
    value += log_slope[row] * np.log(fraction + shift)
    if complement_slope[row] != 0.0:
        value += complement_slope[row] * np.log(1.0 - fraction)
    return value


@nb.njit(cache=True, nogil=True)
def score_of_all(
    residuals,
    floor,
    constant,
    log_slope,
    complement_slope,
    shift,
    linear,
    ceiling,
    pieces,
    scale,
    inverse_width,
):
    """Log evidence of every subset from its residual fraction; impossible ones get ``-inf``.

    Residual fractions below ``floor`` are raised to it (perfect fits).
    """
    values = np.empty(residuals.size)
    if pieces.shape[1] > 0:
        _piecewise_of_all(values, residuals, floor, constant, pieces, scale, inverse_width)
        return values
    for subset in range(residuals.size):
        fraction = residuals[subset]
        row = popcount(subset)
        if not fraction < np.inf or constant[row] == -np.inf:
            values[subset] = -np.inf
            continue
        values[subset] = score_one(
            max(fraction, floor),
            row,
            constant,
            log_slope,
            complement_slope,
            shift,
            linear,
            ceiling,
            pieces,
            scale,
            inverse_width,
        )
    return values


@nb.njit(cache=True, nogil=True)
def _piecewise_of_all(values, residuals, floor, constant, pieces, scale, inverse_width):
    """`score_one` of every subset, block by block: first the logarithms, then the polynomials.

    Taken one after the other they overlap in the processor and cost half.
    """
    arguments = np.empty(BLOCK)
    for start in range(0, residuals.size, BLOCK):
        length = min(BLOCK, residuals.size - start)
        for i in range(length):
            fraction = residuals[start + i]
            # Impossible subsets are computed as perfect ones and overwritten below.
            if not fraction < np.inf or fraction < floor:
                fraction = floor
            fraction = min(fraction, 1.0)
            arguments[i] = np.log((fraction + scale * (1.0 - fraction)) / fraction)
        for i in range(length):
            row = popcount(start + i)
            values[start + i] = constant[row] + piecewise_one(
                arguments[i], row, pieces, inverse_width
            )
        for i in range(length):
            if not residuals[start + i] < np.inf:
                values[start + i] = -np.inf


@nb.njit(cache=True, nogil=True)
def prior_of_all(feature_log_prior, size_log_prior, latent_log_prior):
    """Log prior of every subset: a term per component, for the size, for the latent effects.

    The last ``latent_log_prior.size - 1`` components are latent effects and have their own
    count.
    """
    size = feature_log_prior.size
    n_features = size - latent_log_prior.size + 1
    only_features = (1 << n_features) - 1
    sums = np.zeros(1 << size)
    values = np.empty(1 << size)
    values[0] = size_log_prior[0] + latent_log_prior[0]
    for subset in range(1, 1 << size):
        sums[subset] = sums[subset & (subset - 1)] + feature_log_prior[lowest_bit(subset)]
        values[subset] = (
            sums[subset]
            + size_log_prior[popcount(subset & only_features)]
            + latent_log_prior[popcount(subset >> n_features)]
        )
    return values


@nb.njit(cache=True, nogil=True)
def forbid_orphans(log_prior, parents, needed):
    """Set the log prior of every subset to ``-inf`` that has a feature without its parents.

    Feature ``j`` needs at least ``needed[j]`` of the features marked in row ``j`` of `parents`.
    """
    size = needed.size
    bits = np.zeros(size, dtype=np.int64)
    for j in range(size):
        for k in range(size):
            if parents[j, k]:
                bits[j] |= 1 << k
    for subset in range(log_prior.size):
        for j in range(size):
            if needed[j] > 0 and (subset >> j) & 1 and popcount(subset & bits[j]) < needed[j]:
                log_prior[subset] = -np.inf
                break


@nb.njit(cache=True, nogil=True)
def inclusion_of_all(log_posterior, size):
    """Log of the total mass, and each feature's share of it.

    Halving the table once per feature makes this linear in the number of subsets.
    """
    peak = log_posterior.max()
    mass = np.empty(log_posterior.size)
    for subset in range(mass.size):
        mass[subset] = np.exp(log_posterior[subset] - peak)
    inclusion = np.zeros(size)
    length = mass.size
    for j in range(size):
        length >>= 1
        with_feature = 0.0
        for pair in range(length):
            without = mass[2 * pair]
            include = mass[2 * pair + 1]
            with_feature += include
            mass[pair] = without + include
        inclusion[j] = with_feature
    total = mass[0]
    for j in range(size):
        inclusion[j] /= total
    return peak + np.log(total), inclusion
