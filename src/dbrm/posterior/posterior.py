"""The result of a run: a posterior over models, and what follows from it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix, TableLike
from dbrm.data import Recipe, check_response, check_vector, refuse_other_order
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evolution import Problem
from dbrm.features import Feature
from dbrm.formula import FormulaRecipe
from dbrm.posterior.checks import Checks
from dbrm.posterior.coefficients import averaged_coefficients
from dbrm.posterior.diagnostics import Diagnostics
from dbrm.posterior.effects import Effects
from dbrm.posterior.extrapolation import Guard, RangeCheck
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.latent import LatentEffects
from dbrm.posterior.merge import Merged
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.model import FittedModel
from dbrm.posterior.prediction import AveragedModels, shift_of
from dbrm.posterior.record import RunRecord
from dbrm.posterior.rows import Rows, split_rows
from dbrm.posterior.source import LiveSource, Source
from dbrm.posterior.spelling import Spellings
from dbrm.search import effects_of

if TYPE_CHECKING:
    import os

    import pandas as pd

    from dbrm.report import Plots

__all__ = ["Posterior"]

Extrapolate = Literal["hold", "follow"]


@final
class Posterior:
    """Posterior over models whose features the program built itself.

    Built by `dbrm.fit` and the estimators. Attributes `features` and `models` are
    tables, most probable first.
    """

    def __init__(
        self,
        merged: Merged,
        source: Source,
        recipe: Recipe | FormulaRecipe,
        record: RunRecord,
        diagnostics: Diagnostics,
    ) -> None:
        self._merged = merged
        self.diagnostics = diagnostics
        self._source = source
        self.recipe = recipe
        self.record = record

    @property
    def _problem(self) -> Problem:
        """What the chains worked on; a posterior from a file has none."""
        assert isinstance(self._source, LiveSource)
        return self._source.problem

    @cached_property
    def _inclusion(self) -> FloatArray:
        totals = self._merged.models.add_up(self._merged.probability, len(self._merged.features))
        return np.minimum(totals, 1.0)

    @cached_property
    def features(self) -> "pd.DataFrame":
        """Features with posterior inclusion probability, highest first.

        For chains that sample from the posterior ``frequency`` is the share of their steps
        with the feature in the model, the paper's second estimate (eq. map2).
        """
        import pandas as pd

        order = np.argsort(-self._inclusion, kind="stable")
        chosen = [self._merged.features[j] for j in order]
        columns = {
            "feature": [str(feature) for feature in chosen],
            "inclusion": self._inclusion[order],
            "complexity": [feature.complexity for feature in chosen],
            "depth": [feature.depth for feature in chosen],
            "width": [feature.width for feature in chosen],
        }
        if self._merged.frequency is not None:
            columns["frequency"] = self._merged.frequency[order]
        return pd.DataFrame(columns)

    @cached_property
    def models(self) -> "pd.DataFrame":
        """Models with log evidence, log prior and posterior probability, highest first."""
        import pandas as pd

        table = self._merged.models
        names = [str(feature) for feature in self._merged.features]
        columns = {
            "features": [
                tuple(names[j] for j in table.features_of(row)) for row in range(len(table))
            ],
            "size": table.sizes,
            "log_evidence": table.log_evidence,
            "log_prior": table.log_prior,
            "probability": self._merged.probability,
        }
        if self._source.effects:
            columns["latent"] = [self._effect_names(mask) for mask in self._effect_masks]
        return pd.DataFrame(columns)

    @property
    def _effect_masks(self) -> Masks:
        """Which latent effects each model contains."""
        return effects_of(self._merged.models.latent, len(self._source.effects))

    def _effect_names(self, mask: Mask) -> tuple[str, ...]:
        return tuple(self._source.effects[k].effect.name for k in np.flatnonzero(mask))

    @cached_property
    def _latent(self) -> LatentEffects:
        inclusion = np.minimum(self._merged.probability @ self._effect_masks, 1.0)
        return LatentEffects(self._averaged, inclusion)

    @cached_property
    def latent(self) -> "pd.DataFrame":
        """Latent effects with inclusion probability, highest first.

        ``hyperparameters`` are natural ones (precision, correlation, rate) at the posterior mean
        of the logarithms and logits they are estimated on, given that the effect is in the model.
        """
        if not self._source.effects:
            import pandas as pd

            return pd.DataFrame(columns=["effect", "inclusion", "nodes", "hyperparameters"])
        return self._latent.table()

    def latent_effect(self, name: str, level: float = 0.95) -> "pd.DataFrame":
        """A latent effect along its positions or groups, given that it is in the model.

        Parameters
        ----------
        name
            As in `latent`, such as ``"RW1(time)"``.
        level
            Posterior probability inside the band.

        Returns
        -------
        DataFrame
            The position or group, ``mean``, ``sd``, ``lower``, ``upper``, on the scale of the
            linear predictor.
        """
        return self._latent.curve(name, level)

    @property
    def lost_mass(self) -> float:
        """Upper bound of the posterior share of models evaluated but not kept."""
        return float(np.exp(min(0.0, self._merged.log_lost - self._merged.log_mass)))

    def inclusion(self, feature: str | Feature) -> float:
        """Posterior probability that a feature is in the model, under any equivalent spelling.

        A feature that no retained model contains has probability zero, a covariate that
        every model contains (`always`) probability one. Latent effects go by their names, as in
        `latent`. Where the weights of projections are drawn, ``"tanh(1 + a + b)"`` with any
        weights in parentheses stands for all draws: the probability that one or more of them
        are in the model.
        """
        names = [bound.effect.name for bound in self._source.effects]
        if feature in names:
            share = self._merged.probability @ self._effect_masks[:, names.index(str(feature))]
            return min(float(share), 1.0)
        position = self._spellings.find(feature)
        if position is not None:
            return float(self._inclusion[position])
        draws = self._spellings.draws_of(feature)
        if draws:
            return self._probability_of_any(draws)
        return float(self._spellings.parse(feature) in self._source.always)

    def _probability_of_any(self, positions: list[int]) -> float:
        """Probability of the models with at least one of these features."""
        models = self._merged.models
        chosen = np.zeros(len(self._merged.features))
        chosen[positions] = 1.0
        return min(float(self._merged.probability[models.sum_terms(chosen) > 0.0].sum()), 1.0)

    def aliases(self, feature: str | Feature) -> list[str]:
        """Other spellings met for the same column."""
        position = self._spellings.find(feature)
        spellings = [] if position is None else self._merged.aliases.get(position, [])
        return sorted(str(spelling) for spelling in spellings)

    def features_above(self, threshold: float) -> tuple[Feature, ...]:
        """Features with inclusion above a threshold, those of every model (`always`) first."""
        order = np.argsort(-self._inclusion, kind="stable")
        chosen = [self._merged.features[j] for j in order if self._inclusion[j] > threshold]
        return (*self._source.always, *chosen)

    @property
    def always(self) -> tuple[Feature, ...]:
        """Features that every model contains."""
        return self._source.always

    @cached_property
    def _spellings(self) -> Spellings:
        return Spellings(self._merged, self._source)

    @property
    def best_model(self) -> FittedModel:
        """The most probable model."""
        chosen, effects = self._best
        return self._fitted(chosen, float(self._merged.probability[0]), effects)

    @cached_property
    def median_probability_model(self) -> FittedModel:
        """The model of all features with inclusion above one half (Barbieri and Berger 2004)."""
        chosen, effects = self._median
        models = self._merged.models
        for row in np.flatnonzero(models.sizes == chosen.size):
            same = np.array_equal(models.features_of(int(row)), chosen)
            if same and np.array_equal(self._effect_masks[row], effects):
                return self._fitted(chosen, float(self._merged.probability[row]), effects)
        return self._fitted(chosen, 0.0, effects)

    @property
    def _best(self) -> "tuple[np.typing.NDArray[np.integer[Any]], Mask]":
        """Positions of the features of the most probable model, and its latent effects."""
        return self._merged.models.features_of(0), self._effect_masks[0]

    @property
    def _median(self) -> "tuple[np.typing.NDArray[np.integer[Any]], Mask]":
        """Positions of the features with inclusion above one half; latent effects likewise."""
        effects: Mask = np.asarray(self._merged.probability @ self._effect_masks > 0.5)
        return np.flatnonzero(self._inclusion > 0.5), effects

    def _fitted(
        self,
        chosen: "np.typing.NDArray[np.integer[Any]]",
        probability: float,
        effects: Mask | None = None,
    ) -> FittedModel:
        if effects is None:
            effects = np.zeros(len(self._source.effects), dtype=np.bool_)
        features = tuple(self._merged.features[j] for j in chosen)
        fit = self._source.fit(features, effects)
        glm = self._source.glm
        return FittedModel(
            response=self._left_side,
            terms=self._source.always + features,
            fit=fit,
            probability=probability,
            recipe=self.recipe,
            link=None if glm is None or glm.link.name == "identity" else glm.link,
            latent=self._effect_names(effects),
        )

    @property
    def _left_side(self) -> str:
        """What the linear predictor stands for: the response, or its mean under the link."""
        glm, response = self._source.glm, self.record.response
        if glm is None or glm.link.name == "identity":
            return response
        return f"{glm.link.name}(E[{response}])"

    @cached_property
    def n_averaged(self) -> int:
        """Number of models, the most probable ones, that predictions average over."""
        models = self._merged.models
        return self._source.count_averaged(self._merged.probability, models.sizes)

    @property
    def averaged_share(self) -> float:
        """Share of the posterior probability that these models hold."""
        return min(1.0, float(self._merged.probability[: self.n_averaged].sum()))

    @cached_property
    def _averaged(self) -> AveragedModels:
        table = self._merged.models
        rows = [table.features_of(row).astype(np.int64) for row in range(self.n_averaged)]
        used: IntArray = np.unique(np.concatenate(rows))
        features = tuple(self._merged.features[j] for j in used)
        models = [np.searchsorted(used, row) for row in rows]
        effects = self._effect_masks[: len(models)]
        found = self._source.fit_averaged(features, models, effects)
        return AveragedModels(
            features=features,
            models=models,
            probability=self._merged.probability[: self.n_averaged],
            fits=found.fits,
            shifts=found.shifts,
            dispersions=found.dispersions,
            always=self._source.always,
            glm=self._source.glm,
            integrate=self.record.uncertainty == "laplace",
            effects=self._source.effects,
            ranges=found.ranges,
            fitted=found.fitted,
            hold=self.record.extrapolate == "hold",
        )

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
            Of the new rows; without them no offset, one trial, one unit of exposure.
        extrapolate
            What bounded functions do beyond the arguments that they had in training:
            ``"hold"`` the value at the edge, or ``"follow"`` the formula. Powers, products and
            logarithms always follow it. Without it as the setting of this name says.

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
        if not 0.0 < level < 1.0:
            msg = f"level must be strictly between 0 and 1; got level={level!r}."
            raise InvalidSettingError(msg)
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
        """Tell where predictions leave what the models were trained on, row by row.

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
        for piece in split_rows(self.recipe, X, offset, trials, exposure):
            check.look(piece[0])
            yield from averaged.blocks(*piece)
        check.warn()

    def coefficients(self, level: float = 0.95, *, conditional: bool = False) -> "pd.DataFrame":
        """Coefficients averaged over models, with equal-tailed credible intervals.

        Parameters
        ----------
        level
            Posterior probability inside an interval.
        conditional
            Whether to describe each coefficient given that its feature is in the model. By
            default it counts as zero in the models without the feature, so that an interval
            of a doubtful feature reaches to zero.

        Returns
        -------
        DataFrame
            ``term``, ``inclusion``, ``estimate``, ``sd``, ``lower``, ``upper``; the intercept
            and what is in every model first, then by inclusion.
        """
        if not 0.0 < level < 1.0:
            msg = f"level must be strictly between 0 and 1; got level={level!r}."
            raise InvalidSettingError(msg)
        return averaged_coefficients(self._averaged, level, conditional=conditional)

    @cached_property
    def effects(self) -> Effects:
        """What covariates do, as in ``posterior.effects.partial_dependence("x")``."""
        recipe = self.recipe.inner if isinstance(self.recipe, FormulaRecipe) else self.recipe
        return Effects(self._averaged, self.recipe, recipe, self._source.table)

    @property
    def checks(self) -> Checks:
        """Checks of the models against data: ``posterior.checks.residuals(X, y)``."""
        return Checks(self)

    def to_arviz(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        draws: int = 2000,
        random_state: int | None = 0,
        **extras: Any,
    ) -> Any:
        """Draws from the averaged posterior as ArviZ's data structure.

        Independent draws of a model and its coefficients in four chains: ``coefficient``
        (zero where a feature is not in the model), ``included``, ``intercept``,
        ``dispersion``, ``model`` (rank); the log likelihood and replications of the rows, the
        training rows by default. Needs ``dbrm[arviz]``.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Whichever the installed ArviZ makes.
        """
        from dbrm.posterior.inference_data import to_inference_data

        rows = self.rows(X, y, **extras)
        rng = np.random.default_rng(random_state)
        return to_inference_data(rng, self._averaged, rows, draws)

    def rows(
        self,
        X: TableLike | None = None,
        y: Any = None,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
    ) -> Rows:
        """Rows with their response, for checks; the training rows without arguments."""
        if (X is None) != (y is None):
            msg = "Pass X and y, or neither for the training rows."
            raise InvalidDataError(msg)
        if X is None:
            rows = self._source.training()
            if rows is None:
                msg = "A posterior from a file holds no response: pass X and y."
                raise InvalidDataError(msg)
            return rows
        refuse_other_order(X, y=y, offset=offset, trials=trials, exposure=exposure)
        if isinstance(self.recipe, FormulaRecipe):
            offset = self.recipe.offset_of(X, offset)
        table = self.recipe.apply(X)
        n = table.n_rows
        counts = None if trials is None else check_vector(trials, n, name="trials")
        return Rows(table, check_response(y, n), shift_of(n, offset, exposure), counts)

    @property
    def plot(self) -> "Plots":
        """Pictures: ``posterior.plot.inclusion()``, ``posterior.plot.fitted(X, y)``."""
        from dbrm.report import Plots

        return Plots(self)

    def summary(self, top: int = 10) -> str:
        """The findings as text that fits a terminal."""
        from dbrm.report import summarise

        return summarise(self, top)

    def report(
        self,
        path: "str | os.PathLike[str]",
        X: TableLike | None = None,
        y: Any = None,
        *,
        title: str | None = None,
        **extras: Any,
    ) -> None:
        """Write the findings as one HTML page that needs no network and can be mailed.

        Parameters
        ----------
        path
            The file, such as ``"run.html"``.
        X, y, **extras
            Rows to draw predictions against, with their ``offset``, ``trials``, ``exposure``.
            Without them the training rows; a posterior from a file has none, and the pictures
            of rows are then left out.
        title
            The question that the page answers; made from the name of the response if omitted.
        """
        from dbrm.report import write_page

        known = X is not None or self._source.training() is not None
        write_page(self, path, self.rows(X, y, **extras) if known else None, title)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write everything to one file of arrays and JSON with a checksum; no code, no pickle.

        `dbrm.load` reads it back: the same tables, formulas, summaries and predictions, to
        the last bit. The file holds training columns, by which equivalent spellings of a
        feature are recognised: all rows, or a sample where they are more than a million
        numbers; never the response. It is written whole or not at all.
        """
        from dbrm.posterior.storage import save

        save(self, path)

    def __repr__(self) -> str:
        best = self.best_model
        return f"<Posterior: {len(self._merged.models)} models; best {best.formula}>"

    def _repr_html_(self) -> str:
        from dbrm.report import posterior_html

        return posterior_html(self, f"Posterior of models for {self.record.response}")
