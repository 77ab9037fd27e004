"""Evaluate features on arrays of any library that has the functions of the common language.

The expressions of transforms (`dbrm.features.rendering`) are computed with the library's own
operators and functions, so that it can differentiate and compile them.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import pi
from typing import Any

from dbrm.errors import ExportError
from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.projection import Projection, Standardized
from dbrm.features.rendering import parse_expression
from dbrm.features.transforms import Transform
from dbrm.features.traversal import fold

__all__ = ["array_value", "expression_value"]

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
}


def array_value(feature: Feature, table: Mapping[str, Any], library: Any) -> Any:
    """Return the values of a feature on the columns of a table."""

    def compute(node: Feature, children: Sequence[Any]) -> Any:
        match node:
            case Covariate():
                return table[node.name]
            case Product():
                return reduce(operator.mul, children)
            case Projection():
                total = sum(w * c for w, c in zip(node.weights, children, strict=True))
                total = total if node.bias is None else node.bias + total
                return _applied(node.transform, total, node.knot, library)
            case Standardized(centre=float() as centre, scale=float() as scale):
                return (children[0] - centre) / scale
            case Modification():
                return _applied(node.transform, children[0], node.knot, library)
        raise AssertionError(node)

    return fold(feature, compute)


def expression_value(expression: str, library: Any, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression of the common language, given those of its names."""
    return _value(parse_expression(expression), library, {"pi": pi} | dict(names))


def _applied(transform: Transform, argument: Any, knot: float | None, library: Any) -> Any:
    if transform.expression is None:
        msg = (
            f"The transform {transform.name!r} has no expression, so it cannot be computed by "
            "another library. Give it one: Transform(..., expression='exp(-x**2)')."
        )
        raise ExportError(msg)
    return expression_value(transform.expression, library, {"x": argument, "c": knot})


def _value(node: ast.expr, library: Any, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, library, names)
        case (
            ast.BinOp(left=left, op=op, right=right)
            | ast.Compare(left=left, ops=[op], comparators=[right])
        ) if type(op) in _OPERATORS:
            first, second = _value(left, library, names), _value(right, library, names)
            return _OPERATORS[type(op)](first, second)
        case ast.Call(func=ast.Name(id=function), args=arguments):
            found = [_value(argument, library, names) for argument in arguments]
            # Functions of numbers alone, such as sqrt(2), are numbers.
            return getattr(library, function)(*found)
    msg = f"{ast.unparse(node)!r} is not part of the language of expressions."
    raise ExportError(msg)
