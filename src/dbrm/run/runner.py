"""Run the chains on a problem, and turn their results into a posterior."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import zip_longest
from math import inf
from time import perf_counter
from typing import final

import numpy as np
from threadpoolctl import threadpool_limits

from dbrm._version import __version__
from dbrm.chains import (
    Checkpoint,
    RunReport,
    StopEvent,
    catch_interrupts,
    pass_on_sigterm,
    run_chains,
    seed_sequence,
)
from dbrm.errors import DBRMWarning, InvalidDataError, InvalidSettingError
from dbrm.evidence import GaussianEngine, find_family
from dbrm.evolution import (
    ChainResult,
    Draws,
    Look,
    Problem,
    best_with,
    check_candidates,
    further_looks,
    run_enumeration,
    sweep_features,
    sweep_groups,
    sweep_numbers,
    sweep_polynomials,
    sweep_projections,
    sweep_reduced,
    sweep_sums,
    sweep_waves,
)
from dbrm.features import Feature, evaluate
from dbrm.posterior import (
    Diagnostics,
    LiveSource,
    Merged,
    Merger,
    Posterior,
    RunRecord,
    diagnose,
    merge_chains,
    smooth_remainder,
    with_unvisited,
)
from dbrm.run.checkpoint import begin_run, continue_run
from dbrm.run.inputs import RunInputs
from dbrm.run.problem import build_problem
from dbrm.run.progress import enumeration_bar, progress_bar
from dbrm.run.settings import Settings
from dbrm.search import log_sum_exp
from dbrm.status import Status

__all__ = ["run"]

# Enumeration: most columns (exact, by Laplace); models further than this from the best are
# left out; most kept.
_MOST_COLUMNS = {True: 25, False: 16}
_WIDE_WINDOW = 60.0
_MOST_MODELS = 1_000_000
# Shares of the time budget: what the sweep may take, and what is kept for the end, when populations
# that have begun are finished and chains are merged.
_SWEEP_SHARE, _END_SHARE = 0.6, 0.08
# Shares of the time that the sweep has left, where laws are looked for: what simple features may
# take, and then laws of groups.
_SIMPLE_SHARE, _REDUCED_SHARE = 0.3, 0.5
# Share of what the sweep leaves of a time budget that is kept for looking further, and seconds that
# first chains have at most; of what is left then, this share may go into the looks, and the rest
# into new chains. Nothing begins with fewer seconds.
_FURTHER_SHARE, _FIRST_SECONDS, _LOOK_SHARE, _LEAST_SECONDS = 0.5, 3.0, 0.75, 0.2
# Share of the time for looks that is left which one of them may take, but for the last.
_ONE_LOOK = 0.5
# A law is found if it leaves at most this share of the variance, with few terms and with more; or,
# with at most this complexity in all, if a smooth remainder has at most this probability.
_FEW_TERMS, _MOST_TERMS, _EXACT, _SIMPLE, _NOTHING_LEFT = 3, 10, (1e-18, 1e-24), 6, 0.2
# Probability of a smooth remainder below which there may be noise: what is exact is not looked for.
_SURELY_LEFT = 0.9
# Terms of the best sum of simple features, which come first in the pool; and laws and terms of each
# kind that are weighed for its head.
_TERMS, _WEIGHED = 3, 4
# Nats by which features must raise the best model to be worth a place, and to start chains anew.
_ROUNDING, _WORTH = 1e-6, 3.0
# Searches of fewer populations have a short sweep, without laws unless these are asked for.
_SHORT = 5
# Chains are added up to this number.
_MOST_CHAINS = 12
# Marks the stream of random candidates; runs with a shorter time budget (seconds) try fewer.
_CHECK, _FULL_CHECK = 0xC4EC, 10.0
# Marks the stream of walks among the features found.
_WALKS = 0x3A1C


def run(inputs: RunInputs) -> Posterior:
    """Build the problem, run the chains, merge their results and wrap the posterior.

    On data out of core linear algebra runs in one thread: sums then do not depend on the number
    of threads, and the chains have the other cores.
    """
    started = perf_counter()
    with nullcontext() if inputs.rows is None else threadpool_limits(limits=1):
        problem = build_problem(inputs)
        reserve = _END_SHARE * (inputs.settings.time_budget or 0.0)
        problem = _with_less_time(problem, perf_counter() - started + reserve)
        search = _run_chains if inputs.settings.traits.searches else _enumerate
        problem, results, report = search(problem, inputs)
        merged = results.merger.merged()
        diagnostics = results.diagnose(merged, results.draws)
        merged, diagnostics = results.with_unvisited(merged, diagnostics)
        record = results.record(inputs, report, perf_counter() - started)
        posterior = Posterior(merged, LiveSource(problem), inputs.recipe, record, diagnostics)
    if report.ended == "SIGTERM":
        pass_on_sigterm(posterior)
    _warn_of(report)
    return posterior


@final
class _Results:
    """Results of the chains, merged one by one as they arrive."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        seed: np.random.SeedSequence | None = None,
        unseen: str = "",
    ) -> None:
        self._problem, self._settings, self._seed = problem, settings, seed
        self._unseen = unseen
        self.merger = Merger(problem, settings.merge)
        self.draws: list[Draws | None] = []
        self._n_evaluated = 0
        self._status_counts: Counter[int] = Counter()
        self._rejections: Counter[str] = Counter()
        self._proposed: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._log_mass: list[float] = []

    def take(self, result: ChainResult) -> None:
        """Add the result of the next chain."""
        self.merger.add(result)
        self.draws.append(result.draws)
        self._n_evaluated += result.n_evaluated
        self._status_counts.update(result.status_counts)
        self._rejections.update(result.rejections)
        for name, (tried, passed) in result.moves.items():
            self._proposed[name] += tried
            self._accepted[name] += passed
        self._log_mass.append(log_sum_exp(result.models.log_evidence + result.models.log_prior))

    def best(self) -> list[Feature]:
        """The features of the most probable model."""
        merged = self.merger.merged()
        return [merged.features[j] for j in merged.models.features_of(0)]

    def wants_more(self, report: RunReport) -> bool:
        """Whether to add chains, because one alone has found the models that hold the mass."""
        if report.ended or report.failures or len(self.draws) >= _MOST_CHAINS:
            return False
        return diagnose(self.merger.merged(), self.draws).found_by_one

    def diagnose(self, merged: Merged, draws: list[Draws | None]) -> Diagnostics:
        """Compare the chains; where they agree, also with features that none of them selected."""
        problem, settings = self._problem, self._settings
        found = diagnose(merged, draws)
        special = (
            problem.out_of_core is not None
            or problem.latent.effects
            or problem.has_heredity_rule
            or problem.constraints is not None
            or problem.completed
        )
        if not found.agree or self._seed is None or special:
            return found
        inclusion = merged.models.add_up(merged.probability, len(merged.features))
        candidate = check_candidates(
            self._stream(_CHECK),
            problem,
            [merged.features[j] for j in merged.models.features_of(0)],
            [merged.features[j] for j in np.argsort(-inclusion, kind="stable")],
            share=min((settings.time_budget or inf) / _FULL_CHECK, 1.0),
            engineered=settings.traits.engineers,
        )
        return replace(found, candidate=candidate)

    def with_unvisited(
        self, merged: Merged, diagnostics: Diagnostics
    ) -> tuple[Merged, Diagnostics]:
        """The posterior with the probability of models that no chain visited."""
        if self._seed is None or merged.frequency is not None:
            return merged, diagnostics
        merged = with_unvisited(self._stream(_WALKS), self._problem, self.merger)
        return merged, diagnostics.with_features(len(merged.features))

    def _stream(self, mark: int) -> np.random.Generator:
        """A random stream of its own leaves those of the chains as they are."""
        assert self._seed is not None
        key = (*self._seed.spawn_key, mark)
        return np.random.default_rng(np.random.SeedSequence(self._seed.entropy, spawn_key=key))

    def record(self, inputs: RunInputs, report: RunReport, seconds: float) -> RunRecord:
        """How the results came about."""
        settings = inputs.settings.resolved(inputs.settings.family, inputs.observations.n)
        assert settings.uncertainty is not None
        assert settings.extrapolate is not None
        return RunRecord(
            response=inputs.response,
            algorithm=settings.algorithm,
            uncertainty=settings.uncertainty,
            n_chains=len(self.draws),
            n_evaluated=self._n_evaluated,
            seconds=seconds,
            seed=settings.random_state if isinstance(settings.random_state, int) else None,
            status_counts=dict(self._status_counts),
            rejections=dict(self._rejections),
            moves={name: (tried, self._accepted[name]) for name, tried in self._proposed.items()},
            chain_log_mass=tuple(self._log_mass),
            settings=inputs.settings.described(),
            formula=inputs.formula,
            given=inputs.given,
            n_rows=inputs.n_rows,
            version=__version__,
            n_finished=report.n_finished,
            failures=report.failures,
            ended=report.ended,
            extrapolate=settings.extrapolate,
            sweep=self._unseen,
            strata=inputs.strata,
            classes=inputs.classes,
        )


