"""Build the problem that chains work on: engine, model prior, grammar of features, limits."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dbrm.data import AbstractRows, Block, Table
from dbrm.errors import DBRMError, InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.evidence import (
    AbstractEngine,
    AbstractFamily,
    AbstractOutOfCoreEngine,
    Jeffreys,
    JointEngine,
    ShortCoefficients,
    add_latent,
    bind,
    build_engine,
    build_out_of_core,
    columns_of,
    find_family,
    resolve_prior,
)
from dbrm.evidence.links import find_link
from dbrm.evolution import (
    ALGORITHMS,
    FeatureColumns,
    Filtration,
    Grammar,
    LatentTerms,
    Operators,
    Problem,
    resolve_strategy,
)
from dbrm.evolution.constraints import ConstrainedPopulation, Constraints
from dbrm.evolution.information import InformationRule, has_long_tail
from dbrm.evolution.units import Units
from dbrm.features import (
    Feature,
    NestingRule,
    Transform,
    TwoValued,
    covariate,
    evaluate,
    fit_knots,
    get_transform,
    parse_feature,
    resolve_transforms,
)
from dbrm.features.numbers import numbers_of_a_decade
from dbrm.priors import ModelPrior, WithCosts, WithLongNumbers, resolve_model_prior
from dbrm.run.budget import DefaultSteps, build_part, search_budget
from dbrm.run.inputs import RunInputs
from dbrm.run.settings import Settings
from dbrm.status import Status

__all__ = ["build_problem"]

# Default limits on one feature, and on a law that the sweep finds by inverting functions.
_MAX_DEPTH, _MAX_COMPLEXITY, _LAW_DEPTH, _LAW_COMPLEXITY = 5, 10, 8, 20
# Prior probability that a law has no intercept: of 152 that were looked at 139 have none.
_ZERO_INTERCEPT = 0.9
# And that one of its coefficients is a short number.
_SHORT_COEFFICIENTS = 0.5
# Where features settle, a model has at most so many times the features of a population, and a
# feature for every so many rows.
_MOST_PLACES, _ROWS = 4, 6


def build_problem(inputs: RunInputs) -> Problem:
    """Put data, evidence, priors and limits together into what the chains work on."""
    whole, searched = inputs.table, inputs.recipe.searched
    inputs = replace(inputs, table=whole.only(searched))
    table, rows = inputs.table, inputs.rows
    seen = inputs.observations
    family = find_family(inputs.settings.family)
    family = family.adapted_to(table.values, seen.response, seen.weights)
    long_tail = _has_long_tail(inputs, family)
    settings = inputs.settings.resolved(
        family, inputs.observations.n, long_tail=long_tail, in_blocks=rows is not None
    )
    # The defaults or the preset have filled in what the user left open.
    assert settings.transforms is not None
    transforms = resolve_transforms(settings.transforms)
    always = _read_features("always", settings.always, table, transforms)
    start = _read_features("start", settings.start, table, transforms)
    excluded = _read_features("exclude", settings.exclude, table, transforms)
    model_prior = _model_prior(settings, inputs, n_transforms=len(transforms))
    latent = _latent(settings, table, model_prior)
    engine = _engine(settings, inputs, family, always, latent)
    problem = Problem(
        table=table,
        engine=engine,
        model_prior=model_prior,
        grammar=Grammar(
            transforms=tuple(g for g in transforms if not g.free_knot),
            knots=tuple(g for g in transforms if g.free_knot),
            operators=build_part("operators", Operators, settings.operators),
            adaptive=settings.adaptive_operators,
            **_feature_limits(settings),
            max_projection=settings.max_projection,
            excluded=frozenset(feature.key for feature in excluded),
            units=None if settings.units is None else Units.parse(settings.units, table.names),
            two_valued=_two_valued(table, rows),
            nesting=_nesting(settings, transforms),
            projection=resolve_strategy(
                settings.projection, as_published=settings.preset is not None
            ),
        ),
        filtration=build_part("filtration", Filtration, settings.filtration),
        budget=search_budget(settings, _default_steps(settings, family, latent, rows)),
        max_model_size=settings.population_size,
        always=always,
        keep=_keep(settings, table),
        pool=start,
        heredity=settings.heredity,
        latent=latent,
        groups=_groups(settings, table, inputs.recipe.factors, always),
        out_of_core=None if rows is None else _all_rows_engine(inputs, engine, rows, always),
        subsampled=settings.subsample is not None,
        # The presets walk through populations as the paper did.
        exact_populations=settings.preset is None,
        # The paper has no such rule.
        constraints=_constraints(settings, table, transforms, always, engine),
        information=None
        if settings.preset
        else InformationRule.of(engine, sampled=rows is not None),
        remainder=bool(settings.remainder) and settings.traits.engineers,
        estimate_unvisited=bool(settings.estimate_unvisited)
        and settings.traits.engineers
        and settings.merge == "union",
        whole=whole,
    )
    completed = tuple(
        (other, _engine(settings, replace(inputs, table=other), family, always, latent))
        for other in inputs.completed
    )
    problem = replace(problem, completed=completed)
    return replace(problem, max_model_size=_max_model_size(settings, problem))


def _max_model_size(settings: Settings, problem: Problem) -> int:
    """The limit on the size of models: more than a population where features settle."""
    size = settings.population_size
    if settings.max_model_size is not None or not settings.traits.settles:
        return settings.max_model_size or size
    larger = replace(problem, max_model_size=min(_MOST_PLACES * size, problem.n_rows // _ROWS))
    return larger.max_model_size if larger.settles else size


def _feature_limits(settings: Settings) -> dict[str, int]:
    """Limits on features, and on laws, which may be longer unless the user says otherwise."""
    depth, complexity = settings.max_depth, settings.max_complexity
    return {
        "max_depth": _MAX_DEPTH if depth is None else depth,
        "max_complexity": _MAX_COMPLEXITY if complexity is None else complexity,
        "law_depth": _LAW_DEPTH if depth is None else depth,
        "law_complexity": _LAW_COMPLEXITY if complexity is None else complexity,
    }


def _has_long_tail(inputs: RunInputs, family: AbstractFamily) -> bool:
    """Whether a handful of rows decide about a Gaussian response under the identity link."""
    link, seen = inputs.settings.link, inputs.observations
    exact = family.exact_link is not None
    if link is not None:
        exact = find_link(link).name == family.exact_link
    return exact and has_long_tail(seen.response, seen.weights)


def _model_prior(settings: Settings, inputs: RunInputs, *, n_transforms: int) -> ModelPrior:
    assert settings.penalty is not None
    prior = resolve_model_prior(
        settings.penalty,
        n=inputs.observations.n,
        n_covariates=inputs.table.n_columns,
        n_transforms=n_transforms if settings.traits.engineers else 0,
    )
    strategy = resolve_strategy(settings.projection)
    if settings.penalty == "adaptive" and not strategy.integrated:
        # Weights that are drawn at random have all digits, whatever they are worth.
        prior = WithLongNumbers(prior)
    return WithCosts(prior, settings.costs) if settings.costs else prior


def _engine(
    settings: Settings,
    inputs: RunInputs,
    family: AbstractFamily,
    always: tuple[Feature, ...],
    latent: LatentTerms,
) -> AbstractEngine:
    """The engine that evaluates models on the table."""
    table, observations = inputs.table, inputs.observations
    assert settings.prior is not None
    prior = resolve_prior(settings.prior)
    if settings.preset is not None and isinstance(prior, Jeffreys):
        # The intervals of the paper.
        prior = replace(prior, degrees_of_freedom="n")
    always_columns = evaluate(always, table)[0] if always else None
    nested = bool(latent.effects) or settings.has_special_terms
    # On a device the rows of which this is a sample are evaluated, unless the sample is searched.
    is_sample = inputs.rows is not None and settings.subsample is None
    engine = build_engine(
        observations,
        prior,
        family=family,
        link=settings.link,
        always=always_columns,
        as_published=settings.preset == "paper_code",
        evidence=settings.evidence,
        device="cpu" if settings.preset or nested or is_sample else settings.device,
        zero_intercept=_of_laws("zero_intercept", _ZERO_INTERCEPT, settings, inputs, family),
        short_coefficients=_short_coefficients(settings, inputs, family),
    )
    if engine.log_evidence(np.empty((table.n_rows, 0)))[0] == -np.inf:
        msg = (
            f"There are too few rows, n_samples={table.n_rows}: an intercept and {len(always)} "
            f"always-in columns leave no room for an error in {observations.n:g} observations. "
            "Every model would fit perfectly."
        )
        raise InvalidDataError(msg)
    if not nested:
        return engine
    return add_latent(
        engine,
        observations,
        prior,
        latent.effects,
        family=family,
        link=settings.link,
        always=always_columns,
        most=latent.most,
        effect_log_prior=latent.log_prior,
        always_priors=settings.always_priors,
        intercept=settings.intercept,
    )


def _short_coefficients(
    settings: Settings, inputs: RunInputs, family: AbstractFamily
) -> ShortCoefficients | None:
    """The prior of the digits of coefficients; none where none is more plausible than others."""
    name = "short_coefficients"
    probability = _of_laws(name, _SHORT_COEFFICIENTS, settings, inputs, family)
    return ShortCoefficients(probability, *numbers_of_a_decade()) if probability else None


def _of_laws(
    name: str, default: float, settings: Settings, inputs: RunInputs, family: AbstractFamily
) -> float:
    """A prior probability of laws, zero by default where their functions are not on offer."""
    link = find_link(settings.link or family.default_link).name
    reasons = {
        f"preset={settings.preset!r}": settings.preset is not None,
        f"family={family.name!r} with the link {link!r}": link != family.exact_link,
        f"algorithm={settings.algorithm!r}": settings.algorithm != "gmjmcmc",
        "latent=": bool(settings.latent_effects),
        "always= with priors": any(settings.always_priors),
        "intercept=False": not settings.intercept,
        "evidence=": settings.evidence is not None,
        "scale=": settings.scale is not None,
        "rows out of core": inputs.rows is not None,
    }
    found = [reason for reason, holds in reasons.items() if holds]
    given: float | None = getattr(settings, name)
    if given is None:
        assert settings.transforms is not None
        offered = {transform.name for transform in resolve_transforms(settings.transforms)}
        laws = {transform.name for transform in resolve_transforms("laws")}
        return 0.0 if found or not laws <= offered else default
    if given and found:
        msg = (
            f"{name}= is for the search by GMJMCMC of formulas of a Gaussian response in "
            f"memory, and not for {found[0]}; got {name}={given!r}. Leave it out."
        )
        raise InvalidSettingError(msg)
    return given


def _all_rows_engine(
    inputs: RunInputs, engine: AbstractEngine, rows: AbstractRows, always: tuple[Feature, ...]
) -> AbstractOutOfCoreEngine:
    """The engine for all rows of data out of core; `engine` is that of the subsample."""
    table = inputs.table
    columns = {name: table.column(name) for name in table.names}
    sample = Block(0, table.n_rows, columns, inputs.observations.given)
    device = "cpu" if inputs.settings.preset else inputs.settings.device
    return build_out_of_core(engine, rows, sample, FeatureColumns(always), device=device)


def _two_valued(table: Table, rows: AbstractRows | None) -> TwoValued:
    """The covariates of two values; of tall data only zeros and ones are sure."""
    if rows is None:
        return TwoValued.of(table.names, table.values)
    binary = zip(table.names, rows.binary, strict=True)
    return TwoValued([name for name, is_so in binary if is_so])


def _default_steps(
    settings: Settings, family: AbstractFamily, latent: LatentTerms, rows: AbstractRows | None
) -> DefaultSteps:
    if latent.effects or settings.has_special_terms:
        return DefaultSteps.LATENT
    expanded = rows is not None and settings.subsample is None
    exact = family.exact_link is not None or expanded
    return DefaultSteps.EXACT if exact else DefaultSteps.LAPLACE


def _latent(settings: Settings, table: Table, prior: ModelPrior) -> LatentTerms:
    """The latent effects bound to the rows, with their prior."""
    effects = tuple(
        bind(effect, columns_of(effect, table.index_columns), table.n_rows)
        for effect in settings.latent_effects
    )
    most = len(effects) if settings.max_latent is None else settings.max_latent
    by_effect = settings.latent_charge == "effect"
    terms = [
        prior.latent_log_prior(1 if by_effect else len(bound.effect.hyperparameters))
        for bound in effects
    ]
    return LatentTerms(effects, np.array(terms, dtype=np.float64), most)


def _nesting(settings: Settings, transforms: tuple[Transform, ...]) -> NestingRule | None:
    given = settings.forbid_nested
    if given == "all":
        return NestingRule(None)
    names = (given,) if isinstance(given, str) else tuple(given)
    known = {g.name.partition("[")[0] for g in transforms}
    for name in names:
        if get_transform(name).name.partition("[")[0] not in known:
            msg = (
                f"forbid_nested names {name!r}, which is not among the functions of this run: "
                f"{', '.join(sorted(known))}."
            )
            raise InvalidSettingError(msg)
    return NestingRule.of(get_transform(name).name for name in names) if names else None


def _constraints(
    settings: Settings,
    table: Table,
    transforms: tuple[Transform, ...],
    always: tuple[Feature, ...],
    engine: AbstractEngine,
) -> Constraints | None:
    """What models must obey; the one without free features does."""
    monotone, signs = settings.monotone or {}, settings.signs or {}
    if not (monotone or signs):
        return None
    if isinstance(engine, JointEngine) and engine.joint.n_predictors > 1:
        msg = (
            f"monotone= and signs= need one coefficient for each feature; family="
            f"{engine.family.name!r} has one for each class. family='ordinal' has one."
        )
        raise InvalidSettingError(msg)
    features = _read_features("signs", tuple(signs), table, transforms)
    # Under the inverse link the mean falls where the linear predictor rises.
    upwards = -1 if engine.likelihood().link.name == "inverse" else 1
    found = Constraints(
        table,
        {
            _increasing_columns(name, table): upwards if way == "increasing" else -upwards
            for name, way in monotone.items()
        },
        {
            feature.key: 1 if sign == "positive" else -1
            for feature, sign in zip(features, signs.values(), strict=True)
        },
    )
    alone = ConstrainedPopulation(
        engine.prepare(nothing := np.empty((table.n_rows, 0))),
        engine,
        nothing,
        found.terms(always, evaluate(always, table)[0]),
        found.terms((), nothing),
    )
    if alone.evaluate(np.zeros(alone.size, dtype=np.bool_))[1] is Status.CONSTRAINED:
        msg = (
            "The model of the terms in always= alone does not obey signs= or monotone=, and every "
            "model contains them. Leave a term out of always=, or the constraint."
        )
        raise InvalidSettingError(msg)
    return found


def _increasing_columns(name: str, table: Table) -> tuple[str, ...]:
    """Columns that increase with a covariate: itself, its logarithm, its levels in order."""
    made = (f"log({name})", f"log({name} + ", f"{name}[>=")
    found = [column for column in table.names if column == name or column.startswith(made)]
    if found:
        return tuple(found)
    if any(column.startswith(f"{name}[") for column in table.names):
        msg = (
            f"monotone names {name!r}, a category whose levels have no order. Make it an ordered "
            "categorical, or name one of its columns."
        )
        raise InvalidSettingError(msg)
    return _check_columns("monotone", name, table)


def _groups(
    settings: Settings, table: Table, factors: Sequence[tuple[str, ...]], always: Sequence[Feature]
) -> tuple[tuple[Feature, ...], ...]:
    """Columns that models contain together, without those that every model contains."""
    if settings.groups is None:
        return ()
    given = factors if settings.groups == "factors" else settings.groups
    if isinstance(given, str) or any(isinstance(group, str) for group in given):
        msg = f"groups must be 'factors' or lists of column names; got groups={given!r}."
        raise InvalidSettingError(msg)
    if not settings.traits.takes_groups:
        allowed = " or ".join(repr(name) for name, a in ALGORITHMS.items() if a.takes_groups)
        msg = f"groups= is not for algorithm={settings.algorithm!r}; choose {allowed}."
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
    if largest > settings.population_size and settings.traits.engineers:
        msg = (
            f"A group of {largest} columns does not fit into a population of "
            f"{settings.population_size}: set population_size={largest + 5} or more."
        )
        raise InvalidSettingError(msg)
    return tuple(group for group in found if len(group) > 1)


def _read_features(
    setting: str,
    given: str | Iterable[str | Feature],
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


def _keep(settings: Settings, table: Table) -> tuple[str, ...]:
    keep = _check_columns("keep", settings.keep, table)
    if len(keep) >= settings.population_size:
        msg = (
            f"keep names {len(keep)} covariates, which leaves no place for others in populations "
            f"of {settings.population_size}. Keep fewer, or raise population_size."
        )
        raise InvalidSettingError(msg)
    return keep
