"""Read one column, of whatever type, as numbers or as the codes of its levels.

This is the only module that sees the column types of pandas, polars, pyarrow and NumPy. A raw
column may still hold missing and infinite values: `refuse_missing` and `refuse_infinite` raise
for them, `dbrm.data.rules` fills them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any, Literal, NoReturn, final

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from dbrm._typing import Mask
from dbrm.errors import InvalidDataError, quote

__all__ = [
    "CODED",
    "MISSING",
    "SPLIT_DATES",
    "UNSEEN",
    "Kind",
    "NotNumericError",
    "RawColumn",
    "name_rows",
    "read_column",
    "refuse_infinite",
    "refuse_missing",
    "to_categories",
    "to_levels",
]

Kind = Literal["numeric", "boolean", "categorical", "ordered"]
# Kinds whose values are codes of levels, not numbers.
CODED: frozenset[Kind] = frozenset({"categorical", "ordered"})
# Codes of no value, and in new rows of a level that did not occur in training.
MISSING, UNSEEN = -1, -2

# What to do with a column of dates.
SPLIT_DATES = (
    "Turn it into numbers first, for example with t = pandas.to_datetime(X[name]): the columns "
    "t.dt.year, t.dt.month, t.dt.dayofweek, t.dt.dayofyear, or (t - t.min()).dt.days."
)
# Columns named in one message; the rest are only counted.
_SHOWN = 5


class NotNumericError(InvalidDataError, TypeError):
    """An entry is of a type that cannot become a number; scikit-learn wants a `TypeError`."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RawColumn:
    """A column as it was read.

    Parameters
    ----------
    name
        The user's name for it.
    kind
        ``"numeric"``, ``"boolean"``, ``"categorical"`` or ``"ordered"``.
    values
        Numbers, NaN where missing; for levels the codes, positions in `levels`, `MISSING` where
        missing.
    levels
        The levels that occur, in order; of an ordered column all that were declared.
    declared
        Whether the caller declared the levels; those of plain text are read off the rows.
    """

    name: str
    kind: Kind
    values: npt.NDArray[Any]
    levels: tuple[str, ...] = ()
    declared: bool = False

    @property
    def coded(self) -> bool:
        """Whether the values are codes of levels."""
        return self.kind in CODED

    @property
    def missing(self) -> Mask:
        """Rows without a value."""
        if self.coded:
            return np.asarray(self.values == MISSING)
        if self.values.dtype.kind == "f":
            return np.asarray(np.isnan(self.values))
        return np.zeros(self.values.shape, dtype=np.bool_)


def read_column(name: str, content: Any) -> RawColumn:
    """Read a narwhals series or a one-dimensional NumPy array."""
    return (
        _read_series(name, content)
        if isinstance(content, nw.Series)
        else _read_array(name, content)
    )


def to_levels(column: RawColumn) -> RawColumn:
    """Convert numbers or booleans to levels, by their text."""
    absent = column.missing
    values = column.values.astype(np.bool_) if column.kind == "boolean" else column.values
    distinct, inverse = np.unique(values[~absent], return_inverse=True)
    codes = np.full(values.shape, MISSING)
    codes[~absent] = inverse
    levels = tuple(_spell_level(value) for value in distinct)
    return RawColumn(column.name, "categorical", codes, levels)


def to_categories(column: RawColumn) -> nw.Series[Any]:
    """Convert a column to a series of declared categories without an order."""
    coded = column if column.coded else to_levels(column)
    # One more entry at the end, for the code of missing values.
    texts = np.array([*coded.levels, None], dtype=object)[coded.values]
    return nw.new_series(column.name, texts.tolist(), nw.Categorical, backend="pandas")


def refuse_missing(columns: Iterable[RawColumn], *, owner: str = "X", advice: str) -> None:
    """Raise if any value is missing."""
    found = _find(columns, lambda column: column.missing, owner)
    if found:
        msg = f"{owner} contains NaN or missing values: {found} (rows count from 0). {advice}"
        raise InvalidDataError(msg)


def refuse_infinite(columns: Iterable[RawColumn], *, owner: str = "X") -> None:
    """Raise if any value is infinite, or too large for a double."""
    found = _find(columns, _infinite, owner)
    if found:
        msg = (
            f"{owner} contains inf, or values too large for float64: {found} (rows count from 0). "
            "Remove these rows or repair the values."
        )
        raise InvalidDataError(msg)


def name_rows(selected: Mask, limit: int = 5) -> str:
    """Name the first selected rows, counted from 0: ``rows 0, 4, 7, ...``."""
    rows = np.flatnonzero(selected)
    shown = ", ".join(str(row) for row in rows[:limit])
    return f"{'row' if rows.size == 1 else 'rows'} {shown}{', ...' if rows.size > limit else ''}"


def _spell_level(level: object) -> str:
    """Write a level as text; ``2``, ``2.0`` and NumPy's ``2`` are all ``"2"``."""
    if isinstance(level, float | np.floating) and float(level).is_integer():
        return str(int(level))
    return str(level)


