"""``dbrm fit``: from a table in a file to the models behind it."""

from collections.abc import Callable
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbrm.cli.errors import told_to_the_user
from dbrm.cli.latent_text import read_latent
from dbrm.cli.show import print_posterior
from dbrm.errors import Terminated

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["fit"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def fit(
    data: Annotated[
        Path | None, typer.Argument(help="Table: .csv, .tsv, .parquet, .arrow or .feather.")
    ] = None,
    response: Annotated[str | None, typer.Option(help="Column to explain.")] = None,
    family: Annotated[
        str, typer.Option(help="Family of the response, such as binomial or poisson.")
    ] = "gaussian",
    transforms: Annotated[
        str | None, typer.Option(help="Functions or named sets, such as 'sin,troot' or smooth.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: 'id,name'.")] = None,
    offset: Annotated[str | None, typer.Option(help="Column of the known part.")] = None,
    trials: Annotated[str | None, typer.Option(help="Column of binomial trials.")] = None,
    exposure: Annotated[str | None, typer.Option(help="Column of times or areas.")] = None,
    weights: Annotated[str | None, typer.Option(help="Column of frequency weights.")] = None,
    latent: Annotated[
        list[str] | None,
        typer.Option(help="Latent effect, such as 'RW1(time)' or 'RandomIntercept(site)'."),
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="identity, logit, probit, cloglog, log or inverse.")
    ] = None,
    prior: Annotated[str | None, typer.Option(help="Prior of the coefficients.")] = None,
    penalty: Annotated[str | None, typer.Option(help="aic, bic, or nats per complexity.")] = None,
    preset: Annotated[str | None, typer.Option(help="paper_text or paper_code.")] = None,
    algorithm: Annotated[
        str, typer.Option(help="gmjmcmc, rgmjmcmc, pool-gibbs, mjmcmc or enumerate.")
    ] = "gmjmcmc",
    n_chains: Annotated[int, typer.Option(min=1, help="Independent chains.")] = 4,
    n_populations: Annotated[int, typer.Option(min=1, help="Populations of each chain.")] = 60,
    time_budget: Annotated[
        str | None, typer.Option(help="End after about this time: 60s, 5m, 1h.")
    ] = None,
    subsample: Annotated[
        int | None, typer.Option(min=1000, help="Rows compared in the search of tall data.")
    ] = None,
    missing: Annotated[str, typer.Option(help="Missing values: error or indicator.")] = "error",
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed; the same seed, the same run.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; -1 for all cores.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder in which the run survives its process.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder; nothing else is needed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Save the posterior, for show and predict.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the findings as an HTML page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Search for readable models of one column of a table."""
    from dbrm import fitting
    from dbrm.data.files import read_columns
    from dbrm.run.out_of_core import column_names_if_tall

    seconds = None if time_budget is None else _seconds(time_budget)
    if resume is not None:
        if data is not None or response is not None:
            msg = "--resume takes data and settings from the folder: leave DATA and --response out."
            raise typer.BadParameter(msg)
        how: dict[str, Any] = {} if seconds is None else {"time_budget": seconds}
        with told_to_the_user():
            posterior = _found(fitting.resume, resume, n_jobs=jobs, progress=not as_json, **how)
            _show(posterior, out, report, as_json=as_json)
        return
    if data is None or response is None:
        msg = "give a table and --response, the column to explain; or --resume and a folder."
        raise typer.BadParameter(msg)
    with told_to_the_user():
        # Of a file that is read in blocks columns are only named.
        names = None if latent else column_names_if_tall(data)
        columns = read_columns(data) if names is None else {name: name for name in names}
        y = _take(columns, response)
        named = {"offset": offset, "trials": trials, "exposure": exposure, "sample_weight": weights}
        rows = {
            argument: _take(columns, name) for argument, name in named.items() if name is not None
        }
        left_out = [name for name in _listed(ignore) if _take(columns, name) is not None]
        posterior = _found(
            fitting.fit,
            columns if names is None else data,
            y,
            **rows,
            ignore=() if names is None else left_out,
            family=family,
            latent=read_latent(latent, columns) if latent else (),
            subsample=subsample,
            link=link,
            prior=prior,
            preset=preset,
            algorithm=algorithm,
            transforms=_listed(transforms) or None,
            penalty=_penalty(penalty),
            n_chains=n_chains,
            n_populations=n_populations,
            time_budget=seconds,
            missing=missing,
            random_state=seed,
            n_jobs=jobs,
            progress=not as_json,
            checkpoint=checkpoint,
        )
        _show(posterior, out, report, as_json=as_json)


def _found(search: Callable[..., "Posterior"], *arguments: Any, **settings: Any) -> "Posterior":
    """What a search finds, also where SIGTERM ends it."""
    try:
        return search(*arguments, **settings)
    except Terminated as end:
        if end.posterior is None:
            raise
        found: Posterior = end.posterior
        return found


def _show(posterior: "Posterior", out: Path | None, report: Path | None, *, as_json: bool) -> None:
    if out is not None:
        posterior.save(out)
    if report is not None:
        posterior.report(report)
    print_posterior(posterior, as_json=as_json)
    ended = posterior.record.ended
    if ended in Signals.__members__:
        typer.echo(f"Interrupted ({ended}): this is what was found until then.", err=True)
        raise typer.Exit(128 + Signals[ended])


def _take(columns: dict[str, Any], name: str) -> Any:
    if name not in columns:
        listed = ", ".join(columns)
        msg = f"the table has no column {name!r}. Its columns: {listed}."
        raise typer.BadParameter(msg)
    return columns.pop(name)


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",") if part.strip()]


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
        msg = f"--time-budget must be a time such as 60s, 5m or 1h; got {text!r}."
        raise typer.BadParameter(msg)
    return seconds
