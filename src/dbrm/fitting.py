"""`dbrm.fit`: from a table to a posterior, in one call."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from dbrm._typing import TableLike
from dbrm.chains import Progress, run_chains, seed_sequence
from dbrm.data import Table, check_response, check_vector, check_weights, learn_recipe
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.evidence import GaussianEngine, resolve_prior
from dbrm.evolution import (
    ChainResult,
    Effort,
    Filtration,
    Grammar,
    Operators,
    Problem,
    Stop,
    run_enumeration,
    sweep_features,
)
from dbrm.features import resolve_transforms
from dbrm.posterior import Posterior, RunRecord, diagnose, merge_chains
from dbrm.priors import resolve_model_prior
from dbrm.search import Mjmcmc, log_sum_exp
from dbrm.settings import Settings

__all__ = ["enumerate_models", "fit", "log_evidence"]

# Steps of the reversible samplers unless asked otherwise.
_REVERSIBLE_STEPS = 1_000
# Enumeration: most columns, models further than this from the best are left out, most kept.
_MOST_COLUMNS = 25
_WIDE_WINDOW = 60.0
_MOST_MODELS = 1_000_000


def fit(
    X: TableLike,
    y: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    **settings: Any,
) -> Posterior:
    """Search for readable nonlinear models of a response and weigh them.

    Parameters
    ----------
    X
        Covariates: a NumPy array or a pandas, polars or pyarrow table.
    y
        The response.
    sample_weight
        Frequency weights; a weight of two is the row twice.
    offset
        Known part of the linear predictor.
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
    recipe, table = learn_recipe(X, scale=chosen.scale, missing=chosen.missing)
    response = check_response(y, table.n_rows)
    problem = _pose(table, response, chosen, sample_weight=sample_weight, offset=offset)
    problem = replace(problem, pool=tuple(sweep_features(problem, chosen.sweep)))
    seed = seed_sequence(chosen.random_state)
    with _progress_bar(chosen) as progress:
        results = run_chains(
            problem,
            chosen.n_chains,
            seed,
            algorithm=chosen.algorithm,
            n_jobs=chosen.n_jobs,
            progress=progress,
        )
    merged = merge_chains(results, problem, chosen.merge)
    seconds = perf_counter() - started
    record = _record(
        results, chosen, seconds, algorithm=chosen.algorithm, response_name=getattr(y, "name", None)
    )
    diagnostics = diagnose(merged, [result.draws for result in results])
    return Posterior(merged, problem, recipe, record, diagnostics)


