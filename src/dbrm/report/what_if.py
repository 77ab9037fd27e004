"""The part of the page that predicts: data for its program, and what it predicts with."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from dbrm.errors import ExportError
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.report.wording import display, format_share, shorten

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["WhatIf", "describe_what_if"]

# Bytes of models in the page, about.
_MOST_BYTES = 1_500_000
# Letters of a feature beside its bar.
_LONGEST = 80

Predicts = Literal["mean", "probability", "classes", "log hazard ratio", "median"]
_PREDICTS: dict[str, Predicts] = {
    "binomial": "probability",
    "multinomial": "classes",
    "ordinal": "classes",
    "cox": "log hazard ratio",
    "weibull": "median",
}


@final
@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the page predicts with.

    Parameters
    ----------
    data
        As JSON that is safe inside a script element; empty if the page cannot predict.
    words
        Which models predict, or why the page cannot.
    has_formulas
        Whether the formulas of the path predict, too.
    predicts
        ``"mean"``, ``"probability"`` (binomial responses), ``"classes"``; of survival times
        ``"log hazard ratio"`` or ``"median"``.
    has_moves
        Whether there is one linear predictor, which features move.
    has_curve
        Whether there are survival curves.
    """

    data: str
    words: str
    has_formulas: bool = False
    predicts: Predicts = "mean"
    has_moves: bool = True
    has_curve: bool = False


def describe_what_if(posterior: "Posterior") -> WhatIf:
    """Data and words of the predictions in the page."""
    classes = [str(label) for label in posterior.classes]
    # A formula is the predictor of one class against another.
    formulas = [] if classes else _path_formulas(posterior)
    try:
        found = posterior.portable(_MOST_BYTES, formulas)
    except ExportError as error:
        why = f"{error} The page cannot predict with such models; posterior.predict(X) does."
        return WhatIf("", why)
    found["response"], found["classes"] = posterior.record.response, classes
    found["strata"] = list(posterior.record.strata)
    shares = dict(posterior.covariates[["covariate", "share"]].itertuples(index=False))
    found["shares"] = [shares.get(i["name"], 0.0) for i in found["inputs"]]
    found["labels"] = [shorten(display(name), _LONGEST) for name in found["names"]]
    text = json.dumps(found, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    family = posterior.family.name
    return WhatIf(
        data=text if found["inputs"] else "",
        words=_words(found["n_models"], found),
        has_formulas=bool(formulas),
        predicts=_PREDICTS.get(family, "mean"),
        has_moves=family != "multinomial",
        has_curve=isinstance(posterior.family, SurvivalFamily),
    )


def describe_path(posterior: "Posterior") -> list[dict[str, Any]]:
    """Formulas of every complexity, and what they lose against the most probable one."""
    steps = posterior.path_steps
    if len(steps) < 2:
        return []
    best = max(steps, key=lambda step: step.probability)
    return [
        {
            "complexity": step.complexity,
            "formula": display(step.formula),
            "r2": step.r2,
            "lost": best.r2 - step.r2,
            "ratio": best.probability / step.probability if step.probability > 0 else np.inf,
            "best": step is best,
        }
        for step in steps
    ]


def _path_formulas(posterior: "Posterior") -> list[Any]:
    """Terms and coefficients of the formulas of the path."""
    return [
        ((*posterior.always, *map(posterior.parse_feature, step.features)), step.coefficients)
        for step in posterior.path_steps
        if step.coefficients
    ]


def _words(count: int, found: dict[str, object]) -> str:
    total, share = found["n_averaged"], found["share"]
    assert isinstance(total, int)
    assert isinstance(share, float)
    if not found["inputs"]:
        return "No formula uses any covariate, so the prediction is the same for every row."
    if count < total:
        return (
            f"Averaged over the {count:,} most probable formulas, with {format_share(share)} of "
            f"the probability of the {total:,} that posterior.predict(X) averages over."
        )
    formulas = "the formula" if count == 1 else f"all {count:,} formulas"
    method = "predict_proba" if found["classes"] else "predict"
    return f"Averaged over {formulas}: the numbers of posterior.{method}(X)."
