"""Families of response distributions, one small file each.

To add one, add a module with a subclass of `Family`, decorated with ``@register``: all modules
of this package are imported.
"""

from dataclasses import fields, is_dataclass, replace

import numpy as np

from dbrm._choices import import_modules
from dbrm.errors import InvalidSettingError
from dbrm.evidence.families.base import (
    FAMILIES,
    AbstractFamily,
    CompiledFamily,
    ExponentialFamily,
    Family,
    JointFamily,
)
from dbrm.evidence.families.beta import Beta
from dbrm.evidence.families.binomial import Binomial
from dbrm.evidence.families.gamma import Gamma
from dbrm.evidence.families.gaussian import Gaussian
from dbrm.evidence.families.multinomial import Multinomial
from dbrm.evidence.families.negative_binomial import NegativeBinomial
from dbrm.evidence.families.ordinal import Ordinal
from dbrm.evidence.families.poisson import Poisson
from dbrm.evidence.families.student_t import StudentT
from dbrm.evidence.families.zero_inflated_poisson import ZeroInflatedPoisson

__all__ = [
    "FAMILIES",
    "AbstractFamily",
    "Beta",
    "Binomial",
    "CompiledFamily",
    "ExponentialFamily",
    "Family",
    "Gamma",
    "Gaussian",
    "JointFamily",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "StudentT",
    "ZeroInflatedPoisson",
    "find_density",
    "find_family",
]

import_modules(__name__, __path__)


def find_family(family: str | AbstractFamily) -> AbstractFamily:
    """The family of this name, or the family itself.

    A name may carry parameters, ``"student_t(df=4)"``.
    """
    if isinstance(family, AbstractFamily):
        return family
    name, bracket, inside = family.strip().rstrip(")").partition("(")
    found = FAMILIES.find(name)
    if not bracket:
        return found
    known: list[str] = [field.name for field in fields(found)] if is_dataclass(found) else []
    given: dict[str, float] = {}
    for part in inside.split(","):
        key, equals, value = part.rpartition("=")
        try:
            given[key.strip() if equals else known[0]] = float(value)
        except (ValueError, IndexError):
            given[part.strip()] = np.nan
    if not set(given) <= set(known):
        msg = (
            f"family={family!r} is not understood: parameters are numbers, as in "
            f"'student_t(df=4)'. Those of {name!r}: {', '.join(known) or 'none'}."
        )
        raise InvalidSettingError(msg)
    return replace(found, **given)  # type: ignore[type-var]


def find_density(family: str | AbstractFamily) -> Family:
    """The same of a family that has a density for each row."""
    found = find_family(family)
    assert isinstance(found, Family)
    return found
