r"""Parametric transforms: steps and hinges with a knot, and powers.

The paper (Sec. 2.1) obtains decision rules from :math:`I(x > c)`, regression
splines from :math:`\max(0, x - c)` and :math:`\max(0, c - x)`, and fractional
polynomials from :math:`x^{r/s}`. A knot is

* a constant given beforehand, ``step[1.5](x)``;
* a quantile of the training column, ``step[q0.5]``; its value is stored in the feature, which
  prints as ``step[q0.5=1.234](x)``, and is not part of its identity;
* free: chosen for each feature, ``step(x, 1.234)``, at any training value. It belongs to the
  identity, and the complexity counts it.

A member that is also a built-in transform is returned under that name (``power[1/3]`` is
``troot``, ``hinge[0]`` is ``relu``), so that one function has one spelling.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite, nan
from types import MappingProxyType
from typing import Any, final

import numpy as np

from dbrm._typing import FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.features.library import TRANSFORMS, abs_power, abs_power_derivative
from dbrm.features.transforms import Transform
from dbrm.features.transforms import sympy as sp

__all__ = ["FAMILIES", "FREE_KNOTS", "at_zero", "hinge", "hinge_down", "power", "step", "step_down"]

_NAMED_POWERS = {
    1.0 / 3.0: "troot",
    0.5: "sqrt_abs",
    2.0: "square",
    2.3: "pow2_3",
    3.0: "cube",
    3.5: "pow3_5",
}
_NAMED_HINGES = {"hinge": "relu", "hinge_down": "relu_mirror"}


def step(knot: float | str) -> Transform:
    """Return I(x > c), a decision rule; ``knot`` is c, or a quantile such as ``"q0.5"``."""
    return _with_knot("step", knot)


def step_down(knot: float | str) -> Transform:
    """Return I(x < c), the opposite decision rule."""
    return _with_knot("step_down", knot)


def hinge(knot: float | str) -> Transform:
    """Return max(0, x - c), one half of a pair of regression splines."""
    return _with_knot("hinge", knot)


def hinge_down(knot: float | str) -> Transform:
    """Return max(0, c - x), the other half."""
    return _with_knot("hinge_down", knot)


def power(exponent: float | str) -> Transform:
    r"""Return :math:`x^r` for whole numbers r, and :math:`|x|^r` otherwise.

    Parameters
    ----------
    exponent
        The number r, or a fraction as text, ``"2/3"``. Neither 0 (fractional
        polynomials mean the logarithm: ``log_abs``) nor 1 (the identity).

    Notes
    -----
    A negative power of zero is infinite; the feature then has the status
    ``OVERFLOW`` on such data.
    """
    return _power(_number("power", exponent))


# Family name -> function that makes a member from the text between the brackets.
FAMILIES: Mapping[str, Callable[[str], Transform]] = MappingProxyType(
    {
        "step": step,
        "step_down": step_down,
        "hinge": hinge,
        "hinge_down": hinge_down,
        "power": power,
    }
)


@final
@dataclass(frozen=True, slots=True)
class _Shape:
    """The functions of a family with a knot c; each takes (x, c)."""

    function: Callable[..., FloatArray]
    derivative: Callable[..., FloatArray]
    sympy: Callable[..., Any]
    latex: str
    expression: str


# np.heaviside and np.maximum, unlike comparisons, carry NaN through.
_SHAPES = {
    "step": _Shape(
        lambda x, c: np.heaviside(x - c, 0.0),
        lambda x, c: np.zeros_like(x),  # noqa: ARG005
        lambda x, c: sp.Piecewise((1, x > c), (0, True)),
        r"\mathrm{I}\left(#1 > #2\right)",
        "where(x > c, 1, 0)",
    ),
    "step_down": _Shape(
        lambda x, c: np.heaviside(c - x, 0.0),
        lambda x, c: np.zeros_like(x),  # noqa: ARG005
        lambda x, c: sp.Piecewise((1, x < c), (0, True)),
        r"\mathrm{I}\left(#1 < #2\right)",
        "where(x < c, 1, 0)",
    ),
    "hinge": _Shape(
        lambda x, c: np.maximum(x - c, 0.0),
        lambda x, c: np.heaviside(x - c, 0.0),
        lambda x, c: sp.Piecewise((x - c, x > c), (0, True)),
        r"\max\left(0, #1 - \left(#2\right)\right)",
        "max(x - c, 0)",
    ),
    "hinge_down": _Shape(
        lambda x, c: np.maximum(c - x, 0.0),
        lambda x, c: -np.heaviside(c - x, 0.0),
        lambda x, c: sp.Piecewise((c - x, x < c), (0, True)),
        r"\max\left(0, #2 - \left(#1\right)\right)",
        "max(c - x, 0)",
    ),
}


def _with_free_knot(family: str) -> Transform:
    shape = _SHAPES[family]
    return Transform(
        family,
        shape.function,
        shape.derivative,
        shape.sympy,
        latex=shape.latex,
        expression=shape.expression,
        free_knot=True,
    )


# Family name -> the transform whose features have knots of their own.
FREE_KNOTS: Mapping[str, Transform] = MappingProxyType(
    {family: _with_free_knot(family) for family in _SHAPES}
)


def at_zero(transform: Transform) -> Transform:
    """Return the member with the knot zero of a family with free knots."""
    return FAMILIES[transform.name]("0")


def _with_knot(family: str, knot: float | str) -> Transform:
    if isinstance(knot, str) and knot.strip().startswith("q"):
        return _at_quantile(family, _number(family, knot.strip()[1:]))
    return _at_constant(family, _number(family, knot))


# Cached by number, not by spelling, so that equal functions are one object.
@lru_cache(maxsize=4096)
def _at_quantile(family: str, q: float) -> Transform:
    if not 0.0 < q < 1.0:
        msg = f"{family}[q...] needs a probability strictly between 0 and 1; got {q!r}."
        raise InvalidSettingError(msg)
    shape = _SHAPES[family]
    return Transform(
        f"{family}[q{_short(q)}]",
        shape.function,
        shape.derivative,
        shape.sympy,
        latex=shape.latex,
        expression=shape.expression,
        quantile=q,
    )


@lru_cache(maxsize=4096)
def _at_constant(family: str, c: float) -> Transform:
    if c == 0.0 and family in _NAMED_HINGES:
        return TRANSFORMS[_NAMED_HINGES[family]]
    shape = _SHAPES[family]
    return Transform(
        f"{family}[{_short(c)}]",
        lambda x: shape.function(x, c),
        lambda x: shape.derivative(x, c),
        lambda x: shape.sympy(x, _exact(c)),
        latex=shape.latex.replace("#2", _short(c)),
        expression=re.sub(r"\bc\b", f"({c!r})", shape.expression),
        idempotent=family == "step" and 0.0 <= c < 1.0,
        knot=c,
        kinks=(c,),
    )


@lru_cache(maxsize=4096)
def _power(r: float) -> Transform:
    if r in (0.0, 1.0):
        instead = "use log_abs" if r == 0.0 else "the identity is not a transform"
        msg = f"power needs an exponent other than 0 and 1; got {r:g}: {instead}."
        raise InvalidSettingError(msg)
    if r in _NAMED_POWERS:
        return TRANSFORMS[_NAMED_POWERS[r]]
    whole = r.is_integer()
    return Transform(
        f"power[{_short(r)}]",
        (lambda x: x**r) if whole else abs_power(r),
        (lambda x: r * x ** (r - 1.0)) if whole else abs_power_derivative(r),
        lambda x: (x if whole else sp.Abs(x)) ** _exact(r),
        expression=f"{'x' if whole else 'abs(x)'} ** ({r!r})",
        latex=(r"\left(#1\right)" if whole else r"\left|#1\right|") + f"^{{{_short(r)}}}",
        parity="odd" if whole and r % 2.0 == 1.0 else "even",
        kinks=(0.0,) if r < 1.0 else (),
    )


def _number(family: str, given: float | str) -> float:
    try:
        numerator, slash, denominator = str(given).partition("/")
        value = float(numerator) / (float(denominator) if slash else 1.0)
    except (ValueError, ZeroDivisionError, OverflowError):
        value = nan
    if not isfinite(value) or len(str(given)) > 64:
        example = "power[2/3]" if family == "power" else f"{family}[1.5] or {family}[q0.5]"
        msg = f"{family} needs a finite number, as in {example}; got {str(given)[:64]!r}."
        raise InvalidSettingError(msg)
    return value + 0.0


def _short(value: float) -> str:
    """Write a number briefly but exactly: 2, 1.5, 2/3."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    fraction = Fraction(value).limit_denominator(12)
    decimal = repr(value)
    if len(decimal) > 10 and fraction.numerator / fraction.denominator == value:
        return f"{fraction.numerator}/{fraction.denominator}"
    return decimal


def _exact(value: float) -> Any:
    return sp.Rational(_short(value))
