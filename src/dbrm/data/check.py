"""The data check: what in a table looks wrong for a regression, column by column.

It sees columns as they were read and the response; nothing about models but the name of the
family. Every finding names its column, says what was seen and what to do. Nothing is changed.
A check must be silent about clean data: each has a threshold that ordinary columns do not reach.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import currentframe
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from dbrm._typing import Column
from dbrm.data.columns import RawColumn, read_column
from dbrm.data.intake import RawTable
from dbrm.data.level_checks import Finding, check_levels
from dbrm.data.response_checks import check_response_values
from dbrm.data.text_numbers import is_number
from dbrm.errors import DataCheckWarning, InvalidDataError, quote

__all__ = ["Finding", "check_table", "warn_findings"]

# Text is read, and relations to the response are looked for, in at most this many rows.
_MOST_ROWS = 5_000
# A table with fewer rows is too small for most checks, and for most models.
_FEW_ROWS = 10
# All but so many rows, and fewer than this share of them, have the same value.
_FEW_OTHERS, _SMALL_SHARE = 5, 1 / 20
# Largest ratio of the largest absolute values of two columns.
_MOST_SCALES = 1e10
# Share of the variance of the response, and the least rows for which it says something.
_ALMOST_ALL, _ENOUGH_ROWS = 0.9995, 20
_CODES = (-9.0, -99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)
_IDENTIFIER = re.compile(
    r"|ids?|key|[ug]uid|index|idx|row_?(names?|num|id)?|no|nr|number|obs(ervation)?|case|subject"
    r"|patient|unnamed: 0|.*[_ -](ids?|key|uuid)",
    re.IGNORECASE,
)
_CALLED_DATE = re.compile(r"date|datum|timestamp|created|updated", re.IGNORECASE)
# 1982 to 2064 in days of a spreadsheet; 2001 to 2065 in seconds and thousandths since 1970.
_DATE_NUMBERS = (
    (30_000, 60_000, "days, as spreadsheets do"),
    (1e9, 3e9, "seconds"),
    (1e12, 3e12, "thousandths of a second"),
)
_TIME = re.compile(r"t|x|time|step|(second|minute|hour|day|week|month|year)s?", re.IGNORECASE)


def check_table(
    raw: RawTable, y: Any = None, *, family: str = "gaussian", skip: Sequence[str] = ()
) -> list[Finding]:
    """Return what looks wrong.

    Parameters
    ----------
    raw
        The table.
    y
        The response, anything that `dbrm.fit` accepts; not checked if it cannot be read.
    family
        Name of the family of the response.
    skip
        Columns that are not covariates.
    """
    sample = slice(None, None, max(1, -(-raw.n_rows // _MOST_ROWS)))
    columns = [
        column
        for name, content in zip(raw.names, raw.contents, strict=True)
        if name not in skip and (column := _read(name, content, sample)) is not None
    ]
    found: list[Finding] = []
    if raw.n_rows < _FEW_ROWS:
        found.append(_few_rows(raw.n_rows))
    alone = len(columns) == 1
    for column in columns:
        if column.coded:
            found += check_levels(column, raw.n_rows)
        elif column.kind == "numeric":
            found += _check_numbers(column, numbered=raw.named and not alone)
    found += _check_scales(columns)
    if y is not None:
        found += _check_response_kind(y, family)
    response = None if y is None else _read_response(y, raw.n_rows)
    found += _check_totals([*columns, *([] if response is None else [response])])
    if response is not None:
        found += check_response_values(response, family)
        if not alone:
            found += _check_leakage(columns, response.values.astype(np.float64), sample)
    return found


def warn_findings(found: Iterable[Finding]) -> None:
    """Warn of each finding; of many columns with the same one, once."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in found:
        by_kind.setdefault(finding.kind, []).append(finding)
    for findings in by_kind.values():
        if len(findings) <= 2:
            for finding in findings:
                _warn(finding.message)
            continue
        first, *others = findings
        names = quote([other.column for other in others], limit=5)
        _warn(f"{first.message} The same holds for {len(others)} more columns: {names}.")


def _warn(message: str) -> None:
    level, frame = 1, currentframe()
    # The user's line, whichever way the data came here.
    while frame is not None and frame.f_globals.get("__name__", "").startswith("dbrm."):
        level, frame = level + 1, frame.f_back
    text = f"{message} (check=False turns the data check off.)"
    warnings.warn(text, DataCheckWarning, stacklevel=level)


def _few_rows(n_rows: int) -> Finding:
    return Finding(
        "few rows",
        "",
        f"The table has only {n_rows} rows",
        "Hardly any model can be told from another with so few: add rows, or offer few columns.",
    )


def _read(name: str, content: Any, sample: slice) -> RawColumn | None:
    """Read a column, text only in a sample of the rows; None if it cannot be read."""
    is_series = isinstance(content, nw.Series)
    numeric = content.dtype.is_numeric() if is_series else content.dtype.kind in "biuf"
    if not numeric and sample.step > 1:
        content = content.gather_every(sample.step) if is_series else content[sample]
    try:
        return read_column(name, content)
    except InvalidDataError:
        return None


