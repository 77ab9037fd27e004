"""What a posterior says about new rows: the prediction methods of `dbrm.Posterior`.

The mathematics is in `dbrm.posterior.prediction`; here are the arguments, and the warning where
rows are far outside the training data.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix, TableLike
from dbrm.data import (
    Label,
    Recipe,
    check_response,
    check_vector,
    read_classes,
    read_labels,
    split_survival,
)
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import ClassFamily
from dbrm.formula import FormulaRecipe
from dbrm.posterior.class_mixture import ClassMixture
from dbrm.posterior.concordance import concordance_index
from dbrm.posterior.extrapolation import Guard, RangeCheck
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.prediction import AveragedModels, Mixture
from dbrm.posterior.record import RunRecord
from dbrm.posterior.rows import split_rows
from dbrm.posterior.source import Source
from dbrm.posterior.survival_mixture import SurvivalMixture

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PredictionMethods", "SurvivalCurves", "check_level", "survival_times"]

Extrapolate = Literal["hold", "follow"]
IntervalOf = Literal["response", "mean"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SurvivalCurves:
    """Probabilities of surviving `times`, with the ends of credible bands: rows by times."""

    times: FloatArray
    survival: Matrix
    lower: Matrix
    upper: Matrix


class PredictionMethods(ABC):
    """Predictions averaged over models, for new rows."""

    recipe: Recipe | FormulaRecipe
    record: RunRecord
    _source: Source

    @property
    @abstractmethod
    def _predictive(self) -> AveragedModels:
        """The models that predictions average over, with their fits."""

    def predict(
        self,
        X: TableLike,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Column:
        """Posterior-averaged mean of the response for new rows.

        Of survival times: under ``family="cox"`` the averaged log hazard ratio against a row of
        zeros, larger where the risk is higher; under ``"weibull"`` the median time. Of classes
        (``"ordinal"``, ``"multinomial"``) the label of the most probable one.

        Parameters
        ----------
        offset, trials, exposure
            Of the new rows; by default no offset, one trial, one unit of exposure.
        extrapolate
            How rows outside the training range of a covariate are predicted: ``"hold"`` the
            covariate at the edge, or ``"follow"`` the formula. Models without functions and
            products always go on linearly. By default as the setting of this name.

        Warns
        -----
        DBRMWarning
            If most of the posterior probability of some row is on models that use a column
            far outside its range in training; not under ``"follow"``.
        """
        extras = (offset, trials, exposure, extrapolate)
        found = np.concatenate([_point(block) for block in self._blocks(X, *extras)])
        return np.asarray(self._label(found))

    def predict_proba(
        self,
        X: TableLike,
        *,
        offset: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Probability of each class for new rows, averaged over models.

        Returns
        -------
        array
            One column per class, in the order of `classes`; rows add to one. Of a binomial
            response the columns are zero and one.
        """
        parts = []
        for block in self._blocks(X, offset, None, None, extrapolate):
            if isinstance(block, ClassMixture):
                parts.append(block.probabilities)
            elif isinstance(block, FamilyMixture) and block.family.name == "binomial":
                mean = block.mean()
                parts.append(np.column_stack([1.0 - mean, mean]))
            else:
                msg = "predict_proba is for classes: family='binomial', 'ordinal' or 'multinomial'."
                raise InvalidSettingError(msg)
        return np.concatenate(parts)

    @property
    def classes(self) -> tuple[Label, ...]:
        """Labels of the classes in the order of `predict_proba`; empty for other responses."""
        return self.record.classes

    def ranked_probability_score(self, X: TableLike, y: Any, *, offset: Any = None) -> float:
        r"""Mean ranked probability score of ordered classes; zero is perfect.

        .. math:: \frac1n \sum_i \sum_{k < K} \{P(y \le k \mid x_i) - 1(y_i \le k)\}^2

        (Epstein 1969), which counts how far off the probable classes are.
        """
        chances = self.predict_proba(X, offset=offset)
        family = None if self._source.glm is None else self._source.glm.family
        if not isinstance(family, ClassFamily) or not family.ordered:
            msg = "ranked_probability_score is for ordered classes: family='ordinal'."
            raise InvalidSettingError(msg)
        cumulative = np.cumsum(chances, axis=1)[:, :-1]
        seen = self.number_classes(y, len(chances))[:, None] <= np.arange(cumulative.shape[1])
        return float(np.mean(np.sum((cumulative - seen) ** 2, axis=1)))

    def number_classes(self, y: Any, n_rows: int) -> Column:
        """Numbers of the classes that `y` holds by label."""
        labels, codes = read_classes(y, n_rows, ordered=False)
        known = {str(label): number for number, label in enumerate(self.classes)}
        unknown = [label for label in labels if str(label) not in known]
        if unknown:
            msg = f"y holds {unknown[0]!r}; the classes in training were {', '.join(known)}."
            raise InvalidDataError(msg)
        numbers = np.array([known[str(label)] for label in labels], dtype=np.float64)
        return np.asarray(numbers[codes.astype(np.int64)])

    def _label(self, found: FloatArray) -> Any:
        """Labels in the place of the numbers of classes; other responses as they are."""
        if not self.classes:
            return found
        if np.isnan(found).any():
            row = int(np.flatnonzero(np.isnan(found).reshape(len(found), -1).any(axis=1))[0])
            msg = (
                f"No model is defined in row {row} of X (rows count from 0), which has no class; "
                "see extrapolation(X)."
            )
            raise InvalidDataError(msg)
        return np.array(self.classes)[found.astype(np.int64)]

    def predict_sd(
        self,
        X: TableLike,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Column:
        """Standard deviation of the predictive distribution; see `predict`.

        Of survival times, whose tail beyond the data would decide, that of the linear predictor.
        """
        extras = (offset, trials, exposure, extrapolate)
        return np.concatenate([block.standard_deviation() for block in self._blocks(X, *extras)])

    def predict_quantiles(
        self,
        X: TableLike,
        q: float | FloatArray | list[float],
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        strata: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Quantiles of the predictive distribution, one column per level; see `predict`.

        Of survival times under ``family="cox"`` they are event times of the training rows, and
        infinite beyond the last of them; `strata` are needed if the fit had some. Of ordered
        classes they are labels.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            msg = f"q must hold levels strictly between 0 and 1; got q={q!r}."
            raise InvalidSettingError(msg)
        blocks = [
            np.column_stack([block.quantile(float(level)) for level in levels])
            for block in self._blocks(X, offset, trials, exposure, extrapolate, strata)
        ]
        return np.asarray(self._label(np.concatenate(blocks)))

    def predict_interval(
        self,
        X: TableLike,
        level: float = 0.95,
        *,
        of: IntervalOf = "response",
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        strata: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Equal-tailed interval of new rows, lower and upper limits in columns; see `predict`.

        Parameters
        ----------
        of
            ``"response"`` for the interval that a new response falls into (R's
            ``interval="prediction"``), ``"mean"`` for the credible interval of its mean
            (``"confidence"``): of a binomial response that of the probability. Both account for
            the uncertainty about models and coefficients.
        """
        check_level(level)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        if of not in ("response", "mean"):
            msg = f"of must be 'response' or 'mean'; got of={of!r}."
            raise InvalidSettingError(msg)
        if of == "mean":
            blocks = self._blocks(X, offset, trials, exposure, extrapolate, strata)
            return np.concatenate([_mean_interval(block, ends) for block in blocks])
        extras = {"offset": offset, "trials": trials, "exposure": exposure, "strata": strata}
        return self.predict_quantiles(X, ends, **extras, extrapolate=extrapolate)

    def sample_predictive(
        self,
        X: TableLike,
        draws: int = 1000,
        random_state: int | None = None,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        strata: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Draws from the predictive distribution, one row per draw, one column per row of `X`."""
        rng = np.random.default_rng(random_state)
        blocks = self._blocks(X, offset, trials, exposure, extrapolate, strata)
        drawn = np.concatenate([block.sample(rng, draws) for block in blocks], axis=1)
        return np.asarray(self._label(drawn))

    def predict_risk(
        self, X: TableLike, *, offset: Any = None, extrapolate: Extrapolate | None = None
    ) -> Column:
        """Averaged linear predictor of survival times, signed so that higher is earlier.

        The log hazard ratio under ``family="cox"``, minus the log time under ``"weibull"``.
        """
        blocks = self._blocks(X, offset, None, None, extrapolate)
        return np.concatenate([_survival_only(block, "predict_risk").risk() for block in blocks])

    def concordance(self, X: TableLike, y: Any, event: Any = None, *, offset: Any = None) -> float:
        """Share of comparable pairs of rows whose risks are in the order of their times.

        Parameters
        ----------
        y, event
            Times, and 1 where the event was seen; or a structured array of both.
        """
        risk = self.predict_risk(X, offset=offset)
        time, seen = survival_times(y, event, risk.size)
        return concordance_index(time, seen == 1, risk)

    def predict_survival(
        self,
        X: TableLike,
        times: float | FloatArray | Sequence[float],
        level: float = 0.95,
        *,
        offset: Any = None,
        strata: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> SurvivalCurves:
        """Survival curves of new rows with bands, for ``family="cox"`` and ``"weibull"``.

        Parameters
        ----------
        times
            Times at which to give the curves.
        level
            Posterior probability inside the band, at each time by itself.
        strata
            Labels of the rows' strata, if the fit had some.

        Returns
        -------
        SurvivalCurves
            ``times``, and ``survival``, ``lower``, ``upper``, rows by times.
        """
        check_level(level)
        wanted = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if wanted.ndim != 1 or not np.all(np.isfinite(wanted) & (wanted >= 0)):
            msg = f"times must be finite and not negative; got times={times!r}."
            raise InvalidSettingError(msg)
        parts = []
        for block in self._blocks(X, offset, None, None, extrapolate, strata):
            mixture = _survival_only(block, "predict_survival")
            curves = [mixture.curve(float(time), level) for time in wanted]
            parts.append(np.array(curves).reshape(wanted.size, 3, -1).transpose(1, 2, 0))
        survival, lower, upper = np.concatenate(parts, axis=1)
        return SurvivalCurves(wanted, survival, lower, upper)

    def extrapolation(self, X: TableLike) -> "pd.DataFrame":
        """How far each row is outside the data that the models were trained on.

        Returns
        -------
        DataFrame
            ``dropped_mass``: posterior share of the averaged models that are undefined or
            overflow at the row, and are left out of its predictions; where it is one there is
            no prediction. ``outside_mass``: share of the models with a feature outside its
            range in training (undefined ones included). ``features``: those features, the
            most probable first.

        Notes
        -----
        A feature is judged by its own value. A bounded one, such as ``sin(x)``, may stay
        within its range although ``x`` does not.
        """
        return self._guard.report(self.recipe.apply(X))

    @cached_property
    def _guard(self) -> Guard:
        return Guard(self._predictive, self._source.table)

    def _blocks(
        self,
        X: TableLike,
        offset: Any,
        trials: Any,
        exposure: Any,
        extrapolate: Extrapolate | None,
        strata: Any = None,
    ) -> Iterator[Mixture]:
        if extrapolate not in (None, "hold", "follow"):
            msg = f"extrapolate must be 'hold' or 'follow'; got extrapolate={extrapolate!r}."
            raise InvalidSettingError(msg)
        averaged = self._predictive
        if extrapolate is not None and averaged.hold != (extrapolate == "hold"):
            averaged = replace(averaged, hold=not averaged.hold)
        check, start = RangeCheck(averaged), 0
        for block in split_rows(self.recipe, X, offset, trials, exposure):
            check.look(block[0])
            stop = start + block[0].n_rows
            yield from averaged.blocks(*block, self.number_strata(strata, start, stop))
            start = stop
        check.warn()

    def number_strata(self, strata: Any, start: int, stop: int) -> IntArray | None:
        """Numbers of the strata of some rows; ``None`` if there are some but not given."""
        known = self.record.strata
        if not known:
            return np.zeros(stop - start, dtype=np.int64)
        if strata is None:
            return None
        labels, numbers = read_labels(strata, np.shape(strata)[0], "strata")
        for label in labels:
            if label not in known:
                msg = f"strata holds {label!r}; the strata in training were {', '.join(known)}."
                raise InvalidDataError(msg)
        positions = np.array([known.index(label) for label in labels], dtype=np.int64)
        return np.asarray(positions[numbers.astype(np.int64)][start:stop])


def survival_times(y: Any, event: Any, n_rows: int) -> tuple[Column, Column]:
    """Times and events, of two vectors or of a structured array of both."""
    both = split_survival(y)
    if both is not None:
        return both
    seen = np.ones(n_rows) if event is None else event
    return check_response(y, n_rows), check_vector(seen, n_rows, name="event")


def _mean_interval(block: Mixture, ends: list[float]) -> Matrix:
    if not isinstance(block, StudentMixture | FamilyMixture):
        msg = (
            "of='mean' is for responses with a mean; use predict_proba for classes, "
            "predict_survival for survival times."
        )
        raise InvalidSettingError(msg)
    return np.column_stack([block.mean_quantile(end) for end in ends])


def _survival_only(block: Mixture, method: str) -> SurvivalMixture:
    if not isinstance(block, SurvivalMixture):
        msg = f"{method} is for survival times: family='cox' or 'weibull'."
        raise InvalidSettingError(msg)
    return block


def _point(block: Mixture) -> Column:
    """What is predicted for the rows of a block."""
    if isinstance(block, SurvivalMixture):
        return block.point()
    return block.most_probable() if isinstance(block, ClassMixture) else block.mean()


def check_level(level: float) -> None:
    """Raise unless this is the probability of an interval."""
    if not 0.0 < level < 1.0:
        msg = f"level must be strictly between 0 and 1; got level={level!r}."
        raise InvalidSettingError(msg)
