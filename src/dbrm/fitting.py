"""`dbrm.fit`, `dbrm.log_evidence`, `dbrm.enumerate_models`: the package in one call each."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm._version import __version__
from dbrm.chains import Progress, run_chains, seed_sequence
from dbrm.data import check_vector, learn_recipe
from dbrm.errors import DBRMWarning, InvalidDataError
from dbrm.evidence import build_engine, find_family, resolve_prior
from dbrm.evolution import ChainResult, Problem, run_enumeration, sweep_features
from dbrm.formula import Reading, read_formula
from dbrm.posing import merge_repeats, observe, pose
from dbrm.posterior import LiveSource, Posterior, RunRecord, diagnose, merge_chains
from dbrm.search import log_sum_exp
from dbrm.settings import Settings

__all__ = ["enumerate_models", "fit", "log_evidence"]

# Enumeration: most columns (exact, by Laplace); models further than this from the best are
# left out; most kept.
_MOST_COLUMNS = {True: 25, False: 16}
_WIDE_WINDOW = 60.0
_MOST_MODELS = 1_000_000


def fit(
    X: TableLike,
    y: Any = None,
    *,
    data: TableLike | None = None,
    sample_weight: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
    **settings: Any,
) -> Posterior:
    """Search for readable nonlinear models of a response and weigh them.

    Parameters
    ----------
    X
        Covariates: a NumPy array or a pandas, polars or pyarrow table. Or a formula such as
        ``"y ~ x1 + C(site) + offset(log(area))"``; predictions then take tables like `data`.
    y
        The response, unless a formula names it.
    data
        The table of a formula's columns.
    sample_weight
        Frequency weights; a weight of two is the row twice. Equal rows are merged, so that
        the search is the same as well.
    offset
        Known part of the linear predictor.
    trials
        Numbers of trials of a binomial response.
    exposure
        Observation times or areas of counts.
    **settings
        See `dbrm.Settings`.

    Returns
    -------
    Posterior
        Features and models with their probabilities; predictions.

    Examples
    --------
    >>> import dbrm
    >>> planets = dbrm.datasets.simulate_planets(seed=1)
    >>> posterior = dbrm.fit(
    ...     planets.drop(columns="SemiMajorAxisAU"),
    ...     planets["SemiMajorAxisAU"],
    ...     transforms=["troot"],
    ...     random_state=1,
    ... )
    >>> round(posterior.inclusion("troot(PeriodDays*PeriodDays*HostStarMassSlrMass)"))
    1
    """
    chosen = Settings.from_options(settings)
    started = perf_counter()
    read = _read(X, y, data, chosen)
    extras = {
        "sample_weight": sample_weight,
        "offset": _add(read.offset, offset),
        "trials": trials,
        "exposure": exposure,
    }
    observations = observe(read.response, read.table.n_rows, **extras)
    table = read.table
    if chosen.evidence is None:
        table, observations = merge_repeats(table, observations)
    problem = pose(table, observations, chosen)
    run = _enumerate if chosen.algorithm == "enumerate" else _search
    problem, results = run(problem, chosen)
    merged = merge_chains(results, problem, chosen.merge)
    diagnostics = diagnose(merged, [result.draws for result in results])
    record = replace(
        _record(results, chosen, read.name, perf_counter() - started),
        formula=X if isinstance(X, str) else "",
        given=tuple(name for name, value in extras.items() if value is not None),
        n_rows=read.table.n_rows,
    )
    return Posterior(merged, LiveSource(problem), read.recipe, record, diagnostics)


def _read(X: TableLike, y: Any, data: TableLike | None, chosen: Settings) -> Reading:
    """Table and response, from each other or from a formula."""
    if isinstance(X, str):
        if y is not None:
            msg = "A formula names the response: pass data=, and leave y out."
            raise InvalidDataError(msg)
        return read_formula(X, data, scale=chosen.scale, missing=chosen.missing)
    if data is not None:
        msg = "data= belongs to a formula, as in dbrm.fit('y ~ x', data=table)."
        raise InvalidDataError(msg)
    recipe, table = learn_recipe(X, scale=chosen.scale, missing=chosen.missing)
    return Reading(recipe, table, y, getattr(y, "name", None) or "y", None)


def _add(own: Column | None, offset: Any) -> Any:
    """The offset of a formula plus the one given beside it."""
    if own is None or offset is None:
        return offset if own is None else own
    return own + check_vector(offset, own.size, name="offset")


def _search(problem: Problem, chosen: Settings) -> tuple[Problem, list[ChainResult]]:
    """Run the chains, after a look at all simple features."""
    if chosen.algorithm != "mjmcmc":
        problem = replace(problem, pool=problem.pool + tuple(sweep_features(problem, chosen.sweep)))
    with _progress_bar(chosen) as progress:
        results = run_chains(
            problem,
            chosen.n_chains,
            seed_sequence(chosen.random_state),
            algorithm=chosen.algorithm,
            n_jobs=chosen.n_jobs,
            progress=progress,
        )
    return problem, results


def _enumerate(problem: Problem, chosen: Settings) -> tuple[Problem, list[ChainResult]]:
    """Visit all subsets of the covariates."""
    n_columns = len(problem.free_names)
    most = _MOST_COLUMNS[find_family(chosen.family).name == "gaussian"]
    if n_columns > most:
        msg = (
            f"algorithm='enumerate' visits all subsets of the columns and takes at most {most} "
            f"for this family; X has {n_columns}. Choose another algorithm to search instead."
        )
        raise InvalidDataError(msg)
    effort = replace(problem.effort, window=_WIDE_WINDOW, max_models=_MOST_MODELS)
    if chosen.max_model_size is None:
        problem = replace(problem, max_model_size=n_columns)
    problem = replace(problem, effort=effort)
    with _enumeration_bar(chosen) as report:
        return problem, [run_enumeration(problem, report)]


def log_evidence(
    X: TableLike,
    y: Any,
    *,
    family: Any = "gaussian",
    link: Any = None,
    prior: Any = "jeffreys",
    sample_weight: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
    **prior_options: Any,
) -> float:
    r"""Log evidence of the model with an intercept and exactly these columns.

    Parameters
    ----------
    family, link
        As for `fit`.
    prior, **prior_options
        The coefficient prior by name with its options, for example
        ``prior="jeffreys", constant="unit_information"``, or an object.

    Returns
    -------
    float
        :math:`\log p(y | M)`; ``-inf`` if the columns are linearly dependent or the prior
        is undefined for a model of this size.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DBRMWarning)
        recipe, table = learn_recipe(X)
    observations = observe(
        y,
        table.n_rows,
        sample_weight=sample_weight,
        offset=offset,
        trials=trials,
        exposure=exposure,
    )
    resolved = resolve_prior(prior, **prior_options)
    engine = build_engine(observations, resolved, family=family, link=link)
    return -np.inf if recipe.dropped else engine.log_evidence(table.values)[0]


