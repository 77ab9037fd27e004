"""Which pictures the report shows, with their captions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from markupsafe import Markup

from dbrm.posterior.rows import Rows
from dbrm.report import row_pictures
from dbrm.report.pictures import inline_svg
from dbrm.report.plots import Plots

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["draw_gallery"]

# Pictures of rows show an even sample of so many at most, or the page would become too large.
_MOST_ROWS = 1_000
# A latent effect less probable than this has no picture.
_WORTH_SHOWING = 0.1


@final
@dataclass(frozen=True, slots=True)
class _Picture:
    name: str
    title: str
    caption: str
    draw: Callable[[], Any]


def draw_gallery(posterior: "Posterior", rows: Rows | None) -> list[dict[str, Any]]:
    """Every picture that can be drawn, as SVG with title and caption."""
    wanted = _of_models(posterior)
    if rows is not None:
        wanted += _of_rows(posterior, rows)
    return [
        {
            "title": picture.title,
            "caption": picture.caption,
            "svg": Markup(
                inline_svg(picture.draw, picture.name, f"{picture.title}. {picture.caption}")
            ),
        }
        for picture in wanted
    ]


def _of_models(posterior: "Posterior") -> list[_Picture]:
    plots = Plots(posterior)
    pictures = [
        _Picture(
            "inclusion",
            "Inclusion probabilities",
            "How probable it is that each feature belongs in the model.",
            plots.inclusion,
        ),
        _Picture(
            "models",
            "Model probabilities",
            "The most probable formulas; a long first bar means a clear winner.",
            plots.models,
        ),
    ]
    if posterior.best_model.terms:
        pictures += [
            _Picture(
                "architecture",
                "How the formula is built",
                "From the response (left) to the covariates (right), with coefficients.",
                plots.architecture,
            ),
            _Picture(
                "dependence",
                "Effect of the leading covariate",
                "Mean response as it varies, the other covariates as they are; 95 % band.",
                plots.partial_dependence,
            ),
        ]
    pictures.append(
        _Picture(
            "image",
            "Features in models",
            "Each column is a model, the most probable first; colours tell the sign.",
            plots.model_image,
        )
    )
    if not posterior.latent.empty and posterior.latent["inclusion"][0] > _WORTH_SHOWING:
        pictures.append(
            _Picture(
                "latent",
                f"Latent effect {posterior.latent['effect'][0]}",
                "What it adds to the linear predictor where it is in the model; 95 % band.",
                plots.latent,
            )
        )
    if posterior.record.n_chains > 1:
        pictures.append(
            _Picture(
                "chains",
                "Chain by chain",
                "Inclusion probabilities by each chain alone; they should lie on top of each "
                "other.",
                plots.chains,
            )
        )
    return pictures


def _of_rows(posterior: "Posterior", rows: Rows) -> list[_Picture]:
    few, total = _sample(rows), rows.response.size
    some = f" {few.response.size:,} of {total:,} rows." if few.response.size < total else ""
    binary = posterior.checks.is_binary(rows)
    fitted = (
        "Averaged probabilities of rows that turned out 0 and 1; far apart is good."
        if binary
        else "Averaged predictions with 95 % intervals; near the line they are right."
    )
    return [
        _Picture(
            "fitted",
            "Predicted against observed",
            f"{fitted}{some}",
            lambda: row_pictures.draw_fitted(posterior, few, 0.95, None),
        ),
        _Picture(
            "residuals",
            "Residuals",
            f"Should look like noise around zero, without a trend.{some}",
            lambda: row_pictures.draw_residuals(posterior, few, "fitted", None),
        ),
        _Picture(
            "calibration",
            "Calibration",
            f"Whether {'probabilities' if binary else 'intervals'} come true as often as they say: "
            f"on the line.{some}",
            lambda: row_pictures.draw_calibration(posterior, few, 10, None),
        ),
        _Picture(
            "check",
            "Predictive check",
            f"The response, and responses that the models would produce.{some}",
            lambda: row_pictures.draw_replications(posterior, few, 50, None),
        ),
    ]


def _sample(rows: Rows) -> Rows:
    n = rows.response.size
    if n <= _MOST_ROWS:
        return rows
    chosen = np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64)
    return Rows(
        table=rows.table.take(chosen),
        response=rows.response[chosen],
        offset=None if rows.offset is None else rows.offset[chosen],
        trials=None if rows.trials is None else rows.trials[chosen],
    )
