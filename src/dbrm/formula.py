"""Formulas such as ``"y ~ x1 + x2 + C(site) + offset(log(area))"``, parsed by formulaic.

Plain columns, and ``C(...)`` of one, are prepared as in any table (`dbrm.data`), so that their
levels are checked and they can be saved. Other terms (interactions, expressions) are evaluated
by formulaic, on the training rows and on new rows. Here as there every level has a column, and
in interactions every combination of levels: there is no reference level.

A formula is code: formulaic evaluates the expressions in it as Python. Do not use formulas from
sources that you do not trust.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, TableLike
from dbrm.data import Recipe, Table, check_vector, learn_recipe
from dbrm.data.columns import read_column, to_categories
from dbrm.data.intake import RawTable, read_table
from dbrm.errors import (
    DBRMWarning,
    FormulaError,
    InvalidDataError,
    UnknownNameError,
    quote,
    suggest,
)

__all__ = ["FormulaRecipe", "ParsedFormula", "read_formula"]

_CATEGORY = re.compile(r"C\(\s*(?:`([^`]+)`|([^\W\d]\w*))\s*\)")
# The levels in formulaic's warning about those it does not know.
_LEVELS = re.compile(r"\{.*\}", re.DOTALL)
_OFFSET = re.compile(r"offset\((.*)\)", re.DOTALL)
_SURVIVAL = re.compile(r"\s*Surv\s*\((.*?)\)\s*~", re.DOTALL)
_STRATA = re.compile(r"\+?\s*strata\s*\(([^()]*)\)")
# Most products of terms that formulaic may expand; it takes about a second.
_MOST_PRODUCTS = 200_000
_PRODUCTS = ("*", ":", "/", "%in%", "**", "^")


@final
@dataclass(frozen=True, slots=True)
class FormulaRecipe:
    """A recipe with columns, or an offset, that formulaic computes.

    Parameters
    ----------
    inner
        The recipe of the plain columns together with the computed ones.
    plain
        Columns taken as they are.
    computed, offset
        formulaic's model specifications, applied again to new data; None without such terms.
    """

    inner: Recipe
    plain: tuple[str, ...]
    computed: Any
    offset: Any

    @property
    def input_names(self) -> tuple[str, ...]:
        return self.inner.input_names

    @property
    def dropped(self) -> tuple[tuple[str, str], ...]:
        return self.inner.dropped

    @property
    def named(self) -> bool:
        return True

    def apply(self, X: TableLike, *, caller: str = "dbrm") -> Table:
        """Prepare new data exactly as the training data."""
        raw = read_table(X)
        wanted = (
            *self.plain,
            *(name for name in self.inner.index_columns if name not in self.plain),
        )
        columns = {name: _content(raw, name) for name in wanted}
        computed = _compute(self.computed, X, strict=self.inner.unseen == "error")
        return self.inner.apply(columns | computed, caller=caller)

    @property
    def searched(self) -> tuple[str, ...]:
        """The columns that formulas are made from."""
        return self.inner.searched

    @property
    def factors(self) -> list[tuple[str, ...]]:
        """Return, for each factor, the columns of its levels, without interactions."""
        return self.inner.factors

    def offset_of(self, X: TableLike, offset: Any) -> Any:
        """Return the formula's offset in new rows, plus the given one."""
        if self.offset is None:
            return offset
        own = _total(_compute(self.offset, X))
        return own if offset is None else own + check_vector(offset, own.size, name="offset")

    def to_dict(self) -> dict[str, Any]:
        msg = (
            "The formula has expressions, interactions or an offset. These are code, which is "
            "never saved in a file. Compute these columns before the fit, and name them in the "
            "formula."
        )
        raise FormulaError(msg)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParsedFormula:
    """The parts of a formula, evaluated on the training data.

    `extras` are events and entries of survival times, and their strata.
    """

    recipe: Recipe | FormulaRecipe
    table: Table
    response: Any
    name: str
    offset: Column | None
    extras: dict[str, Any]
    intercept: bool = True


