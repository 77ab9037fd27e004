"""What a posterior says about new rows: the prediction methods of `dbrm.Posterior`.

The mathematics is in `dbrm.posterior.prediction`; here are the arguments, and the warning where
rows are far outside the training data.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix, TableLike
from dbrm.data import Recipe
from dbrm.errors import InvalidSettingError
from dbrm.formula import FormulaRecipe
from dbrm.posterior.extrapolation import Guard, RangeCheck
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.prediction import AveragedModels
from dbrm.posterior.rows import split_rows
from dbrm.posterior.source import Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PredictionMethods", "check_level"]

Extrapolate = Literal["hold", "follow"]


class PredictionMethods(ABC):
    """Predictions averaged over models, for new rows."""

    recipe: Recipe | FormulaRecipe
    _source: Source

    @property
    @abstractmethod
    def _averaged(self) -> AveragedModels:
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
        return np.concatenate([block.mean() for block in self._blocks(X, *extras)])

    def predict_sd(
        self,
        X: TableLike,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Column:
        """Standard deviation of the predictive distribution; see `predict`."""
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
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Quantiles of the predictive distribution, one column per level; see `predict`."""
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            msg = f"q must hold levels strictly between 0 and 1; got q={q!r}."
            raise InvalidSettingError(msg)
        blocks = [
            np.column_stack([block.quantile(float(level)) for level in levels])
            for block in self._blocks(X, offset, trials, exposure, extrapolate)
        ]
        return np.concatenate(blocks)

    def predict_interval(
        self,
        X: TableLike,
        level: float = 0.95,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Equal-tailed predictive interval, lower and upper limits in columns; see `predict`."""
        check_level(level)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        extras = {"offset": offset, "trials": trials, "exposure": exposure}
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
        extrapolate: Extrapolate | None = None,
    ) -> Matrix:
        """Draws from the predictive distribution, one row per draw, one column per row of `X`."""
        rng = np.random.default_rng(random_state)
        blocks = self._blocks(X, offset, trials, exposure, extrapolate)
        return np.concatenate([block.sample(rng, draws) for block in blocks], axis=1)

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
        return Guard(self._averaged, self._source.table)

    def _blocks(
        self,
        X: TableLike,
        offset: Any,
        trials: Any,
        exposure: Any,
        extrapolate: Extrapolate | None,
    ) -> Iterator[StudentMixture | FamilyMixture]:
        if extrapolate not in (None, "hold", "follow"):
            msg = f"extrapolate must be 'hold' or 'follow'; got extrapolate={extrapolate!r}."
            raise InvalidSettingError(msg)
        averaged = self._averaged
        if extrapolate is not None and averaged.hold != (extrapolate == "hold"):
            averaged = replace(averaged, hold=not averaged.hold)
        check = RangeCheck(averaged)
        for block in split_rows(self.recipe, X, offset, trials, exposure):
            check.look(block[0])
            yield from averaged.blocks(*block)
        check.warn()


def check_level(level: float) -> None:
    """Raise unless this is the probability of an interval."""
    if not 0.0 < level < 1.0:
        msg = f"level must be strictly between 0 and 1; got level={level!r}."
        raise InvalidSettingError(msg)
