"""``dbrm predict``: a saved posterior meets new rows."""

import csv
import sys
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer

from dbrm.cli.errors import told_to_the_user
from dbrm.cli.json_text import json_text

__all__ = ["predict"]


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
    from dbrm.data.files import read_columns
    from dbrm.posterior import load

    with told_to_the_user():
        posterior, columns = load(run), read_columns(data)
        named = {"offset": offset, "trials": trials, "exposure": exposure}
        extras = {key: _column(columns, name) for key, name in named.items() if name is not None}
        mean = posterior.predict(columns, **extras)
        limits = posterior.predict_interval(columns, level, **extras)
        rows = [
            {"mean": float(centre), "lower": float(low), "upper": float(high)}
            for centre, (low, high) in zip(mean, limits, strict=True)
        ]
        text = json_text(rows) + "\n" if as_json else _as_csv(rows)
        if out is None:
            sys.stdout.write(text)
        else:
            out.write_text(text)


def _column(columns: dict[str, Any], name: str) -> Any:
    if name not in columns:
        msg = f"the table has no column {name!r}. Its columns: {', '.join(columns)}."
        raise typer.BadParameter(msg)
    return columns[name]


def _as_csv(rows: list[dict[str, float]]) -> str:
    buffer = StringIO()
    writer = csv.DictWriter(buffer, ["mean", "lower", "upper"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()
