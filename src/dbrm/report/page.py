"""The report: one HTML page with everything about a posterior, that needs no network.

What is said comes from `findings`, formulas from `mathml`, pictures from `pictures`; here
they become the context of a template.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from dbrm._version import __version__
from dbrm.errors import ExportError
from dbrm.report.findings import find, headline
from dbrm.report.gallery import draw_gallery
from dbrm.report.latex_mathml import mathml_number
from dbrm.report.mathml import effect_mathml, feature_mathml, model_mathml
from dbrm.report.rerun import data_facts, numbers, rerun_code, rerun_words
from dbrm.report.wording import display, format_probability, format_share, listed

if TYPE_CHECKING:
    from dbrm.posterior import FittedModel, Posterior
    from dbrm.posterior.rows import Rows

__all__ = ["render_page", "write_page"]

_MOST_FEATURES, _FEWEST_FEATURES, _MOST_MODELS = 25, 8, 12
_WORTH_A_ROW = 0.001
_METHOD = (
    "A. Hubin, G. Storvik and F. Frommlet (2018). Deep Bayesian regression models. "
    "arXiv:1806.02160."
)
_BIBTEX = """@misc{hubin2018deep,
  author = {Hubin, Aliaksandr and Storvik, Geir and Frommlet, Florian},
  title  = {Deep {Bayesian} regression models},
  year   = {2018},
  eprint = {1806.02160},
  archivePrefix = {arXiv}
}"""


def write_page(
    posterior: "Posterior",
    path: str | os.PathLike[str],
    rows: "Rows | None",
    title: str | None,
) -> None:
    """Write the page to a file."""
    Path(path).write_text(render_page(posterior, rows, title), encoding="utf-8")


def render_page(posterior: "Posterior", rows: "Rows | None", title: str | None = None) -> str:
    """The page as text.

    Parameters
    ----------
    rows
        Rows to draw predictions against; without them these pictures are left out.
    title
        The question; "Which formula explains y?" unless given.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dbrm.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    findings = find(posterior)
    return environment.get_template("page.html").render(
        title=title or f"Which formula explains {posterior.record.response}?",
        version=__version__,
        facts=_facts(posterior),
        headline=headline(findings),
        findings=findings,
        best=_best(posterior),
        tiles=_tiles(posterior),
        sure=_sure(posterior, shaky=any(finding.level == "bad" for finding in findings)),
        features=_features(posterior),
        models=_models(posterior),
        latent=_latent(posterior),
        pictures=draw_gallery(posterior, rows),
        numbers=numbers(posterior),
        data=data_facts(posterior),
        reproduce={"words": rerun_words(posterior), "code": rerun_code(posterior)},
        cite={"method": _METHOD, "software": _software(posterior), "bibtex": _BIBTEX},
    )


def _facts(posterior: "Posterior") -> list[str]:
    record, glm = posterior.record, posterior._source.glm
    chains = "chain" if record.n_chains == 1 else "chains"
    return [
        f"{record.n_rows or posterior._source.n_rows:,} rows",
        f"{len(posterior.recipe.input_names):,} covariates",
        f"{'Gaussian' if glm is None else glm.family.label} response",
        "all models" if record.algorithm == "enumerate" else f"{record.n_chains} {chains}",
        f"{record.n_evaluated:,} models evaluated",
    ]


def _best(posterior: "Posterior") -> dict[str, Any]:
    best = posterior.best_model
    terms = [Markup("<span class='soft'>(intercept)</span>")]
    terms += [Markup(feature_mathml(term)) for term in best.terms]
    rows = best.coefficients().to_dict("records")
    return {
        "text": best.formula,
        "digits": f"{best.response} = {best.to_text()}",
        "latex": best.to_latex(),
        "programs": _programs(best),
        "math": [Markup(part) for part in model_mathml(best)],
        "scale": _scale(posterior, best),
        "coefficients": [
            {
                "term": term,
                **{name: _number(row[name]) for name in ("estimate", "lower", "upper")},
            }
            for term, row in zip(terms, rows, strict=True)
        ],
    }


def _programs(best: "FittedModel") -> list[tuple[str, str]]:
    """The formula in the languages that can express it."""
    programs = []
    for language, write in (("Python", best.to_python), ("SQL", best.to_sql)):
        # erf is not in SQL; a function of the user's own may be in neither.
        with suppress(ExportError):
            programs.append((language, write()))
    return programs


def _scale(posterior: "Posterior", best: "FittedModel") -> str:
    glm, response = posterior._source.glm, posterior.record.response
    scaled = " Covariates are standardised." if posterior.record.settings.get("scale") else ""
    if best.latent:
        scaled += f" Text and programs below leave {listed(best.latent)} out."
    if glm is None:
        spread = np.sqrt(best.fit.dispersion)
        return f"Around it the data scatter with standard deviation {spread:.3g}.{scaled}"
    if glm.link.name == "identity":
        return f"The formula gives the mean of {response}.{scaled}"
    return f"The formula gives the mean of {response} on the {glm.link.name} scale.{scaled}"


