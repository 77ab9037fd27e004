"""A small reader of the LaTeX that this package writes, to prove that it says what it means."""

import re

import numpy as np
from scipy.special import erf, expit, ndtr

TOKENS = re.compile(
    r"\s+|\\,|\\left|\\right|\\cdot|(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
    r"|(?P<name>\\(?:mathrm|text|operatorname)\{(?:\\textbackslash\{\}|\\textasciitilde\{\}"
    r"|\\textasciicircum\{\}|\\.|[^{}\\])*\}|[A-Za-z]_\{\d+\}|\\[A-Za-z]+|[A-Za-z])"
    r"|(?P<sign>[-+*/^(){}⟨⟩\[\],<>])"
)
FUNCTIONS = {
    r"\sin": np.sin,
    r"\cos": np.cos,
    r"\tanh": np.tanh,
    r"\arctan": np.arctan,
    r"\log": np.log,
    r"\sigma": expit,
    r"\operatorname{erf}": erf,
    r"\operatorname{cbrt}": np.cbrt,
    r"\operatorname{GELU}": lambda x: x * ndtr(x),
    r"\operatorname{arcsinh}": np.arcsinh,
}


def plain_name(token):
    """Column name behind ``\\mathrm{...}``, ``\\text{...}`` or ``x_{1}``."""
    if indexed := re.fullmatch(r"([A-Za-z])_\{(\d+)\}", token):
        return [f"{indexed[1]}{indexed[2]}", f"{indexed[1]}_{indexed[2]}"]
    inner = re.fullmatch(r"\\(?:mathrm|text)\{(.*)\}", token)
    text = inner[1] if inner else token
    for latex, character in (
        (r"\textbackslash{}", "\\"),
        (r"\textasciitilde{}", "~"),
        (r"\textasciicircum{}", "^"),
    ):
        text = text.replace(latex, character)
    return [re.sub(r"\\([{}$&#%_])", r"\1", text)]


class Reader:
    """Recursive descent over sums, products, powers and atoms."""

    def __init__(self, latex, columns):
        # Bars that open and bars that close look the same without \\left and \\right.
        latex = latex.replace(r"\left|", "⟨").replace(r"\right|", "⟩")
        self.tokens, end = [], 0
        while end < len(latex):
            match = TOKENS.match(latex, end)
            assert match, f"cannot read {latex[end:]!r}"
            end = match.end()
            if match.lastgroup:
                self.tokens.append(match.group())
        self.columns, self.at = columns, 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted=None):
        token = self.peek()
        assert wanted is None or token == wanted, f"expected {wanted!r}, found {token!r}"
        self.at += 1
        return token

    def sum(self):
        total = -self.product() if self.peek() == "-" and self.take() else self.product()
        while self.peek() in ("+", "-"):
            total = total + self.product() if self.take() == "+" else total - self.product()
        return total

    def product(self):
        total = self.power()
        while self.peek() not in ("", "+", "-", ")", "}", "]", ",", "<", ">", "⟩", "/"):
            total = total * self.power()
        if self.peek() == "/":
            self.take()
            total = total / self.power()
        return total

    def power(self):
        base = self.atom()
        if self.peek() == "^":
            self.take()
            self.take("{")
            if self.peek() == r"\circ":
                self.take()
                self.take("}")
                return np.pi / 180 * base
            exponent = self.sum()
            self.take("}")
            return base**exponent
        return base

    def atom(self):
        token = self.take()
        if re.match(r"\d", token):
            return float(token)
        for opening, closing in ("()", "{}", "[]", "⟨⟩"):
            if token == opening:
                inner = self.sum()
                self.take(closing)
                return np.abs(inner) if token == "⟨" else inner
        if token == "e":
            return np.e
        if token == r"\sqrt":
            return np.sqrt(self.atom())
        if token == r"\max":
            self.take("(")
            left = self.sum()
            self.take(",")
            right = self.sum()
            self.take(")")
            return np.maximum(left, right)
        if token == r"\mathrm{I}" and self.peek() == "(":
            self.take("(")
            left, sign, right = self.sum(), self.take(), self.sum()
            self.take(")")
            return np.where(left > right if sign == ">" else left < right, 1.0, 0.0)
        if token in FUNCTIONS:
            return FUNCTIONS[token](self.atom())
        for name in plain_name(token):
            if name in self.columns:
                return np.asarray(self.columns[name], dtype=float)
        raise AssertionError(f"unknown name {token!r}")


def read_latex(latex, columns):
    """Evaluate LaTeX on columns."""
    reader = Reader(latex, columns)
    value = reader.sum()
    assert reader.at == len(reader.tokens), f"left over: {reader.tokens[reader.at :]}"
    return value
