r"""Dimensional analysis of features: sums of like with like, pure numbers into sin and exp.

Every covariate has a dimension, a vector of exponents of base dimensions. Products add
exponents; functions that are homogeneous, :math:`g(\lambda x) = \lambda^d g(x)`, multiply
them by :math:`d`; knots of steps and hinges have the dimension of what they cut. All other
functions take and return pure numbers, and a projection adds inputs of one dimension only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.features import (
    Covariate,
    Feature,
    Modification,
    Product,
    Projection,
    Standardized,
    Transform,
    fold,
)

__all__ = ["Dimension", "Units", "degree_of_homogeneity"]

# Exponents of base dimensions, sorted by name; empty for a pure number.
Dimension = tuple[tuple[str, Fraction], ...]
_PURE: Dimension = ()
_LARGEST_DENOMINATOR = 12


@final
@dataclass(frozen=True, slots=True)
class Units:
    """Dimensions of the covariates.

    Parameters
    ----------
    dimensions
        By covariate; those not named are pure numbers.
    """

    dimensions: Mapping[str, Dimension]

    @classmethod
    def parse(cls, units: Mapping[str, str], names: tuple[str, ...]) -> "Units":
        """Read units such as ``"day"`` or ``"kg*m/s**2"`` with pint."""
        try:
            import pint
        except ImportError:
            msg = 'units= needs the package pint; install it with pip install "dbrm[units]".'
            raise ImportError(msg) from None
        registry: Any = pint.UnitRegistry()
        dimensions = {}
        for name, text in units.items():
            if name not in names:
                msg = f"units names {name!r}, which is not a column. Columns: {', '.join(names)}."
                raise UnknownNameError(msg)
            try:
                found = registry.parse_units(text).dimensionality
            except (pint.errors.PintError, ValueError, TypeError, AttributeError) as error:
                msg = f"units gives {name!r} the unit {text!r}, which pint cannot read: {error}"
                raise InvalidSettingError(msg) from None
            dimensions[name] = _tidy({base: _fraction(power) for base, power in found.items()})
        return cls(dimensions)

    def dimension(self, feature: Feature) -> Dimension | None:
        """Dimension of a feature, ``None`` if it makes no sense."""
        found: Dimension | None = fold(feature, self._combine)
        return found

    def allow(self, feature: Feature) -> bool:
        """Whether a feature is dimensionally sensible."""
        return self.dimension(feature) is not None

    def _combine(self, node: Feature, children: Any) -> Dimension | None:
        if any(child is None for child in children):
            return None
        match node:
            case Covariate():
                return self.dimensions.get(node.name, _PURE)
            case Product():
                total: dict[str, Fraction] = {}
                for child in children:
                    for base, power in child:
                        total[base] = total.get(base, Fraction(0)) + power
                return _tidy(total)
            case Standardized():
                return _PURE
            case Modification():
                return _through(node.transform, children[0])
            case Projection():
                if any(child != children[0] for child in children):
                    return None
                return _through(node.transform, children[0])
        return None


def _through(transform: Transform, dimension: Dimension) -> Dimension | None:
    """Dimension after a function, ``None`` if it takes pure numbers only."""
    if not dimension:
        return _PURE
    family = transform.name.split("[")[0]
    if family in ("step", "step_down"):
        return _PURE
    if family in ("hinge", "hinge_down"):
        return dimension
    degree = degree_of_homogeneity(transform)
    if degree is None:
        return None
    return _tidy({base: power * degree for base, power in dimension})


@lru_cache(maxsize=256)
def degree_of_homogeneity(transform: Transform) -> Fraction | None:
    r"""The :math:`d` of :math:`g(\lambda x) = \lambda^d g(x)`, ``None`` if there is none."""
    if transform.takes_knot:
        return None
    x = np.concatenate([np.linspace(0.3, 2.0, 9), -np.linspace(0.35, 1.9, 9)])
    with np.errstate(all="ignore"):
        once, twice, thrice = (transform(factor * x) for factor in (1.0, 2.0, 3.0))
        live = np.isfinite(once) & (np.abs(once) > 1e-12)
        if live.sum() < 4:
            return None
        degree = float(np.median(np.log2(np.abs(twice[live] / once[live]))))
        same = np.allclose(twice, 2.0**degree * once, rtol=1e-9, atol=1e-12)
        same = same and np.allclose(thrice, 3.0**degree * once, rtol=1e-9, atol=1e-12)
    return _fraction(degree) if same else None


def _fraction(value: Any) -> Fraction:
    exact = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    return exact if abs(float(exact) - float(value)) < 1e-9 else Fraction(float(value))


def _tidy(powers: Mapping[str, Fraction]) -> Dimension:
    return tuple(sorted((base, power) for base, power in powers.items() if power != 0))
