"""Plots of a posterior. matplotlib is used only in this folder, and pyplot nowhere."""

from typing import TYPE_CHECKING, Any, Literal

from dbrm._typing import TableLike
from dbrm.errors import InvalidSettingError
from dbrm.features import Feature
from dbrm.report import (
    effect_pictures,
    model_pictures,
    row_pictures,
    survival_picture,
    tree_picture,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dbrm.posterior import Posterior

__all__ = ["Plots"]


class Plots:
    """Plots of one posterior; every method but `overview` takes and returns matplotlib axes.

    Plots of rows take ``X`` and ``y`` and, by keyword, ``offset``, ``trials``, ``exposure``;
    without them they show the training rows, which a posterior loaded from a file does not have.
    """

    def __init__(self, posterior: "Posterior") -> None:
        self._posterior = posterior

    def inclusion(self, top: int | None = None, ax: Any = None) -> "Axes":
        """Posterior inclusion probabilities of the leading features.

        Parameters
        ----------
        top
            How many; by default those above 0.001, at least 3 and at most 12.
        """
        return model_pictures.draw_inclusion(self._posterior, top, ax)

    def models(self, top: int | None = None, ax: Any = None) -> "Axes":
        """Posterior probabilities of the leading models, as many as `inclusion` would show."""
        return model_pictures.draw_models(self._posterior, top, ax)

    def latent(self, name: str | None = None, level: float = 0.95, ax: Any = None) -> "Axes":
        """A latent effect along its positions or groups, with its credible band; or slopes.

        Parameters
        ----------
        name
            As in `dbrm.Posterior.latent`; by default the most probable one.
        level
            Posterior probability inside the band.
        """
        return effect_pictures.draw_latent(self._posterior, name, level, ax)

    def model_image(
        self,
        top: int = 15,
        n_models: int = 20,
        widths: Literal["log_odds", "probability"] = "log_odds",
        ax: Any = None,
    ) -> "Axes":
        """Which features (rows) are in which models (columns); colours show the sign.

        Parameters
        ----------
        top, n_models
            Most features, and most models.
        widths
            Columns as wide as the log odds of a model against the last one shown (as in R's
            BAS), or as its probability.
        """
        return model_pictures.draw_image(self._posterior, top, n_models, widths, ax)

    def complexity(self, ax: Any = None) -> "Axes":
        """Posterior of the complexity of the model, summed over its features."""
        return model_pictures.draw_complexity(self._posterior, ax)

    def path(self, ax: Any = None) -> "Axes":
        """What each formula of `dbrm.Posterior.path` leaves unexplained, against its complexity.

        The most probable one is blue.
        """
        return model_pictures.draw_path(self._posterior, ax)

    def chains(self, top: int | None = None, ax: Any = None) -> "Axes":
        """Inclusion probabilities by each chain alone (dots) and after merging (bars).

        Above, the share of the posterior mass that each chain found. Features on which the
        chains disagree have an orange line.
        """
        return model_pictures.draw_chains(self._posterior, top, ax)

    def architecture(self, feature: str | Feature | None = None, ax: Any = None) -> "Axes":
        """Expression tree of a feature, or of the best model with its coefficients."""
        return tree_picture.draw_architecture(self._posterior, feature, ax)

    def coefficients(self, top: int | None = None, level: float = 0.95, ax: Any = None) -> "Axes":
        """Coefficients given inclusion, for a change of one standard deviation in the feature.

        At the right the inclusion probability.
        """
        return effect_pictures.draw_coefficients(self._posterior, top, level, ax)

    def partial_dependence(
        self, covariate: str | None = None, level: float = 0.95, ax: Any = None
    ) -> "Axes":
        """Mean response as one covariate varies; by default the most probable one."""
        if covariate is None:
            covariate = self._posterior.effects.leading_covariate
        return effect_pictures.draw_dependence(self._posterior, covariate, level, ax)

    def surface(
        self, first: str | None = None, second: str | None = None, ax: Any = None
    ) -> "Axes":
        """Mean response as two covariates vary; by default the pair most likely to interact.

        Dots are training rows: elsewhere the surface is extrapolated.
        """
        if first is None or second is None:
            pairs = self._posterior.interactions
            if pairs.empty:
                msg = "No model has a feature of two covariates: name the two to show."
                raise InvalidSettingError(msg)
            first, second = str(pairs["first"][0]), str(pairs["second"][0])
        return effect_pictures.draw_surface(self._posterior, first, second, ax)

    def survival(
        self, X: TableLike | None = None, level: float = 0.95, strata: Any = None, ax: Any = None
    ) -> "Axes":
        """Survival curves of the first rows of `X`, with bands.

        By default of training rows at low, middle and high risk (in the first stratum).
        """
        return survival_picture.draw_survival(self._posterior, X, level, strata, ax)

    def contributions(self, X: TableLike, row: int = 0, top: int = 8, ax: Any = None) -> "Axes":
        """What moves the prediction of one row of `X` away from the average row.

        On the scale of the linear predictor, from the baseline (dotted) to the row's own (line).
        """
        return effect_pictures.draw_contributions(self._posterior, X, row, top, ax)

    def fitted(
        self,
        X: TableLike | None = None,
        y: Any = None,
        level: float = 0.95,
        ax: Any = None,
        **extras: Any,
    ) -> "Axes":
        """Averaged predictions against observed values, with predictive intervals."""
        rows = self._posterior.rows(X, y, **extras)
        return row_pictures.draw_fitted(self._posterior, rows, level, ax)

    def residuals(
        self,
        X: TableLike | None = None,
        y: Any = None,
        kind: Literal["fitted", "qq"] = "fitted",
        ax: Any = None,
        **extras: Any,
    ) -> "Axes":
        """Quantile residuals against predictions, or against normal quantiles (``"qq"``)."""
        if kind not in ("fitted", "qq"):
            msg = f"kind must be 'fitted' or 'qq'; got kind={kind!r}."
            raise InvalidSettingError(msg)
        rows = self._posterior.rows(X, y, **extras)
        return row_pictures.draw_residuals(self._posterior, rows, kind, ax)

    def calibration(
        self,
        X: TableLike | None = None,
        y: Any = None,
        bins: int = 10,
        ax: Any = None,
        **extras: Any,
    ) -> "Axes":
        """Predicted against observed probabilities; coverage of intervals if not 0 and 1."""
        rows = self._posterior.rows(X, y, **extras)
        return row_pictures.draw_calibration(self._posterior, rows, bins, ax)

    def predictive_check(
        self,
        X: TableLike | None = None,
        y: Any = None,
        draws: int = 50,
        ax: Any = None,
        **extras: Any,
    ) -> "Axes":
        """Distribution of the response against replications from the predictive distribution."""
        rows = self._posterior.rows(X, y, **extras)
        return row_pictures.draw_replications(self._posterior, rows, draws, ax)

    def overview(self, X: TableLike | None = None, y: Any = None, top: int = 6) -> "Figure":
        """Predictions and inclusion probabilities side by side, ready for ``savefig``."""
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = Figure(figsize=(7.0, 3.0), dpi=200, layout=ConstrainedLayoutEngine(wspace=0.08))
        left, right = figure.subplots(1, 2)
        self.fitted(X, y, ax=left)
        self.inclusion(top, ax=right)
        return figure
