r"""All knots of a column against residuals, by cumulative sums over the sorted rows.

For rows of values :math:`x_i`, factors :math:`p_i` and a knot :math:`c` the columns are
:math:`h_i = p_i \max(0, x_i - c)` and :math:`s_i = p_i I(x_i > c)`. As the knot moves down from
:math:`c` to :math:`c - \delta`, :math:`\sum_i h_i^2` grows by
:math:`2 \delta \sum_i p_i h_i + \delta^2 \sum_i p_i^2` over the rows above it, and all other sums
follow likewise: each knot costs as much as the first, and nothing is ever subtracted.
"""

import numba as nb
import numpy as np

__all__ = ["knot_shares"]


@nb.njit(cache=True, nogil=True)
def knot_shares(values, factor, residuals, spans, starts, least, in_span):
    r"""Share of each residual's squares that a hinge or step at each knot explains.

    Parameters
    ----------
    values
        In ascending order; the rows of all other arrays follow it.
    factor
        What the hinge is multiplied by in each row.
    residuals
        One residual per column, orthogonal to its model.
    spans, starts
        Orthonormal columns of the models; those of residual k are ``starts[k]:starts[k + 1]``, the
        first that of the intercept.
    least
        Fewest rows on either side of a knot, of those in which the factor is not zero.
    in_span
        Columns with a smaller share of their squares outside the model explain nothing.

    Returns
    -------
        Shares of hinges and of steps, ``(2, n_residuals, n_rows)``. The knot of row i is its
        value, if the next value is larger; -1 where there is no knot.
    """
    n, n_residuals = residuals.shape
    shares = np.full((2, n_residuals, n), -1.0)
    squares = np.zeros(n_residuals)
    total = 0
    for i in range(n):
        total += factor[i] != 0.0
        for k in range(n_residuals):
            squares[k] += residuals[i, k] ** 2
    # Over the rows above the knot: of p^2, p h, h^2; then of p and of h with the residuals and with
    # the columns of the models.
    pp = ph = hh = 0.0
    step_residual, hinge_residual = np.zeros(n_residuals), np.zeros(n_residuals)
    step_span, hinge_span = np.zeros(spans.shape[1]), np.zeros(spans.shape[1])
    above = 0
    i, knot = n - 1, values[n - 1]
    while i >= 0:
        gap, knot = knot - values[i], values[i]
        hh += gap * (2.0 * ph + gap * pp)
        ph += gap * pp
        for k in range(n_residuals):
            hinge_residual[k] += gap * step_residual[k]
        for j in range(spans.shape[1]):
            hinge_span[j] += gap * step_span[j]
        if above >= least and total - above >= least:
            for k in range(n_residuals):
                first = starts[k]
                centred_hinge = hh - hinge_span[first] ** 2
                centred_step = pp - step_span[first] ** 2
                left_hinge, left_step = centred_hinge, centred_step
                for j in range(first + 1, starts[k + 1]):
                    left_hinge -= hinge_span[j] ** 2
                    left_step -= step_span[j] ** 2
                if left_hinge > in_span * centred_hinge and squares[k] > 0.0:
                    shares[0, k, i] = hinge_residual[k] ** 2 / (left_hinge * squares[k])
                if left_step > in_span * centred_step and squares[k] > 0.0:
                    shares[1, k, i] = step_residual[k] ** 2 / (left_step * squares[k])
        while i >= 0 and values[i] == knot:
            pp += factor[i] ** 2
            above += factor[i] != 0.0
            for k in range(n_residuals):
                step_residual[k] += factor[i] * residuals[i, k]
            for j in range(spans.shape[1]):
                step_span[j] += factor[i] * spans[i, j]
            i -= 1
    return shares
