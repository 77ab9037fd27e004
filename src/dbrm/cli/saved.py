"""Commands for a saved posterior: ``dbrm show``, ``dbrm predict`` and ``dbrm report``."""

import csv
import sys
import warnings
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dbrm.cli.classes import class_values
from dbrm.cli.console import (
    Decimal,
    Encoding,
    Separator,
    find_column,
    json_text,
    settings_as_options,
    show_errors,
)
from dbrm.errors import DBRMWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dbrm.posterior import Posterior

__all__ = ["predict", "print_law", "print_posterior", "report", "show"]

_NAMES = ("mean", "lower", "upper")
# Rows written at a time.
_ROWS = 100_000
RunFile = Annotated[Path, typer.Argument(help="File written by dbrm fit --out.")]


def show(
    run: RunFile,
    top: Annotated[int, typer.Option(min=1, help="Features to show.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the results of a saved run."""
    from dbrm.posterior import load

    with show_errors():
        posterior = load(run)
    print_posterior(posterior, top=top, as_json=as_json)


def print_posterior(posterior: "Posterior", *, top: int = 10, as_json: bool = False) -> None:
    """Print the summary, or the same as JSON."""
    if as_json:
        typer.echo(json_text(_facts(posterior, top)))
    else:
        typer.echo(settings_as_options(posterior.summary(top)), nl=False)


def print_law(posterior: "Posterior") -> None:
    """Print the constants of the best formula with intervals, simpler ones, and lack of fit."""
    from dbrm.posterior.lack_of_fit import known_lack_of_fit

    best = posterior.best_model
    constants = best.coefficients()
    if best.may_have_short_numbers:
        short = best.short_numbers()
        constants["short number"], constants["probable"] = short["number"], short["probability"]
    path = posterior.path[["complexity", "r2", "step", "probability", "formula"]]
    shown = constants.to_string(index=False, float_format="{:.6g}".format)
    typer.echo(f"\nConstants of the best formula, with 95 % intervals:\n{shown}")
    steps = path.to_string(index=False, na_rep="", float_format="{:.4g}".format)
    typer.echo(
        "\nThe most probable formula of every complexity: share of the variation that it explains, "
        f"gain in log evidence, probability:\n{steps}"
    )
    left = known_lack_of_fit(posterior)
    if left is not None:
        typer.echo(
            f"\nProbability that the best formula is the law: {posterior.claim:.3g}; "
            f"that something is left beside it (lack of fit): {left:.3g}"
        )


def _facts(posterior: "Posterior", top: int) -> dict[str, Any]:
    best = posterior.best_model
    return {
        "response": best.response,
        "best_model": {
            "formula": best.formula,
            "probability": best.probability,
            "coefficients": best.coefficients().to_dict("records"),
        },
        "features": posterior.features.head(top).to_dict("records"),
        "models": posterior.models.head(top).to_dict("records"),
        "n_models": len(posterior.models),
        "n_evaluated": posterior.record.n_evaluated,
        "seconds": posterior.record.seconds,
        "seed": posterior.record.seed,
        "verdict": posterior.diagnostics.verdict(),
    }


def predict(
    run: RunFile,
    data: Annotated[
        Path, typer.Argument(help="New rows: .csv, .tsv, .parquet, .arrow or .feather.")
    ],
    level: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    of_mean: Annotated[
        bool, typer.Option("--of-mean", help="Interval of the mean, not of a new response.")
    ] = False,
    offset: Annotated[str | None, typer.Option(help="Column of the offset.")] = None,
    trials: Annotated[str | None, typer.Option(help="Column of binomial trials.")] = None,
    exposure: Annotated[
        str | None, typer.Option(help="Column of exposures, such as years.")
    ] = None,
    strata: Annotated[str | None, typer.Option(help="Column of the strata, if any.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file, not to the terminal.")
    ] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON in place of CSV.")] = False,
) -> None:
    """Predict new rows: mean and interval of each, as CSV.

    Of survival times: the log hazard ratio (cox) or the median (weibull), and an interval of the
    time.
    """
    import numpy as np

    from dbrm.data.files import read_file
    from dbrm.posterior import load
    from dbrm.run.out_of_core import column_names_if_tall

    with show_errors():
        posterior = load(run)
        names = column_names_if_tall(data)
        columns: dict[str, Any] = {name: name for name in names or ()}
        if names is None:
            how = {"encoding": encoding, "separator": separator, "decimal": decimal}
            columns = read_file(data, **how).columns
        rows: Any = columns if names is None else data
        named = {"offset": offset, "trials": trials, "exposure": exposure}
        extras = {
            key: find_column(columns, name) for key, name in named.items() if name is not None
        }
        if posterior.classes:
            chances = posterior.predict_proba(rows, offset=extras.get("offset"))
            labels = np.array([str(label) for label in posterior.classes], dtype=object)
            names_out = ("class", *labels)
            table = [labels[np.argmax(chances, axis=1)], *chances.T]
        else:
            names_out, table = _NAMES, [posterior.predict(rows, **extras)]
            with warnings.catch_warnings():
                # The same warning came with the mean.
                warnings.simplefilter("ignore", DBRMWarning)
                groups = None if strata is None else find_column(columns, strata)
                of: Literal["mean", "response"] = "mean" if of_mean else "response"
                limits = posterior.predict_interval(rows, level, of=of, strata=groups, **extras)
            table += list(limits.T)
        texts = _write(names_out, table, as_json=as_json)
        if out is None:
            sys.stdout.writelines(texts)
        else:
            with out.open("w", encoding="utf-8") as file:
                file.writelines(texts)


def _write(names: "Sequence[str]", table: "Sequence[Any]", *, as_json: bool) -> "Iterator[str]":
    """The text of the predictions, given by columns, a block of rows at a time."""
    if as_json:
        rows = zip(*(column.tolist() for column in table), strict=True)
        yield json_text([dict(zip(names, row, strict=True)) for row in rows]) + "\n"
        return
    heading = StringIO()
    csv.writer(heading, lineterminator="\n").writerow(names)
    yield heading.getvalue()
    for start in range(0, len(table[0]), _ROWS):
        buffer, block = StringIO(), slice(start, start + _ROWS)
        columns = [column[block].tolist() for column in table]
        csv.writer(buffer, lineterminator="\n").writerows(zip(*columns, strict=True))
        yield buffer.getvalue()


def report(
    run: RunFile,
    out: Annotated[
        Path | None, typer.Argument(help="The page; run.html beside run.dbrm unless given.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Table to plot predictions against, with the response.")
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(help="Of survival times: column that is 1 where the event was seen."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The question that the page answers.")] = None,
) -> None:
    """Write the results of a saved run as one HTML page that needs no network."""
    from dbrm.data.files import read_file
    from dbrm.posterior import load

    path = run.with_suffix(".html") if out is None else out
    with show_errors():
        posterior = load(run)
        if data is None:
            posterior.report(path, title=title)
        else:
            columns = read_file(data).columns
            response = posterior.record.response
            values = class_values(response, columns)
            if values is None:
                msg = f"the table has no column {response!r}, the response of this run."
                raise typer.BadParameter(msg)
            extras = _events(posterior, columns, event)
            posterior.report(path, columns, values, title=title, **extras)
    typer.echo(f"Report: {path}")


def _events(posterior: "Posterior", columns: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The events of a table of survival times."""
    if name is None and "event" in posterior.record.given:
        msg = "give --event, the column that is 1 where the event was seen."
        raise typer.BadParameter(msg)
    if name is not None and name not in columns:
        msg = f"the table has no column {name!r}. Its columns: {', '.join(columns)}."
        raise typer.BadParameter(msg)
    return {} if name is None else {"event": columns[name]}
