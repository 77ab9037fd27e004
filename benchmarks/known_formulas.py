"""Known laws: their formulas, where their variables live, and what "up to constants" means.

``known_formulas.txt`` has the equations of the Feynman lectures and their bonus set (Udrescu and
Tegmark, 2020), and the collections of Nguyen (Uy et al., 2011), Keijzer (2003), Livermore (Petersen
et al., 2021), Jin (2019), Korns (2011) and Vladislavleva (2009); ``random_formulas.txt`` a hundred
random ones. Ranges are those of the collections, but for Korns and two of Livermore: narrower where
theirs contain poles, roots of negative numbers or overflow. Keijzer's sixth, a sum without a
closed form, is left out.

The laws are split by a hash of their names, once for all: those of the half ``choosing`` are looked
at while the search is developed, those of the half ``confirming`` only measured.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np
import sympy

__all__ = ["FORMULAS", "HALVES", "ROWS", "Formula"]

ROWS = 300
HALVES = ("choosing", "confirming")
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Formula:
    """A law as text, and the ranges of its variables."""

    collection: str
    name: str
    text: str
    ranges: dict[str, tuple[float, float]]

    @property
    def half(self) -> str:
        """The half to which the name's hash assigns the law."""
        return HALVES[sha256(self.name.encode()).digest()[0] % 2]

    @cached_property
    def expression(self) -> sympy.Expr:
        """The law as SymPy reads it."""
        symbols = {name: sympy.Symbol(name) for name in self.ranges}
        return sympy.sympify(self.text.replace("^", "**"), locals=symbols, rational=True)

    @cached_property
    def _law(self):
        return sympy.lambdify([sympy.Symbol(name) for name in self.ranges], self.expression)

    def __call__(self, x):
        """Values of the law at the rows of x; not finite where it is not defined."""
        with np.errstate(all="ignore"):
            return np.asarray(self._law(*x.T), dtype=float) + np.zeros(len(x))

    @cached_property
    def _general(self):
        """The law with its constants as parameters, and their true values, the intercept first."""
        constants = _Constants()
        general = constants.new(0) + constants.general(self.expression)
        names = [sympy.Symbol(name) for name in self.ranges]
        law = sympy.lambdify([constants.symbols, *names], general)
        return law, np.array([float(value) for value in constants.values])

    @property
    def constants(self):
        """True values of the constants."""
        return self._general[1]

    def with_constants(self, x, constants):
        """Values of the law with other constants."""
        with np.errstate(all="ignore"):
            return np.asarray(self._general[0](constants, *x.T), dtype=float) + np.zeros(len(x))

    def draw(self, rng, n):
        """Rows with independent uniform variables."""
        low, high = np.array(list(self.ranges.values())).T
        return rng.uniform(low, high, (n, low.size))

    def draw_outside(self, rng, n):
        """Rows from ranges half as wide again, where at least one variable leaves its range.

        Where the law is not defined there are no rows.
        """
        low, high = np.array(list(self.ranges.values())).T
        margin = (high - low) / 4
        # A variable that is positive stays so.
        least = np.where(low >= 0, np.maximum(low - margin, low / 2), low - margin)
        rows = rng.uniform(least, high + margin, (20 * n, low.size))
        rows = rows[((rows < low) | (rows > high)).any(axis=1)]
        return rows[np.isfinite(self(rows))][:n]


class _Constants:
    """Replaces the constants of a law by parameters.

    Numerators, denominators, and arguments of functions are multiplied out. Every summand has a factor
    as its parameter; a sum that a function is applied to, and a denominator that is a sum, have a
    constant summand, which may truly be zero.
    """

    def __init__(self):
        self.symbols, self.values = [], []

    def new(self, value):
        self.symbols.append(sympy.Symbol(f"_t{len(self.symbols)}"))
        self.values.append(value)
        return self.symbols[-1]

    def general(self, expression, *, inside=False):
        """The expression with parameters; `inside` a function or a denominator."""
        top, bottom = sympy.fraction(sympy.together(expression))
        denominator = self._sum(bottom, inside=True) if bottom.free_symbols else sympy.Integer(1)
        if not bottom.free_symbols:
            top = top / bottom
        return self._sum(top, inside=inside) / denominator

    def _sum(self, expression, *, inside):
        hints = {"log": False, "power_base": False, "power_exp": False}
        terms = sympy.Add.make_args(sympy.expand(expression, **hints))
        parts = [self._term(term) for term in terms]
        if inside and len(terms) > 1 and all(term.free_symbols for term in terms):
            parts.append(self.new(0))
        return sympy.Add(*parts)

    def _term(self, term):
        number, rest = term.as_independent(*term.free_symbols, as_Add=False)
        return self.new(number) * sympy.Mul(*[self._factor(f) for f in sympy.Mul.make_args(rest)])

    def _factor(self, factor):
        if isinstance(factor, sympy.Pow):
            base, exponent = factor.args
            if not base.is_Symbol and base.free_symbols:
                base = self.general(base, inside=True)
            if exponent.free_symbols:
                exponent = self.general(exponent)
            return base**exponent
        if factor.is_Symbol or not factor.free_symbols:
            return factor
        return factor.func(*[self.general(part, inside=True) for part in factor.args])


def _read(file):
    collection = "Random"
    for line in (_FOLDER / file).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            collection = line[2:]
            continue
        name, text, listed = line.split("|")
        ranges = {}
        for part in listed.split(";"):
            *names, low, high = part.split()
            ranges |= dict.fromkeys(names, (float(Fraction(low)), float(Fraction(high))))
        name = f"Feynman {name}" if collection == "Feynman" else name
        yield Formula(collection, name, text, ranges)


FORMULAS = (*_read("known_formulas.txt"), *_read("random_formulas.txt"))
