r"""May the intercept of a Gaussian model be zero? What the data say of it.

It sees residual sums of squares only: :math:`R_1` of a model with an intercept and :math:`p`
columns, :math:`R_0 \ge R_1` of the columns alone.
"""

from math import isinf, log, log1p

__all__ = ["log_factor_of_zero"]


def log_factor_of_zero(excess: float, n: float, size: int) -> float:
    r"""Return the log Bayes factor of no intercept.

    .. math:: B = \sqrt{1 + n} \left\{\frac{R_1 + (R_0 - R_1) / (1 + n)}{R_0}\right\}^{(n - p) / 2}

    under a unit-information prior of the intercept, :math:`\beta_0 \mid \sigma \sim
    N(0, n \, \mathrm{var}(\hat\beta_0))`, where it is free, and the same flat priors of the slopes
    and of :math:`\log \sigma` in both models. With :math:`R_0 / R_1 = 1 + t^2 / (n - p - 1)` it is
    nearly :math:`\sqrt n \, e^{-t^2 / 2}`.

    Parameters
    ----------
    excess
        :math:`R_0 / R_1 - 1`.
    size
        The number :math:`p` of columns.
    """
    # A perfect fit with an intercept has no end of excess; the factor has a limit.
    gain = -log1p(n) if isinf(excess) else log1p(excess / (1.0 + n)) - log1p(excess)
    return 0.5 * log(1.0 + n) + 0.5 * (n - size) * gain
