"""``dbrm predict``: a saved posterior meets new rows."""

import csv
import sys
import warnings
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbrm.cli.errors import told_to_the_user
from dbrm.cli.json_text import json_text
from dbrm.errors import DBRMWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrm._typing import Matrix

__all__ = ["predict"]

_NAMES = ("mean", "lower", "upper")
# Rows written at a time.
_ROWS = 100_000


def predict(
    run: Annotated[Path, typer.Argument(help="File written by dbrm fit --out.")],
    data: Annotated[
        Path, typer.Argument(help="New rows: .csv, .tsv, .parquet, .arrow or .feather.")
    ],
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    offset: Annotated[str | None, typer.Option(help="Column of the known part.")] = None,
    trials: Annotated[str | None, typer.Option(help="Column of binomial trials.")] = None,
    exposure: Annotated[str | None, typer.Option(help="Column of times or areas.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write here, not to the terminal.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of CSV.")] = False,
) -> None:
    """Predict new rows: mean and interval of each, as CSV."""
    import numpy as np

    from dbrm.data.files import read_columns
    from dbrm.posterior import load
    from dbrm.run.out_of_core import column_names_if_tall

    with told_to_the_user():
        posterior = load(run)
        names = column_names_if_tall(data)
        columns = read_columns(data) if names is None else {name: name for name in names}
        rows: Any = columns if names is None else data
        named = {"offset": offset, "trials": trials, "exposure": exposure}
        extras = {key: _column(columns, name) for key, name in named.items() if name is not None}
        mean = posterior.predict(rows, **extras)
        with warnings.catch_warnings():
            # What there is to say about the rows has been said with the mean.
            warnings.simplefilter("ignore", DBRMWarning)
            limits = posterior.predict_interval(rows, level, **extras)
        texts = _in_pieces(np.column_stack([mean, limits]), as_json=as_json)
        if out is None:
            sys.stdout.writelines(texts)
        else:
            with out.open("w", encoding="utf-8") as file:
                file.writelines(texts)


def _column(columns: dict[str, Any], name: str) -> Any:
    if name not in columns:
        msg = f"the table has no column {name!r}. Its columns: {', '.join(columns)}."
        raise typer.BadParameter(msg)
    return columns[name]


def _in_pieces(numbers: "Matrix", *, as_json: bool) -> "Iterator[str]":
    """The text of the predictions, some rows at a time."""
    if as_json:
        yield json_text([dict(zip(_NAMES, row, strict=True)) for row in numbers.tolist()]) + "\n"
        return
    yield ",".join(_NAMES) + "\n"
    for start in range(0, len(numbers), _ROWS):
        buffer = StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(numbers[start : start + _ROWS].tolist())
        yield buffer.getvalue()
