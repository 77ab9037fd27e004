"""``dbrm fit``: from a table in a file to the models behind it."""

from collections.abc import Callable
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbrm.cli.check import print_check
from dbrm.cli.classes import read_classes
from dbrm.cli.console import Decimal, Encoding, Separator, find_column, show_errors
from dbrm.cli.saved import print_law, print_posterior
from dbrm.errors import DBRMError, Terminated

if TYPE_CHECKING:
    from dbrm.latent import Latent
    from dbrm.posterior import Posterior

__all__ = ["fit", "read_latent"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def fit(
    data: Annotated[
        Path | None, typer.Argument(help="Table: .csv, .tsv, .parquet, .arrow or .feather.")
    ] = None,
    response: Annotated[str | None, typer.Option(help="Column to explain.")] = None,
    formula: Annotated[
        str | None, typer.Option(help="In place of --response: 'y ~ x1 + C(site)'.")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help="Family of the response: gaussian, binomial, poisson, negative_binomial, gamma, "
            "student_t, beta, zero_inflated_poisson, ordinal, multinomial, cox or weibull."
        ),
    ] = None,
    transforms: Annotated[
        str | None, typer.Option(help="Functions or named sets, such as 'sin,troot' or smooth.")
    ] = None,
    laws: Annotated[
        bool,
        typer.Option(
            "--laws",
            help="Look for laws: functions of textbook formulas, which hold beyond the data, "
            "constants with intervals, and simpler formulas beside the best.",
        ),
    ] = False,
    units: Annotated[
        str | None, typer.Option(help="Units of columns: 'period=day,mass=kg'.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: 'id,name'.")] = None,
    offset: Annotated[str | None, typer.Option(help="Column of the offset.")] = None,
    trials: Annotated[str | None, typer.Option(help="Column of binomial trials.")] = None,
    exposure: Annotated[
        str | None, typer.Option(help="Column of exposures, such as years.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of frequency weights.")] = None,
    event: Annotated[
        str | None, typer.Option(help="Column of events, 1 or 0 (censored): --family cox.")
    ] = None,
    entry: Annotated[str | None, typer.Option(help="Column of entry times (survival).")] = None,
    strata: Annotated[
        str | None, typer.Option(help="Column of groups with their own baseline hazard.")
    ] = None,
    latent: Annotated[
        list[str] | None,
        typer.Option(help="Latent effect, such as 'RW1(time)' or '(dose | site)'."),
    ] = None,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Whether models have an intercept.")
    ] = True,
    link: Annotated[
        str | None, typer.Option(help="Link: identity, logit, probit, cloglog, log or inverse.")
    ] = None,
    prior: Annotated[str | None, typer.Option(help="Coefficient prior, such as hyper-g.")] = None,
    penalty: Annotated[
        str | None, typer.Option(help="Price of complexity: adaptive, bic, aic or nats per unit.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="The paper's model: paper_text or paper_code.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="gmjmcmc (default), rgmjmcmc, pool-gibbs, mjmcmc, enumerate.")
    ] = None,
    n_chains: Annotated[int | None, typer.Option(min=1, help="Independent chains.")] = None,
    n_populations: Annotated[
        int | None, typer.Option(min=1, help="Populations of each chain.")
    ] = None,
    time_budget: Annotated[
        str | None,
        typer.Option("--time", "--time-budget", help="End after about this time: 60s, 5m, 1h."),
    ] = None,
    subsample: Annotated[
        int | None,
        typer.Option(min=1000, help="Rows used in the search of a large file."),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="Missing values: indicator (fill, mark), impute, drop or error."),
    ] = None,
    unseen: Annotated[
        str | None, typer.Option(help="New levels in later rows: none-of-these or error.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed: the same seed gives the same run.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 for all cores.")] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, gpu (a graphics processor, by JAX) or auto.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder to save the state in, so that the run can be resumed."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Continue the run in this folder; nothing else is needed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Save the posterior, for show and predict.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the results as an HTML page.")] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="Check the table for mistakes and stop; --no-check: fit without a check.",
        ),
    ] = None,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show a progress bar; by default on a terminal."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Search for formulas that explain one column of a table.

    For example: dbrm fit houses.csv --response price --report houses.html

    Options that are left out have the defaults of dbrm.fit.
    """
    from dbrm import fitting
    from dbrm.data.files import read_file
    from dbrm.run.out_of_core import column_names_if_tall

    seconds = None if time_budget is None else _seconds(time_budget)
    bar: Any = progress if progress is not None else False if as_json else "auto"
    if resume is not None:
        if data is not None or response is not None or formula is not None:
            msg = (
                "--resume takes data and settings from the folder: leave DATA, --response and "
                "--formula out."
            )
            raise typer.BadParameter(msg)
        how: dict[str, Any] = {} if seconds is None else {"time_budget": seconds}
        with show_errors():
            posterior = _run(fitting.resume, resume, n_jobs=jobs, progress=bar, **how)
            _show(posterior, out, report, laws=laws, as_json=as_json)
        return
    if data is None or (response is None) == (formula is None):
        msg = (
            "give a table and --response, the column to explain, or --formula; or --resume and a "
            "folder."
        )
        raise typer.BadParameter(msg)
    with show_errors():
        # A file that is read in blocks has names of columns here, and no values.
        names = None if latent or formula else column_names_if_tall(data)
        columns: dict[str, Any] = {name: name for name in names or ()}
        if names is None:
            file = read_file(data, encoding=encoding, separator=separator, decimal=decimal)
            columns = file.columns
            for note in file.notes:
                typer.echo(note, err=True)
        target = response if formula is None else formula.partition("~")[0].strip().strip("`")
        assert target is not None
        if formula is None:
            find_column(columns, target)
        classes = None
        if names is None and target in columns:
            classes = read_classes(target, columns[target], family)
        if classes is not None:
            typer.echo(classes.message, err=True)
            family = classes.family
            if formula is None:
                del columns[target]
                target = classes.name
            columns[target] = classes.values
        if check:
            left_out = _listed(ignore)
            print_check(columns, (), target, family=family or "gaussian", ignore=left_out)
            return
        named = {"offset": offset, "trials": trials, "exposure": exposure, "sample_weight": weights}
        named |= {"event": event, "entry": entry, "strata": strata}
        rows = {
            argument: _take(columns, name) for argument, name in named.items() if name is not None
        }
        left_out = [name for name in _listed(ignore) if _take(columns, name) is not None]
        settings = {
            "family": family,
            "link": link,
            "intercept": None if intercept else False,
            "latent": read_latent(latent, columns) if latent else None,
            "transforms": _listed(transforms) or (["laws"] if laws else None),
            "extrapolate": "follow" if laws else None,
            "units": None if units is None else _units(units),
            "prior": prior,
            "penalty": _penalty(penalty),
            "preset": preset,
            "algorithm": algorithm,
            "n_chains": n_chains,
            "n_populations": n_populations,
            "time_budget": seconds,
            "subsample": subsample,
            "missing": missing,
            "unseen": unseen,
            "random_state": seed,
            "n_jobs": jobs,
            "device": device,
            "checkpoint": checkpoint,
            "check": check,
        }
        what: dict[str, Any] = {"X": formula, "data": columns}
        if formula is None:
            what = {"X": columns, "y": target}
            if names is not None:
                what = {"X": data, "y": target, "ignore": left_out}
        posterior = _run(
            fitting.fit,
            **what,
            **rows,
            progress=bar,
            **{name: value for name, value in settings.items() if value is not None},
        )
        _show(posterior, out, report, laws=laws, as_json=as_json)


def _run(search: Callable[..., "Posterior"], *arguments: Any, **settings: Any) -> "Posterior":
    """The result of a search; of one that SIGTERM ends, what it has found until then."""
    try:
        return search(*arguments, **settings)
    except Terminated as end:
        if end.posterior is None:
            raise
        posterior: Posterior = end.posterior
        return posterior


def _show(
    posterior: "Posterior", out: Path | None, report: Path | None, *, laws: bool, as_json: bool
) -> None:
    if out is not None:
        posterior.save(out)
    if report is not None:
        posterior.report(report)
    print_posterior(posterior, as_json=as_json)
    if laws and not as_json:
        print_law(posterior)
    ended = posterior.record.ended
    if ended in Signals.__members__:
        typer.echo(f"Interrupted ({ended}): this is what was found until then.", err=True)
        raise typer.Exit(128 + Signals[ended])


def _take(columns: dict[str, Any], name: str) -> Any:
    """A column, which is no covariate then."""
    column = find_column(columns, name)
    del columns[name]
    return column


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _units(text: str) -> dict[str, str]:
    """Units by column, from ``period=day,mass=kg``."""
    found = {}
    for part in _listed(text):
        column, sign, unit = part.partition("=")
        if not (column.strip() and sign and unit.strip()):
            msg = f"--units must be columns with their units, as period=day,mass=kg; got {part!r}."
            raise typer.BadParameter(msg)
        found[column.strip()] = unit.strip()
    return found


def _penalty(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _seconds(text: str) -> float:
    unit = _UNITS.get(text[-1:])
    try:
        seconds = float(text) if unit is None else float(text[:-1]) * unit
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        msg = f"--time must be a time such as 60s, 5m or 1h; got {text!r}."
        raise typer.BadParameter(msg)
    return seconds


def read_latent(texts: list[str], columns: dict[str, Any]) -> "list[Latent]":
    """Latent effects from their texts, over columns of the table."""
    from dbrm.evidence.latent import parse_effects

    effects: list[Latent] = []
    for text in texts:
        try:
            found = parse_effects(text)
        except DBRMError as error:
            msg = f"--latent {text!r}: {error}"
            raise typer.BadParameter(msg) from None
        for effect in found:
            for column in effect.columns:
                find_column(columns, column)
        effects += found
    return effects