def _run_chains(problem: Problem, inputs: RunInputs) -> tuple[Problem, _Results, RunReport]:
    """Run the chains, after a sweep over all simple features."""
    settings = inputs.settings
    with (
        catch_interrupts() as stop_event,
        _checkpoint(settings) as folder,
        progress_bar(settings) as bar,
    ):
        if folder is not None and folder.begun:
            seed, pool = continue_run(folder, inputs, problem)
        else:
            seed, pool = seed_sequence(settings.random_state), None
        unseen = ""
        if pool is not None:
            problem = replace(problem, pool=tuple(pool))
        elif settings.traits.engineers:
            bar.phase("testing simple features")
            problem, unseen = _sweep(problem, settings, stop_event)
        bar.phase("searching")
        if folder is not None and pool is None:
            swept = not stop_event.is_set
            begin_run(folder, inputs, seed, problem, swept=swept)
            # Chains that start from half a pool belong to another run: do not keep their states.
            folder = folder if swept else None
        results = _Results(problem, settings, seed, unseen)

        def agree(so_far: list[ChainResult]) -> bool:
            merged = merge_chains(so_far, problem, settings.merge)
            return results.diagnose(merged, [result.draws for result in so_far]).agree

        looks, ends = _looks(problem, settings), perf_counter() + problem.budget.stop.seconds
        if looks:
            # What is left for looking further is not for the first chains.
            first = min((1.0 - _FURTHER_SHARE) * problem.budget.stop.seconds, _FIRST_SECONDS)
            problem = _with_time(problem, first)

        def run_more(n_before: int = 0, *, checkpoint: Checkpoint | None = folder) -> RunReport:
            return run_chains(
                problem,
                settings.n_first_chains,
                seed,
                results.take,
                first=n_before,
                algorithm=settings.algorithm,
                n_jobs=settings.n_jobs,
                executor=settings.executor,
                progress=bar.update,
                checkpoint=checkpoint,
                agree=agree if settings.stop == "agreement" else None,
                stop=stop_event,
            )

        begun = perf_counter()
        report = run_more()
        while settings.adds_chains and results.wants_more(report):
            bar.phase("searching with more chains")
            report = report.followed_by(run_more(report.n_chains))
        stopped = perf_counter() - begun > problem.budget.stop.seconds
        features, law = tuple[Feature, ...](), list[Feature]()
        if looks:
            bar.phase("looking further")
            features, law = _look_further(looks, problem, results, ends, stop_event)
        if features:
            problem = replace(problem, pool=features + problem.pool)
            problem = _with_time(problem, ends - perf_counter())
            before, results = results, _Results(problem, settings, seed, unseen)
            after = run_more(report.n_chains, checkpoint=None)
            results, report = (results, after) if results.draws else (before, report)
        elif (
            stopped
            and ends - perf_counter() > _LEAST_SECONDS
            and not (stop_event.is_set or _is_found(problem.without_latent(), results.best()))
        ):
            bar.phase("searching with more chains")
            problem = _with_time(problem, ends - perf_counter())
            report = report.followed_by(run_more(report.n_chains, checkpoint=None))
        if law:
            # Chains may pass it by: to them all perfect fits are alike.
            results.merger.include(law)
    return problem, results, report