def _tiles(posterior: "Posterior") -> list[dict[str, str]]:
    probability = posterior.models["probability"]
    tiles = [
        {
            "number": _percent(probability[0]),
            "words": "of the probability is on this formula",
        }
    ]
    if len(probability) > 1:
        tiles.append({"number": _percent(probability[1]), "words": "is on the next one"})
    sure = int((posterior.features["inclusion"] > 0.95).sum())
    tiles.append({"number": str(sure), "words": _plural(sure, "feature is", "features are")})
    tiles.append({"number": f"{len(probability):,}", "words": "formulas were kept and weighed"})
    return tiles


def _plural(count: int, one: str, many: str) -> str:
    return f"{one if count == 1 else many} in the model with more than 95 % probability"


def _sure(posterior: "Posterior", *, shaky: bool) -> list[str]:
    table = posterior.features
    sentences = ["A longer search may change these numbers; see the note above."] if shaky else []
    names = table["feature"].map(display)
    certain = names[table["inclusion"] > 0.95].tolist()
    likely = names[(table["inclusion"] > 0.5) & (table["inclusion"] <= 0.95)].tolist()
    if certain:
        sentences.append(f"Almost certainly in the model: {listed(certain, 6)}.")
    if likely:
        sentences.append(f"More likely in than out: {listed(likely, 6)}.")
    if not certain and not likely:
        sentences.append("No feature is more likely in the model than out of it.")
    probability = posterior.models["probability"].to_numpy()
    needed = int(np.searchsorted(np.cumsum(probability), 0.95)) + 1
    if needed > 1 and needed <= len(probability):
        sentences.append(f"{needed:,} formulas together hold 95 % of the probability.")
    sentences.append(
        "These are probabilities among the formulas that the search has met, under the priors and "
        "the functions it was given. They are no probabilities of causes: what predicts need not "
        "be what acts."
    )
    return sentences


def _features(posterior: "Posterior") -> dict[str, Any]:
    table, order = posterior.features, np.argsort(-posterior._inclusion, kind="stable")
    shown = int((table["inclusion"] >= _WORTH_A_ROW).sum())
    shown = min(max(shown, _FEWEST_FEATURES), _MOST_FEATURES, len(table))
    rows = [
        {
            "math": Markup(feature_mathml(posterior._merged.features[j])),
            "text": row.feature,
            "inclusion": float(row.inclusion),
            "percent": f"{100 * row.inclusion:.2f}",
            "shown": format_probability(row.inclusion),
            "complexity": int(row.complexity),
            "depth": int(row.depth),
        }
        for j, row in zip(order, table.head(shown).itertuples(), strict=False)
    ]
    always = [str(feature) for feature in posterior._source.always]
    caption = f"The {shown} most probable of {len(table):,} features in the models kept."
    if always:
        caption += f" In every model, because asked for: {listed(always, 6)}."
    return {"rows": rows, "caption": caption}


def _models(posterior: "Posterior") -> dict[str, Any]:
    merged, table = posterior._merged, posterior.models.head(_MOST_MODELS)
    best = float(table["probability"].iloc[0])
    rows = []
    for rank, row in enumerate(table.itertuples()):
        ratio = best / row.probability if row.probability > 0 else np.inf
        rows.append(
            {
                "rank": rank + 1,
                "math": [
                    *(
                        Markup(feature_mathml(merged.features[j]))
                        for j in merged.models.features_of(rank)
                    ),
                    *(Markup(effect_mathml(name)) for name in getattr(row, "latent", ())),
                ],
                "probability": float(row.probability),
                "shown": format_probability(row.probability),
                "ratio": float(min(ratio, 1e300)),
                "odds": "—" if rank == 0 else _times(ratio),
                "log_evidence": float(row.log_evidence),
                "evidence": f"{row.log_evidence:.2f}".replace("-", "−"),
            }
        )
    caption = f"The {len(rows)} most probable of {len(posterior.models):,} models kept."
    return {"rows": rows, "caption": caption}


def _latent(posterior: "Posterior") -> list[dict[str, Any]]:
    if not posterior._source.effects:
        return []
    return [
        {
            "name": row.effect,
            "inclusion": float(row.inclusion),
            "percent": f"{100 * row.inclusion:.2f}",
            "shown": format_probability(row.inclusion),
            "nodes": int(row.nodes),
            "values": ", ".join(f"{key} {value:.3g}" for key, value in row.hyperparameters.items()),
        }
        for row in posterior.latent.itertuples()
    ]


def _times(ratio: float) -> str:
    if ratio >= 1e6:
        return "over a million"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def _software(posterior: "Posterior") -> str:
    return f"dbrm, version {posterior.record.version or __version__} (software)."


def _number(value: float) -> str:
    text = f"{value:.4g}"
    if "e" in text:
        return Markup(f"<math>{mathml_number(value, 4)}</math>")
    return text.replace("-", "−")


def _percent(value: float) -> str:
    return format_share(value).replace("less than ", "< ").replace("more than ", "> ")