def read_formula(
    text: str,
    data: TableLike,
    *,
    index_columns: Sequence[str] = (),
    groups: Sequence[str] = (),
    **preparation: Any,
) -> ParsedFormula:
    """Split a formula into response, table and offset.

    `index_columns` index latent effects; the formula may name them as covariates too, and a dot
    is every column but those in `groups`.
    `preparation` are the settings of `dbrm.data.learn_recipe`.

    Raises
    ------
    FormulaError
        If it is not a formula, or has no response.
    UnknownNameError
        If it names a column that the data do not have.
    """
    if data is None:
        msg = f"The formula {text!r} needs data=, a table with its columns."
        raise InvalidDataError(msg)
    raw = read_table(data)
    text, extras = _read_times(text, raw, data)
    left, right, intercept = _parse(text, raw, (*groups, *extras))
    plain, offsets, others = _classify(right, raw)
    if not (plain or others or index_columns):
        msg = (
            f"The formula {text!r} has no covariates: there is nothing to choose from. Name "
            "columns, or all of them: 'y ~ .'. The evidence of the model without covariates is "
            "dbrm.log_evidence(None, y)."
        )
        raise FormulaError(msg)
    columns = {
        name: _as_category(raw, name) if cast else _content(raw, name)
        for name, cast in plain.items()
    }
    filled = preparation["missing"] != "error"
    computed, offset = _specify(others, data, filled=filled), _specify(offsets, data)
    index = {name: _content(raw, name) for name in index_columns if name not in columns}
    inner, table = learn_recipe(
        columns | index | _compute(computed, data),
        index_columns=index_columns,
        also=tuple(columns),
        # A formula says what is on the log scale.
        **(preparation | {"log_covariates": False}),
    )
    recipe: Recipe | FormulaRecipe = inner
    if computed is not None or offset is not None:
        recipe = FormulaRecipe(inner, tuple(plain), computed, offset)
    return ParsedFormula(
        recipe=recipe,
        table=table,
        response=_response(left, raw, data),
        name=str(left),
        offset=None if offset is None else _total(_compute(offset, data)),
        extras=dict(extras.values()),
        intercept=intercept,
    )


def _read_times(
    text: str, raw: RawTable, data: TableLike
) -> tuple[str, dict[str, tuple[str, Any]]]:
    """The formula with the time for ``Surv(...)`` and without ``strata(...)``, and the others.

    They go by the expressions that they are written as, each with its argument and its values.
    """
    extras: dict[str, tuple[str, Any]] = {}
    times = _SURVIVAL.match(text)
    if times is not None:
        parts = [part.strip() for part in times[1].split(",")]
        if len(parts) not in (2, 3):
            msg = (
                "Survival times are Surv(time, event) or Surv(entry, time, event); "
                f"got Surv({times[1]})."
            )
            raise FormulaError(msg)
        text = f"{parts[-2]} ~{text[times.end() :]}"
        named = {"event": parts[-1]} | ({"entry": parts[0]} if len(parts) == 3 else {})
        for argument, expression in named.items():
            extras[expression] = argument, _read_expression(expression, raw, data)
    strata = _STRATA.search(text)
    if strata is not None:
        extras[strata[1].strip()] = "strata", _content(raw, strata[1].strip())
        text = text[: strata.start()] + (text[strata.end() :] or "")
        text = re.sub(r"~\s*\+", "~", text)
        text = re.sub(r"~\s*$", "~ 1", text)
    return text, extras


def _read_expression(expression: str, raw: RawTable, data: TableLike) -> Any:
    """A column, or numbers that formulaic computes: true ones are one."""
    if expression in raw.names:
        return _content(raw, expression)
    return _total(_compute(_specify([f"I(({expression}) * 1.0)"], data), data))


