"""Read features from text, and write features to text that can be read back.

The grammar, in which white space has no meaning::

    sum    = [sign] term { sign term }        sign  = "+" | "-"
    term   = factor { "*" factor }
    factor = atom [ ("^" | "**") exponent ]
    atom   = number | name | "`" any name "`" | "(" sum ")" [ "/" number ] | "|" sum "|"
           | transform "(" sum ")" | transform "{" sum "}"
           | transform "(" sum "," [ "-" ] number ")"

* A name followed by ``(``, ``{`` or ``[`` is a transform, any other a covariate; a column may
  thus be called ``sin``: ``sin(sin)``.
* The sum in a transform's parentheses makes a modification if it is one feature,
  ``tanh(x*y)``, otherwise a projection: ``tanh(1.0*x)``, ``tanh(0.3 + x - 2*y)``.
  Braces in place of parentheses say that the weights belong to the identity.
* ``hinge(F, 3.2)``, one feature and a number, is a function with a free knot.
* ``(F - 3.1)/2.4``, one feature and two numbers, is a standardised argument:
  ``sin((x - 3.1)/2.4)`` is not a projection and has the complexity of ``sin(x)``; in
  ``sin[z](x)`` the numbers are to be learnt from training rows.
* ``F^3``, or ``pow(F, 3)``, is ``F*F*F``; other exponents are powers, ``F^(1/3)`` or
  ``|F|^(1/3)`` is ``troot(F)``. A power of a sum is a projection: ``(x + y)^2`` is
  ``square(1.0*x + 1.0*y)``.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan, prod
from typing import NoReturn, Self, final

from dbrm.errors import DBRMError, InvalidSettingError, raise_unknown
from dbrm.features.base import Feature
from dbrm.features.building import modify, multiply, project
from dbrm.features.library import ALIASES
from dbrm.features.nodes import Covariate
from dbrm.features.parametric import FAMILIES, power
from dbrm.features.projection import Standardized, rounded_sum
from dbrm.features.sets import find_builtin, resolve_transforms, transform_names
from dbrm.features.tokens import MAX_LENGTH, Token, raise_syntax_error, tokenize, unquote
from dbrm.features.transforms import Transform

__all__ = ["parse_feature", "write_features"]

# Well below Python's recursion limit, at two calls per level.
_MAX_NESTING = 200
_CLOSING = {"(": ")", "{": "}", "|": "|"}


def parse_feature(
    text: str,
    names: Iterable[str] | None = None,
    *,
    transforms: Iterable[str | Transform] = (),
) -> Feature:
    """Read a feature from its text.

    Parameters
    ----------
    text
        Such as ``"troot(PeriodDays*PeriodDays*HostStarMassSlrMass)"``; see the
        module for the grammar. Odd column names go between backticks.
    names
        The known columns; if given, any other name is an error.
    transforms
        Your own transforms; the built-in ones are always known.

    Returns
    -------
        The feature in canonical form; ``parse_feature(str(feature))`` is ``feature``.

    Raises
    ------
    FeatureSyntaxError
        If the text does not follow the grammar.
    UnknownNameError
        If it mentions an unknown transform, or a column not among ``names``.

    Examples
    --------
    >>> str(parse_feature("x*(y*x)"))
    'x*x*y'
    >>> str(parse_feature("tanh(x1*1.2 + 0.3 - x4)"))
    'tanh(0.3 + 1.2*x1 - 1.0*x4)'
    """
    own = {g.name: g for g in resolve_transforms(transforms)}
    known = None if names is None else dict.fromkeys(names)
    parser = _Parser(text, known, own)
    value = parser.affine()
    if parser.ahead.kind != "end":
        parser.expected("an operator or the end")
    feature = value.as_feature()
    if feature is None:
        what = "A number alone" if value.is_number else "A weighted sum"
        raise_syntax_error(
            text, 0, f"{what} is not a feature; write it inside a transform, as in tanh(...)"
        )
    return feature


def write_features(
    features: Iterable[Feature], names: Sequence[str], transforms: Sequence[Transform]
) -> list[str]:
    """Return the text of each feature with all digits, after a check that it can be read back."""
    texts = []
    for feature in features:
        text = str(feature)
        try:
            again = parse_feature(text, names, transforms=transforms)
        except DBRMError as error:
            msg = f"The feature {text} cannot be saved, because its text cannot be parsed: {error}"
            raise InvalidSettingError(msg) from error
        if again.key != feature.key:
            msg = f"The feature {text} cannot be saved: it reads back as {again}."
            raise InvalidSettingError(msg)
        texts.append(text)
    return texts


@final
@dataclass(frozen=True, slots=True)
class _Sum:
    """A number plus weighted features, as written: a value on the way from text to a feature.

    Parameters
    ----------
    bias
        The sum of the plain numbers; None if none was written.
    terms
        Weights and features. A weight of None was not written: ``tanh(x)`` is not
        ``tanh(1.0*x)``.
    """

    bias: float | None
    terms: tuple[tuple[float | None, Feature], ...]

    @classmethod
    def number(cls, value: float) -> Self:
        """Return a plain number."""
        return cls(value, ())

    @classmethod
    def feature(cls, feature: Feature) -> Self:
        """Return a feature without a weight."""
        return cls(None, ((None, feature),))

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """Return the sum of several."""
        if len(parts) == 1:
            return parts[0]
        numbers = [part.bias for part in parts if part.bias is not None]
        terms = tuple([term for part in parts for term in part.terms])
        return cls(rounded_sum(numbers) if numbers else None, terms)

    @classmethod
    def product(cls, parts: Sequence[Self]) -> Self | None:
        """Return the product of several, or None if it is not a weighted sum of features."""
        if len(parts) == 1:
            return parts[0]
        number = prod([part.bias for part in parts if part.is_number and part.bias is not None])
        others = [part for part in parts if not part.is_number]
        scaled = len(others) < len(parts)
        if len(others) == 1:
            return others[0].scaled(number)
        if not others:
            return cls.number(number)
        if any(part.bias is not None or len(part.terms) > 1 for part in others):
            return None
        weights = [weight for part in others for weight, _ in part.terms if weight is not None]
        feature = multiply(*[feature for part in others for _, feature in part.terms])
        return cls(None, ((number * prod(weights) if scaled or weights else None, feature),))

    @property
    def is_number(self) -> bool:
        """Whether this is a plain number."""
        return not self.terms

    def as_feature(self) -> Feature | None:
        """Return the one feature this is, or None if there is a sum or a weight."""
        if self.bias is None and len(self.terms) == 1 and self.terms[0][0] is None:
            return self.terms[0][1]
        return None

    def scaled(self, factor: float) -> Self:
        """Return this times a number."""
        bias = None if self.bias is None else factor * self.bias
        terms = [(factor if w is None else factor * w, feature) for w, feature in self.terms]
        return type(self)(bias, tuple(terms))


@final
class _Parser:
    """Recursive descent, with few Python calls per level of nesting."""

    def __init__(
        self, text: str, names: Collection[str] | None, own: Mapping[str, Transform]
    ) -> None:
        self.text = text
        self.names = names
        self.own = own
        self.tokens = tokenize(text)
        self.index = 0
        self.nesting = 0
        # Characters that all powers together may expand to: x^9 is nine times x.
        self.budget = MAX_LENGTH

    @property
    def ahead(self) -> Token:
        return self.tokens[self.index]

    def take(self, *kinds: str) -> Token | None:
        """Take the next token if it is of one of these kinds."""
        token = self.tokens[self.index]
        if token.kind not in kinds:
            return None
        self.index += 1
        return token

    def fail(self, position: int, message: str) -> NoReturn:
        raise_syntax_error(self.text, position, message)

    def expected(self, what: str) -> NoReturn:
        token = self.ahead
        found = "the end of the text" if token.kind == "end" else repr(token.text[:40])
        self.fail(token.position, f"Expected {what}, found {found}")

    def affine(self) -> _Sum:
        self.nesting += 1
        if self.nesting > _MAX_NESTING + 1:
            self.fail(self.ahead.position, f"Nested more than {_MAX_NESTING} deep")
        values: list[_Sum] = []
        while not values or self.ahead.kind in ("+", "-"):
            negative = False
            while sign := self.take("+", "-"):
                negative ^= sign.kind == "-"
            start = self.ahead.position
            factors = [self.factor()]
            while self.take("*"):
                factors.append(self.factor())
            value = _Sum.product(factors)
            if value is None:
                self.fail(start, "A sum cannot be a factor; write it inside a transform")
            values.append(value.scaled(-1.0) if negative else value)
        self.nesting -= 1
        return _Sum.total(values)

    def factor(self) -> _Sum:
        token = self.ahead
        if self.take("number"):
            value = _Sum.number(self.finite(float(token.text), token))
        elif self.take("(", "|"):
            value = self.affine()
            if not self.take(_CLOSING[token.kind]):
                self.expected(f"an operator or {_CLOSING[token.kind]!r}")
            if token.kind == "(" and self.take("/"):
                value = self.divided(value)
        elif not self.take("name", "quoted"):
            self.expected("a feature or a number")
        elif token.kind == "name" and self.ahead.kind == "(" and (name := self.called(token)):
            value = _Sum.feature(Covariate(name))
        elif token.text == "pow" and self.ahead.kind == "(" and "pow" not in self.own:
            value = self.pow()
        elif token.kind == "name" and self.ahead.kind in ("(", "{", "parameter"):
            transform, knot = self.transform(token)
            brace = self.take("(", "{")
            if brace is None:
                self.expected("'('")
            argument = self.affine()
            if transform.free_knot:
                plain = brace.kind == "(" and argument.as_feature() is not None
                knot = self.free_knot(transform.name, token, plain=plain)
            if not self.take(_CLOSING[brace.kind]):
                self.expected(f"an operator or {_CLOSING[brace.kind]!r}")
            value = self.applied(transform, argument, token, knot=knot, fixed=brace.kind == "{")
        else:
            value = _Sum.feature(self.covariate(token))
        if token.kind == "|" or self.ahead.kind in ("^", "**"):
            value = self.powered(value, token)
        return value

    def called(self, token: Token) -> str | None:
        """Take a column such as ``log(income)``, where ``log`` is only another name of a function.

        Features are never written with such a name, so that nothing can be read in two ways.
        """
        if self.names is None or token.text not in ALIASES or token.text in self.own:
            return None
        start = token.position
        found = [name for name in self.names if "(" in name and self.text.startswith(name, start)]
        if not found:
            return None
        name = max(found, key=len)
        while self.ahead.position < start + len(name) and self.ahead.kind != "end":
            self.index += 1
        return name

    def pow(self) -> _Sum:
        """Read ``(F, r)`` of ``pow(F, r)``."""
        bracket = self.take("(")
        assert bracket is not None
        base = self.affine()
        if not self.take(","):
            self.expected("a comma and the exponent, as in pow(x, 2)")
        token = self.ahead
        value = self.to_power(base, self.exponent(), bracket, token)
        if not self.take(")"):
            self.expected("')'")
        return value

    def covariate(self, token: Token) -> Feature:
        name = unquote(token.text)
        if self.names is not None and name not in self.names:
            raise_unknown("column", name, self.names)
        return Covariate(name)

    def transform(self, token: Token) -> tuple[Transform, float | None]:
        """Read a transform's parameter, and the knot stored with it: ``[q0.5=1.234]``."""
        parameter = self.take("parameter")
        if parameter is None:
            return self.named(token.text, token), None
        inside, equals, knot = parameter.text[1:-1].partition("=")
        transform = self.named(f"{token.text}[{inside.strip()}]", token)
        if not equals:
            return transform, None
        try:
            value = float(knot)
        except ValueError:
            self.fail(parameter.position, "Expected a number after '='")
        return transform, self.finite(value, parameter)

    def free_knot(self, name: str, token: Token, *, plain: bool) -> float:
        """Read the knot after the comma of ``hinge(F, 3.2)``."""
        if not plain:
            self.fail(token.position, f"{name}(F, c) takes one feature without weights")
        if not self.take(","):
            self.expected(f"a comma and the knot of {name}, as in {name}(x, 1.5)")
        sign = -1.0 if self.take("-") else 1.0
        start = self.ahead
        return self.finite(sign * self.number(), start)

    def named(self, name: str, token: Token) -> Transform:
        try:
            found = self.own.get(name) or find_builtin(name)
        except InvalidSettingError as error:
            self.fail(token.position, str(error).rstrip("."))
        if found is None:
            hint = f"In a feature: {token.text[:40]} at position {token.position}."
            if name in FAMILIES:
                hint = f"Write its parameter: {name}[1.5](...)."
            raise_unknown("transform", name, (*transform_names(), *self.own), hint=hint)
        return found

    def applied(
        self,
        transform: Transform,
        argument: _Sum,
        token: Token,
        *,
        knot: float | None = None,
        fixed: bool = False,
    ) -> _Sum:
        """Make a modification or a projection."""
        if argument.is_number:
            self.fail(token.position, f"{transform.name}(...) needs a feature inside")
        child = argument.as_feature()
        try:
            if child is not None and not fixed:
                return _Sum.feature(modify(transform, child, knot))
            weights = [1.0 if weight is None else weight for weight, _ in argument.terms]
            children = [feature for _, feature in argument.terms]
            return _Sum.feature(
                project(
                    transform,
                    children,
                    weights,
                    argument.bias,
                    weights_in_identity=fixed,
                    knot=knot,
                )
            )
        except InvalidSettingError as error:
            self.fail(token.position, str(error)[:200].rstrip("."))

    def divided(self, value: _Sum) -> _Sum:
        """Divide by a number; one feature minus a number becomes a standardised argument."""
        token = self.ahead
        divisor = self.finite(self.number(), token)
        if divisor == 0.0:
            self.fail(token.position, "A division by zero is not a feature")
        plain = len(value.terms) == 1 and value.terms[0][0] is None
        if value.bias is None or not plain:
            return value.scaled(1.0 / divisor)
        return _Sum.feature(Standardized(value.terms[0][1], -value.bias, divisor))

    def powered(self, base: _Sum, token: Token) -> _Sum:
        """Raise to a power: a repeated product, or the transform of that name."""
        if not self.take("^", "**"):
            self.expected("'^' and an exponent after |...|")
        exponent_token = self.ahead
        return self.to_power(base, self.exponent(), token, exponent_token)

    def to_power(self, base: _Sum, exponent: float, token: Token, exponent_token: Token) -> _Sum:
        whole = exponent.is_integer()
        child = base.as_feature()
        if exponent == 0.0 or base.is_number or (token.kind == "|" and whole):
            what = "a whole power of |...|" if token.kind == "|" else "a power of a number, or 0"
            self.fail(exponent_token.position, f"This is not a feature: {what}")
        if exponent == 1.0:
            return base
        if child is None or not whole or exponent < 0.0:
            return self.applied(power(exponent), base, token)
        self.budget -= int(min(exponent, MAX_LENGTH)) * (len(child.text) + 1)
        if self.budget < 0:
            self.fail(exponent_token.position, "Too many factors")
        return _Sum.feature(multiply(*[child] * int(exponent)))

    def exponent(self) -> float:
        """Read a number or, in parentheses, a fraction, either with a sign."""
        token = self.ahead
        bracket = self.take("(")
        sign = -1.0 if self.take("-") else 1.0
        value = self.number()
        if bracket:
            if self.take("/"):
                denominator = self.number()
                value = value / denominator if denominator else nan
            if not self.take(")"):
                self.expected("')'")
        return self.finite(sign * value, token)

    def number(self) -> float:
        token = self.take("number")
        if token is None:
            self.expected("a number")
        return float(token.text)

    def finite(self, value: float, token: Token) -> float:
        if not isfinite(value):
            self.fail(token.position, "This number is too large")
        return value
