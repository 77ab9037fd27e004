r"""May the best formula be an approximation of another one?

Every number that is fitted brings an approximation of a smooth function about one digit closer. A
formula with as many fitted numbers as its fit has digits, :math:`-\log_{10}(\hat\sigma / s_y)`,
fits within the errors whether it is right or not. In an approximation they are any numbers; in a
law many are short ones, 1, 1/2 or :math:`2\pi`, and a coefficient that is such a number to its
error is none that was fitted.
"""

from math import log10
from typing import TYPE_CHECKING

import numpy as np

from dbrm.features import Feature, Projection, walk
from dbrm.features.numbers import count_digits, is_recognised
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.posterior.model import FittedModel
    from dbrm.posterior.posterior import Posterior

__all__ = ["count_fitted_numbers", "may_approximate"]

# Standard errors within which an intercept counts as zero.
_ZERO = 3.0
# Digits that the fit must have beyond those for its fitted numbers.
_SPARE = 0.5


def may_approximate(posterior: "Posterior") -> bool:
    """Whether the best formula has too many fitted numbers for the precision of its fit.

    So has one without features, which says nothing. A perfect fit has all digits there are.
    """
    model = posterior.best_model
    if not model.terms:
        return True
    best = max(posterior.path_steps, key=lambda step: step.probability, default=None)
    if model.fit.status == Status.PERFECT_FIT or best is None or not best.r2 < 1.0:
        return False
    return count_fitted_numbers(model) > -0.5 * log10(1.0 - max(best.r2, 0.0)) - _SPARE


def count_fitted_numbers(model: "FittedModel") -> int:
    """Coefficients and an intercept that are no short numbers; numbers inside but 0 and 1.

    An intercept that may be zero does not count either.
    """
    fit = model.fit
    errors = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0) * fit.dispersion)
    estimates = list(zip(fit.coefficients.tolist(), errors.tolist(), strict=True))
    if not fit.has_intercept or abs(estimates[0][0]) <= _ZERO * estimates[0][1]:
        del estimates[0]
    fitted = sum(not is_recognised(value, error) for value, error in estimates)
    return fitted + sum(_numbers_inside(term) for term in model.terms)


def _numbers_inside(feature: Feature) -> int:
    """Weights and biases with at least one digit."""
    nodes = [node for node in walk(feature) if isinstance(node, Projection)]
    numbers = [number for node in nodes for number in (*node.weights, node.bias or 0.0)]
    return sum(count_digits(number) > 0 for number in numbers)