def _parse(text: str, raw: RawTable, taken: Sequence[str] = ()) -> tuple[Any, list[Any], bool]:
    """Response and terms of a formula, and whether it has an intercept.

    A dot is every column but those that are `taken`.
    """
    from formulaic import Formula
    from formulaic.errors import FormulaicError
    from formulaic.parser import DefaultFormulaParser

    try:
        _refuse_blow_up(text, DefaultFormulaParser().get_ast(text), len(raw.names))
        available = [name for name in raw.names if name not in taken]
        formula = Formula(text, _context={"__formulaic_variables_available__": available})
    # formulaic leaves errors of Python syntax to Python.
    except (FormulaicError, SyntaxError) as error:
        msg = f"{text!r} is not a formula: {_uncoloured(error)}"
        raise FormulaError(msg) from error
    left, right = getattr(formula, "lhs", None), getattr(formula, "rhs", None)
    if left is None or len(left) != 1 or right is None or not hasattr(right, "__iter__"):
        msg = f"A formula has one response and one right-hand side, as in 'y ~ x'; got {text!r}."
        raise FormulaError(msg)
    terms = list(right)
    # Names inside expressions may be functions: formulaic complains about those.
    factors = [factor for term in (*left, *terms) for factor in term.factors]
    looked_up = {factor.expr for factor in factors if factor.eval_method.value == "lookup"}
    unknown = sorted(looked_up - set(raw.names))
    if unknown:
        named = ", ".join(f"{name!r}{suggest(name, raw.names)}" for name in unknown)
        msg = f"The formula names {named}, but the columns of the data are {quote(raw.names)}."
        raise UnknownNameError(msg)
    slopes = [term for term in terms if str(term) != "1"]
    return left[0], slopes, len(slopes) < len(terms)


def _refuse_blow_up(text: str, tree: Any, n_columns: int) -> None:
    """Raise for a formula that expands to too many products.

    Counts, from the leaves to the root, how many terms each operator expands to.
    """
    from formulaic.parser.types import ASTNode

    counts: dict[int, int] = {}
    pending = [tree]
    while pending:
        node = pending[-1]
        inner = node.args if isinstance(node, ASTNode) else ()
        missing = [child for child in inner if id(child) not in counts]
        if missing:
            pending += missing
            continue
        pending.pop()
        count = _count_terms(node, [counts[id(child)] for child in inner], n_columns)
        counts[id(node)] = count
        if count > _MOST_PRODUCTS and str(node.operator) in _PRODUCTS:
            msg = (
                f"The formula {text!r} has too many products: its operator {node.operator} "
                f"expands to more than {_MOST_PRODUCTS:,} of them. Use a smaller power, or leave "
                "products to the search, which builds its own."
            )
            raise FormulaError(msg)


def _count_terms(node: Any, counts: list[int], n_columns: int) -> int:
    """Return an upper bound on the terms a node expands to; equal ones count repeatedly."""
    symbol = str(getattr(node, "operator", ""))
    if symbol == ".":
        return n_columns
    if symbol in ("**", "^"):
        exponent = str(node.args[1])
        # formulaic refuses any other exponent.
        power = int(exponent[:9]) if exponent.isdecimal() else 1
        # A power of one term is one term, but takes this many multiplications.
        return power * counts[0] ** min(power, 20) if power > 1 else counts[0]
    if symbol in _PRODUCTS:
        return counts[0] * counts[1] + sum(counts)
    return sum(counts) if counts else 1


def _classify(terms: Sequence[Any], raw: RawTable) -> tuple[dict[str, bool], list[Any], list[Any]]:
    """Return plain columns (and whether ``C()`` makes them categories), offsets, other terms."""
    plain: dict[str, bool] = {}
    offsets, others = [], []
    for term in terms:
        text = term.factors[0].expr
        category, offset = _CATEGORY.fullmatch(text), _OFFSET.fullmatch(text)
        if len(term.factors) > 1:
            others.append(term)
        elif text in raw.names:
            plain.setdefault(text, False)
        elif category:
            plain[category[1] or category[2]] = True
        elif offset:
            offsets.append(f"I({offset[1]})")
        else:
            others.append(term)
    return plain, offsets, others


