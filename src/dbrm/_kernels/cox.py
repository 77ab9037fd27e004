r"""Cox's partial likelihood with Efron's ties, strata and left truncation.

Groups are the different event times of each stratum, in order. A row is at risk in the groups
``first`` to ``last``; its event, if there is one, is in group ``last``. With
:math:`r_i = w_i e^{\eta_i}`, and in each group :math:`S` the sum of :math:`r` over the rows at
risk, :math:`D` that over the events, :math:`d` their weight and :math:`K` its number of terms,

.. math:: \ell = \sum_i w_i \delta_i \eta_i - \sum_g \frac{d_g}{K_g} \sum_{l=0}^{K_g - 1}
    \log\Bigl(S_g - \frac{l}{K_g} D_g\Bigr) .

With :math:`K_g = d_g` a row of weight two is the row twice. Sums run from the last group to the
first, so that small risk sets keep their digits.
"""

import numba as nb
import numpy as np

__all__ = ["FIRST", "SQUARE", "TOTAL", "cox_at", "cox_hazard_slopes", "cox_information"]

# Sums in each group, with s = 1 - l/K D/S: of d/K / s, of the same times l/K; of d/K / s^2, times
# l/K, times its square; and S itself, by which they are not divided: it may be tiny.
FIRST, SHARE, SQUARE, SQUARE_SHARE, SQUARE_SQUARE, TOTAL = range(6)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def cox_at(eta, weights, event, stratum, groups, first, last, terms, order, begins, late, enters):
    """Log likelihood, r, sums of the groups, and the expected number of events of each row.

    `groups` is the stratum of each group, `terms` their numbers of terms; `order` the rows by
    their last group, of which those of group g begin at ``begins[g]``; `late` the rows that enter
    after the first group of their stratum, by their first group, which begin at ``enters[g]``.
    """
    n, n_groups = eta.size, groups.size
    n_strata = int(stratum.max()) + 1 if n else 0
    shift = np.full(n_strata, -np.inf)
    for i in range(n):
        if weights[i] > 0.0 and eta[i] > shift[stratum[i]]:
            shift[stratum[i]] = eta[i]
    risk = np.empty(n)
    value = 0.0
    for i in range(n):
        risk[i] = 0.0
        if weights[i] > 0.0:
            risk[i] = weights[i] * np.exp(eta[i] - shift[stratum[i]])
        if event[i]:
            value += weights[i] * eta[i]
    sums = np.zeros((n_groups, 6))
    total = 0.0
    for g in range(n_groups - 1, -1, -1):
        if g == n_groups - 1 or groups[g] != groups[g + 1]:
            total = 0.0
        else:
            # Rows that enter later are not yet at risk.
            for position in range(enters[g + 1], enters[g + 2]):
                total -= risk[late[position]]
        tied, weight = 0.0, 0.0
        for position in range(begins[g], begins[g + 1]):
            i = order[position]
            total += risk[i]
            if event[i]:
                tied += risk[i]
                weight += weights[i]
        share = weight / terms[g]
        for term in range(terms[g]):
            part = term / terms[g]
            inverse = 1.0 / (1.0 - part * tied / total)
            value += share * (np.log(inverse) - np.log(total))
            sums[g, FIRST] += share * inverse
            sums[g, SHARE] += share * part * inverse
            sums[g, SQUARE] += share * inverse * inverse
            sums[g, SQUARE_SHARE] += share * part * inverse * inverse
            sums[g, SQUARE_SQUARE] += share * part * part * inverse * inverse
        sums[g, TOTAL] = total
        value -= weight * shift[groups[g]]
    hazard = np.empty(n_groups + 1)
    hazard[0] = 0.0
    for g in range(n_groups):
        hazard[g + 1] = hazard[g] + sums[g, FIRST] / sums[g, TOTAL]
    expected = np.zeros(n)
    for i in range(n):
        if last[i] >= first[i]:
            expected[i] = hazard[last[i] + 1] - hazard[first[i]]
            if event[i]:
                expected[i] -= sums[last[i], SHARE] / sums[last[i], TOTAL]
            expected[i] *= risk[i]
    return value, risk, sums, expected, shift


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _add(columns, i, factor, out):
    for j in range(len(columns)):
        out[j] += factor * columns[j, i]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def cox_information(columns, gram, risk, sums, event, groups, order, begins, late, enters):
    """Take the part of the groups from the weighted Gram matrix of the rows, in place."""
    q, n_groups = len(columns), groups.size
    total, tied = np.zeros(q), np.zeros(q)
    for g in range(n_groups - 1, -1, -1):
        if g == n_groups - 1 or groups[g] != groups[g + 1]:
            total[:] = 0.0
        else:
            for position in range(enters[g + 1], enters[g + 2]):
                i = late[position]
                _add(columns, i, -risk[i], total)
        tied[:] = 0.0
        for position in range(begins[g], begins[g + 1]):
            i = order[position]
            _add(columns, i, risk[i], total)
            if event[i]:
                _add(columns, i, risk[i], tied)
        c0, c1, c2 = sums[g, SQUARE], sums[g, SQUARE_SHARE], sums[g, SQUARE_SQUARE]
        unit = 1.0 / sums[g, TOTAL]
        for j in range(q):
            mean, dead = unit * total[j], unit * tied[j]
            for k in range(j + 1):
                change = (c0 * mean - c1 * dead) * (unit * total[k])
                gram[j, k] -= change + (c2 * dead - c1 * mean) * (unit * tied[k])
    for j in range(q):
        for k in range(j):
            gram[k, j] = gram[j, k]


@nb.njit(cache=True, nogil=True, error_model="numpy")
def cox_hazard_slopes(columns, risk, sums, event, groups, order, begins, late, enters):
    """Derivatives of the jumps of the baseline hazard in the coefficients, with a minus sign."""
    q, n_groups = len(columns), groups.size
    out = np.zeros((n_groups, q))
    total, tied = np.zeros(q), np.zeros(q)
    for g in range(n_groups - 1, -1, -1):
        if g == n_groups - 1 or groups[g] != groups[g + 1]:
            total[:] = 0.0
        else:
            for position in range(enters[g + 1], enters[g + 2]):
                i = late[position]
                _add(columns, i, -risk[i], total)
        tied[:] = 0.0
        for position in range(begins[g], begins[g + 1]):
            i = order[position]
            _add(columns, i, risk[i], total)
            if event[i]:
                _add(columns, i, risk[i], tied)
        for j in range(q):
            out[g, j] = sums[g, SQUARE] * total[j] - sums[g, SQUARE_SHARE] * tied[j]
            out[g, j] /= sums[g, TOTAL] ** 2
    return out
