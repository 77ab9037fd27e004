"""Families of response distributions, one small file each.

To add one, add a module with a subclass of `Family`, decorated with ``@register``: all modules
of this package are imported.
"""

from dbrm._choices import import_modules
from dbrm.evidence.families.base import (
    FAMILIES,
    AbstractFamily,
    CompiledFamily,
    ExponentialFamily,
    Family,
    JointFamily,
)
from dbrm.evidence.families.binomial import Binomial
from dbrm.evidence.families.gamma import Gamma
from dbrm.evidence.families.gaussian import Gaussian
from dbrm.evidence.families.negative_binomial import NegativeBinomial
from dbrm.evidence.families.poisson import Poisson

__all__ = [
    "FAMILIES",
    "AbstractFamily",
    "Binomial",
    "CompiledFamily",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "Gaussian",
    "JointFamily",
    "NegativeBinomial",
    "Poisson",
    "find_density",
    "find_family",
]

import_modules(__name__, __path__)


def find_family(family: str | AbstractFamily) -> AbstractFamily:
    """The family of this name, or the family itself."""
    return family if isinstance(family, AbstractFamily) else FAMILIES.find(family)


def find_density(family: str | AbstractFamily) -> Family:
    """The same of a family that has a density for each row."""
    found = find_family(family)
    assert isinstance(found, Family)
    return found