def _looks(problem: Problem, settings: Settings) -> list[Look]:
    """Looks that the rest of a time budget is for: where laws are looked for at all."""
    laws = settings.resolved(settings.family, problem.n_rows).sweep_projections
    wanted = settings.time_budget is not None and laws and settings.traits.engineers
    return further_looks(problem, settings.sweep) if wanted else []


def _look_further(
    looks: list[Look],
    problem: Problem,
    results: _Results,
    ends: float,
    stop_event: StopEvent,
) -> tuple[tuple[Feature, ...], list[Feature]]:
    """Features for new chains; none if the law is found, time is over or they bring little.

    Also the best model, unless it is that of the chains. One look after the other, until one finds
    a law beside which nothing is left.
    """
    limit = ends - (1.0 - _LOOK_SHARE) * (ends - perf_counter())

    def until(end: float) -> Callable[[], bool]:
        return lambda: stop_event.is_set or perf_counter() > end

    alone, model, found = problem.without_latent(), results.best(), tuple[Feature, ...]()
    better = list[Feature]()
    for look in looks:
        if until(limit)() or _is_found(alone, model):
            break
        if limit - perf_counter() < look.least_seconds:
            continue
        if look.needs_exact and _is_noisy(alone, model):
            continue
        share = 1.0 if look is looks[-1] else _ONE_LOOK
        seconds = min(share * (limit - perf_counter()), look.most_seconds)
        pause = until(perf_counter() + seconds)
        features = look.find(alone, model, pause)
        best, gain = best_with(alone, model, features) if features else (model, 0.0)
        if gain > _ROUNDING:
            model = better = best
        if gain > _WORTH:
            found = (*best, *features, *found)
    return tuple(dict.fromkeys(found)), better