def _read_series(name: str, series: nw.Series[Any]) -> RawColumn:
    dtype = series.dtype
    if dtype in (nw.Decimal, nw.Int128, nw.UInt128):
        return RawColumn(name, "numeric", series.cast(nw.Float64).to_numpy())
    if dtype == nw.Boolean:
        return RawColumn(name, "boolean", series.cast(nw.Float64).to_numpy())
    if dtype in (nw.Categorical, nw.Enum):
        # To narwhals an ordered category of pandas is an Enum.
        kind: Kind = "ordered" if dtype == nw.Enum else "categorical"
        categories = series.cat.get_categories().to_list()
        return _encode(name, series.to_list(), categories, kind, declared=True)
    if dtype == nw.String:
        return _encode_text(name, series.to_list())
    if dtype.is_temporal():
        _refuse_time(name, str(dtype))
    if dtype.is_nested() or dtype == nw.Binary:
        msg = f"Column {name!r} is of type {dtype}; expected numbers, booleans, text or categories."
        raise NotNumericError(msg)
    return _read_array(name, series.to_numpy())


def _read_array(name: str, array: npt.NDArray[Any]) -> RawColumn:
    match array.dtype.kind:
        case "b":
            return RawColumn(name, "boolean", array)
        case "i" | "u" | "f":
            return RawColumn(name, "numeric", array)
        case "c":
            _refuse_complex(name)
        case "U" | "T":
            return _encode_text(name, array.tolist())
        case "M" | "m":
            _refuse_time(name, str(array.dtype))
        case "O":
            return _read_objects(name, array.tolist())
    msg = f"Column {name!r} is of type {array.dtype}; expected numbers, booleans or text."
    raise NotNumericError(msg)


def _read_objects(name: str, entries: list[Any]) -> RawColumn:
    present = [entry for entry in entries if not _is_missing(entry)]
    if present and all(isinstance(entry, str) for entry in present):
        return _encode_text(name, entries)
    are_booleans = bool(present) and all(isinstance(entry, bool | np.bool_) for entry in present)
    numbers = [np.nan if _is_missing(entry) else _to_number(name, entry) for entry in entries]
    return RawColumn(
        name, "boolean" if are_booleans else "numeric", np.array(numbers, dtype=np.float64)
    )


def _to_number(name: str, entry: Any) -> float:
    if isinstance(entry, str):
        msg = (
            f"Column {name!r} mixes text such as {entry!r} with other values. Make it all numbers "
            "(pandas.to_numeric) or all text."
        )
        raise InvalidDataError(msg)
    if isinstance(entry, complex | np.complexfloating):
        _refuse_complex(name)
    if isinstance(entry, date | time | timedelta):
        _refuse_time(name, type(entry).__name__)
    try:
        return float(entry)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"Column {name!r} has an entry that is not a number: {error}."
        raise NotNumericError(msg) from error


def _is_missing(entry: Any) -> bool:
    # pandas.NA, known by its type's name: pandas is not imported here.
    return (
        entry is None
        or (isinstance(entry, float | np.floating) and bool(np.isnan(entry)))
        or type(entry).__name__ in ("NAType", "NaTType")
    )


def _encode_text(name: str, entries: list[Any]) -> RawColumn:
    return _encode(name, entries, sorted({entry for entry in entries if isinstance(entry, str)}))


def _encode(
    name: str,
    entries: Sequence[Any],
    categories: Sequence[Any],
    kind: Kind = "categorical",
    *,
    declared: bool = False,
) -> RawColumn:
    """Encode the entries by their category; without an order only categories that occur."""
    spelled = [_spell_level(category) for category in categories]
    if len(set(spelled)) < len(spelled):
        msg = f"Column {name!r} has categories that read the same as text: {quote(spelled)}."
        raise InvalidDataError(msg)
    code_of = {category: code for code, category in enumerate(categories)}
    codes = np.fromiter((code_of.get(entry, -1) for entry in entries), np.int64, len(entries))
    if kind == "ordered":
        return RawColumn(name, kind, codes, tuple(spelled), declared)
    occurs = np.bincount(codes[codes >= 0], minlength=len(spelled)) > 0
    # One more entry at the end, so that code -1 stays -1.
    renumbered = np.append(np.cumsum(occurs) - 1, -1)
    levels = tuple(level for level, found in zip(spelled, occurs, strict=True) if found)
    return RawColumn(name, kind, renumbered[codes], levels, declared)


def _refuse_complex(name: str) -> NoReturn:
    msg = (
        f"Complex data not supported: column {name!r} has complex numbers. "
        "Use the real and imaginary parts, or modulus and angle, as columns."
    )
    raise InvalidDataError(msg)


def _refuse_time(name: str, dtype: str) -> NoReturn:
    msg = (
        f"Column {name!r} holds dates or times ({dtype}), which have no natural zero or unit. "
        f"{SPLIT_DATES}"
    )
    raise InvalidDataError(msg)


def _find(columns: Iterable[RawColumn], test: Callable[[RawColumn], Mask], owner: str) -> str:
    found = []
    for column in columns:
        # Whole numbers and booleans can be neither; nor need they be scanned.
        if column.coded or column.values.dtype.kind == "f":
            selected = test(column)
            if selected.any():
                who = f"column {column.name!r} has " if column.name != owner else ""
                found.append(f"{who}{np.count_nonzero(selected)}, at {name_rows(selected)}")
    hidden = len(found) - _SHOWN
    return "; ".join(found[:_SHOWN]) + (f"; and {hidden} more columns" if hidden > 0 else "")


def _infinite(column: RawColumn) -> Mask:
    if column.coded:
        return np.zeros(column.values.shape, dtype=np.bool_)
    # Wider floats than float64 may become infinite only on conversion.
    with np.errstate(over="ignore"):
        return np.isinf(column.values.astype(np.float64, copy=False))
