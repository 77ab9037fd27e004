"""From data and settings to a posterior: the chains, and what they bring home."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from time import perf_counter
from typing import final

import numpy as np
from threadpoolctl import threadpool_limits

from dbrm._version import __version__
from dbrm.chains import (
    Checkpoint,
    Progress,
    RunReport,
    StopSign,
    catch_interrupts,
    pass_on_sigterm,
    run_chains,
    seed_sequence,
)
from dbrm.errors import DBRMWarning, InvalidDataError
from dbrm.evidence import find_family
from dbrm.evolution import (
    ChainResult,
    Draws,
    Problem,
    check_candidates,
    run_enumeration,
    sweep_features,
    sweep_projections,
)
from dbrm.posterior import (
    Diagnostics,
    LiveSource,
    Merged,
    Merger,
    Posterior,
    RunRecord,
    diagnose,
    merge_chains,
)
from dbrm.run.checkpoint import Job, begin_run, continue_run
from dbrm.run.problem import pose
from dbrm.run.settings import Settings
from dbrm.search import log_sum_exp

__all__ = ["execute"]

# Enumeration: most columns (exact, by Laplace); models further than this from the best are
# left out; most kept.
_MOST_COLUMNS = {True: 25, False: 16}
_WIDE_WINDOW = 60.0
_MOST_MODELS = 1_000_000
# Marks the stream of random candidates; runs with a shorter time budget (seconds) try fewer.
_CHECK, _FULL_CHECK = 0xC4EC, 10.0


def execute(job: Job) -> Posterior:
    """Run a job to its posterior.

    On tall data linear algebra runs in one thread: sums then do not depend on how many there
    are, and chains have the other cores.
    """
    with threadpool_limits(limits=None if job.rows is None else 1):
        return _execute(job)


def _execute(job: Job) -> Posterior:
    started = perf_counter()
    chosen = job.settings
    problem = pose(job.table, job.observations, chosen, job.recipe.factors, job.rows)
    run = _enumerate if chosen.algorithm == "enumerate" else _search
    problem, findings, report = run(problem, job)
    merged = findings.merger.merged()
    diagnostics = findings.diagnose(merged, findings.draws)
    record = findings.record(job, report, perf_counter() - started)
    posterior = Posterior(merged, LiveSource(problem), job.recipe, record, diagnostics)
    if report.ended == "SIGTERM":
        pass_on_sigterm(posterior)
    _warn_of(report, chosen.n_chains)
    return posterior


@final
class _Findings:
    """What chains bring home, taken in one by one; their models are merged at once."""

    def __init__(
        self, problem: Problem, chosen: Settings, seed: np.random.SeedSequence | None = None
    ) -> None:
        self._problem, self._chosen, self._seed = problem, chosen, seed
        self.merger = Merger(problem, chosen.merge)
        self.draws: list[Draws | None] = []
        self._n_evaluated = 0
        self._status_counts: Counter[int] = Counter()
        self._rejections: Counter[str] = Counter()
        self._proposed: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._log_mass: list[float] = []

    def take(self, result: ChainResult) -> None:
        """Enter the result of the next chain."""
        self.merger.add(result)
        self.draws.append(result.draws)
        self._n_evaluated += result.n_evaluated
        self._status_counts.update(result.status_counts)
        self._rejections.update(result.rejections)
        for name, (tried, passed) in result.moves.items():
            self._proposed[name] += tried
            self._accepted[name] += passed
        self._log_mass.append(log_sum_exp(result.models.log_evidence + result.models.log_prior))

    def diagnose(self, merged: Merged, draws: list[Draws | None]) -> Diagnostics:
        """Compare the chains; where they agree, with features that none of them chose."""
        problem, chosen = self._problem, self._chosen
        found = diagnose(merged, draws)
        special = (
            problem.out_of_core is not None or problem.latent.effects or problem.has_heredity_rule
        )
        if not found.agree or self._seed is None or special:
            return found
        # A stream of its own: the chains' are not touched.
        key = (*self._seed.spawn_key, _CHECK)
        rng = np.random.default_rng(np.random.SeedSequence(self._seed.entropy, spawn_key=key))
        inclusion = merged.models.add_up(merged.probability, len(merged.features))
        candidate = check_candidates(
            rng,
            problem,
            [merged.features[j] for j in merged.models.features_of(0)],
            [merged.features[j] for j in np.argsort(-inclusion, kind="stable")],
            share=min((chosen.time_budget or inf) / _FULL_CHECK, 1.0),
            engineered=chosen.algorithm != "mjmcmc",
        )
        return replace(found, candidate=candidate)

    def record(self, job: Job, report: RunReport, seconds: float) -> RunRecord:
        """How it all came about."""
        chosen = job.settings
        return RunRecord(
            response=job.response,
            algorithm=chosen.algorithm,
            uncertainty=chosen.uncertainty or ("laplace" if chosen.preset is None else "plugin"),
            n_chains=len(self.draws),
            n_evaluated=self._n_evaluated,
            seconds=seconds,
            seed=chosen.random_state if isinstance(chosen.random_state, int) else None,
            status_counts=dict(self._status_counts),
            rejections=dict(self._rejections),
            moves={name: (tried, self._accepted[name]) for name, tried in self._proposed.items()},
            chain_log_mass=tuple(self._log_mass),
            settings=chosen.described(),
            formula=job.formula,
            given=job.given,
            n_rows=job.n_rows,
            version=__version__,
            n_finished=report.n_finished,
            failures=report.failures,
            ended=report.ended,
            extrapolate=chosen.extrapolate or ("hold" if chosen.preset is None else "follow"),
        )


def _search(problem: Problem, job: Job) -> tuple[Problem, _Findings, RunReport]:
    """Run the chains, after a look at all simple features."""
    chosen = job.settings
    with (
        catch_interrupts() as sign,
        _checkpoint(chosen) as folder,
        _progress_bar(chosen) as progress,
    ):
        if folder is not None and folder.begun:
            seed, pool = continue_run(folder, job, problem)
        else:
            seed, pool = seed_sequence(chosen.random_state), None
        if pool is not None:
            problem = replace(problem, pool=tuple(pool))
        elif chosen.algorithm != "mjmcmc":
            problem = _sweep(problem, chosen, sign)
        if folder is not None and pool is None:
            swept = not sign.given
            begin_run(folder, job, seed, problem, swept=swept)
            # States of chains with half a pool would be of another run.
            folder = folder if swept else None
        findings = _Findings(problem, chosen, seed)

        def agree(results: list[ChainResult]) -> bool:
            merged = merge_chains(results, problem, chosen.merge)
            return findings.diagnose(merged, [result.draws for result in results]).agree

        report = run_chains(
            problem,
            chosen.n_chains,
            seed,
            findings.take,
            algorithm=chosen.algorithm,
            n_jobs=chosen.n_jobs,
            executor=chosen.executor,
            progress=progress,
            checkpoint=folder,
            agree=agree if chosen.stop == "agreement" else None,
            sign=sign,
        )
    return problem, findings, report


def _sweep(problem: Problem, chosen: Settings, sign: StopSign) -> Problem:
    """Put the most promising simple features into the pool; the time it takes is spent."""
    started = perf_counter()
    alone = problem.without_latent()

    def pause() -> bool:
        return sign.given

    laws = tuple(sweep_projections(alone, pause)) if chosen.sweep_projections else ()
    swept = laws + tuple(sweep_features(alone, chosen.sweep, pause))
    stop = problem.budget.stop
    stop = replace(stop, seconds=max(stop.seconds - (perf_counter() - started), 0.0))
    budget = replace(problem.budget, stop=stop)
    return replace(problem, pool=problem.pool + swept, budget=budget)


def _enumerate(problem: Problem, job: Job) -> tuple[Problem, _Findings, RunReport]:
    """Visit all subsets of the covariates."""
    chosen = job.settings
    n_columns = len(problem.free_names) + len(problem.latent)
    most = _MOST_COLUMNS[find_family(chosen.family).name == "gaussian" and not problem.latent]
    if n_columns > most:
        msg = (
            f"algorithm='enumerate' visits all subsets of the columns and takes at most {most} "
            f"for this family; X has {n_columns}. Choose another algorithm to search instead."
        )
        raise InvalidDataError(msg)
    budget = replace(
        problem.budget, window=_WIDE_WINDOW, max_models=_MOST_MODELS, max_merged=_MOST_MODELS
    )
    if chosen.max_model_size is None:
        problem = replace(problem, max_model_size=len(problem.free_names))
    problem = replace(problem, budget=budget)
    findings = _Findings(problem, chosen)
    with _enumeration_bar(chosen) as report:
        findings.take(run_enumeration(problem, report))
    return problem, findings, RunReport(1, 1, {}, "")


def _warn_of(report: RunReport, n_chains: int) -> None:
    """Tell what is missing."""
    if report.failures:
        reasons = {failure.splitlines()[-1] for failure in report.failures.values()}
        msg = (
            f"{len(report.failures)} of {n_chains} chains failed and are not in the posterior "
            f"({'; '.join(sorted(reasons))}). posterior.summary() tells which."
        )
        warnings.warn(msg, DBRMWarning, stacklevel=2)
    if report.ended.startswith("SIG"):
        msg = (
            f"Interrupted ({report.ended}): {report.n_finished} of {n_chains} chains had finished, "
            f"{report.n_begun} had begun. The posterior holds what they had found."
        )
        warnings.warn(msg, DBRMWarning, stacklevel=2)


@contextmanager
def _checkpoint(chosen: Settings) -> Iterator[Checkpoint | None]:
    if chosen.checkpoint is None:
        yield None
        return
    with Checkpoint(chosen.checkpoint, __version__) as folder:
        yield folder


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