def _is_found(problem: Problem, model: list[Feature]) -> bool:
    """Whether a model of few terms leaves nothing: nothing but rounding; or, beside noise, no
    smooth remainder, and it is so simple that all others like it have been tried.
    """
    if _is_exact(problem, model):
        return True
    if not 0 < len(model) <= _FEW_TERMS or not isinstance(problem.engine, GaussianEngine):
        return False
    simple = sum(feature.complexity for feature in model) <= _SIMPLE
    return simple and smooth_remainder(problem, model) < _NOTHING_LEFT


def _is_noisy(problem: Problem, model: list[Feature]) -> bool:
    """Whether what a model leaves looks like noise: beside an approximation it is smooth."""
    return len(model) > 0 and smooth_remainder(problem, model) < _SURELY_LEFT


def _is_exact(problem: Problem, model: list[Feature]) -> bool:
    """Whether a model leaves nothing but rounding; more terms approximate to more digits."""
    engine = problem.engine
    if not 0 < len(model) <= _MOST_TERMS or not isinstance(engine, GaussianEngine):
        return False
    fraction, status = engine.fraction(evaluate(model, problem.table)[0])
    return status is Status.OK and fraction <= _EXACT[len(model) > _FEW_TERMS]


def _sweep(problem: Problem, settings: Settings, stop_event: StopEvent) -> tuple[Problem, str]:
    """Put the most promising simple features into the pool, within its share of the time budget.

    Also says what was not looked at.
    """
    started = perf_counter()
    alone = problem.without_latent()
    limit = _SWEEP_SHARE * problem.budget.stop.seconds

    def until(share: float) -> Callable[[], bool]:
        """Pause when this share of what is left for the sweep is over."""
        now = perf_counter() - started
        ends = now + share * (limit - now)
        return lambda: stop_event.is_set or perf_counter() - started > ends

    pause = until(1.0)
    unseen: list[str] = []
    resolved = settings.resolved(settings.family, problem.n_rows)
    short = settings.sweep_projections is None and settings.n_populations < _SHORT
    with_laws = resolved.sweep_projections and not short
    enough = until(_SIMPLE_SHARE) if with_laws else pause
    simple = sweep_features(alone, settings.sweep, enough, unseen.append)
    laws: list[Feature] = []
    first: list[Feature] = []
    more: list[Feature] = []
    if with_laws:
        first = sweep_polynomials(alone, pause, only_exact=True)
        sums = sweep_sums(alone, settings.sweep, pause)
        # The terms of the best sum are of use together.
        first, more = [*first, *sums[:_TERMS]], [*sweep_waves(alone, pause), *sums[_TERMS:]]
    numbers = [*more, *sweep_numbers(alone, simple, pause)]
    if with_laws:
        numbers = list(_alternated(sweep_groups(alone), numbers))
        reduced = sweep_reduced(alone, until(_REDUCED_SHARE))
        laws = sweep_projections(alone, simple, pause)
        # Chains draw from the pool at random, those at its head nearly always.
        some = [*reduced[:_WEIGHED], *laws[:_WEIGHED], *first[:_WEIGHED]]
        first = [*best_with(alone, [], some)[0], *first] if some else first
        laws = [*reduced, *laws]
    swept = tuple(dict.fromkeys([*first, *_alternated(simple, list(_alternated(laws, numbers)))]))
    seconds = perf_counter() - started
    stopped = f"The sweep stopped after {seconds:.1f} s and did not look at {{}}."
    limited = "The sweep did not look at {}: there are too many."
    text = (stopped if pause() else limited).format(unseen[0]) if unseen else ""
    problem = replace(problem, pool=problem.pool + swept)
    return _with_less_time(problem, seconds), text


