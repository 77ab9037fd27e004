"""The data check of `dbrm.fit`, as warnings, and `dbrm.check`, the same as a table."""

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbrm._typing import TableLike
from dbrm.data import Finding, RawTable, check_table, learn_recipe, read_table, warn_findings
from dbrm.data.files import read_file
from dbrm.errors import DBRMWarning, InvalidDataError, suggest
from dbrm.evidence import find_family
from dbrm.run.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check", "find_problems", "warn_of_data"]


def check(
    X: TableLike | str | os.PathLike[str],
    y: Any = None,
    *,
    ignore: Sequence[str] = (),
    family: Any = "gaussian",
) -> "pd.DataFrame":
    """Look for what is often wrong in a table before a model is fitted to it.

    Parameters
    ----------
    X
        A table in memory as for `fit`, or the path of a file (``.csv``, ``.parquet``, ...).
    y
        The response, or its column in `X`; optional.
    ignore
        Columns that are not covariates.
    family
        The family that `y` is to be fitted with.

    Returns
    -------
    pandas.DataFrame
        A row for each finding: the ``column`` (empty for the whole table), the ``finding`` in a
        word, what was ``seen`` and the ``advice``. Without rows nothing was found. Printed, it
        is one paragraph for each finding.

    Examples
    --------
    >>> import dbrm
    >>> table = {"id": range(1, 41), "size": ["1,5", "2,5"] * 20}
    >>> dbrm.check(table, [0, 1] * 20)["finding"].tolist()
    ['identifier', 'numbers as text', 'response', 'leakage']
    """
    from dbrm.run.findings_table import FindingsTable

    notes: Sequence[str] = ()
    if isinstance(X, os.PathLike | str):
        file = read_file(X)
        X, notes = file.columns, file.notes
    found = [Finding("file", "", note, "") for note in notes]
    found += find_problems(X, y, ignore=ignore, family=family)
    return FindingsTable.of(found)


def find_problems(
    X: TableLike, y: Any = None, *, ignore: Sequence[str] = (), family: Any = "gaussian"
) -> list[Finding]:
    """Return what the data check finds, and what a fit would refuse or leave out."""
    raw = read_table(X)
    for name in (*ignore, *([y] if isinstance(y, str) else [])):
        if name not in raw.names:
            near = suggest(name, raw.names)
            msg = f"There is no column {name!r}{near}. Columns: {', '.join(raw.names)}."
            raise InvalidDataError(msg)
    columns = dict(zip(raw.names, raw.contents, strict=True))
    response = columns.pop(y) if isinstance(y, str) else y
    columns = {name: content for name, content in columns.items() if name not in ignore}
    raw = RawTable(tuple(columns), tuple(columns.values()), raw.n_rows, raw.named)
    found = check_table(raw, response, family=find_family(family).name)
    named = {finding.column for finding in found}
    return found + [finding for finding in _left_out(columns) if finding.column not in named]


def _left_out(columns: dict[str, Any]) -> list[Finding]:
    """What a fit with these covariates would refuse or leave out."""
    found = []
    usable = {}
    for name, content in columns.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DBRMWarning)
                recipe, _ = learn_recipe({name: content}, missing="indicator")
        except InvalidDataError as error:
            seen, _, advice = str(error).partition(". ")
            found.append(Finding("refused", name, seen.removeprefix(f"Column {name!r} "), advice))
            continue
        usable[name] = content
        (rule,) = recipe.columns
        if 2 * rule.n_missing > len(content):
            seen = f"has no value in {rule.n_missing} of {len(content)} rows"
            found.append(Finding("missing values", name, seen, "Consider leaving it out."))
    if not usable:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DBRMWarning)
        recipe, _ = learn_recipe(usable, missing="indicator")
    for name, reason in recipe.dropped:
        text = "is text that differs in nearly every row" if "rare" in reason else f"is {reason}"
        advice = "It is left out of the fit."
        if "rare" in reason:
            advice = f"{advice} For groups of a few rows each offer a random intercept."
        found.append(
            Finding("left out", name, f"{text} ({reason})" if "rare" in reason else text, advice)
        )
    return found


def warn_of_data(raw: RawTable, y: Any, settings: Settings, names: Sequence[str]) -> None:
    """Warn of what looks wrong in the covariates of these names, and in the response."""
    skip = [name for name in raw.names if name not in names]
    family = "" if settings.evidence is not None else find_family(settings.family).name
    warn_findings(check_table(raw, y, family=family, skip=skip))
