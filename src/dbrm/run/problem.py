"""From data and settings to a problem that chains can work on."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import inf
from typing import Any, TypeVar

import numpy as np

from dbrm._typing import Column
from dbrm.data import (
    AbstractRows,
    Block,
    Table,
    check_response,
    check_vector,
    check_weights,
    find_repeats,
)
from dbrm.errors import DBRMError, InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.evidence import (
    BoundEffect,
    Family,
    Jeffreys,
    Observations,
    add_latent,
    bind,
    build_engine,
    build_out_of_core,
    find_family,
    resolve_prior,
)
from dbrm.evolution import (
    FeatureColumns,
    Filtration,
    Grammar,
    LatentTerms,
    Operators,
    Problem,
    SearchBudget,
    Stop,
    resolve_strategy,
)
from dbrm.evolution.information import InformationRule
from dbrm.evolution.units import Units
from dbrm.features import (
    Feature,
    Transform,
    TwoValued,
    covariate,
    evaluate,
    fit_knots,
    parse_feature,
    resolve_transforms,
)
from dbrm.priors import ModelPrior, WithCosts, resolve_model_prior
from dbrm.run.settings import Settings
from dbrm.search import KernelMix, Mjmcmc, OptimiserMix
from dbrm.status import Status

__all__ = ["bind_effects", "merge_repeats", "observe", "pose"]

Part = TypeVar("Part", Operators, Filtration, Mjmcmc, KernelMix, OptimiserMix)

# Nats below the best within which models are kept that are compared on a subsample: its noise
# moves them by tens of nats.
_SUBSAMPLE_WINDOW = 100.0
# Of one model of a few features in a table, and of the work on it.
_BYTES_PER_MODEL = 200
# Steps per population that is not enumerated, and of the reversible samplers, by default.
_EXACT_STEPS, _LAPLACE_STEPS, _LATENT_STEPS, _REVERSIBLE_STEPS = 20_000, 500, 200, 1_000


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


def merge_repeats(table: Table, observations: Observations) -> tuple[Table, Observations]:
    """Merge equal rows into one with a weight, and leave out rows of weight zero.

    A weight of two then *is* the row twice: the search takes the same path. Without
    weights and without repeated rows nothing changes, not even the order. Rows at
    different places of a latent effect are different.
    """
    n_rows = table.n_rows
    weights = np.ones(n_rows) if observations.weights is None else observations.weights
    extras = {name: getattr(observations, name) for name in ("offset", "trials", "exposure")}
    given = {name: column for name, column in extras.items() if column is not None}
    places = [
        np.unique(p, return_inverse=True)[1].astype(float) for p in table.index_columns.values()
    ]
    found = find_repeats([*table.values.T, observations.response, *given.values(), *places])
    if found is None or (observations.weights is None and found[0].size == n_rows):
        return table, observations
    first, pattern = found
    totals: Column = np.bincount(pattern, weights=weights, minlength=first.size).astype(float)
    first, totals = first[totals > 0], totals[totals > 0]
    merged = Observations(
        response=observations.response[first],
        weights=None if np.all(totals == 1.0) else totals,
        **{name: column[first] for name, column in given.items()},
    )
    return table.take(first), merged


def pose(
    table: Table,
    observations: Observations,
    settings: Settings,
    factors: Sequence[tuple[str, ...]] = (),
    rows: AbstractRows | None = None,
) -> Problem:
    """Put data, evidence, priors and rules together; `factors` are the columns of each.

    With `rows`, the table and the observations are a sample that stands for them.
    """
    family = find_family(settings.family)
    chosen = settings.resolved(family.name, observations.n)
    # The preset has filled in what the user left open.
    assert chosen.prior is not None
    assert chosen.penalty is not None
    assert chosen.transforms is not None
    transforms = resolve_transforms(chosen.transforms)
    always = _read_features("always", chosen.always, table, transforms)
    start = _read_features("start", chosen.start, table, transforms)
    excluded = _read_features("exclude", chosen.exclude, table, transforms)
    engineers = chosen.algorithm not in ("mjmcmc", "enumerate")
    prior = resolve_model_prior(
        chosen.penalty,
        n=observations.n,
        n_covariates=table.n_columns,
        n_transforms=len(transforms) if engineers else 0,
    )
    coefficients = resolve_prior(chosen.prior)
    if chosen.preset is not None and isinstance(coefficients, Jeffreys):
        # The paper's own intervals.
        coefficients = replace(coefficients, degrees_of_freedom="n")
    always_columns = evaluate(always, table)[0] if always else None
    engine = build_engine(
        observations,
        coefficients,
        family=family,
        link=chosen.link,
        always=always_columns,
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
    model_prior = WithCosts(prior, chosen.costs) if chosen.costs else prior
    latent = _latent(chosen, table, model_prior)
    if latent.effects:
        engine = add_latent(
            engine,
            observations,
            coefficients,
            latent.effects,
            family=family,
            link=chosen.link,
            always=always_columns,
        )
    out_of_core = None
    if rows is not None:
        columns = {name: table.column(name) for name in table.names}
        sample = Block(0, table.n_rows, columns, observations.given)
        out_of_core = build_out_of_core(engine, rows, sample, FeatureColumns(always))
    size = chosen.population_size
    return Problem(
        table=table,
        engine=engine,
        model_prior=model_prior,
        grammar=Grammar(
            transforms=transforms,
            operators=_build("operators", Operators, chosen.operators),
            adaptive=chosen.adaptive_operators,
            max_depth=chosen.max_depth,
            max_complexity=chosen.max_complexity,
            max_projection=chosen.max_projection,
            excluded=frozenset(feature.key for feature in excluded),
            units=None if chosen.units is None else Units.parse(chosen.units, table.names),
            two_valued=_two_valued(table, rows),
            projection=resolve_strategy(chosen.projection, as_published=chosen.preset is not None),
        ),
        filtration=_build("filtration", Filtration, chosen.filtration),
        budget=_budget(chosen, _default_steps(chosen, family, latent, rows)),
        max_model_size=size if chosen.max_model_size is None else chosen.max_model_size,
        always=always,
        keep=_keep(chosen, table),
        pool=start,
        heredity=chosen.heredity,
        latent=latent,
        groups=_groups(chosen, table, factors, always),
        out_of_core=out_of_core,
        subsampled=chosen.subsample is not None,
        # The paper has no such rule.
        information=None
        if chosen.preset
        else InformationRule.of(engine, sampled=out_of_core is not None),
    )


def _two_valued(table: Table, rows: AbstractRows | None) -> TwoValued:
    """The covariates of two values; of tall data only zeros and ones are sure."""
    if rows is None:
        return TwoValued.of(table.names, table.values)
    binary = zip(table.names, rows.binary, strict=True)
    return TwoValued([name for name, is_so in binary if is_so])


def bind_effects(chosen: Settings, table: Table) -> tuple[BoundEffect, ...]:
    """The latent effects of the settings with their nodes in the rows."""
    return tuple(
        bind(
            effect,
            None if effect.column is None else table.index_columns[effect.column],
            table.n_rows,
        )
        for effect in chosen.latent_effects
    )


def _latent(chosen: Settings, table: Table, prior: ModelPrior) -> LatentTerms:
    """The latent effects bound to the rows, with their prior."""
    effects = bind_effects(chosen, table)
    most = len(effects) if chosen.max_latent is None else chosen.max_latent
    by_effect = chosen.latent_charge == "effect"
    terms = [
        prior.latent_log_prior(1 if by_effect else len(bound.effect.hyperparameters))
        for bound in effects
    ]
    return LatentTerms(effects, np.array(terms, dtype=np.float64), most)


def _groups(
    chosen: Settings, table: Table, factors: Sequence[tuple[str, ...]], always: Sequence[Feature]
) -> tuple[tuple[Feature, ...], ...]:
    """Columns that models contain together, without those that every model contains."""
    if chosen.groups is None:
        return ()
    given = factors if chosen.groups == "factors" else chosen.groups
    if isinstance(given, str) or any(isinstance(group, str) for group in given):
        msg = f"groups must be 'factors' or lists of column names; got groups={given!r}."
        raise InvalidSettingError(msg)
    if chosen.algorithm in ("rgmjmcmc", "pool-gibbs"):
        msg = f"groups= is not for algorithm={chosen.algorithm!r}; choose 'gmjmcmc' or 'mjmcmc'."
        raise InvalidSettingError(msg)
    members = [name for group in given for name in group]
    unknown = [name for name in members if name not in table]
    if unknown:
        msg = f"groups= names {unknown[0]!r}; columns are {', '.join(table.names)}."
        raise UnknownNameError(msg)
    if len(set(members)) < len(members):
        msg = f"A column can be in one group only; got groups={given!r}."
        raise InvalidSettingError(msg)
    found = [tuple(f for name in group if (f := covariate(name)) not in always) for group in given]
    largest = max((len(group) for group in found), default=0)
    if largest > chosen.population_size and chosen.algorithm == "gmjmcmc":
        msg = (
            f"A group of {largest} columns does not fit into a population of "
            f"{chosen.population_size}: set population_size={largest + 5} or more."
        )
        raise InvalidSettingError(msg)
    return tuple(group for group in found if len(group) > 1)


def _default_steps(
    chosen: Settings, family: Family, latent: LatentTerms, rows: AbstractRows | None
) -> int:
    """Steps per population: fewer, the longer an evaluation takes."""
    if latent.effects:
        return _LATENT_STEPS
    expanded = rows is not None and chosen.subsample is None
    return _EXACT_STEPS if family.name == "gaussian" or expanded else _LAPLACE_STEPS


def _budget(chosen: Settings, default_steps: int) -> SearchBudget:
    mjmcmc = _mjmcmc(chosen.mjmcmc)
    own = mjmcmc.n_steps if mjmcmc.n_steps != Mjmcmc().n_steps else None
    n_iter = chosen.n_iter or own or default_steps
    reversible = chosen.algorithm in ("rgmjmcmc", "pool-gibbs")
    per_chain, merged = _room(chosen)
    return SearchBudget(
        population_size=chosen.population_size,
        n_populations=chosen.n_populations,
        mjmcmc=replace(mjmcmc, n_steps=n_iter, max_kept=min(mjmcmc.max_kept, per_chain)),
        n_init=chosen.n_init or n_iter,
        n_final=chosen.n_final or (_REVERSIBLE_STEPS if reversible else n_iter),
        stop=Stop(
            seconds=chosen.time_budget or inf,
            evaluations=chosen.max_evaluations or inf,
            unique_models=_most_unique(chosen),
        ),
        max_models=per_chain,
        max_merged=merged,
        window=SearchBudget().window if chosen.subsample is None else _SUBSAMPLE_WINDOW,
        max_averaged=chosen.max_averaged,
    )


def _room(chosen: Settings) -> tuple[int, int]:
    """Models that a chain, and the posterior, may keep within the memory allowed.

    Half of it is for the chains, half for the posterior.
    """
    usual = SearchBudget()
    if chosen.max_memory is None:
        return usual.max_models, usual.max_merged
    models = int(chosen.max_memory * 1e6 / _BYTES_PER_MODEL / 2)
    return (
        max(min(models // chosen.n_chains, usual.max_models), 1),
        max(min(models, usual.max_merged), 1),
    )


def _most_unique(chosen: Settings) -> int | None:
    """Different models after which a chain ends."""
    limits = [] if chosen.max_unique is None else [chosen.max_unique]
    if chosen.max_models is not None:
        limits.append(-(-chosen.max_models // chosen.n_chains))
    return min(limits, default=None)


def _read_features(
    setting: str,
    given: str | Sequence[str | Feature],
    table: Table,
    transforms: tuple[Transform, ...],
) -> tuple[Feature, ...]:
    """Features given as text or as objects, with their knots, defined on every row."""
    listed = (given,) if isinstance(given, str | Feature) else tuple(given)
    features = []
    for item in listed:
        feature = item
        if isinstance(item, str) and item in table:
            feature = covariate(item)
        elif isinstance(item, str):
            try:
                feature = parse_feature(item, table.names, transforms=transforms)
            except DBRMError as error:
                msg = f"{setting} names {item!r}: {error}"
                raise type(error)(msg) from None
        if not isinstance(feature, Feature):
            msg = f"{setting} needs features as text or Feature objects; got {item!r}."
            raise InvalidSettingError(msg)
        feature = fit_knots(feature, table)
        status = evaluate([feature], table)[1][0]
        if status not in (Status.OK, Status.CONSTANT):
            msg = f"{setting} names {item!s}: {Status(status).meaning}."
            raise InvalidDataError(msg)
        features.append(feature)
    return tuple(features)


def _check_columns(setting: str, given: str | Sequence[str], table: Table) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if name not in table:
            columns = ", ".join(table.names)
            msg = f"{setting} names {name!r}, which is not a column. Columns: {columns}."
            raise UnknownNameError(msg)
    return names


def _keep(chosen: Settings, table: Table) -> tuple[str, ...]:
    keep = _check_columns("keep", chosen.keep, table)
    if len(keep) >= chosen.population_size:
        msg = (
            f"keep names {len(keep)} covariates, which leaves no place for others in populations "
            f"of {chosen.population_size}. Keep fewer, or raise population_size."
        )
        raise InvalidSettingError(msg)
    return keep


def _mjmcmc(given: Mjmcmc | Mapping[str, Any] | None) -> Mjmcmc:
    if isinstance(given, Mapping):
        given = dict(given)
        for name, kind in (("kernels", KernelMix), ("optimisers", OptimiserMix)):
            if name in given:
                given[name] = _build(name, kind, given[name])
    return _build("mjmcmc", Mjmcmc, given)


def _build(setting: str, kind: type[Part], given: Part | Mapping[str, Any] | None) -> Part:
    """An object of this kind, from itself, from its arguments, or with its defaults."""
    if isinstance(given, kind):
        return given
    known = [item.name for item in fields(kind)]
    given = {} if given is None else given
    if not isinstance(given, Mapping) or any(name not in known for name in given):
        msg = (
            f"{setting} must map {', '.join(known)} to values, or be a {kind.__name__}; "
            f"got {given!r}."
        )
        raise InvalidSettingError(msg)
    return kind(**given)
