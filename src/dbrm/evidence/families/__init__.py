"""Families of response distributions, one small file each."""

from dbrm.errors import UnknownNameError
from dbrm.evidence.families.base import CompiledFamily, ExponentialFamily, Family
from dbrm.evidence.families.binomial import Binomial
from dbrm.evidence.families.gamma import Gamma
from dbrm.evidence.families.gaussian import Gaussian
from dbrm.evidence.families.negative_binomial import NegativeBinomial
from dbrm.evidence.families.poisson import Poisson

__all__ = [
    "FAMILIES",
    "Binomial",
    "CompiledFamily",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "Gaussian",
    "NegativeBinomial",
    "Poisson",
    "find_family",
]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (Gaussian(), Binomial(), Poisson(), Gamma(), NegativeBinomial())
}


def find_family(family: str | Family) -> Family:
    """The family of this name, or the family itself."""
    if isinstance(family, Family):
        return family
    if family not in FAMILIES:
        msg = (
            f"There is no family {family!r}. Families: {', '.join(FAMILIES)}; "
            "or pass a Family object."
        )
        raise UnknownNameError(msg)
    return FAMILIES[family]
