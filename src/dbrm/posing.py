"""From data and settings to a problem that chains can work on."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from dbrm.data import Table, check_response, check_vector, check_weights
from dbrm.errors import InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.evidence import Observations, build_engine, find_family, resolve_prior
from dbrm.evolution import (
    Effort,
    Filtration,
    Grammar,
    Operators,
    Problem,
    Stop,
    resolve_strategy,
)
from dbrm.features import resolve_transforms
from dbrm.priors import resolve_model_prior
from dbrm.search import Mjmcmc
from dbrm.settings import Settings

__all__ = ["observe", "pose"]

# Steps per population that is not enumerated, and of the reversible samplers, by default.
_EXACT_STEPS, _LAPLACE_STEPS, _REVERSIBLE_STEPS = 20_000, 500, 1_000


def observe(
    y: Any,
    n_rows: int,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
) -> Observations:
    """Check the response and what belongs to its rows."""

    def vector(value: Any, name: str) -> Any:
        return None if value is None else check_vector(value, n_rows, name=name)

    return Observations(
        response=check_response(y, n_rows),
        weights=None if sample_weight is None else check_weights(sample_weight, n_rows),
        offset=vector(offset, "offset"),
        trials=vector(trials, "trials"),
        exposure=vector(exposure, "exposure"),
    )


def pose(table: Table, observations: Observations, settings: Settings) -> Problem:
    """Put data, evidence, priors and rules together."""
    family = find_family(settings.family)
    chosen = settings.resolved(family.name, observations.n)
    # The preset has filled in what the user left open.
    assert chosen.prior is not None
    assert chosen.penalty is not None
    assert chosen.transforms is not None
    always = _check_always(chosen, table)
    engine = build_engine(
        observations,
        resolve_prior(chosen.prior),
        family=family,
        link=chosen.link,
        always=np.column_stack([table.column(name) for name in always]) if always else None,
        as_published=chosen.preset == "paper_code",
        evidence=chosen.evidence,
    )
    if engine.log_evidence(np.empty((table.n_rows, 0)))[0] == -np.inf:
        msg = (
            f"There are too few rows, n_samples={table.n_rows}: an intercept and {len(always)} "
            f"always-in columns leave no room for an error in {observations.n:g} observations. "
            "Every model would fit perfectly."
        )
        raise InvalidDataError(msg)
    size = chosen.population_size
    return Problem(
        table=table,
        engine=engine,
        model_prior=resolve_model_prior(
            chosen.penalty, n=observations.n, n_covariates=table.n_columns
        ),
        grammar=Grammar(
            transforms=resolve_transforms(chosen.transforms),
            operators=_operators(chosen.operators),
            max_depth=chosen.max_depth,
            max_complexity=chosen.max_complexity,
            max_projection=chosen.max_projection,
            projection=resolve_strategy(chosen.projection, as_published=chosen.preset is not None),
        ),
        filtration=Filtration(),
        effort=_effort(chosen, exact=family.name == "gaussian"),
        max_model_size=size if chosen.max_model_size is None else chosen.max_model_size,
        always=always,
    )


def _effort(chosen: Settings, *, exact: bool) -> Effort:
    n_iter = chosen.n_iter or (_EXACT_STEPS if exact else _LAPLACE_STEPS)
    reversible = chosen.algorithm in ("rgmjmcmc", "pool-gibbs")
    return Effort(
        population_size=chosen.population_size,
        n_populations=chosen.n_populations,
        mjmcmc=Mjmcmc(n_steps=n_iter),
        n_init=chosen.n_init or n_iter,
        n_final=chosen.n_final or (_REVERSIBLE_STEPS if reversible else n_iter),
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
