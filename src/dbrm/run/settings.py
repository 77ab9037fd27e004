"""The settings shared by `dbrm.fit`, the estimators and the command line, checked once.

A value of ``None`` leaves the choice to the preset (`Settings.resolved`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from os import PathLike
from typing import Any, Literal, Self, TypedDict, final

from dbrm.errors import InvalidSettingError, UnknownNameError, suggest
from dbrm.evidence import (
    AbstractFamily,
    CoefficientPrior,
    EvidenceFunction,
    JointFamily,
    Latent,
    Link,
    find_family,
)
from dbrm.evidence.latent import parse_effects
from dbrm.evolution import (
    ALGORITHMS,
    AbstractAlgorithm,
    AbstractStrategy,
    Filtration,
    Operators,
    find_algorithm,
    resolve_strategy,
)
from dbrm.features import Feature, Transform
from dbrm.posterior import MERGE_RULES
from dbrm.priors import ModelPrior
from dbrm.run.presets import PRESETS, preset_choices, transforms_of_preset
from dbrm.search import Mjmcmc

__all__ = ["N_CHAINS", "Settings", "SettingsOptions"]

#: Chains of a run, unless the user says otherwise.
N_CHAINS = 4

# Counts of at least one that may be left open.
_COUNTS = (
    "n_chains",
    "n_init",
    "n_iter",
    "n_final",
    "max_unique",
    "max_evaluations",
    "max_models",
    "max_averaged",
    "patience",
)


# What settings are called elsewhere.
_ELSEWHERE = {
    "seed": "random_state",
    "verbose": "progress",
    "weights": "sample_weight",
    "time": "time_budget",
    "timeout": "time_budget",
    "chains": "n_chains",
    "cores": "n_jobs",
    "jobs": "n_jobs",
    "functions": "transforms",
    "unary_operators": "transforms",
    "priors": "prior",
    "random_effects": "latent",
    "warmup": "n_init",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    r"""How to search, and under which priors.

    Parameters
    ----------
    family, link
        Distribution of the response and its link: gaussian, student_t, binomial, ordinal,
        multinomial, beta, poisson, negative_binomial, zero_inflated_poisson, gamma, cox, weibull
        or a `Family`, parameters in brackets as in ``"student_t(df=4)"``; identity, logit,
        probit, cloglog, log, inverse or a `Link`. ``None`` is the family's own link.
    prior
        Prior of the coefficients: a name, a mapping with ``"name"`` and options, or a
        `CoefficientPrior`. Without a preset ``"zellner-siow"`` for a Gaussian response,
        ``"normal"`` with variance one and ``standardised=True`` for a binary one, and
        ``"jeffreys"`` with the constant ``"unit_information"`` for others, and for a binary one
        whose rows are visited in blocks.
    penalty
        Prior of the model: ``"adaptive"`` (default without a preset), ``"aic"``, ``"bic"``,
        ``"multiplicity"``, :math:`-\log a` per unit of complexity, or a `ModelPrior`.
    transforms
        The nonlinear functions :math:`\mathcal{G}`: names, named sets, `Transform` objects.
    operators, adaptive_operators
        Weights of mutation, crossover, modification and projection; and whether they follow
        how often the features made by each operator reach the threshold of the filtration.
    max_depth, max_complexity
        Limits on one feature, :math:`D_{max}` and the largest :math:`c(F)`. By default 5 and 10; 8
        and 20 for the laws that `sweep_projections` finds by inverting functions.
    max_model_size
        Most features in one model, :math:`Q`. By default the population size; more, up to four
        times as many and one for every six rows, where features that are certain leave their
        places to others: with GMJMCMC and rows in memory, without latent effects, heredity or
        preset.
    projection, max_projection
        How the weights of projections are chosen: ``"optimize-then-transform"`` (1, default),
        ``"transform-then-optimize"`` (2), ``"all-layers"`` (3), ``"bayes"`` (4), by name or
        number, or a strategy object; and most inputs of one projection.
    sweep
        Before the search every feature up to this complexity is tested once, and the most
        promising form a pool that chains draw from. 0 turns this off (as in the paper).
    sweep_projections
        Whether the sweep also looks for laws of one term,
        :math:`F g(\alpha_0 + \sum_r \alpha_r F_r)`, alone or beside simple features, by inverting
        :math:`g` on a Gaussian response; they join the pool. By default it does wherever a
        transform can be inverted (powers, ``exp``, ``log_abs``), but not under the paper's presets
        and not before a search of fewer than five populations.
    population_size, n_populations
        Number of features in a population, and most populations per chain.
    patience
        A chain of populations ends when so many of them in a row hold no more mass than the best
        one before; ``None`` for all `n_populations`. Presets have no patience limit.
    algorithm
        ``"gmjmcmc"`` (default), ``"rgmjmcmc"`` and ``"pool-gibbs"`` (chains whose
        stationary distribution is the posterior), ``"mjmcmc"`` and ``"enumerate"`` (the given
        columns only).
    n_init, n_iter, n_final
        Steps of MJMCMC in the first, the middle and the last population
        (:math:`N_{init}, N_{expl}, N_{final}`), where populations are not searched exhaustively:
        more than 20 features, latent effects counted with them, or 18 for other than Gaussian
        responses; presets.
        `n_iter` defaults to 20,000 for Gaussian responses and tall data, 500 otherwise and 200
        with latent effects, the others to `n_iter`. For the reversible samplers `n_final` counts
        their steps (default 1,000).
    mjmcmc
        Markov chain within populations that are not enumerated: a `dbrm.search.Mjmcmc` or
        its arguments as a mapping, such as ``{"kernels": {"large_jump": 0.05}, "rate": 0.2}``.
        `n_iter`, where given, replaces its number of steps.
    filtration
        How features leave a population: a `dbrm.evolution.Filtration` or its arguments
        ``threshold``, ``deletion`` (:math:`P_{del}`) and ``floor`` as a mapping.
    keep
        Names of covariates that stay in every population, a subset of :math:`\mathcal{S}_0`.
        Theorem 1 of the paper then holds given them: the chain can reach all models of
        at most `population_size` minus ``len(keep)`` other features.
    max_unique, max_evaluations, time_budget
        End a chain after this number of different models or of evaluations, or the run after
        this number of seconds. The limits are checked between populations, and between the steps
        of samplers; the reversible samplers spend half of them on evolution, the sweep at most
        half of the time.
    max_models
        End the run after this number of different models: each chain after its share of them.
    max_memory
        Megabytes for the models that are kept; the least probable are dropped first, and
        ``Posterior.lost_mass`` is their mass. By default a chain keeps up to 100,000 models and
        the posterior up to 200,000.
    max_averaged
        Most models that predictions average over, the most probable first. By default as many
        as hold .9999 of the probability, at most 2,000 and fewer for many rows or classes;
        ``Posterior.averaged_share`` is the probability they hold.
    stop
        ``"agreement"``: end the run early when the chains agree. They are compared after every
        eighth of their populations (or steps), by the rules of `Posterior.diagnostics`.
    subsample
        Rows of tall data on which models are compared during the search (subsampling MCMC);
        reported models are evaluated on all rows. ``None``: all rows are used everywhere.
    n_chains, merge
        Independent chains: by default four, and four or eight more if only one of them has found
        the models that hold the mass (not under a preset or a limit on time or models). And how
        they are merged: ``"union"``, ``"mass"``, ``"uniform"``.
    always, exclude, start
        Features, as text or objects: those that every model contains, those that no model
        may contain (as such; they may be parts of others), and those to start from. A mapping
        ``always={"dose": (0, 1), "age": None}`` gives coefficients normal priors with this mean and
        standard deviation, and others the prior of all coefficients.
    intercept
        Whether models have an intercept; ``"y ~ 0 + x"`` is a formula without.
    zero_intercept
        Prior probability that a model of a Gaussian response has no intercept. The evidence of
        a set of features is the average over both; the fit shown, and predictions, are those of the
        more probable one. By default 0.9 where the functions of ``transforms="laws"`` are on
        offer, as most laws have no intercept, and 0 otherwise. For GMJMCMC and rows in memory.
    short_coefficients
        Prior probability that a coefficient of a Gaussian response is a short number, such as 2,
        0.5 or pi, whatever its sign and power of ten. The evidence of a set of features is the
        average over both; estimates are shown as they are. By default 0.5 where
        `zero_intercept` is 0.9, and 0 otherwise.
    costs
        Extra nats per use of a transform or covariate, by name.
    units
        Units of covariates, such as ``{"PeriodDays": "day"}``: sums then have terms of one
        dimension, and functions such as sin take pure numbers. Columns not named are pure
        numbers.
    monotone
        Covariates in which the mean response must not decrease, ``{"dose": "increasing"}``, or not
        increase: checked for every fitted model over the training range.
    signs
        Features whose coefficients must be ``"positive"`` or ``"negative"`` in the models that
        contain them.
    forbid_nested
        Functions of which none may stand inside another of them, ``["sin", "cos"]``; ``"all"`` for
        no function inside a function.
    heredity
        ``"strong"``: a product is in a model only if all of its factors are; ``"weak"``: if at
        least one is; ``None`` (default): no such rule. The factors are the different features
        multiplied; those in `always` count as present.
    groups
        ``"factors"`` keeps the levels of every factor together: a model contains all of their
        columns or none. Or lists of columns to be kept together. Products and functions of
        single columns are free; `max_depth` = 0 leaves them out. Not for ``"rgmjmcmc"`` and
        ``"pool-gibbs"``.
    scale
        ``None``, or ``"standard"``: numeric covariates have mean 0 and standard deviation 1.
    missing
        Missing values of covariates: ``"indicator"`` (default) fills them with the median of the
        training rows, and a column ``name_missing`` of zeros and ones marks them; a missing
        category is a level of its own. ``"error"`` (default under the presets) refuses them;
        ``"impute"`` draws missing numbers ten times, from
        regressions on the other columns and the response, and averages over the completed
        tables. ``"drop"`` leaves out training rows in which any value, or the response, is missing.
    unseen
        Levels in new rows that did not occur in training: ``"none-of-these"`` (default) gives
        them zeros in the columns of all levels, with a warning; ``"error"`` (default under the
        presets) refuses them.
    log_covariates
        Whether a covariate without negative values and with a long upper tail (skewness of at
        least 1, and less on the log scale) joins the table on the log scale, too: a column
        ``log(name)``, or ``log(name + shift)`` where some values are zero, which costs as much
        as any covariate. By default beside the default functions, but not
        if `transforms` or `units` are given, or a formula, and not under the presets.
    remainder
        Whether predictions of a Gaussian, binomial or Poisson response, or of several classes,
        average over models with and without a *remainder*: all covariates at once, each with a
        small effect, straight or bent, and products of two, beside the features of the formula.
        Formulas and probabilities of features are those without. By default so, but not under the
        presets.
    estimate_unvisited
        Whether the probability of formulas that no chain visited is estimated, by random walks
        among the features found, and counted in: ``posterior.unvisited``. By default so where the
        algorithm does not sample from the posterior itself, but not under the presets.
    check
        Whether to look at the data before the fit, and warn (`dbrm.errors.DataCheckWarning`) of
        what looks wrong: identifiers, dates, numbers as text, a response of another family.
        `dbrm.check` returns the same as a table.
    preset
        ``"paper_text"``, ``"paper_code"`` or ``None``.
    uncertainty
        How predictions of generalised linear models treat the coefficients and an unknown
        dispersion: ``"laplace"`` integrates over their posterior (default), ``"plugin"`` uses
        its mode (default under the presets, as the paper did).
    extrapolate
        How rows beyond the training range of a covariate are predicted: ``"hold"`` the covariate
        at the edge of its range (default), or ``"follow"`` the formula, as laws do (default
        under the presets). A model without functions and products always goes on linearly.
    evidence
        Your own function ``f(X, y) -> log evidence`` of a model's columns, in place of
        family and prior. The search is the same, but slower.
    latent, max_latent
        Latent Gaussian effects offered for selection beside the features, such as
        ``[dbrm.latent.AR1("time"), dbrm.latent.RandomIntercept("site")]``, and most of them in
        one model (:math:`R`; ``None`` for all). Texts are understood, too: ``"AR1(time)"``,
        ``"(dose | site)"``. The columns of positions and groups are no covariates, unless a
        formula, `always`, `keep` or `start` names them.
    latent_charge
        What the penalty charges a latent effect for: every ``"hyperparameter"`` (Sec. 2.4 of
        the paper; default), or once for the ``"effect"``, so that all effects are equally
        plausible (its Example 7 and its scripts; default under the presets).
    n_jobs, random_state
        As in scikit-learn: ``n_jobs=-1`` runs chains on all cores of this machine, with the same
        results; one at a time by default.
    progress
        Whether to show a bar with the best formula so far: ``"auto"`` (default) on a terminal and
        in a notebook, but not in worker processes or where standard error goes to a file.
    device
        Where models other than Gaussian ones are fitted: ``"cpu"`` (default), ``"gpu"``, or
        ``"auto"``: a graphics processor if JAX sees one and there are enough rows. Needs
        ``dbrm[gpu]``.
    executor
        Where to run the chains in place of this machine's cores: a ``dask.distributed.Client``,
        ``"ray"``, or a ``concurrent.futures.Executor``.
    checkpoint
        A folder in which the run is kept while it works, so that `dbrm.resume` can go on with
        it. If it holds this very run already, the run goes on from there.
    """

    family: str | AbstractFamily = "gaussian"
    link: str | Link | None = None
    prior: str | Mapping[str, Any] | CoefficientPrior | None = None
    penalty: str | float | ModelPrior | None = None
    transforms: str | Transform | Sequence[str | Transform] | None = None
    operators: Operators | Mapping[str, float] | None = None
    adaptive_operators: bool = False
    max_depth: int | None = None
    max_complexity: int | None = None
    max_model_size: int | None = None
    projection: str | int | AbstractStrategy = "optimize-then-transform"
    max_projection: int = 4
    sweep: int = 4
    sweep_projections: bool | None = None
    population_size: int = 15
    n_populations: int = 60
    patience: int | None = 12
    algorithm: str = "gmjmcmc"
    n_init: int | None = None
    n_iter: int | None = None
    n_final: int | None = None
    mjmcmc: Mjmcmc | Mapping[str, Any] | None = None
    filtration: Filtration | Mapping[str, float] | None = None
    keep: Sequence[str] = ()
    max_unique: int | None = None
    max_evaluations: int | None = None
    time_budget: float | None = None
    max_models: int | None = None
    max_memory: float | None = None
    max_averaged: int | None = None
    stop: Literal["agreement"] | None = None
    subsample: int | None = None
    n_chains: int | None = None
    merge: str = "union"
    always: str | Sequence[str | Feature] | Mapping[str, tuple[float, float] | None] = ()
    intercept: bool = True
    zero_intercept: float | None = None
    short_coefficients: float | None = None
    exclude: str | Sequence[str | Feature] = ()
    start: str | Sequence[str | Feature] = ()
    costs: Mapping[str, float] | None = None
    units: Mapping[str, str] | None = None
    monotone: Mapping[str, Literal["increasing", "decreasing"]] | None = None
    signs: Mapping[str, Literal["positive", "negative"]] | None = None
    forbid_nested: Literal["all"] | Sequence[str] = ()
    heredity: Literal["weak", "strong"] | None = None
    groups: Literal["factors"] | Sequence[Sequence[str]] | None = None
    scale: Literal["standard"] | None = None
    missing: Literal["error", "indicator", "impute", "drop"] | None = None
    unseen: Literal["error", "none-of-these"] | None = None
    log_covariates: bool | None = None
    remainder: bool | None = None
    estimate_unvisited: bool | None = None
    check: bool = True
    preset: Literal["paper_text", "paper_code"] | None = None
    uncertainty: Literal["laplace", "plugin"] | None = None
    extrapolate: Literal["hold", "follow"] | None = None
    evidence: EvidenceFunction | None = None
    latent: str | Latent | Sequence[str | Latent] = ()
    max_latent: int | None = None
    latent_charge: Literal["hyperparameter", "effect"] | None = None
    n_jobs: int | None = None
    random_state: Any = None
    progress: bool | Literal["auto"] = "auto"
    device: Literal["cpu", "gpu", "auto"] = "cpu"
    executor: Any = None
    checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        for name in ("population_size", "n_populations"):
            self._check_integer(name, least=1)
        for name, least in (("max_depth", 0), ("max_complexity", 1)):
            if getattr(self, name) is not None:
                self._check_integer(name, least=least)
        self._check_integer("sweep", least=0)
        self._check_integer("max_projection", least=2)
        strategy = resolve_strategy(self.projection, as_published=self.preset is not None)
        if strategy.integrated and self.merge != "union":
            msg = (
                "projection='bayes' averages over the draws of all chains and needs "
                f"merge='union'; got merge={self.merge!r}."
            )
            raise InvalidSettingError(msg)
        if self.max_model_size is not None:
            self._check_integer("max_model_size", least=0)
        if self.subsample is not None:
            self._check_integer("subsample", least=1_000)
        for name in _COUNTS:
            if getattr(self, name) is not None:
                self._check_integer(name, least=1)
        if self.time_budget is not None and not self.time_budget > 0:
            msg = f"time_budget must be a positive number of seconds; got {self.time_budget!r}."
            raise InvalidSettingError(msg)
        if self.max_memory is not None and not self.max_memory > 0:
            msg = f"max_memory must be a positive number of megabytes; got {self.max_memory!r}."
            raise InvalidSettingError(msg)
        self._check_choice("stop", (None, "agreement"))
        self._check_choice("algorithm", tuple(ALGORITHMS))
        self._check_choice("merge", tuple(MERGE_RULES))
        self._check_choice("uncertainty", (None, "laplace", "plugin"))
        self._check_choice("extrapolate", (None, "hold", "follow"))
        evidence: Any = self.evidence
        if evidence is not None and not callable(evidence):
            msg = f"evidence must be a function f(X, y) -> float; got {evidence!r}."
            raise InvalidSettingError(msg)
        self._check_latent()
        self._check_always()
        self._check_constraints()
        self._check_choice("latent_charge", (None, "hyperparameter", "effect"))
        self._check_choice("heredity", (None, "weak", "strong"))
        self._check_choice("scale", (None, "standard"))
        self._check_choice("missing", (None, "error", "indicator", "impute", "drop"))
        self._check_imputation()
        self._check_choice("unseen", (None, "error", "none-of-these"))
        self._check_choice("preset", PRESETS)
        self._check_choice("progress", (True, False, "auto"))
        self._check_device()

    def _check_integer(self, name: str, *, least: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < least:
            msg = f"{name} must be an integer of at least {least}; got {name}={value!r}."
            raise InvalidSettingError(msg)

    def _check_device(self) -> None:
        self._check_choice("device", ("cpu", "gpu", "auto"))
        if self.device != "gpu":
            return
        family = find_family(self.family)
        exact = family.exact_link is not None and self.link in (None, family.exact_link)
        reasons = {
            f"family={family.name!r} works": isinstance(family, JointFamily),
            "latent= fits": bool(self.latent_effects),
            "always= with priors fits": any(self.always_priors),
            "intercept=False fits": not self.intercept,
            "evidence= works": self.evidence is not None,
            f"preset={self.preset!r} evaluates one model after the other": self.preset is not None,
            f"family={family.name!r} needs one pass over the rows for all models": exact,
        }
        for reason, holds in reasons.items():
            if holds:
                msg = f"{reason}, on the CPU: leave device='gpu' out, or set device='auto'."
                raise InvalidSettingError(msg)

    def _check_always(self) -> None:
        self._check_choice("intercept", (True, False))
        for name, advice in (
            ("zero_intercept", "intercept=False is for certainty."),
            ("short_coefficients", "Try 0.5, or 0 for no preference."),
        ):
            given = getattr(self, name)
            if given is not None and not 0.0 <= given < 1.0:
                msg = (
                    f"{name} is a probability of at least 0 and below 1; got {name}={given!r}. "
                    f"{advice}"
                )
                raise InvalidSettingError(msg)
        given = self.always
        for name, prior in given.items() if isinstance(given, Mapping) else ():
            sound = prior is None or (
                isinstance(prior, Sequence)
                and not isinstance(prior, str)
                and len(prior) == 2
                and all(isinstance(part, int | float) and isfinite(part) for part in prior)
                and prior[1] > 0
            )
            if not sound:
                msg = (
                    "always takes the mean and the positive standard deviation of a normal prior, "
                    f"or None for the prior of all coefficients, as in always={{{name!r}: (0, 1)}};"
                    f" got {prior!r}."
                )
                raise InvalidSettingError(msg)
        if self.preset is not None and self.has_special_terms:
            what = "always= with priors" if self.intercept else "intercept=False"
            msg = f"{what} is not in the paper: leave preset={self.preset!r} out."
            raise InvalidSettingError(msg)

    def _check_imputation(self) -> None:
        if self.missing != "impute":
            return
        reasons = {
            "latent=": bool(self.latent_effects),
            "monotone= and signs=": bool(self.monotone or self.signs),
            "evidence=": self.evidence is not None,
            f"preset={self.preset!r}": self.preset is not None,
            "checkpoint=": self.checkpoint is not None,
            "subsample=": self.subsample is not None,
            f"algorithm={self.algorithm!r}": not self.traits.takes_constraints,
            f"family={self.family!r}": isinstance(find_family(self.family), JointFamily),
        }
        for reason, holds in reasons.items():
            if holds:
                msg = (
                    f"missing='impute' is not for {reason}. Use missing='indicator', or leave it "
                    "out."
                )
                raise InvalidSettingError(msg)

    def _check_constraints(self) -> None:
        choices = {
            "monotone": ("increasing", "decreasing"),
            "signs": ("positive", "negative"),
        }
        for setting, allowed in choices.items():
            given: Any = getattr(self, setting)
            if given is None:
                continue
            wrong = given if not isinstance(given, Mapping) else None
            if wrong is None:
                values = [value for value in given.values() if value not in allowed]
                wrong = values[0] if values else None
            if wrong is not None:
                msg = (
                    f"{setting} maps names to {' or '.join(map(repr, allowed))}, as in "
                    f"{setting}={{'x': {allowed[0]!r}}}; got {wrong!r}."
                )
                raise InvalidSettingError(msg)
            if given and not self.traits.takes_constraints:
                fitting = [name for name, a in ALGORITHMS.items() if a.takes_constraints]
                msg = (
                    f"{setting}= is not for algorithm={self.algorithm!r}; choose "
                    f"{' or '.join(map(repr, fitting))}."
                )
                raise InvalidSettingError(msg)

    @property
    def has_special_terms(self) -> bool:
        """Whether always-in columns have priors of their own, or there is no intercept."""
        return any(self.always_priors) or not self.intercept

    @property
    def always_priors(self) -> tuple[tuple[float, float] | None, ...]:
        """Mean and standard deviation of the normal prior of each always-in column, if any."""
        if not isinstance(self.always, Mapping):
            return ()
        priors = self.always.values()
        return tuple(None if p is None else (float(p[0]), float(p[1])) for p in priors)

    def _check_latent(self) -> None:
        if self.max_latent is not None:
            self._check_integer("max_latent", least=0)
        effects = self.latent_effects
        names = [effect.name for effect in effects]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            msg = f"latent offers {repeated[0]} more than once; name each effect once."
            raise InvalidSettingError(msg)

    @property
    def latent_effects(self) -> tuple[Latent, ...]:
        """The latent effects on offer, also where only one was given, or their texts."""
        given: Any = (self.latent,) if isinstance(self.latent, str | Latent) else self.latent
        effects: list[Latent] = []
        for effect in given:
            if isinstance(effect, str):
                effects += parse_effects(effect)
            elif isinstance(effect, Latent):
                effects.append(effect)
            else:
                msg = (
                    "latent must hold latent effects such as dbrm.latent.AR1('time'); "
                    f"got {effect!r}."
                )
                raise InvalidSettingError(msg)
        return tuple(effects)

    @property
    def traits(self) -> type[AbstractAlgorithm]:
        """The class of the algorithm, whose attributes tell what it can do."""
        return find_algorithm(self.algorithm)

    @property
    def n_first_chains(self) -> int:
        """Number of chains to begin with."""
        return N_CHAINS if self.n_chains is None else self.n_chains

    @property
    def adds_chains(self) -> bool:
        """Whether chains are added to the first ones where those are too few."""
        chosen = (self.n_chains, self.preset, self.stop, self.time_budget)
        limits = (self.max_unique, self.max_evaluations, self.max_models, self.max_memory)
        left_open = all(value is None for value in (*chosen, *limits))
        return left_open and self.traits is find_algorithm("gmjmcmc")

    @property
    def index_columns(self) -> list[str]:
        """Columns of the latent effects, each once: positions in time, sites, ..."""
        columns = [name for effect in self.latent_effects for name in effect.columns]
        return list(dict.fromkeys(columns))

    @property
    def group_columns(self) -> list[str]:
        """Columns of positions and groups that are no covariates."""
        return [name for name in self.index_columns if name not in self.named_covariates]

    def with_latent(self, names: Sequence[str]) -> "Settings":
        """Offer further latent effects, by their names."""
        if not names:
            return self
        given = (self.latent,) if isinstance(self.latent, str | Latent) else tuple(self.latent)
        return replace(self, latent=(*given, *names))

    @property
    def named_covariates(self) -> list[str]:
        """Covariates named in `always`, `keep` or `start`, and those of slopes and curves."""
        lists = (self.always, self.keep, self.start)
        names = [name for given in lists for name in ([given] if isinstance(given, str) else given)]
        named = [name for name in names if isinstance(name, str)]
        return named + [
            effect.columns[-1]
            for effect in self.latent_effects
            if effect.kind in ("slopes", "knots")
        ]

    def _check_choice(self, name: str, allowed: tuple[object, ...]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            listed = ", ".join(repr(choice) for choice in allowed)
            near = suggest(str(value), [choice for choice in allowed if isinstance(choice, str)])
            msg = f"{name} must be one of {listed}; got {name}={value!r}{near}."
            raise InvalidSettingError(msg)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Self:
        """Build settings from keyword arguments; for a misspelt one suggest the nearest."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                meant = _ELSEWHERE.get(name)
                nearest = f" (did you mean {meant!r}?)" if meant else suggest(name, known)
                listed = "" if nearest else f" Settings: {', '.join(sorted(known))}."
                msg = (
                    f"Unknown setting {name!r}{nearest}.{listed} help(dbrm.Settings) explains them."
                )
                raise UnknownNameError(msg)
        return cls(**options)

    def described(self) -> dict[str, str]:
        """Settings that are not at their defaults, each as Python writes it."""
        texts = {field.name: repr(getattr(self, field.name)) for field in fields(self)}
        usual = {field.name: repr(field.default) for field in fields(self)}
        return {name: text for name, text in texts.items() if text != usual[name]}

    def resolved(
        self,
        family: str | AbstractFamily,
        n: float,
        *,
        long_tail: bool = False,
        in_blocks: bool = False,
    ) -> "Settings":
        """Fill in what is left to the defaults or the preset.

        `n` counts the observations, `long_tail` tells whether a handful of them decide,
        `in_blocks` whether the rows are visited in blocks.
        """
        # The strict prior and the strict price belong together: alone, neither is one.
        strict = long_tail and self.prior is None and self.penalty is None
        choices = preset_choices(
            self.preset, find_family(family), n, long_tail=strict, in_blocks=in_blocks
        )
        open_ = {name: value for name, value in choices.items() if getattr(self, name) is None}
        resolved = replace(self, **open_)
        return replace(resolved, transforms=transforms_of_preset(self.preset, resolved.transforms))


