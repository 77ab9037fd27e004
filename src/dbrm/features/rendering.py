"""Write features as code: Python, NumPy and SQL.

Each transform has an expression in a small common language, such as ``exp(-x**2)``, with ``x``
for its argument and ``c`` for its knot. It is parsed, never evaluated, and written in a
dialect. Everything is put in parentheses, so that precedence does not matter.
"""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import count
from math import isfinite, pi
from typing import Any, ClassVar, final

from dbrm.errors import ExportError
from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.projection import Projection, Standardized
from dbrm.features.transforms import Transform
from dbrm.features.traversal import fold

__all__ = [
    "NUMPY",
    "PYTHON",
    "SQL",
    "Dialect",
    "apply_expression",
    "expression_tree",
    "parse_expression",
    "render",
]

Writer = Callable[..., str]


class Dialect(ABC):
    """A language to write expressions in."""

    #: Its name in messages.
    name: ClassVar[str]
    #: How functions of the common language are written.
    functions: ClassVar[Mapping[str, Writer]]

    def number(self, value: float) -> str:
        """Write a number with all its digits."""
        if not isfinite(value):
            msg = f"{value} cannot be written as a number in {self.name}."
            raise ExportError(msg)
        text = repr(float(value))
        return f"({text})" if text.startswith("-") else text

    @abstractmethod
    def power(self, base: str, exponent: str) -> str:
        """Write a power."""

    @abstractmethod
    def choose(self, condition: str, yes: str, no: str) -> str:
        """Write a choice between two values."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Write a string constant."""

    def call(self, function: str, arguments: Sequence[str]) -> str:
        """Write a call of a function of the common language."""
        if function not in self.functions:
            msg = (
                f"There is no {function}() in {self.name}, so this model cannot be written in it. "
                "Use to_python() or to_numpy(), or fit without that transform or link."
            )
            raise ExportError(msg)
        return self.functions[function](*arguments)


def _named(prefix: str, *names: str, **others: str) -> dict[str, Writer]:
    spelled = {name: name for name in names} | others
    return {
        name: lambda *arguments, word=word: f"{prefix}{word}({', '.join(arguments)})"
        for name, word in spelled.items()
    }


@final
class _Python(Dialect):
    name = "plain Python"
    functions: ClassVar[Mapping[str, Writer]] = {
        **_named("math.", "exp", "log", "sin", "cos", "tanh", "atan", "asinh", "erf", "sqrt"),
        **_named("", "abs", "max"),
    }

    def power(self, base: str, exponent: str) -> str:
        return f"({base} ** {exponent})"

    def choose(self, condition: str, yes: str, no: str) -> str:
        return f"({yes} if {condition} else {no})"

    def text(self, value: str) -> str:
        return repr(value)


@final
class _NumPy(Dialect):
    name = "NumPy"
    functions: ClassVar[Mapping[str, Writer]] = {
        **_named("np.", "exp", "log", "sin", "cos", "tanh", "abs", "sqrt"),
        **_named("np.", atan="arctan", asinh="arcsinh", max="maximum"),
        **_named("scipy.special.", "erf"),
    }

    def power(self, base: str, exponent: str) -> str:
        return f"({base} ** {exponent})"

    def choose(self, condition: str, yes: str, no: str) -> str:
        return f"np.where({condition}, {yes}, {no})"

    def text(self, value: str) -> str:
        return repr(value)


def _sql_max(left: str, right: str) -> str:
    return f"(CASE WHEN {left} > {right} THEN {left} ELSE {right} END)"


def _sql_sign(x: str, value: str) -> str:
    return f"(CASE WHEN {x} < 0.0 THEN -{value} ELSE {value} END)"


def _sql_tanh(x: str) -> str:
    decay = f"EXP(-2.0 * ABS({x}))"
    return _sql_sign(x, f"((1.0 - {decay}) / (1.0 + {decay}))")


def _sql_asinh(x: str) -> str:
    return _sql_sign(x, f"LN(ABS({x}) + SQRT({x} * {x} + 1.0))")


