"""Which plots the report shows, with their captions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm.evidence import JointFamily
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.posterior import Rows
from dbrm.report import row_pictures
from dbrm.report.effect_pictures import draw_dependence
from dbrm.report.plots import Plots

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["Picture", "choose_pictures", "effect_pictures"]

# Plots of rows show an even sample of at most this many, or the page would become too large.
_MOST_ROWS = 1_000
# A latent effect or a pair of covariates less probable than this has no plot.
_WORTH_SHOWING = 0.1
# Covariates with less than this share of the variation have no curve; most curves and surfaces.
_EFFORT = {"rows": 80, "grid": 30}
_WORTH_A_CURVE, _MOST_CURVES, _MOST_SURFACES = 0.01, 6, 3


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """A plot with its caption; `draw` returns matplotlib axes."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Any]


def choose_pictures(
    posterior: "Posterior", rows: Rows | None, measured: "dict[str, Rows]"
) -> list[Picture]:
    """Every plot that can be drawn, those of rows only if there are rows.

    Parameters
    ----------
    rows
        Rows to plot predictions against.
    measured
        Rows of ROC curves, by what they are.
    """
    pictures = _of_models(posterior)
    # Censored times and classes have no plots of their own against predictions.
    if rows is not None and not isinstance(posterior.family, JointFamily):
        pictures += _of_rows(posterior, rows)
    binary = {name: some for name, some in measured.items() if posterior.checks.is_binary(some)}
    if binary:
        pictures.append(
            Picture(
                "roc",
                "ROC curve",
                "Share of ones found against share of zeros mistaken, for every threshold; the "
                "diagonal is guessing.",
                lambda: row_pictures.draw_roc(posterior, binary, None),
            )
        )
    return pictures


def effect_pictures(posterior: "Posterior") -> list[Picture]:
    """Curves of the leading covariates, and surfaces of the leading pairs."""
    plots = Plots(posterior)
    covariates = posterior.covariates
    used = covariates[covariates["share"] >= _WORTH_A_CURVE]["covariate"].tolist()
    pictures = [
        Picture(
            f"effect{number}",
            f"Effect of {name}",
            f"{_what(posterior)} as it varies, the other covariates as they are; 95 % band.",
            partial(draw_dependence, posterior, name, 0.95, None, **_EFFORT),
        )
        for number, name in enumerate(used[:_MOST_CURVES])
    ]
    pairs = posterior.interactions
    pairs = pairs[pairs["probability"] >= _WORTH_SHOWING].head(_MOST_SURFACES)
    pictures += [
        Picture(
            f"surface{number}",
            f"{pair.first} and {pair.second} together",
            f"{_what(posterior)} as both vary, the other covariates as they are. Dots are training "
            "rows; where there are none, the surface is extrapolated.",
            partial(plots.surface, pair.first, pair.second),
        )
        for number, pair in enumerate(pairs.itertuples())
    ]
    return pictures


def _what(posterior: "Posterior") -> str:
    """What curves of covariates show."""
    label = posterior.predictor_label
    return f"{label[:1].upper()}{label[1:]}" or "Mean response"


def _of_models(posterior: "Posterior") -> list[Picture]:
    plots = Plots(posterior)
    pictures = [
        Picture(
            "survival",
            "Survival curves",
            "Training rows at low, middle and high risk; 95 % bands at each time.",
            plots.survival,
        )
    ]
    pictures = pictures if isinstance(posterior.family, SurvivalFamily) else []
    pictures += [
        Picture(
            "inclusion",
            "Inclusion probabilities",
            "How probable it is that each feature belongs in the model.",
            plots.inclusion,
        ),
        Picture(
            "models",
            "Model probabilities",
            "The most probable formulas; a long first bar means a clear winner.",
            plots.models,
        ),
    ]
    if posterior.best_model.terms:
        pictures += [
            Picture(
                "architecture",
                "How the formula is built",
                "From the response (left) to the covariates (right), with coefficients.",
                plots.architecture,
            ),
        ]
    pictures.append(
        Picture(
            "image",
            "Features in models",
            "Each column is a model, the most probable first; colours show the sign.",
            plots.model_image,
        )
    )
    if not posterior.latent.empty and posterior.latent["inclusion"][0] > _WORTH_SHOWING:
        pictures.append(
            Picture(
                "latent",
                f"Latent effect {posterior.latent['effect'][0]}",
                "What it adds to the linear predictor where it is in the model; 95 % band.",
                plots.latent,
            )
        )
    if posterior.record.n_chains > 1:
        pictures.append(
            Picture(
                "chains",
                "Chain by chain",
                "Inclusion probabilities by each chain alone; they should lie on top of each "
                "other.",
                plots.chains,
            )
        )
    return pictures


def _of_rows(posterior: "Posterior", rows: Rows) -> list[Picture]:
    few, total = _sample(rows), rows.response.size
    some = f" {few.response.size:,} of {total:,} rows." if few.response.size < total else ""
    binary = posterior.checks.is_binary(rows)
    fitted = (
        "Averaged probabilities of rows whose response is 0 and 1; far apart is good."
        if binary
        else "Averaged predictions with 95 % intervals; good predictions are near the line."
    )
    return [
        Picture(
            "fitted",
            "Predicted against observed",
            f"{fitted}{some}",
            lambda: row_pictures.draw_fitted(posterior, few, 0.95, None),
        ),
        Picture(
            "residuals",
            "Residuals",
            f"Should look like noise around zero, without a trend.{some}",
            lambda: row_pictures.draw_residuals(posterior, few, "fitted", None),
        ),
        Picture(
            "calibration",
            "Calibration",
            f"Whether {'events' if binary else 'intervals'} are as frequent as predicted: then the "
            f"points are on the line.{some}",
            lambda: row_pictures.draw_calibration(posterior, few, 10, None),
        ),
        Picture(
            "check",
            "Predictive check",
            f"The observed response, and responses simulated from the models.{some}",
            lambda: row_pictures.draw_replications(posterior, few, 50, None),
        ),
    ]


def _sample(rows: Rows) -> Rows:
    n = rows.response.size
    if n <= _MOST_ROWS:
        return rows
    return rows.take(np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64))