class SettingsOptions(TypedDict, total=False):
    """The fields of `Settings` as keyword arguments, for editors and type checkers."""

    family: str | AbstractFamily
    link: str | Link | None
    prior: str | Mapping[str, Any] | CoefficientPrior | None
    penalty: str | float | ModelPrior | None
    transforms: str | Transform | Sequence[str | Transform] | None
    operators: Operators | Mapping[str, float] | None
    adaptive_operators: bool
    max_depth: int | None
    max_complexity: int | None
    max_model_size: int | None
    projection: str | int | AbstractStrategy
    max_projection: int
    sweep: int
    sweep_projections: bool | None
    population_size: int
    n_populations: int
    patience: int | None
    algorithm: str
    n_init: int | None
    n_iter: int | None
    n_final: int | None
    mjmcmc: Mjmcmc | Mapping[str, Any] | None
    filtration: Filtration | Mapping[str, float] | None
    keep: Sequence[str]
    max_unique: int | None
    max_evaluations: int | None
    time_budget: float | None
    max_models: int | None
    max_memory: float | None
    max_averaged: int | None
    stop: Literal["agreement"] | None
    subsample: int | None
    n_chains: int | None
    merge: str
    always: str | Sequence[str | Feature] | Mapping[str, tuple[float, float] | None]
    intercept: bool
    zero_intercept: float | None
    short_coefficients: float | None
    exclude: str | Sequence[str | Feature]
    start: str | Sequence[str | Feature]
    costs: Mapping[str, float] | None
    units: Mapping[str, str] | None
    monotone: Mapping[str, Literal["increasing", "decreasing"]] | None
    signs: Mapping[str, Literal["positive", "negative"]] | None
    forbid_nested: Literal["all"] | Sequence[str]
    heredity: Literal["weak", "strong"] | None
    groups: Literal["factors"] | Sequence[Sequence[str]] | None
    scale: Literal["standard"] | None
    missing: Literal["error", "indicator", "impute", "drop"] | None
    unseen: Literal["error", "none-of-these"] | None
    log_covariates: bool | None
    remainder: bool | None
    estimate_unvisited: bool | None
    check: bool
    preset: Literal["paper_text", "paper_code"] | None
    uncertainty: Literal["laplace", "plugin"] | None
    extrapolate: Literal["hold", "follow"] | None
    evidence: EvidenceFunction | None
    latent: str | Latent | Sequence[str | Latent]
    max_latent: int | None
    latent_charge: Literal["hyperparameter", "effect"] | None
    n_jobs: int | None
    random_state: Any
    progress: bool | Literal["auto"]
    device: Literal["cpu", "gpu", "auto"]
    executor: Any
    checkpoint: str | PathLike[str] | None