@final
class _Sql(Dialect):
    """Functions that every database has: ``EXP``, ``LN``, ``POWER`` and their like."""

    name = "SQL"
    functions: ClassVar[Mapping[str, Writer]] = {
        **_named(
            "", exp="EXP", log="LN", sin="SIN", cos="COS", atan="ATAN", sqrt="SQRT", abs="ABS"
        ),
        "max": _sql_max,
        "tanh": _sql_tanh,
        "asinh": _sql_asinh,
    }

    def power(self, base: str, exponent: str) -> str:
        return f"POWER({base}, {exponent})"

    def choose(self, condition: str, yes: str, no: str) -> str:
        return f"(CASE WHEN {condition} THEN {yes} ELSE {no} END)"

    def text(self, value: str) -> str:
        quoted = "'" + value.replace("'", "''") + "'"
        if "\\" not in value:
            return quoted
        # Some databases read a backslash in a string as an escape, others literally. In all of
        # them the first character of two backslashes is one backslash.
        mark = next(mark for k in count() if (mark := f"<{k}>") not in value)
        return f"REPLACE({quoted.replace(chr(92), mark)}, '{mark}', SUBSTR('\\\\', 1, 1))"


PYTHON, NUMPY, SQL = _Python(), _NumPy(), _Sql()


def render(feature: Feature, dialect: Dialect, columns: Mapping[str, str]) -> str:
    """Write a feature in a dialect; `columns` holds the text of every covariate.

    Raises
    ------
    ExportError
        If a transform has no expression, or the dialect lacks a function it needs.
    """

    def write(node: Feature, children: Sequence[str]) -> str:
        match node:
            case Covariate():
                return columns[node.name]
            case Product():
                return f"({' * '.join(children)})"
            case Projection():
                pairs = zip(node.weights, children, strict=True)
                terms = [f"{dialect.number(weight)} * {child}" for weight, child in pairs]
                bias = [] if node.bias is None else [dialect.number(node.bias)]
                return _applied(node.transform, dialect, f"({' + '.join(bias + terms)})", node.knot)
            case Standardized(centre=float() as centre, scale=float() as scale):
                return f"(({children[0]} - {dialect.number(centre)}) / {dialect.number(scale)})"
            case Modification():
                return _applied(node.transform, dialect, children[0], node.knot)
        raise AssertionError(node)

    return fold(feature, write)


def _applied(transform: Transform, dialect: Dialect, argument: str, knot: float | None) -> str:
    if transform.expression is None:
        msg = (
            f"The transform {transform.name!r} has no expression, so it cannot be written in "
            f"{dialect.name}. Give it one: Transform(..., expression='exp(-x**2)')."
        )
        raise ExportError(msg)
    names = {"x": argument}
    if knot is not None:
        names["c"] = dialect.number(knot)
    return apply_expression(transform.expression, dialect, names)


def apply_expression(expression: str, dialect: Dialect, names: Mapping[str, str]) -> str:
    """Write an expression of the common language, with texts in place of its names."""
    return _write(parse_expression(expression), dialect, {"pi": repr(pi)} | dict(names))


@lru_cache(maxsize=512)
def parse_expression(expression: str) -> ast.expr:
    """Return the syntax tree of an expression of the common language."""
    return ast.parse(expression, mode="eval").body


_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Gt: ">",
    ast.Lt: "<",
}


def _write(node: ast.expr, dialect: Dialect, names: Mapping[str, str]) -> str:
    def inner(part: ast.expr) -> str:
        return _write(part, dialect, names)

    match node:
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Constant(value=int() | float() as value):
            return dialect.number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{inner(operand)})"
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return dialect.power(inner(left), inner(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return f"({inner(left)} {_SIGNS[type(op)]} {inner(right)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SIGNS:
            return f"{inner(left)} {_SIGNS[type(op)]} {inner(right)}"
        case ast.Call(func=ast.Name(id="where"), args=[condition, yes, no]):
            return dialect.choose(inner(condition), inner(yes), inner(no))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return dialect.call(function, [inner(argument) for argument in arguments])
    msg = f"{ast.unparse(node)!r} is not part of the language of expressions."
    raise ExportError(msg)


def expression_tree(expression: str) -> Any:
    """An expression as nested lists, such as ``["exp", ["neg", "x"]]``, for an interpreter.

    Numbers are numbers and names are text; the first of a list is the operation: a sign, ``neg``,
    ``**``, ``where``, or a function.
    """
    return _tree(parse_expression(expression))


def _tree(node: ast.expr) -> Any:
    match node:
        case ast.Name(id="pi"):
            return pi
        case ast.Name(id=name):
            return name
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ["neg", _tree(operand)]
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return ["**", _tree(left), _tree(right)]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return [_SIGNS[type(op)], _tree(left), _tree(right)]
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SIGNS:
            return [_SIGNS[type(op)], _tree(left), _tree(right)]
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return [function, *(_tree(argument) for argument in arguments)]
    msg = f"{ast.unparse(node)!r} is not part of the language of expressions."
    raise ExportError(msg)
