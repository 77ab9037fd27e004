r"""Slopes with an unknown common precision beside latent effects.

As in models without them, spike and tails of the prior often give two modes, so that the
precision is summed over a grid of its logarithm, and the other hyperparameters are integrated
at every node.
"""

from collections.abc import Callable
from dataclasses import replace
from math import exp, inf, log

import numpy as np

from dbrm.evidence.coefficient_priors.radial import NormalLogGamma
from dbrm.evidence.hyper_integration import Integral
from dbrm.evidence.nested_laplace import Conditional, Point
from dbrm.status import Status

__all__ = ["integrate_precision"]

_STEP = 0.7
_MOST = 40
# Once the terms have fallen so far below the best one they do not rise again.
_DROP = 12.0


def integrate_precision(
    integral: Callable[[Conditional, Point], Integral],
    model: Conditional,
    prior: NormalLogGamma,
    start: Point,
) -> tuple[float, Status]:
    """Log evidence, from a model with any precision of its slopes and a start in it."""
    top = log(max(prior.shape, 1.0) / prior.rate) + 3.0
    terms: list[float] = []
    status = Status.OK
    for node in range(_MOST):
        log_precision = top - _STEP * node
        at_node = replace(model, prior=replace(model.prior, rate=exp(log_precision)))
        point = at_node.at(start.theta, (start.delta, start.beta))
        if point.value == -inf:
            return -inf, point.status
        found = integral(at_node, point)
        start, status = found.points[0], max(status, found.points[0].status)
        terms.append(found.log_value + prior.log_density_of_log_precision(log_precision))
        if len(terms) > 12 and terms[-1] < max(terms) - _DROP and terms[-1] < terms[-2]:
            break
    peak = max(terms)
    return peak + log(_STEP * float(np.sum(np.exp(np.array(terms) - peak)))), status
