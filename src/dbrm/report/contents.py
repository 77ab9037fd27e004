"""What the report says, as plain data: how it is written is up to a format such as `html`.

Features are `Feature` objects and numbers are numbers; sentences are complete.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm._version import __version__
from dbrm.errors import ExportError
from dbrm.report.findings import Finding, find, headline
from dbrm.report.gallery import Picture, choose_pictures, effect_pictures
from dbrm.report.rerun import data_facts, numbers, rerun_code, rerun_words
from dbrm.report.scores import Scores, describe_scores, measured_rows
from dbrm.report.what_if import WhatIf, describe_path, describe_what_if
from dbrm.report.wording import display, format_share, listed

if TYPE_CHECKING:
    from dbrm.posterior import FittedModel, Posterior, Rows
    from dbrm.posterior.model import Scale

__all__ = ["Contents", "describe"]

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


@final
@dataclass(frozen=True, slots=True)
class Contents:
    """Everything in a report.

    Parameters
    ----------
    facts
        A few words each, on the data and the run.
    exports
        The best formula in other languages: their names and the text.
    tiles
        Numbers with a few words each.
    features, covariates, interactions, models, latent
        Rows of tables.
    numbers, data
        Pairs of a name and a value.
    citations
        The method and the software, as text; then the method as BibTeX.
    """

    title: str
    response: str
    version: str
    facts: list[str]
    findings: list[Finding]
    headline: Finding
    best: "FittedModel"
    scale: str
    coefficients: list[dict[str, Any]]
    exports: list[tuple[str, str]]
    tiles: list[tuple[str, str]]
    sure: list[str]
    features: list[dict[str, Any]]
    features_caption: str
    covariates: list[dict[str, Any]]
    interactions: list[dict[str, Any]]
    scores: Scores
    what_if: WhatIf
    effects: list[Picture]
    path: list[dict[str, Any]]
    path_predicts: bool
    models: list[dict[str, Any]]
    models_caption: str
    latent: list[dict[str, Any]]
    pictures: list[Picture]
    numbers: list[tuple[str, str]]
    data: list[tuple[str, str]]
    rerun_words: str
    rerun_code: str
    citations: tuple[str, str, str]


def describe(
    posterior: "Posterior",
    rows: "Rows | None",
    title: str | None = None,
    test: "Rows | None" = None,
) -> Contents:
    """Collect what a report says.

    Parameters
    ----------
    rows
        Rows to plot predictions against; without them these plots are left out.
    test
        Rows that took no part in the fit, on which predictions are measured, too.
    title
        The question; "Which formula explains y?" unless given.
    """
    findings, best = find(posterior), posterior.best_model
    features = _features(posterior)
    models = _models(posterior)
    measured = measured_rows(posterior, rows, test)
    what_if = describe_what_if(posterior)
    return Contents(
        title=title or f"Which formula explains {posterior.record.response}?",
        response=posterior.record.response,
        version=__version__,
        facts=_facts(posterior),
        findings=findings,
        headline=headline(findings),
        best=best,
        scale=_scale(posterior, best),
        coefficients=_coefficients(best),
        exports=_exports(best),
        tiles=_tiles(posterior),
        sure=_sure(posterior, shaky=any(finding.level == "bad" for finding in findings)),
        features=features,
        features_caption=_features_caption(posterior, len(features)),
        covariates=_covariates(posterior),
        interactions=_interactions(posterior),
        scores=describe_scores(posterior, measured),
        what_if=what_if,
        path=describe_path(posterior),
        path_predicts=what_if.has_formulas,
        effects=effect_pictures(posterior),
        models=models,
        models_caption=(
            f"The {len(models)} most probable of {len(posterior.models):,} models kept."
        ),
        latent=[
            {"name": row.effect, **{name: getattr(row, name) for name in _LATENT}}
            for row in posterior.latent.itertuples()
        ],
        pictures=choose_pictures(posterior, rows, measured),
        numbers=numbers(posterior),
        data=data_facts(posterior),
        rerun_words=rerun_words(posterior),
        rerun_code=rerun_code(posterior),
        citations=(
            _METHOD,
            f"dbrm, version {posterior.record.version or __version__} (software).",
            _BIBTEX,
        ),
    )


_LATENT = ("inclusion", "nodes", "hyperparameters")


def _facts(posterior: "Posterior") -> list[str]:
    record = posterior.record
    chains = "chain" if record.n_chains == 1 else "chains"
    return [
        f"{posterior.n_rows:,} rows",
        f"{len(posterior.recipe.input_names):,} covariates",
        f"{posterior.family.label} response",
        "all models" if record.exhaustive else f"{record.n_chains} {chains}",
        f"{record.n_evaluated:,} models evaluated",
    ]


def _coefficients(best: "FittedModel") -> list[dict[str, Any]]:
    """Terms with their estimates; intercept and thresholds, which are no features, as text."""
    known = {str(term): term for term in best.terms}
    rows = best.coefficients().to_dict("records")
    return [
        {**row, "term": known.get(row["term"]), "label": row["term"], "of": row.get("class", "")}
        for row in rows
    ]


def _exports(best: "FittedModel") -> list[tuple[str, str]]:
    """The formula in the languages that can express it."""
    exports = [
        ("Text, all digits", f"{best.response} = {best.to_text()}"),
        ("LaTeX", best.to_latex()),
    ]
    # Of classes, the linear predictor.
    scale: Scale = "response" if best.family is None else "link"
    for language, write in (("Python", best.to_python), ("SQL", best.to_sql)):
        # erf is not in SQL; a function of the user's own may be in neither.
        with suppress(ExportError):
            exports.append((language, write(scale=scale)))
    return exports


def _scale(posterior: "Posterior", best: "FittedModel") -> str:
    link, response = posterior.link.name, posterior.record.response
    scaled = " Covariates are standardised." if posterior.record.settings.get("scale") else ""
    if best.latent:
        scaled += f" Text and programs below leave {listed(best.latent)} out."
    if posterior.family.name == "gaussian" and link == "identity" and posterior.latent.empty:
        spread = np.sqrt(best.fit.dispersion)
        return f"The standard deviation of the error is {spread:.3g}.{scaled}"
    if best.fit.joint is not None:
        return f"The formula gives the {best.response}.{scaled}"
    on = "" if link == "identity" else f" on the {link} scale"
    return f"The formula gives the mean of {response}{on}.{scaled}"


def _tiles(posterior: "Posterior") -> list[tuple[str, str]]:
    probability = posterior.models["probability"]
    tiles = [(_percent(probability[0]), "of the probability is on this formula")]
    if len(probability) > 1:
        tiles.append((_percent(probability[1]), "is on the next one"))
    sure = int((posterior.features["inclusion"] > 0.95).sum())
    verb = "feature is" if sure == 1 else "features are"
    tiles.append((str(sure), f"{verb} in the model with more than 95 % probability"))
    tiles.append((f"{len(probability):,}", "formulas were kept"))
    return tiles


def _percent(value: float) -> str:
    return format_share(value).replace("less than ", "< ").replace("more than ", "> ")


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
        sentences.append(f"{needed:,} formulas together have 95 % of the probability.")
    sentences.append(
        "These are probabilities among formulas of the features that the search met, given the "
        "priors and the functions it was allowed. They say nothing about causes: what predicts the "
        "response need not be what causes it."
    )
    return sentences


def _features(posterior: "Posterior") -> list[dict[str, Any]]:
    table = posterior.features
    shown = int((table["inclusion"] >= _WORTH_A_ROW).sum())
    shown = min(max(shown, _FEWEST_FEATURES), _MOST_FEATURES, len(table))
    return [
        {
            "feature": posterior.parse_feature(row.feature),
            "inclusion": float(row.inclusion),
            "complexity": int(row.complexity),
            "depth": int(row.depth),
        }
        for row in table.head(shown).itertuples()
    ]


def _covariates(posterior: "Posterior") -> list[dict[str, Any]]:
    """Covariates that take part; those of the averaged models first."""
    table = posterior.covariates
    used = table[table["probability"] >= _WORTH_A_ROW].head(_MOST_FEATURES)
    return [dict(row) for row in used.to_dict("records")]


def _interactions(posterior: "Posterior") -> list[dict[str, Any]]:
    table = posterior.interactions
    used = table[table["probability"] >= _WORTH_A_ROW].head(_FEWEST_FEATURES)
    return [dict(row) for row in used.to_dict("records")]


def _features_caption(posterior: "Posterior", shown: int) -> str:
    caption = f"The {shown} most probable of {len(posterior.features):,} features in the models."
    if always := [str(feature) for feature in posterior.always]:
        caption += f" In every model, because asked for: {listed(always, 6)}."
    return caption


def _models(posterior: "Posterior") -> list[dict[str, Any]]:
    """Models, and how many times less probable they are than the first."""
    table = posterior.models.head(_MOST_MODELS)
    best = float(table["probability"].iloc[0])
    return [
        {
            "rank": rank,
            "features": [posterior.parse_feature(text) for text in row.features],
            "latent": getattr(row, "latent", ()),
            "probability": float(row.probability),
            "ratio": best / row.probability if row.probability > 0 else np.inf,
            "log_evidence": float(row.log_evidence),
        }
        for rank, row in enumerate(table.itertuples(), start=1)
    ]
