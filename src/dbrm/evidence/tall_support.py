"""Which laws and priors have an engine for tall data."""

import numpy as np

from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.families import CompiledFamily, Family
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.links import Link, find_link

__all__ = ["tall_obstacle"]

# Laws without dispersion whose means are inside their domain for every linear predictor.
_LAWS = {"binomial": ("logit", "probit", "cloglog"), "poisson": ("log",)}


def tall_obstacle(family: Family, link: Link | str | None, prior: CoefficientPrior) -> str:
    """Why there is no engine for tall data, naming the setting and what to try; else nothing."""
    found = find_link(link or family.default_link)
    if family.name == "gaussian" and found.name == "identity":
        return ""
    if not isinstance(family, CompiledFamily) or family.name not in _LAWS:
        return (
            f"family={family.name!r} needs all rows in memory; gaussian, binomial and poisson "
            "do not"
        )
    if found.name not in _LAWS[family.name]:
        links = ", ".join(_LAWS[family.name])
        return f"link={found.name!r} needs all rows in memory; try link={links}"
    if glm_prior(prior, np.array([0, 1]), 1e6, dispersed=False).strict:
        return (
            f"prior={prior.name!r} looks at each model's information matrix and needs all rows "
            "in memory; try prior='jeffreys' or 'bic'"
        )
    return ""
