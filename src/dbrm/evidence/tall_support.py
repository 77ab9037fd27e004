"""Which laws and priors have an engine for tall data."""

import numpy as np

from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.families import FAMILIES, Family
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.links import Link, find_link

__all__ = ["tall_obstacle"]


def tall_obstacle(family: Family, link: Link | str | None, prior: CoefficientPrior) -> str:
    """Why there is no engine for tall data, naming the setting and what to try; else nothing."""
    found = find_link(link or family.default_link)
    if found.name == family.exact_link:
        return ""
    if not family.out_of_core_links:
        able = ", ".join(name for name, other in FAMILIES.items() if other.out_of_core_links)
        return f"family={family.name!r} needs all rows in memory; these do not: {able}"
    if found.name not in family.out_of_core_links:
        links = ", ".join(family.out_of_core_links)
        return f"link={found.name!r} needs all rows in memory; try link={links}"
    if glm_prior(prior, np.array([0, 1]), 1e6, dispersed=False).strict:
        return (
            f"prior={prior.name!r} looks at each model's information matrix and needs all rows "
            "in memory; try prior='jeffreys' or 'bic'"
        )
    return ""