def enumerate_models(
    X: TableLike, y: Any = None, *, penalty: Any = "uniform", **options: Any
) -> Posterior:
    """Exact posterior over all subsets of the columns, without feature engineering.

    Parameters
    ----------
    penalty, **options
        As for `fit`, with a uniform prior over models unless asked otherwise. The settings
        of the search have no meaning here; ``progress=True`` shows a bar.
    """
    return fit(X, y, penalty=penalty, algorithm="enumerate", **options)


def _record(
    results: list[ChainResult], chosen: Settings, response: Any, seconds: float
) -> RunRecord:
    status_counts: Counter[int] = Counter()
    rejections: Counter[str] = Counter()
    proposed: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for result in results:
        status_counts.update(result.status_counts)
        rejections.update(result.rejections)
        for name, (tried, passed) in result.moves.items():
            proposed[name] += tried
            accepted[name] += passed
    return RunRecord(
        response=str(response) if response else "y",
        algorithm=chosen.algorithm,
        uncertainty=chosen.uncertainty or ("laplace" if chosen.preset is None else "plugin"),
        n_chains=len(results),
        n_evaluated=sum(result.n_evaluated for result in results),
        seconds=seconds,
        seed=chosen.random_state if isinstance(chosen.random_state, int) else None,
        status_counts=dict(status_counts),
        rejections=dict(rejections),
        moves={name: (count, accepted[name]) for name, count in proposed.items()},
        chain_log_mass=tuple(
            log_sum_exp(result.models.log_evidence + result.models.log_prior) for result in results
        ),
        settings=chosen.described(),
        version=__version__,
    )


@contextmanager
def _progress_bar(chosen: Settings) -> Iterator[Progress | None]:
    if not chosen.progress:
        yield None
        return
    from dbrm.report import progress_bar

    with progress_bar(chosen.n_chains, chosen.n_populations, chosen.time_budget) as update:
        yield update


@contextmanager
def _enumeration_bar(chosen: Settings) -> Iterator[Callable[[int, int], None] | None]:
    if not chosen.progress:
        yield None
        return
    from dbrm.report import counting_bar

    with counting_bar("models") as update:
        yield update
