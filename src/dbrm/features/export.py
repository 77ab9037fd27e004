"""Features as mathematics: SymPy expressions and LaTeX; `dbrm.features.rendering` writes code."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.projection import Projection, Standardized
from dbrm.features.transforms import Transform
from dbrm.features.transforms import sympy as sp
from dbrm.features.traversal import fold

__all__ = ["latex_number", "to_latex", "to_sympy"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: "\\" + character for character in "{}$&#%_"},
}
_INDEXED = re.compile(r"([A-Za-z])_?([0-9]+)")
_PLACEHOLDER = re.compile(r"#([12])")


def to_sympy(feature: Feature, symbols: Mapping[str, Any] | None = None) -> Any:
    """Return a SymPy expression.

    Parameters
    ----------
    feature
        Any feature. A transform without a SymPy form becomes an undefined function.
    symbols
        Expressions for covariates; a plain ``Symbol`` of the same name otherwise.
    """
    given = symbols or {}

    def export(node: Feature, children: Sequence[Any]) -> Any:
        match node:
            case Covariate():
                return given[node.name] if node.name in given else sp.Symbol(node.name)
            case Product():
                return sp.Mul(*children)
            case Projection():
                pairs = zip(node.weights, children, strict=True)
                terms = [c if w == 1.0 else sp.Float(w) * c for w, c in pairs]
                bias = [] if node.bias is None else [sp.Float(node.bias)]
                return _sympy_applied(node.transform, sp.Add(*bias, *terms), node.knot)
            case Standardized():
                # Numbers that are not known yet stay symbols.
                centre = sp.Symbol("c") if node.centre is None else sp.Float(node.centre)
                scale = sp.Symbol("s") if node.scale is None else sp.Float(node.scale)
                return (children[0] - centre) / scale
            case Modification():
                return _sympy_applied(node.transform, children[0], node.knot)
        raise AssertionError(node)

    return fold(feature, export)


def _sympy_applied(transform: Transform, argument: Any, knot: float | None) -> Any:
    name = transform.name
    if not transform.takes_knot:
        inputs = [argument]
    else:
        # A knot that is not known yet stays a symbol.
        inputs = [argument, sp.Symbol(f"c_{name}") if knot is None else sp.Float(knot)]
    form = sp.Function(name) if transform.sympy is None else transform.sympy
    return form(*inputs)


def to_latex(feature: Feature, *, digits: int = 4) -> str:
    """Return LaTeX for use in a formula; weights are rounded to ``digits`` significant ones."""

    def export(node: Feature, children: Sequence[str]) -> str:
        match node:
            case Covariate():
                return _latex_name(node.name)
            case Product():
                return _latex_product(node, children)
            case Projection():
                inside = _latex_sum(node, children, digits)
                return _latex_applied(node.transform, inside, node.knot, digits)
            case Standardized():
                return _latex_standardized(node, children[0], digits)
            case Modification():
                return _latex_applied(node.transform, children[0], node.knot, digits)
        raise AssertionError(node)

    return fold(feature, export)


def _latex_name(name: str) -> str:
    if len(name) == 1 and name.isalpha():
        return name
    if indexed := _INDEXED.fullmatch(name):
        return f"{indexed[1]}_{{{indexed[2]}}}"
    escaped = "".join([_SPECIAL.get(character, character) for character in name])
    command = "mathrm" if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) else "text"
    return rf"\{command}{{{escaped}}}"


def _latex_product(node: Product, factors: Sequence[str]) -> str:
    kinds = dict(zip(factors, node.factors, strict=True))
    parts = []
    for factor, multiplicity in Counter(factors).items():
        if multiplicity == 1:
            parts.append(factor)
        elif isinstance(kinds[factor], Covariate):
            parts.append(f"{{{factor}}}^{{{multiplicity}}}")
        else:
            parts.append(rf"\left({factor}\right)^{{{multiplicity}}}")
    return r" \, ".join(parts)


def _latex_sum(node: Projection, children: Sequence[str], digits: int) -> str:
    parts = [] if node.bias is None else [latex_number(node.bias, digits)]
    for weight, child in zip(node.weights, children, strict=True):
        sign = "" if not parts else " - " if weight < 0.0 else " + "
        number = latex_number(abs(weight) if parts else weight, digits)
        parts.append(f"{sign}{child}" if number == "1" else rf"{sign}{number} \, {child}")
    return "".join(parts)


def _latex_standardized(node: Standardized, child: str, digits: int) -> str:
    centre, scale = node.centre, node.scale
    if centre is None or scale is None:
        return rf"\frac{{{child} - c}}{{s}}"
    sign = "-" if centre >= 0.0 else "+"
    shift = latex_number(abs(centre), digits)
    return rf"\frac{{{child} {sign} {shift}}}{{{latex_number(scale, digits)}}}"


def _latex_applied(transform: Transform, inside: str, knot: float | None, digits: int) -> str:
    template = transform.latex
    if template is None:
        name = "".join([_SPECIAL.get(character, character) for character in transform.name])
        template = rf"\operatorname{{{name}}}\left(#1\right)"
    shown = f"q_{{{transform.quantile}}}" if knot is None else latex_number(knot, digits)
    return _PLACEHOLDER.sub(lambda match: inside if match[1] == "1" else shown, template)


def latex_number(value: float, digits: int) -> str:
    r"""Return a number with ``digits`` significant digits: ``1.2 \cdot 10^{-7}``."""
    mantissa, e, exponent = f"{value:.{digits}g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if e else mantissa
