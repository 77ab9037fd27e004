"""The result of a run: a posterior over models, and what follows from it."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix, TableLike
from dbrm.data import Recipe, check_vector
from dbrm.errors import InvalidSettingError
from dbrm.evidence import FunctionEngine, GlmEngine, ModelFit, find_family, find_link
from dbrm.evolution import Problem, Registry
from dbrm.features import Feature, evaluate, fit_knots, parse_feature
from dbrm.posterior.diagnostics import Diagnostics
from dbrm.posterior.family_mixture import FamilyMixture
from dbrm.posterior.merge import Merged
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.model import FittedModel
from dbrm.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from dbrm.report import Plots

__all__ = ["Posterior", "RunRecord"]

# Predictions average over the most probable models that hold this share, at most so many.
_SHARE = 0.9999
_MOST_MODELS = 300
# Numbers held at once while predicting.
_BLOCK = 4_000_000


@final
@dataclass(frozen=True, slots=True)
class RunRecord:
    """How the posterior came about."""

    response: str
    algorithm: str
    uncertainty: str
    n_chains: int
    n_evaluated: int
    seconds: float
    seed: int | None
    status_counts: dict[int, int]
    rejections: dict[str, int]
    moves: dict[str, tuple[int, int]]
    chain_log_mass: tuple[float, ...]


@final
class Posterior:
    """Posterior over models whose features the program built itself.

    Built by `dbrm.fit` and the estimators. Attributes `features` and `models` are
    tables, most probable first.
    """

    def __init__(
        self,
        merged: Merged,
        problem: Problem,
        recipe: Recipe,
        record: RunRecord,
        diagnostics: Diagnostics,
    ) -> None:
        self._merged = merged
        self.diagnostics = diagnostics
        self._problem = problem
        self.recipe = recipe
        self.record = record
        self._fits: dict[int, ModelFit] = {}

    @cached_property
    def _inclusion(self) -> FloatArray:
        models = self._merged.models
        weights = self._merged.probability[models.owners]
        totals = np.bincount(models.members, weights=weights, minlength=len(self._merged.features))
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
        return pd.DataFrame(
            {
                "features": [
                    tuple(names[j] for j in table.features_of(row)) for row in range(len(table))
                ],
                "size": table.sizes,
                "log_evidence": table.log_evidence,
                "log_prior": table.log_prior,
                "probability": self._merged.probability,
            }
        )

    @property
    def lost_mass(self) -> float:
        """Upper bound of the posterior share of models evaluated but not kept."""
        return float(np.exp(min(0.0, self._merged.log_lost - self._merged.log_mass)))

    def inclusion(self, feature: str | Feature) -> float:
        """Posterior probability that a feature is in the model, under any equivalent spelling.

        A feature that no retained model contains has probability zero, a covariate that
        every model contains (`always`) probability one.
        """
        number = self._find(feature)
        if number is not None:
            return float(self._inclusion[number])
        return float(self._parsed(feature) in self._always)

    def aliases(self, feature: str | Feature) -> list[str]:
        """Other spellings met for the same column."""
        number = self._find(feature)
        spellings = [] if number is None else self._merged.aliases.get(number, [])
        return sorted(str(spelling) for spelling in spellings)

    def _parsed(self, feature: str | Feature) -> Feature:
        if isinstance(feature, str):
            transforms = self._problem.grammar.transforms
            feature = parse_feature(feature, self._problem.table.names, transforms=transforms)
        return fit_knots(feature, self._problem.table)

    def _find(self, feature: str | Feature) -> int | None:
        feature = self._parsed(feature)
        columns, statuses = evaluate([feature], self._problem.table)
        if statuses[0] != Status.OK:
            return self._registry.known(feature)
        number = self._registry.number(feature, columns[:, 0])
        return number if number < len(self._merged.features) else None

    @cached_property
    def _registry(self) -> Registry:
        registry = Registry(self._problem.table)
        columns, _ = evaluate(self._merged.features, self._problem.table)
        for position, feature in enumerate(self._merged.features):
            registry.number(feature, columns[:, position])
        return registry

    @property
    def best_model(self) -> FittedModel:
        """The most probable model."""
        return self._fitted(0)

    @cached_property
    def median_probability_model(self) -> FittedModel:
        """The model of all features with inclusion above one half (Barbieri and Berger 2004)."""
        chosen = np.flatnonzero(self._inclusion > 0.5)
        models = self._merged.models
        for row in range(len(models)):
            if np.array_equal(models.features_of(row), chosen):
                return self._fitted(row)
        features = tuple(self._merged.features[j] for j in chosen)
        return FittedModel(
            self.record.response, self._always + features, self._fit_columns(chosen), 0.0
        )

    @cached_property
    def _always(self) -> tuple[Feature, ...]:
        return self._problem.always

    def _fitted(self, row: int) -> FittedModel:
        chosen = self._merged.models.features_of(row)
        features = tuple(self._merged.features[j] for j in chosen)
        probability = float(self._merged.probability[row])
        return FittedModel(
            self.record.response, self._always + features, self._fit(row), probability
        )

    def _fit(self, row: int) -> ModelFit:
        if row not in self._fits:
            self._fits[row] = self._fit_columns(self._merged.models.features_of(row))
        return self._fits[row]

    def _fit_columns(self, chosen: "np.typing.NDArray[np.integer[Any]]") -> ModelFit:
        columns, _ = evaluate([self._merged.features[j] for j in chosen], self._problem.table)
        return self._problem.engine.fit(columns)

    @cached_property
    def _averaged(self) -> "np.typing.NDArray[np.int64]":
        """Rows of the models that predictions average over."""
        share = np.cumsum(self._merged.probability)
        enough = int(np.searchsorted(share, _SHARE)) + 1
        return np.arange(min(enough, _MOST_MODELS, len(self._merged.models)))

    def predict(
        self, X: TableLike, *, offset: Any = None, trials: Any = None, exposure: Any = None
    ) -> Column:
        """Posterior-averaged mean of the response for new rows.

        Parameters
        ----------
        offset, trials, exposure
            Of the new rows; without them no offset, one trial, one unit of exposure.
        """
        extras = (offset, trials, exposure)
        return np.concatenate([block.mean() for block in self._blocks(X, *extras)])

    def predict_sd(
        self, X: TableLike, *, offset: Any = None, trials: Any = None, exposure: Any = None
    ) -> Column:
        """Standard deviation of the predictive law."""
        extras = (offset, trials, exposure)
        return np.concatenate([block.standard_deviation() for block in self._blocks(X, *extras)])

    def predict_quantiles(
        self,
        X: TableLike,
        q: float | FloatArray | list[float],
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
    ) -> Matrix:
        """Quantiles of the predictive law; one column per level."""
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            msg = f"q must hold levels strictly between 0 and 1; got q={q!r}."
            raise InvalidSettingError(msg)
        blocks = [
            np.column_stack([block.quantile(float(level)) for level in levels])
            for block in self._blocks(X, offset, trials, exposure)
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
    ) -> Matrix:
        """Equal-tailed predictive interval; columns are lower and upper limits."""
        if not 0.0 < level < 1.0:
            msg = f"level must be strictly between 0 and 1; got level={level!r}."
            raise InvalidSettingError(msg)
        ends = [0.5 - level / 2, 0.5 + level / 2]
        return self.predict_quantiles(X, ends, offset=offset, trials=trials, exposure=exposure)

    def sample_predictive(
        self,
        X: TableLike,
        draws: int = 1000,
        random_state: int | None = None,
        *,
        offset: Any = None,
        trials: Any = None,
        exposure: Any = None,
    ) -> Matrix:
        """Draws from the predictive law; one row per draw, one column per row of `X`."""
        rng = np.random.default_rng(random_state)
        blocks = self._blocks(X, offset, trials, exposure)
        return np.concatenate([block.sample(rng, draws) for block in blocks], axis=1)

    def _blocks(
        self, X: TableLike, offset: Any, trials: Any, exposure: Any
    ) -> list[StudentMixture | FamilyMixture]:
        table = self.recipe.apply(X)
        rows = self._averaged
        used = np.unique(np.concatenate([self._merged.models.features_of(row) for row in rows]))
        used = used.astype(np.int64)
        columns, _ = evaluate([self._merged.features[j] for j in used], table)
        always = np.column_stack([np.ones(table.n_rows), evaluate(self._always, table)[0]])
        shift = _shift(table.n_rows, offset, exposure)
        counts = None if trials is None else check_vector(trials, table.n_rows, name="trials")
        step = max(1, _BLOCK // rows.size)
        blocks = []
        for start in range(0, table.n_rows, step):
            part = slice(start, start + step)
            predictor = self._predictor(rows, used, always[part], columns[part], shift[part])
            blocks.append(self._mixture(rows, predictor, None if counts is None else counts[part]))
        return blocks

    def _predictor(
        self,
        rows: IntArray,
        used: IntArray,
        always: Matrix,
        columns: Matrix,
        shift: Column,
    ) -> tuple[Matrix, Matrix, Matrix]:
        """Weight, location and variance (without dispersion) of eta: models by rows."""
        shape = (rows.size, len(always))
        weights, locations, leverages = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for position, row in enumerate(rows):
            chosen = np.searchsorted(used, self._merged.models.features_of(row))
            design = np.hstack([always, columns[:, chosen]])
            fit = self._fit(int(row))
            defined = np.all(np.isfinite(design), axis=1)
            design = np.where(defined[:, None], design, 0.0)
            leverage = np.einsum("ni,ij,nj->n", design, fit.covariance, design)
            weights[position] = self._merged.probability[row] * defined
            locations[position] = design @ fit.coefficients + shift
            leverages[position] = np.maximum(leverage, 0.0)
        totals = weights.sum(axis=0)
        return weights / np.where(totals > 0, totals, np.nan), locations, leverages

    def _mixture(
        self, rows: IntArray, predictor: tuple[Matrix, Matrix, Matrix], trials: Column | None
    ) -> StudentMixture | FamilyMixture:
        weights, locations, leverages = predictor
        fits = [self._fit(int(row)) for row in rows]
        dispersions = np.array([fit.dispersion for fit in fits])
        engine = self._problem.engine
        engine = engine.base if isinstance(engine, FunctionEngine) else engine
        if isinstance(engine, GlmEngine):
            return FamilyMixture(
                family=find_family(engine.family),
                link=find_link(engine.link or find_family(engine.family).default_link),
                weights=weights,
                locations=locations,
                scales=np.sqrt(dispersions[:, None] * leverages),
                dispersions=dispersions,
                trials=trials,
                integrate=self.record.uncertainty == "laplace",
            )
        scales = np.sqrt(dispersions[:, None] * (1.0 + leverages))
        df = np.array([fit.degrees_of_freedom for fit in fits])
        return StudentMixture(weights, locations, scales, df)

    @property
    def plot(self) -> "Plots":
        """Pictures: ``posterior.plot.inclusion()``, ``posterior.plot.fitted(X, y)``."""
        from dbrm.report import Plots

        return Plots(self)

    def summary(self, top: int = 10) -> str:
        """The findings as text that fits a terminal."""
        from dbrm.report import summarise

        return summarise(self, top)

    def __repr__(self) -> str:
        best = self.best_model
        return f"<Posterior: {len(self._merged.models)} models; best {best.formula}>"


def _shift(n_rows: int, offset: Any, exposure: Any) -> Column:
    """Known part of the linear predictor of new rows."""
    shift = np.zeros(n_rows)
    if offset is not None:
        shift = shift + check_vector(offset, n_rows, name="offset")
    if exposure is not None:
        shift = shift + np.log(check_vector(exposure, n_rows, name="exposure"))
    return shift
