r"""The built-in transforms without a parameter, by name.

Each row gives the function, its derivative, its SymPy form and its expression. All are total on
the reals but `log_abs`, which is :math:`-\infty` at zero; that value is kept and
reported as an overflow, never clipped. The identity is not a transform, because it would only
give features a second spelling.
"""

from collections.abc import Callable, Mapping
from math import pi, sqrt
from types import MappingProxyType

import numpy as np
from scipy.special import erf, expit, ndtr

from dbrm._typing import FloatArray
from dbrm.features.transforms import Transform
from dbrm.features.transforms import sympy as sp

__all__ = ["ALIASES", "TRANSFORMS", "abs_power", "abs_power_derivative"]

# Below this |x| the slope of |x|^r, r < 1, is held constant.
_SLOPE_FLOOR = 1e-8


def abs_power(exponent: float) -> Callable[[FloatArray], FloatArray]:
    """Return the function |x|^r."""
    return lambda x: np.abs(x) ** exponent


def abs_power_derivative(exponent: float) -> Callable[[FloatArray], FloatArray]:
    """Return the derivative of |x|^r, kept finite at zero for 0 < r < 1."""
    floor = _SLOPE_FLOOR if 0.0 < exponent < 1.0 else 0.0
    return lambda x: exponent * np.sign(x) * np.maximum(np.abs(x), floor) ** (exponent - 1.0)


def _normal_density(x: FloatArray) -> FloatArray:
    return np.exp(-0.5 * x * x) / sqrt(2.0 * pi)


_DEGREE = pi / 180.0