def _read_response(y: Any, n_rows: int) -> RawColumn | None:
    """Read a response of numbers; None if it is anything else, which `dbrm.fit` refuses."""
    content = nw.from_native(y, pass_through=True, allow_series=True)
    if not isinstance(content, nw.Series):
        content = np.asarray(y)
    if len(content.shape) != 1:
        return None
    try:
        column = read_column(str(getattr(y, "name", None) or "y"), content)
    except InvalidDataError:
        return None
    finite = not column.coded and bool(np.isfinite(column.values.astype(np.float64)).all())
    return column if finite and column.values.size == n_rows else None


def _check_response_kind(y: Any, family: str) -> Iterator[Finding]:
    """Responses that hold the same everywhere, nothing, or numbers with text among them."""
    content = nw.from_native(y, pass_through=True, allow_series=True)
    values = content.to_numpy() if isinstance(content, nw.Series) else np.asarray(y).ravel()
    if values.dtype.kind in "biuf":
        # Millions of numbers: two different ones are enough.
        finite = values[np.isfinite(values)]
        filled = [finite.min(), finite.max()] if finite.size > 1 else finite.tolist()
    else:
        filled = [value for value in values.tolist() if value is not None and value == value]
    texts = [value for value in filled if isinstance(value, str)]
    if not filled:
        yield Finding("response", "", "The response has no value in any row", "Choose another one.")
    elif len(filled) > 1 and len(set(map(str, filled))) == 1:
        seen = f"The response is {filled[0]} in every row"
        yield Finding("response", "", seen, "There is nothing to explain: choose another one.")
    elif texts and family not in ("multinomial", "binomial"):
        n_numbers = sum(map(is_number, texts)) + len(filled) - len(texts)
        others = [text for text in texts if not is_number(text)]
        if others and n_numbers > len(filled) / 2:
            shown = quote(sorted(set(others)), limit=3)
            seen = f"The response holds numbers, and text in {len(others)} of {len(filled)} rows"
            advice = "Make these rows numbers, or leave them out."
            yield Finding("response", "", f"{seen}: {shown}", advice)


def _check_totals(columns: Sequence[RawColumn]) -> Iterator[Finding]:
    """A last row that holds the sums of the rows above, in every column of numbers."""
    numbers = [c.values.astype(np.float64) for c in columns if c.kind == "numeric"]
    numbers = [values for values in numbers if values.size >= _FEW_ROWS]
    if len(numbers) < 2 or not all(np.isfinite(values[-1]) for values in numbers):
        return
    for values in numbers:
        total = float(np.nansum(values[:-1]))
        if total == 0.0 or abs(values[-1] - total) > 1e-5 * abs(total):
            return
    yield Finding(
        "totals",
        "",
        "The last row holds the sums of the rows above",
        "It is no row of the table: leave it out.",
    )


def _check_numbers(column: RawColumn, *, numbered: bool) -> Iterator[Finding]:
    values = column.values.astype(np.float64, copy=False)
    values = values[np.isfinite(values)]
    if values.size < _FEW_ROWS:
        return
    checks: list[Callable[[str, Column], Finding | None]] = [_nearly_constant, _missing_code]
    if _is_whole(values[:100]) and _is_whole(values):
        checks += [_calendar_number]
        if numbered and values.size == column.values.size:
            checks += [_row_number]
    for check in checks:
        finding = check(column.name, values)
        if finding is not None:
            yield finding
            return


def _is_whole(values: Column) -> bool:
    return bool(np.all(values == np.rint(values)))


def _row_number(name: str, values: Column) -> Finding | None:
    low, high, n = values.min(), values.max(), values.size
    called = _IDENTIFIER.fullmatch(name.strip()) is not None
    # Ranks are numbers from 1 to n, too, but in another order.
    in_order = values[0] in (0.0, 1.0) and high - low == n - 1 and bool(np.all(np.diff(values) > 0))
    counts_rows = in_order and not _TIME.fullmatch(name.strip())
    if not (called or counts_rows) or np.unique(values).size < n:
        return None
    shown = ", ".join(f"{value:.0f}" for value in values[:3])
    return Finding(
        "identifier",
        name,
        f"looks like an identifier or a row number: {shown}, ..., different in every row",
        f"Leave it out, ignore=[{name!r}], unless its size means something.",
    )


def _calendar_number(name: str, values: Column) -> Finding | None:
    """Dates written as one number: 20240131, days of a spreadsheet, seconds of a computer."""
    if _CALLED_DATE.search(name):
        for low, high, what in _DATE_NUMBERS:
            if low <= values.min() and values.max() <= high:
                return Finding(
                    "dates",
                    name,
                    f"looks like dates counted in {what}, such as {values[0]:.0f}",
                    "Split them into year, month and day, or count the days from the first one.",
                )
    if values.min() < 1800_00_00 or values.max() > 2200_00_00:
        return None
    month, day = values // 100 % 100, values % 100
    if not bool(np.all((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31))):
        return None
    return Finding(
        "dates",
        name,
        f"looks like dates written as numbers, such as {values[0]:.0f}",
        "Split them into year, month and day, or count the days from the first one.",
    )


