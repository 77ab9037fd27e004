r"""A small part of LaTeX as MathML: the formulas of transforms, ``\left|#1\right|^{1/3}``.

It knows letters, numbers, operators, ``\left...\right``, scripts, roots, fractions, the
usual functions and Greek letters. It sees text only, never features.
"""

import re
from html import escape

__all__ = ["UnknownLatexError", "latex_to_mathml", "mathml_number"]

_TOKEN = re.compile(
    r"\\(?P<command>[A-Za-z]+)|\\(?P<symbol>.)|#(?P<slot>[12])|(?P<number>\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<letter>[^\W\d_])|(?P<other>\S)"
)
_FUNCTIONS = [
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "arcsin",
    "arccos",
    "arctan",
    "log",
    "ln",
    "exp",
    "max",
    "min",
    "Pr",
    "det",
    "lim",
    "sec",
    "csc",
    "cot",
]
_LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "eta": "η",
    "theta": "θ",
    "kappa": "κ",
    "lambda": "λ",
    "mu": "μ",
    "nu": "ν",
    "pi": "π",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "phi": "φ",
    "chi": "χ",
    "psi": "ψ",
    "omega": "ω",
    "Gamma": "Γ",
    "Delta": "Δ",
    "Phi": "Φ",
    "Psi": "Ψ",
    "Omega": "Ω",
    "Sigma": "Σ",
    "infty": "∞",
}
_SIGNS = {
    "cdot": "⋅",
    "times": "×",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "pm": "±",
}
_SPACES = {",": "0.17em", ":": "0.22em", ";": "0.28em", "!": "0", " ": "0.25em"}
_UPRIGHT = ("mathrm", "operatorname", "text", "mathit", "mathbf")


class UnknownLatexError(ValueError):
    """The text uses LaTeX beyond the small part that is known here."""


def latex_to_mathml(latex: str, slots: tuple[str, ...] = ()) -> str:
    """Translate LaTeX to the inside of a ``math`` element.

    Parameters
    ----------
    latex
        The formula; ``#1`` and ``#2`` stand for the slots.
    slots
        MathML to put in their place.
    """
    return _Reader(latex, slots).read_all()


def mathml_number(value: float, digits: int) -> str:
    """A number to so many significant digits, with a power of ten where it needs one."""
    mantissa, _, exponent = f"{abs(value):.{digits}g}".partition("e")
    sign = "<mo>−</mo>" if value < 0 else ""
    if not exponent:
        return f"<mrow>{sign}<mn>{mantissa}</mn></mrow>"
    power = f"<mn>{abs(int(exponent))}</mn>"
    power = f"<mrow><mo>−</mo>{power}</mrow>" if int(exponent) < 0 else power
    ten = f"<msup><mn>10</mn>{power}</msup>"
    return f"<mrow>{sign}<mn>{mantissa}</mn><mo>⋅</mo>{ten}</mrow>"


class _Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, latex: str, slots: tuple[str, ...]) -> None:
        self._latex = latex
        self._tokens = list(_TOKEN.finditer(latex))
        self._slots = slots
        self._at = 0

    def read_all(self) -> str:
        row = self._row(end=None)
        if self._at < len(self._tokens):
            raise UnknownLatexError(self._latex)
        return row

    def _row(self, end: str | None) -> str:
        """Elements up to a closing token, as one row."""
        parts: list[str] = []
        while (token := self._peek()) not in (None, end):
            if token in ("^", "_"):
                parts.append(self._script(parts.pop() if parts else "<mrow></mrow>"))
            else:
                parts.append(self._element())
        return f"<mrow>{''.join(parts)}</mrow>"

    def _script(self, base: str) -> str:
        kind = "msup" if self._next() == "^" else "msub"
        return f"<{kind}>{base}{self._element()}</{kind}>"

    def _element(self) -> str:
        if self._at >= len(self._tokens):
            raise UnknownLatexError(self._latex)
        token = self._tokens[self._at]
        self._at += 1
        if token["command"]:
            return self._command(token["command"])
        if token["symbol"]:
            return self._symbol(token["symbol"])
        if token["slot"]:
            return self._slots[int(token["slot"]) - 1]
        if token["number"]:
            return f"<mn>{token['number']}</mn>"
        if token["letter"]:
            return f"<mi>{token['letter']}</mi>"
        if token["other"] == "{":
            return self._until("}")
        if token["other"] in "}^_&$%~":
            raise UnknownLatexError(self._latex)
        sign = "−" if token["other"] == "-" else token["other"]
        tight = ' lspace="0" rspace="0"' if sign == "/" else ""
        return f"<mo{tight}>{escape(sign)}</mo>"

    def _until(self, end: str) -> str:
        row = self._row(end)
        if self._next() != end:
            raise UnknownLatexError(self._latex)
        return row

    def _symbol(self, symbol: str) -> str:
        if symbol in _SPACES:
            return f'<mspace width="{_SPACES[symbol]}"></mspace>'
        if symbol in "{}%_#&$":
            return f"<mo>{escape(symbol)}</mo>"
        raise UnknownLatexError(self._latex)

    def _command(self, name: str) -> str:
        if name == "left":
            return self._fenced()
        if name == "sqrt":
            return f"<msqrt>{self._element()}</msqrt>"
        if name == "frac":
            return f"<mfrac>{self._element()}{self._element()}</mfrac>"
        if name in _UPRIGHT:
            return self._words()
        if name in _FUNCTIONS:
            applied = "" if self._peek() in ("^", "_") else "<mo>\u2061</mo>"
            return f"<mi>{name}</mi>{applied}"
        if name == "circ":
            return "<mo>°</mo>"
        if name in _SIGNS:
            return f"<mo>{_SIGNS[name]}</mo>"
        letter = _LETTERS.get(name)
        if letter is None:
            raise UnknownLatexError(self._latex)
        return f"<mi>{letter}</mi>"

    def _fenced(self) -> str:
        r"""``\left( ... \right)``, brackets as tall as what they hold."""
        left, inside = self._next(), self._row(end="\\right")
        if self._next() != "\\right":
            raise UnknownLatexError(self._latex)
        opened = f'<mo fence="true" form="prefix">{escape(left)}</mo>'
        closed = f'<mo fence="true" form="postfix">{escape(self._next())}</mo>'
        return f"<mrow>{opened}{inside}{closed}</mrow>"

    def _words(self) -> str:
        r"""The letters inside ``\mathrm{...}``, upright."""
        if self._next() != "{":
            raise UnknownLatexError(self._latex)
        start = self._tokens[self._at - 1].end()
        while self._next() != "}":
            pass
        words = self._latex[start : self._tokens[self._at - 1].start()]
        return f'<mi mathvariant="normal">{escape(words.replace(chr(92), ""))}</mi>'

    def _peek(self) -> str | None:
        return self._tokens[self._at].group() if self._at < len(self._tokens) else None

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise UnknownLatexError(self._latex)
        self._at += 1
        return self._tokens[self._at - 1].group()