_ROWS = (
    Transform(
        "gauss",
        lambda x: np.exp(-x * x),
        lambda x: -2.0 * x * np.exp(-x * x),
        lambda x: sp.exp(-(x**2)),
        expression="exp(-x**2)",
        latex=r"e^{-\left(#1\right)^{2}}",
        parity="even",
    ),
    Transform(
        "tanh",
        np.tanh,
        lambda x: 1.0 - np.tanh(x) ** 2,
        lambda x: sp.tanh(x),
        expression="tanh(x)",
        latex=r"\tanh\left(#1\right)",
        parity="odd",
    ),
    Transform(
        "atan",
        np.arctan,
        lambda x: 1.0 / (1.0 + x * x),
        lambda x: sp.atan(x),
        expression="atan(x)",
        latex=r"\arctan\left(#1\right)",
        parity="odd",
    ),
    Transform(
        "sin",
        np.sin,
        np.cos,
        lambda x: sp.sin(x),
        expression="sin(x)",
        latex=r"\sin\left(#1\right)",
        parity="odd",
    ),
    Transform(
        "cos",
        np.cos,
        lambda x: -np.sin(x),
        lambda x: sp.cos(x),
        expression="cos(x)",
        latex=r"\cos\left(#1\right)",
        parity="even",
    ),
    Transform(
        "sin_degrees",
        lambda x: np.sin(_DEGREE * x),
        lambda x: _DEGREE * np.cos(_DEGREE * x),
        lambda x: sp.sin(sp.pi * x / 180),
        expression="sin(x * pi / 180)",
        latex=r"\sin\left(\left[#1\right]^{\circ}\right)",
        parity="odd",
    ),
    Transform(
        "cos_degrees",
        lambda x: np.cos(_DEGREE * x),
        lambda x: -_DEGREE * np.sin(_DEGREE * x),
        lambda x: sp.cos(sp.pi * x / 180),
        expression="cos(x * pi / 180)",
        latex=r"\cos\left(\left[#1\right]^{\circ}\right)",
        parity="even",
    ),
    Transform(
        "sigmoid",
        expit,
        lambda x: expit(x) * expit(-x),
        lambda x: 1 / (1 + sp.exp(-x)),
        expression="(1 + tanh(x / 2)) / 2",
        latex=r"\sigma\left(#1\right)",
    ),
    Transform(
        "relu",
        lambda x: np.maximum(x, 0.0),
        lambda x: np.heaviside(x, 0.0),
        lambda x: sp.Piecewise((x, x > 0), (0, True)),
        expression="max(x, 0)",
        latex=r"\max\left(0, #1\right)",
        idempotent=True,
        knot=0.0,
        kinks=(0.0,),
    ),
    Transform(
        "relu_mirror",
        lambda x: np.maximum(-x, 0.0),
        lambda x: -np.heaviside(-x, 0.0),
        lambda x: sp.Piecewise((-x, x < 0), (0, True)),
        expression="max(-x, 0)",
        latex=r"\max\left(0, -\left(#1\right)\right)",
        knot=0.0,
        kinks=(0.0,),
    ),
    Transform("exp", np.exp, np.exp, lambda x: sp.exp(x), expression="exp(x)", latex=r"e^{#1}"),
    Transform(
        "exp_neg_abs",
        lambda x: np.exp(-np.abs(x)),
        lambda x: -np.sign(x) * np.exp(-np.abs(x)),
        lambda x: sp.exp(-sp.Abs(x)),
        expression="exp(-abs(x))",
        latex=r"e^{-\left|#1\right|}",
        parity="even",
        kinks=(0.0,),
    ),
    Transform(
        "log1p_abs",
        lambda x: np.log1p(np.abs(x)),
        lambda x: np.sign(x) / (1.0 + np.abs(x)),
        lambda x: sp.log(1 + sp.Abs(x)),
        expression="log(1 + abs(x))",
        latex=r"\log\left(\left|#1\right| + 1\right)",
        parity="even",
        kinks=(0.0,),
    ),
    Transform(
        "log_abs",
        lambda x: np.log(np.abs(x)),
        lambda x: 1.0 / x,
        lambda x: sp.log(sp.Abs(x)),
        expression="log(abs(x))",
        latex=r"\log\left|#1\right|",
        parity="even",
        kinks=(0.0,),
    ),
    Transform(
        "sqrt_abs",
        lambda x: np.sqrt(np.abs(x)),
        abs_power_derivative(0.5),
        lambda x: sp.sqrt(sp.Abs(x)),
        expression="sqrt(abs(x))",
        latex=r"\sqrt{\left|#1\right|}",
        parity="even",
        kinks=(0.0,),
    ),
    Transform(
        "troot",
        lambda x: np.cbrt(np.abs(x)),
        abs_power_derivative(1.0 / 3.0),
        lambda x: sp.Abs(x) ** sp.Rational(1, 3),
        expression="abs(x) ** (1 / 3)",
        latex=r"\left|#1\right|^{1/3}",
        parity="even",
        kinks=(0.0,),
    ),
    Transform(
        "cbrt",
        np.cbrt,
        lambda x: abs_power_derivative(1.0 / 3.0)(np.abs(x)),
        lambda x: sp.sign(x) * sp.Abs(x) ** sp.Rational(1, 3),
        expression="where(x < 0, -(abs(x) ** (1 / 3)), abs(x) ** (1 / 3))",
        latex=r"\operatorname{cbrt}\left(#1\right)",
        parity="odd",
        kinks=(0.0,),
    ),
    Transform(
        "pow2_3",
        abs_power(2.3),
        abs_power_derivative(2.3),
        lambda x: sp.Abs(x) ** sp.Rational(23, 10),
        expression="abs(x) ** 2.3",
        latex=r"\left|#1\right|^{2.3}",
        parity="even",
    ),
    Transform(
        "pow3_5",
        abs_power(3.5),
        abs_power_derivative(3.5),
        lambda x: sp.Abs(x) ** sp.Rational(7, 2),
        expression="abs(x) ** 3.5",
        latex=r"\left|#1\right|^{3.5}",
        parity="even",
    ),
    Transform(
        "square",
        np.square,
        lambda x: 2.0 * x,
        lambda x: x**2,
        expression="x**2",
        latex=r"\left(#1\right)^{2}",
        parity="even",
    ),
    Transform(
        "cube",
        lambda x: x * x * x,
        lambda x: 3.0 * x * x,
        lambda x: x**3,
        expression="x**3",
        latex=r"\left(#1\right)^{3}",
        parity="odd",
    ),
    Transform(
        "erf",
        erf,
        lambda x: 2.0 / sqrt(pi) * np.exp(-x * x),
        lambda x: sp.erf(x),
        expression="erf(x)",
        latex=r"\operatorname{erf}\left(#1\right)",
        parity="odd",
    ),
    Transform(
        "gelu",
        lambda x: x * ndtr(x),
        lambda x: ndtr(x) + x * _normal_density(x),
        lambda x: x * (1 + sp.erf(x / sp.sqrt(2))) / 2,
        expression="x * (1 + erf(x / sqrt(2))) / 2",
        latex=r"\operatorname{GELU}\left(#1\right)",
    ),
    Transform(
        "arcsinh",
        np.arcsinh,
        lambda x: 1.0 / np.hypot(1.0, x),
        lambda x: sp.asinh(x),
        expression="asinh(x)",
        latex=r"\operatorname{arcsinh}\left(#1\right)",
        parity="odd",
    ),
    Transform(
        "abs",
        np.abs,
        np.sign,
        lambda x: sp.Abs(x),
        expression="abs(x)",
        latex=r"\left|#1\right|",
        idempotent=True,
        parity="even",
        kinks=(0.0,),
    ),
    Transform(
        "neg",
        np.negative,
        lambda x: -np.ones_like(x),
        lambda x: -x,
        expression="-x",
        latex=r"\left(-\left(#1\right)\right)",
        parity="odd",
    ),
    Transform(
        "not",
        lambda x: 1.0 - x,
        lambda x: -np.ones_like(x),
        lambda x: 1 - x,
        expression="1 - x",
        latex=r"\left(1 - \left(#1\right)\right)",
    ),
)

# Name -> built-in transform; `dbrm.features.parametric` adds the parametrised ones.
TRANSFORMS: Mapping[str, Transform] = MappingProxyType({row.name: row for row in _ROWS})

# Other names -> the names under which features are written.
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "sqrt": "sqrt_abs",
        "log": "log_abs",
        "ln": "log_abs",
        "log1p": "log1p_abs",
        "inv": "power[-1]",
        "logistic": "sigmoid",
        "arctan": "atan",
        "asinh": "arcsinh",
    }
)
