"""What settings that the user leaves open mean: the defaults, and the two presets of the paper.

`Settings` leaves them at ``None``; they depend on the family and on the number of observations.
"""

from collections.abc import Callable, Sequence
from math import log
from typing import Any

from dbrm.evidence import (
    AbstractFamily,
    CoefficientPrior,
    Jeffreys,
    KnownVariance,
    Normal,
    ZellnerSiow,
)
from dbrm.evolution import Operators
from dbrm.priors import Complexity

__all__ = ["PRESETS", "preset_choices", "transforms_of_preset"]

_UNIT_INFORMATION = Jeffreys(constant="unit_information")


def preset_choices(
    preset: str | None,
    family: AbstractFamily,
    n: float,
    *,
    long_tail: bool = False,
    in_blocks: bool = False,
) -> dict[str, Any]:
    """Values of the settings that a preset decides.

    Parameters
    ----------
    n
        The number of observations.
    long_tail
        Whether a Gaussian response has a long tail, so that a handful of rows decide. Then the
        defaults are strict, see docs/decisions/0018.
    in_blocks
        Whether rows are visited in blocks: then the default prior is one that needs no more than
        the likelihood of a model, and there are rows enough for it.
    """
    choices = _CHOICES[preset](family, n)
    if preset is None and in_blocks and family.exact_link is None:
        choices |= {"prior": _UNIT_INFORMATION}
    if preset is None and long_tail:
        choices |= {"prior": Jeffreys(), "penalty": "bic"}
    return choices


def transforms_of_preset(preset: str | None, transforms: Any) -> Any:
    """The transforms that a preset means by these names.

    Under ``"paper_code"`` the sets G1 (with a cosine) and G2 take angles in degrees, as the
    published scripts did.
    """
    if preset != "paper_code":
        return transforms
    if isinstance(transforms, str):
        return f"{transforms}-code" if transforms in ("paper-g1", "paper-g2") else transforms
    if isinstance(transforms, Sequence):
        return [transforms_of_preset(preset, item) for item in transforms]
    return transforms


def _default(family: AbstractFamily, n: float) -> dict[str, Any]:  # noqa: ARG001
    """The defaults, chosen by the comparison in docs/decisions/0018."""
    prior: CoefficientPrior = _UNIT_INFORMATION
    if family.exact_link is not None:
        prior = ZellnerSiow()
    elif family.has_trials:
        # Jeffreys' rule takes the highest likelihood for the evidence: too much where a formula
        # separates the classes.
        prior = Normal(variance=1.0, standardised=True)
    return {
        "prior": prior,
        "penalty": "adaptive",
        "transforms": "smooth",
        "operators": Operators(),
        "latent_charge": "hyperparameter",
        "uncertainty": "laplace",
        "extrapolate": "hold",
        "sweep_projections": True,
        "missing": "indicator",
        "unseen": "none-of-these",
        "log_covariates": True,
        "remainder": True,
        "estimate_unvisited": True,
    }


def _paper_text(family: AbstractFamily, n: float) -> dict[str, Any]:  # noqa: ARG001
    """The paper's Section 4: Jeffreys; a = e^-2 for classification, n^-2 otherwise."""
    return {
        "prior": Jeffreys(),
        "penalty": "aic" if family.has_trials else "bic",
        "transforms": "paper-classification" if family.has_trials else "paper-g1",
        "operators": Operators(informed=0.0),
        "latent_charge": "effect",
        "uncertainty": "plugin",
        "extrapolate": "follow",
        "sweep_projections": False,
        "missing": "error",
        "unseen": "error",
        "log_covariates": False,
        "remainder": False,
        "estimate_unvisited": False,
    }


def _paper_code(family: AbstractFamily, n: float) -> dict[str, Any]:
    """What the published scripts ran: known variance and a = 1/n; half a nat per sign."""
    if family.exact_link is not None:
        return {
            "prior": KnownVariance(),
            "penalty": Complexity(log(max(n, 1.0))),
            "transforms": "paper-g1",
            "operators": Operators(1, 10, 5, 1, informed=0.0),
            "latent_charge": "effect",
            "uncertainty": "plugin",
            "extrapolate": "follow",
            "sweep_projections": False,
            "missing": "error",
            "unseen": "error",
            "log_covariates": False,
            "remainder": False,
            "estimate_unvisited": False,
        }
    return {
        "prior": Jeffreys(constant="none"),
        "penalty": "script-weights",
        "transforms": "paper-classification",
        "operators": Operators(1, 1, 1, 1, informed=0.0),
        "latent_charge": "effect",
        "uncertainty": "plugin",
        "extrapolate": "follow",
        "sweep_projections": False,
        "missing": "error",
        "unseen": "error",
        "log_covariates": False,
        "remainder": False,
        "estimate_unvisited": False,
    }


_CHOICES: dict[str | None, Callable[[AbstractFamily, float], dict[str, Any]]] = {
    None: _default,
    "paper_text": _paper_text,
    "paper_code": _paper_code,
}
# What `preset=` takes.
PRESETS = tuple(_CHOICES)