def _with_less_time(problem: Problem, seconds: float) -> Problem:
    """The problem with a time budget of which some is spent."""
    return _with_time(problem, problem.budget.stop.seconds - seconds)


def _with_time(problem: Problem, seconds: float) -> Problem:
    """The problem with a time budget of so many seconds."""
    stop = replace(problem.budget.stop, seconds=max(seconds, 0.0))
    return replace(problem, budget=replace(problem.budget, stop=stop))


def _alternated(first: list[Feature], second: list[Feature]) -> Iterator[Feature]:
    """The members of two lists in turns."""
    for pair in zip_longest(first, second):
        yield from (feature for feature in pair if feature is not None)


def _enumerate(problem: Problem, inputs: RunInputs) -> tuple[Problem, _Results, RunReport]:
    """Visit all subsets of the covariates."""
    settings = inputs.settings
    n_columns = len(problem.free_names) + len(problem.latent)
    most = _MOST_COLUMNS[find_family(settings.family).exact_link is not None and not problem.latent]
    if n_columns > most:
        msg = (
            f"algorithm='enumerate' visits all subsets of the columns and takes at most {most} "
            f"for this family; X has {n_columns}. Choose another algorithm to search instead."
        )
        raise InvalidDataError(msg)
    limits = settings.max_evaluations, settings.max_unique, settings.max_models
    fewest = min((limit for limit in limits if limit is not None), default=inf)
    if 2**n_columns > fewest:
        msg = (
            f"algorithm='enumerate' visits all {2**n_columns:,} models; max_evaluations, "
            f"max_unique or max_models allow {fewest:,}. Leave them out, or choose another "
            "algorithm."
        )
        raise InvalidSettingError(msg)
    budget = replace(
        problem.budget, window=_WIDE_WINDOW, max_models=_MOST_MODELS, max_merged=_MOST_MODELS
    )
    if settings.max_model_size is None:
        problem = replace(problem, max_model_size=len(problem.free_names))
    problem = replace(problem, budget=budget)
    results = _Results(problem, settings)
    with enumeration_bar(settings) as report:
        results.take(run_enumeration(problem, report))
    return problem, results, RunReport(1, 1, 1, {}, "")


def _warn_of(report: RunReport) -> None:
    """Warn of chains that failed or were interrupted."""
    if report.failures:
        reasons = {failure.splitlines()[-1] for failure in report.failures.values()}
        msg = (
            f"{len(report.failures)} of {report.n_chains} chains failed and are not in the "
            f"posterior ({'; '.join(sorted(reasons))}). posterior.summary() tells which."
        )
        warnings.warn(msg, DBRMWarning, stacklevel=2)
    if report.ended.startswith("SIG"):
        msg = (
            f"Interrupted ({report.ended}): {report.n_finished} of {report.n_chains} chains had "
            f"finished, {report.n_begun} had begun. The posterior holds what they had found."
        )
        warnings.warn(msg, DBRMWarning, stacklevel=2)


@contextmanager
def _checkpoint(settings: Settings) -> Iterator[Checkpoint | None]:
    if settings.checkpoint is None:
        yield None
        return
    with Checkpoint(settings.checkpoint, __version__) as folder:
        yield folder