def _specify(terms: list[Any], data: TableLike, *, filled: bool = False) -> Any:
    """Return formulaic's specification of some terms, learned from the training rows.

    Missing values raise, unless they are to be `filled` in the columns that come out.
    """
    from formulaic import Formula

    if not terms:
        return None
    formula = Formula([str(term) if isinstance(term, str) else term for term in terms])
    action = "ignore" if filled else "raise"
    return _evaluate(formula, data, na_action=action, ensure_full_rank=False).model_spec


def _compute(spec: Any, data: TableLike, *, strict: bool = True) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a specification, evaluated on these rows.

    Levels that did not occur in training raise if `strict`, else their indicators are zero.
    """
    if spec is None:
        return {}
    matrix = _evaluate(spec, data, strict=strict)
    return {str(name): np.asarray(matrix[name], dtype=np.float64) for name in matrix.columns}


def _evaluate(what: Any, data: TableLike, *, strict: bool = True, **options: Any) -> Any:
    from formulaic.errors import FormulaicError

    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            # formulaic makes unseen levels missing in a way that pandas warns about.
            warnings.filterwarnings("ignore", "Constructing a Categorical")
            matrix = what.get_model_matrix(data, context={}, **options)
    except SyntaxError as error:
        msg = f"The formula contains invalid Python: {_uncoloured(error)}"
        raise FormulaError(msg) from error
    # The expressions are the user's own code, which may raise anything.
    except Exception as error:
        terms = str(getattr(what, "formula", what)).removeprefix("1 + ")
        name = "" if isinstance(error, FormulaicError) else f"{terms}: {type(error).__name__}: "
        msg = f"The formula cannot be evaluated on these data: {name}{_uncoloured(error)}"
        raise InvalidDataError(msg) from error
    _pass_on(told, strict=strict)
    return matrix


def _pass_on(told: Sequence[warnings.WarningMessage], *, strict: bool) -> None:
    """Raise or warn for levels that did not occur in training; repeat other warnings."""
    from formulaic.errors import DataMismatchWarning

    for warning in told:
        if not issubclass(warning.category, DataMismatchWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
            continue
        levels = _LEVELS.search(str(warning.message))
        named = levels[0] if levels else str(warning.message)
        if named == "{nan}":
            continue
        msg = f"A factor has levels that did not occur in training: {named}."
        if strict:
            raise InvalidDataError(msg)
        warnings.warn(f"{msg} They count as none of the known levels.", DBRMWarning, stacklevel=5)


def _response(left: Any, raw: RawTable, data: TableLike) -> Any:
    if str(left) in raw.names:
        return _content(raw, str(left))
    columns = list(_compute(_specify([left], data), data).values())
    if len(columns) != 1:
        msg = f"The response {left} is not one column of numbers."
        raise FormulaError(msg)
    return columns[0]


def _content(raw: RawTable, name: str) -> Any:
    if name not in raw.names:
        msg = f"X lacks the column {name!r}{suggest(name, raw.names)}. It has {quote(raw.names)}."
        raise InvalidDataError(msg)
    return raw.contents[raw.names.index(name)]


def _as_category(raw: RawTable, name: str) -> Any:
    """Return a column as categories without an order, so that numbers become levels."""
    return to_categories(read_column(name, _content(raw, name)))


def _total(columns: dict[str, npt.NDArray[Any]]) -> Column:
    return np.asarray(sum(columns.values()), dtype=np.float64)


def _uncoloured(error: Exception) -> str:
    """Return formulaic's message on one line, without its markup for terminals."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).replace("\u29db", "").replace("\u29da", "")
    return " ".join(text.split())