def log_evidence(
    X: TableLike,
    y: Any,
    *,
    prior: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    **prior_options: Any,
) -> float:
    r"""Log evidence of the model with an intercept and exactly these columns.

    Parameters
    ----------
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
    engine = GaussianEngine(
        response=check_response(y, table.n_rows),
        prior=resolve_prior("jeffreys" if prior is None else prior, **prior_options),
        weights=None if sample_weight is None else check_weights(sample_weight, table.n_rows),
        offset=None if offset is None else check_vector(offset, table.n_rows, name="offset"),
    )
    return -np.inf if recipe.dropped else engine.log_evidence(table.values)[0]


def enumerate_models(
    X: TableLike,
    y: Any,
    *,
    prior: Any = None,
    penalty: Any = "uniform",
    sample_weight: Any = None,
    offset: Any = None,
    **settings: Any,
) -> Posterior:
    """Exact posterior over all subsets of the columns, without feature engineering.

    Parameters
    ----------
    prior, penalty, **settings
        As for `fit`; the settings of the search have no meaning here.
    """
    started = perf_counter()
    chosen = Settings.from_options({"prior": prior, "penalty": penalty, **settings})
    recipe, table = learn_recipe(X, scale=chosen.scale, missing=chosen.missing)
    if table.n_columns > _MOST_COLUMNS:
        msg = (
            f"enumerate_models visits all subsets of the columns and takes at most "
            f"{_MOST_COLUMNS}; X has {table.n_columns}. Use dbrm.fit to search instead."
        )
        raise InvalidDataError(msg)
    chosen = replace(chosen, population_size=max(table.n_columns, 1))
    response = check_response(y, table.n_rows)
    problem = _pose(table, response, chosen, sample_weight=sample_weight, offset=offset)
    effort = replace(problem.effort, window=_WIDE_WINDOW, max_models=_MOST_MODELS)
    problem = replace(problem, effort=effort)
    results = [run_enumeration(problem)]
    merged = merge_chains(results, problem)
    seconds = perf_counter() - started
    record = _record(
        results, chosen, seconds, algorithm="enumerate", response_name=getattr(y, "name", None)
    )
    diagnostics = diagnose(merged, [result.draws for result in results])
    return Posterior(merged, problem, recipe, record, diagnostics)


def _pose(
    table: Table, response: Any, chosen: Settings, *, sample_weight: Any, offset: Any
) -> Problem:
    """Put data, evidence, priors and rules together."""
    weights = None if sample_weight is None else check_weights(sample_weight, table.n_rows)
    n = float(table.n_rows if weights is None else weights.sum())
    chosen = chosen.resolved("gaussian", n)
    # The preset has filled in what the user left open.
    assert chosen.prior is not None
    assert chosen.penalty is not None
    assert chosen.transforms is not None
    always = _check_always(chosen, table)
    engine = GaussianEngine(
        response=response,
        prior=resolve_prior(chosen.prior),
        weights=weights,
        always=np.column_stack([table.column(name) for name in always]) if always else None,
        offset=None if offset is None else check_vector(offset, table.n_rows, name="offset"),
    )
    if engine.log_evidence(np.empty((table.n_rows, 0)))[0] == -np.inf:
        msg = (
            f"There are too few rows: an intercept and {len(always)} always-in columns leave no "
            f"room for an error in {n:g} observations. Every model would fit perfectly."
        )
        raise InvalidDataError(msg)
    return Problem(
        table=table,
        engine=engine,
        model_prior=resolve_model_prior(chosen.penalty, n=n, n_covariates=table.n_columns),
        grammar=Grammar(
            transforms=resolve_transforms(chosen.transforms),
            operators=_operators(chosen.operators),
            max_depth=chosen.max_depth,
            max_complexity=chosen.max_complexity,
            max_projection=chosen.max_projection,
        ),
        filtration=Filtration(),
        effort=_effort(chosen),
        max_model_size=(
            chosen.population_size if chosen.max_model_size is None else chosen.max_model_size
        ),
        always=always,
    )


def _effort(chosen: Settings) -> Effort:
    reversible = chosen.algorithm in ("rgmjmcmc", "pool-gibbs")
    n_final = chosen.n_final or (_REVERSIBLE_STEPS if reversible else chosen.n_iter)
    return Effort(
        population_size=chosen.population_size,
        n_populations=chosen.n_populations,
        mjmcmc=Mjmcmc(n_steps=chosen.n_iter),
        n_init=chosen.n_init or chosen.n_iter,
        n_final=n_final,
        stop=Stop(seconds=chosen.time_budget or inf, unique_models=chosen.max_unique),
    )


def _check_always(chosen: Settings, table: Table) -> tuple[str, ...]:
    always = (chosen.always,) if isinstance(chosen.always, str) else tuple(chosen.always)
    for name in always:
        if name not in table:
            columns = ", ".join(table.names)
            msg = f"always names {name!r}, which is not a column. Columns: {columns}."
            raise UnknownNameError(msg)
    return always


def _operators(operators: Operators | Mapping[str, float] | None) -> Operators:
    if isinstance(operators, Operators):
        return operators
    try:
        return Operators(**(operators or {}))
    except TypeError:
        msg = (
            "operators must map mutation, crossover, modification, projection to weights; "
            f"got {operators!r}."
        )
        raise InvalidSettingError(msg) from None


def _record(
    results: list[ChainResult],
    chosen: Settings,
    seconds: float,
    *,
    algorithm: str,
    response_name: Any,
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
        response=str(response_name) if response_name else "y",
        algorithm=algorithm,
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
    )


@contextmanager
def _progress_bar(chosen: Settings) -> Iterator[Progress | None]:
    if not chosen.progress:
        yield None
        return
    from dbrm.report import progress_bar

    with progress_bar(chosen.n_chains, chosen.n_populations) as update:
        yield update