def _nearly_constant(name: str, values: Column) -> Finding | None:
    middle = float(np.median(values[:: max(1, values.size // 1000)]))
    n_others = int(np.count_nonzero(values != middle))
    if not 0 < n_others < min(_FEW_OTHERS, _SMALL_SHARE * values.size):
        return None
    rows = "1 row" if n_others == 1 else f"{n_others} rows"
    return Finding(
        "nearly constant",
        name,
        f"is {middle:g} in all but {rows} of {values.size}",
        f"So few rows decide what it means: look at them, or leave it out, ignore=[{name!r}].",
    )


def _missing_code(name: str, values: Column) -> Finding | None:
    """A value such as -999, far from all others, that stands for a missing one."""
    for code in (values.min(), values.max()):
        if code not in _CODES:
            continue
        others = values[values != code]
        n_coded = values.size - others.size
        if others.size < _FEW_ROWS or n_coded < 2:
            continue
        gap = float(np.min(np.abs(others - code)))
        if gap > 2.0 * float(np.ptp(others)):
            return Finding(
                "code of missing values",
                name,
                f"is {code:g} in {n_coded} rows and from {others.min():g} to {others.max():g} in "
                "all others",
                f"If {code:g} stands for a missing value, make it missing (NaN).",
            )
    return None


def _check_scales(columns: Sequence[RawColumn]) -> Iterator[Finding]:
    sizes = {}
    for column in columns:
        if column.kind == "numeric" and column.values.size:
            with np.errstate(invalid="ignore"):
                size = float(
                    np.nanmax(np.abs(column.values.astype(np.float64, copy=False)), initial=0.0)
                )
            if np.isfinite(size) and size > 0.0:
                sizes[column.name] = size
    if len(sizes) < 2:
        return
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    if sizes[large] / sizes[small] > _MOST_SCALES:
        yield Finding(
            "scales",
            large,
            f"reaches {sizes[large]:.1e}, and column {small!r} only {sizes[small]:.1e}",
            "Sums and products of such columns lose digits: change a unit, as from bytes to "
            "gigabytes.",
        )


def _check_leakage(
    columns: Sequence[RawColumn], response: Column, sample: slice
) -> Iterator[Finding]:
    """Columns that explain the response almost perfectly, each by itself."""
    y = response[sample]
    if y.size < _ENOUGH_ROWS or np.ptp(y) == 0.0:
        return
    classes = np.unique(y)
    for column in columns:
        values = column.values if column.values.size == y.size else column.values[sample]
        if column.coded:
            seen = _explained_by_levels(values, y)
        elif classes.size == 2:
            seen = _separated(values.astype(np.float64), y == classes[1])
        else:
            seen = _explained_by_numbers(values.astype(np.float64), y)
        if seen:
            yield Finding(
                "leakage",
                column.name,
                f"alone {seen}",
                "Is it known before the response, or made from it? If made from it, leave it out: "
                f"ignore=[{column.name!r}].",
            )


def _explained_by_numbers(x: Column, y: Column) -> str:
    present = np.isfinite(x)
    x, y = x[present], y[present]
    if x.size < _ENOUGH_ROWS or np.unique(x).size < _ENOUGH_ROWS:
        return ""
    share = max(_squared_correlation(x, y), _squared_correlation(_ranks(x), _ranks(y)))
    return f"explains {_percent(share)} of the response" if share >= _ALMOST_ALL else ""


def _explained_by_levels(codes: npt.NDArray[Any], y: Column) -> str:
    present = codes >= 0
    codes, y = codes[present].astype(np.int64), y[present]
    if y.size < _ENOUGH_ROWS or np.ptp(y) == 0.0:
        return ""
    counts = np.bincount(codes)
    if np.count_nonzero(counts) > y.size / 5:
        return ""
    means = np.bincount(codes, y) / np.maximum(counts, 1)
    share = 1.0 - float(np.sum((y - means[codes]) ** 2) / np.sum((y - y.mean()) ** 2))
    return f"explains {_percent(share)} of the response" if share >= _ALMOST_ALL else ""


def _separated(x: Column, second: npt.NDArray[np.bool_]) -> str:
    present = np.isfinite(x)
    zeros, ones = x[present & ~second], x[present & second]
    if min(zeros.size, ones.size) < _FEW_OTHERS:
        return ""
    if zeros.max() < ones.min() or ones.max() < zeros.min():
        return "tells the two classes apart in every row"
    return ""


def _squared_correlation(x: Column, y: Column) -> float:
    with np.errstate(all="ignore"):
        x, y = x / np.max(np.abs(x)), y / np.max(np.abs(y))
        x, y = x - x.mean(), y - y.mean()
        share = float((x @ y) ** 2 / ((x @ x) * (y @ y)))
    return share if np.isfinite(share) else 0.0


def _ranks(values: Column) -> Column:
    """Ranks; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts - 1.0))[inverse]


def _percent(share: float) -> str:
    return "all" if share > 1.0 - 1e-9 else f"{100.0 * share:.3f} %"
