"""Weibull survival times: an accelerated failure time model with censoring."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import register
from dbrm.evidence.joint.likelihood import JointLikelihood, RowPoint
from dbrm.evidence.joint.survival import SurvivalFamily, SurvivalTimes
from dbrm.evidence.observations import Observations

__all__ = ["Weibull", "WeibullLikelihood"]


@register
@final
@dataclass(frozen=True, slots=True)
class Weibull(SurvivalFamily):
    r"""Times with :math:`\log T = \beta_0 + x'\beta + \sigma \log E`, :math:`E` exponential.

    The cumulative hazard is :math:`\Lambda(t | x) = e^{u}` with
    :math:`u = (\log t - \beta_0 - x'\beta)/\sigma`; the shape of the Weibull distribution is
    :math:`1/\sigma`. The coefficients are those of R's ``survreg``: positive ones prolong life.
    """

    name = "weibull"

    @property
    def label(self) -> str:
        return "Weibull survival"

    def bind(self, observations: Observations) -> "WeibullLikelihood":
        if observations.strata is not None:
            msg = "strata= belongs to family='cox'; for 'weibull' make them a covariate."
            raise InvalidSettingError(msg)
        return WeibullLikelihood(SurvivalTimes.of(observations, self.name))

    def predictor_label(self, response: str, classes: Sequence[object] = ()) -> str:  # noqa: ARG002
        return f"log({response})"


@final
class WeibullLikelihood(JointLikelihood):
    r"""Log likelihood of censored Weibull times in :math:`(\beta_0, \log\sigma)` and predictors.

    .. math:: \ell_i = \delta_i (u_i - \log\sigma - \log t_i) - e^{u_i} + e^{u_i^0},

    where :math:`u_i^0` belongs to the time of entry, if there is one. Strata are not for this
    family.
    """

    shift = np.array([[1.0], [0.0]])
    intercept = 0

    def __init__(self, times: SurvivalTimes) -> None:
        self.times = times
        self.n_rows = times.time.size
        self.n = times.n_events
        self._log_time = np.log(times.time)
        with np.errstate(divide="ignore"):
            self._log_entry = np.log(times.entry)
        self._has_entry = bool(np.any(times.entry > 0))

    def start(self) -> FloatArray:
        times = self.times
        total = float(times.weights @ (times.time - times.entry))
        return np.array([np.log(total / times.n_events), 0.0])

    def at(self, ancillary: FloatArray, eta: Matrix) -> RowPoint:
        constant, log_scale = ancillary
        inverse = np.exp(-log_scale)
        location = constant + eta[0]
        weights, event = self.times.weights, self.times.event
        u = (self._log_time - location) * inverse
        hazard = np.exp(u)
        rest = event - hazard
        rows = np.where(event, u - log_scale - self._log_time, 0.0) - hazard
        # Derivatives in the location and in the log scale, of u: -inverse and -u.
        score, scale_score = -rest * inverse, -rest * u - event
        second, mixed = hazard * inverse**2, -rest * inverse + hazard * u * inverse
        scale_second = -rest * u + hazard * u**2
        if self._has_entry:
            before = (self._log_entry - location) * inverse
            entered = np.exp(before)
            finite = np.where(np.isfinite(before), before, 0.0)
            rows = rows + entered
            score = score - entered * inverse
            scale_score = scale_score - entered * finite
            second = second - entered * inverse**2
            mixed = mixed - entered * (1.0 + finite) * inverse
            scale_second = scale_second - entered * (finite + finite**2)
        value = float(weights @ rows)
        second, mixed = weights * second, weights * mixed
        cross = float(mixed.sum())
        return RowPoint(
            value=value if np.isfinite(value) else -np.inf,
            score=(weights * score)[None],
            ancillary_score=np.array([weights @ score, weights @ scale_score]),
            weight=second[None, None],
            cross=np.stack([second, mixed])[:, None],
            ancillary_information=np.array(
                [[second.sum(), cross], [cross, float(weights @ scale_second)]]
            ),
        )
