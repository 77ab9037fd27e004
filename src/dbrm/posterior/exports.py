"""A fitted model as program text, in terms of the user's own columns.

What the recipe does to a table (scaling, indicators of levels, filling of missing values)
is written into the text, so that it can be run on raw rows.
"""

from typing import Any, final

from dbrm.data import ColumnRule, Recipe
from dbrm.errors import ExportError
from dbrm.evidence import Link
from dbrm.features import NUMPY, SQL, Dialect, Feature, apply_expression, render
from dbrm.features.transforms import sympy as sp
from dbrm.formula import FormulaRecipe

__all__ = ["Exporter", "column_symbol", "python_function", "sympy_inverse"]


@final
class Exporter:
    """Writes models in one dialect.

    Parameters
    ----------
    argument
        Name of the row or table whose columns are looked up; SQL needs none.
    """

    def __init__(
        self, recipe: Recipe | FormulaRecipe, dialect: Dialect, argument: str = ""
    ) -> None:
        self._formula = recipe if isinstance(recipe, FormulaRecipe) else None
        self._recipe = recipe.inner if isinstance(recipe, FormulaRecipe) else recipe
        self._dialect = dialect
        self._argument = argument

    def write(
        self,
        terms: tuple[Feature, ...],
        coefficients: list[float],
        link: Link | None,
    ) -> str:
        """Intercept plus slopes times terms, through the inverse of the link if there is one."""
        dialect = self._dialect
        columns = {name: self._column(name) for term in terms for name in term.covariates}
        intercept, *slopes = coefficients
        parts = [dialect.number(intercept)]
        for slope, term in zip(slopes, terms, strict=True):
            parts.append(f"{dialect.number(slope)} * {render(term, dialect, columns)}")
        total = " + ".join(parts)
        if link is None:
            return total
        if link.expression is None:
            msg = (
                f"The link {link.name!r} has no expression, so it cannot be written in "
                f"{dialect.name}: set its attribute `expression`, or export with scale='link'."
            )
            raise ExportError(msg)
        return apply_expression(link.expression, dialect, {"x": f"({total})"})

    def _column(self, name: str) -> str:
        """A column of the table, written in terms of the user's columns."""
        owners = [rule for rule in self._recipe.columns if name in rule.outputs]
        if self._formula is not None and owners[0].name not in self._formula.plain:
            msg = (
                f"The model uses {name!r}, which the formula computes. Make it a column of the "
                f"data before the fit, and the model can be written in {self._dialect.name}."
            )
            raise ExportError(msg)
        text = self._unscaled(owners[0], name)
        if self._recipe.scale is None:
            return text
        position = self._recipe.names.index(name)
        mean, sd = self._recipe.means[position], self._recipe.sds[position]
        return f"(({text} - {self._dialect.number(mean)}) / {self._dialect.number(sd)})"

    def _unscaled(self, rule: ColumnRule, name: str) -> str:
        dialect, raw = self._dialect, self._look_up(rule.name)
        one, zero = dialect.number(1.0), dialect.number(0.0)
        if rule.indicator and name == rule.missing_column:
            if rule.coded and dialect is NUMPY:
                return f"np.array([v is None or v != v for v in {raw}], dtype=float)"
            return dialect.choose(self._is_missing(raw), one, zero)
        if rule.coded:
            return self._by_level(rule, name, raw)
        if rule.fill is not None:
            raw = dialect.choose(self._is_missing(raw), dialect.number(rule.fill), raw)
        if name == rule.log_column:
            assert rule.log_scale is not None
            floor, shift = rule.log_scale
            held = dialect.call("max", [raw, dialect.number(floor)])
            return dialect.call("log", [f"{held} + {dialect.number(shift)}" if shift else held])
        if rule.fill is not None:
            return raw
        if rule.kind == "boolean" and dialect is SQL:
            return dialect.choose(raw, one, zero)
        return raw

    def _by_level(self, rule: ColumnRule, name: str, raw: str) -> str:
        """A column made from levels, as what none of them gives plus what each of them adds."""
        dialect, usual = self._dialect, rule.at_level(None)[name]
        parts = [dialect.number(usual)] if usual else []
        for level in rule.levels:
            more = rule.at_level(level)[name] - usual
            if more:
                equal = f"{raw} {self._equals} {dialect.text(level)}"
                parts.append(dialect.choose(equal, dialect.number(more), dialect.number(0.0)))
        return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"

    def _look_up(self, name: str) -> str:
        if self._dialect is SQL:
            if "\\" in name:
                msg = (
                    f"The name of the column {name!r} has a backslash, which databases do not read "
                    "alike. Rename the column before the fit, and the model can be written in SQL."
                )
                raise ExportError(msg)
            return '"' + name.replace('"', '""') + '"'
        return f"{self._argument}[{name!r}]"

    @property
    def _equals(self) -> str:
        return "=" if self._dialect is SQL else "=="

    def _is_missing(self, raw: str) -> str:
        if self._dialect is SQL:
            return f"{raw} IS NULL"
        return f"np.isnan({raw})" if self._dialect is NUMPY else f"{raw} is None or {raw} != {raw}"


def python_function(name: str, formula: str, body: str) -> str:
    """Source text of a function of one row."""
    note = formula.replace("\\", "\\\\").replace('"""', "'''")
    return f'import math\n\n\ndef {name}(row):\n    """{note}"""\n    return {body}\n'


def sympy_inverse(link: Link, eta: Any) -> Any:
    """The mean under a link as a sympy expression, an undefined function for an unknown link."""
    forms = {
        "logit": lambda: 1 / (1 + sp.exp(-eta)),
        "probit": lambda: (1 + sp.erf(eta / sp.sqrt(2))) / 2,
        "cloglog": lambda: 1 - sp.exp(-sp.exp(eta)),
        "log": lambda: sp.exp(eta),
        "inverse": lambda: 1 / eta,
    }
    return forms[link.name]() if link.name in forms else sp.Function(f"{link.name}_inverse")(eta)


def column_symbol(recipe: Recipe, name: str) -> Any:
    """A column of the table in terms of the user's; small values on the log scale are not held."""
    symbol = sp.Symbol(name)
    for rule in recipe.columns:
        if rule.log_scale is not None and name == rule.log_column:
            symbol = sp.log(sp.Symbol(rule.name) + rule.log_scale.shift)
    if recipe.scale is None:
        return symbol
    position = recipe.names.index(name)
    return (symbol - recipe.means[position]) / recipe.sds[position]
