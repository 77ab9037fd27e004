"""A joint likelihood as a function of one linear predictor, ancillary parameters profiled."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray
from dbrm.evidence.joint.likelihood import JointLikelihood
from dbrm.evidence.joint.newton import Maximum, maximise
from dbrm.evidence.predictor import AbstractPredictorLikelihood, Slope

__all__ = ["JointPredictorLikelihood"]


@final
@dataclass(frozen=True, eq=False)
class JointPredictorLikelihood(AbstractPredictorLikelihood):
    """The likelihood of predictors that move together; several in the direction of their scores."""

    joint: JointLikelihood

    @cached_property
    def _null(self) -> Maximum:
        return self._profile(np.zeros(self.response.size), self.joint.start())

    @cached_property
    def _direction(self) -> FloatArray:
        score = self._null.point.score
        if len(score) == 1:
            return np.ones(1)
        vector = np.linalg.eigh(score @ score.T)[1][:, -1]
        return np.asarray(vector * np.sign(vector[np.argmax(np.abs(vector))]))

    def _profile(self, eta: Column, start: FloatArray) -> Maximum:
        nothing = np.zeros((0, eta.size))
        return maximise(self.joint, nothing, self.offset + eta, start, np.zeros(start.size))

    def at(self, eta: Column) -> Slope:
        if self.joint.n_predictors > 1:
            predictors = self.offset + np.outer(self._direction, eta)
            with np.errstate(all="ignore"):
                point = self.joint.at(self._null.parameters, predictors)
        else:
            point = self._profile(eta, self._start(eta)).point
        if not np.isfinite(point.value):
            return Slope(-np.inf, eta, eta)
        score = self._direction @ point.score
        return Slope(point.value, score, self._direction**2 @ point.row_information)

    def _start(self, eta: Column) -> FloatArray:
        """Ancillary parameters that move the mean of the predictor to nothing."""
        null = self._null.parameters
        return null - self.joint.shift[:, 0] * float(np.average(eta, weights=self.weights))
