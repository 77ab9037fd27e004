"""An estimator of survival times with the conventions of scikit-survival."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from dbrm._typing import Column, FloatArray, Matrix, TableLike
from dbrm.data import split_survival
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.estimators import SettingsEstimator
from dbrm.evidence import find_family
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.posterior import Posterior
from dbrm.posterior.concordance import concordance_index

__all__ = ["DBRMSurvival", "StepFunction"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class StepFunction:
    """A function that is `y` from each of the times `x` on, and `first` before them."""

    x: FloatArray
    y: FloatArray
    first: float

    def __call__(self, time: float | FloatArray) -> Any:
        values = np.concatenate([[self.first], self.y])
        return values[np.searchsorted(self.x, time, side="right")]


class DBRMSurvival(SettingsEstimator, defaults={"family": "cox"}):
    """Deep Bayesian regression of censored survival times, by Cox's model or a Weibull one.

    Every setting is a keyword argument with the meaning given in `dbrm.Settings`; the family is
    ``"cox"`` or ``"weibull"``. The response is a structured array with a boolean field (True where
    the event was seen) and a field of times, as scikit-survival uses.

    Parameters
    ----------
    warm_start
        As in `DBRMRegressor`.

    Attributes
    ----------
    posterior_
        The `dbrm.Posterior`.
    unique_times_
        The different event times of the training rows, at which curves are given.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    posterior_: Posterior
    unique_times_: FloatArray

    def fit(
        self,
        X: TableLike,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        entry: Any = None,
        strata: Any = None,
    ) -> Self:
        """Search for models of the survival times `y`."""
        if not isinstance(find_family(self.family), SurvivalFamily):
            msg = f"DBRMSurvival needs family='cox' or 'weibull'; got family={self.family!r}."
            raise InvalidSettingError(msg)
        time, event = _times(y)
        before = getattr(self, "posterior_", None) if self.warm_start else None
        rows = {"sample_weight": sample_weight, "offset": offset, "entry": entry, "strata": strata}
        found = self._search(X, time, before, event=event, **rows)
        self.posterior_ = found.prepare_predictions()
        self.unique_times_ = np.unique(time[event == 1])
        return self

    def predict(self, X: TableLike, offset: Any = None) -> Column:
        """Risk scores: the higher, the earlier the event."""
        check_is_fitted(self)
        return self.posterior_.predict_risk(X, offset=offset)

    def predict_survival_function(
        self, X: TableLike, return_array: bool = False, strata: Any = None
    ) -> npt.NDArray[Any]:
        """Probability of surviving, for each row a function of time.

        With `return_array` a matrix, rows by `unique_times_`.
        """
        return self._functions(self._survival(X, strata), 1.0, return_array)

    def predict_cumulative_hazard_function(
        self, X: TableLike, return_array: bool = False, strata: Any = None
    ) -> npt.NDArray[Any]:
        """Minus the logarithm of the probability of surviving; as `predict_survival_function`."""
        with np.errstate(divide="ignore"):
            hazard = -np.log(self._survival(X, strata))
        return self._functions(hazard, 0.0, return_array)

    def _survival(self, X: TableLike, strata: Any) -> Matrix:
        check_is_fitted(self)
        return self.posterior_.predict_survival(X, self.unique_times_, strata=strata).survival

    def _functions(self, values: Matrix, first: float, return_array: bool) -> npt.NDArray[Any]:
        if return_array:
            return values
        out = np.empty(len(values), dtype=object)
        out[:] = [StepFunction(self.unique_times_, row, first) for row in values]
        return out

    def score(self, X: TableLike, y: Any) -> float:
        """Concordance index of the risk scores (Harrell)."""
        time, event = _times(y)
        return concordance_index(time, event == 1, self.predict(X))


def _times(y: Any) -> tuple[Column, Column]:
    times = split_survival(y)
    if times is None:
        msg = (
            "DBRMSurvival needs y as a structured array with a boolean field (True where the event "
            "was seen) and a field of times, as np.array([(True, 3.5)], dtype=[('event', bool), "
            "('time', float)]); or use dbrm.fit(X, time, event=event, family='cox')."
        )
        raise InvalidDataError(msg)
    return times
