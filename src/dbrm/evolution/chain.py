"""The record that a chain keeps while it runs, and its result."""

from collections import Counter
from dataclasses import dataclass, field
from time import monotonic
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Mask
from dbrm.data.schema import ArrayOf, ListOf, MappingOf, Real, Text, Whole, refuse_unless
from dbrm.evidence import AbstractExpandable
from dbrm.evolution.model_priors import with_prior
from dbrm.evolution.population import Population, Rejections
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.evolution.snapshot import Layout, Snapshot
from dbrm.features import Feature
from dbrm.search import (
    Exploration,
    Ledger,
    Mjmcmc,
    ModelTable,
    enumerate_population,
    refine_population,
)

__all__ = ["CHAIN_LAYOUT", "ChainProgress", "ChainRecord", "ChainResult", "Draws"]

# Growth of the log mass of a population that is no progress.
_NO_GAIN = 0.01


@final
@dataclass(frozen=True, slots=True)
class ChainProgress:
    """What a progress bar shows: `n_done` of `total` populations or steps are done."""

    n_done: int
    total: int
    n_evaluated: int
    best_log_posterior: float
    best_model: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """States of a chain whose stationary distribution is the posterior.

    Parameters
    ----------
    log_posterior, size
        Of the state after each step.
    frequency
        Share of the steps with each feature in the model, by feature number
        (for pool-Gibbs averaged over the exact conditional distribution).
    """

    log_posterior: FloatArray
    size: FloatArray
    frequency: FloatArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class ChainResult:
    """The result of one chain.

    `features` are numbered as in ``models.members``; `trace` holds the log mass found
    in each population, `moves` how often each kind of move was tried and accepted,
    `weight_draws` how often weights of each projection were drawn.
    """

    features: list[Feature]
    aliases: dict[int, list[Feature]]
    models: ModelTable
    log_lost: float
    n_evaluated: int
    status_counts: dict[int, int]
    rejections: dict[str, int]
    trace: FloatArray
    moves: dict[str, tuple[int, int]]
    draws: Draws | None = None
    weight_draws: dict[int, int] = field(default_factory=dict)


class ChainRecord:
    """Features met, models visited, moves and failures counted: the record of one chain."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.registry = Registry(problem.table)
        self.rejections = Rejections()
        self._ledger = Ledger(problem.budget.max_models)
        self._status_counts: Counter[int] = Counter()
        self._proposed: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._trace: list[float] = []
        self._best = (-np.inf, "1")
        self._started = monotonic()
        self._before = 0.0
        self.n_evaluated = 0

    @property
    def n_unique(self) -> int:
        """Number of different models visited, kept or dropped."""
        return len(self._ledger.models()) + self._ledger.n_dropped

    @property
    def seconds(self) -> float:
        """Time spent so far, without that between `get_state` and `set_state`."""
        return self._before + monotonic() - self._started

    def set_clock(self, seconds: float) -> None:
        """Set the time spent so far."""
        self._before, self._started = seconds, monotonic()

    def out_of_time(self, share: float = 1.0) -> bool:
        """Whether this share of the time budget is spent."""
        return self.seconds > share * self.problem.budget.stop.seconds

    def has_enough(self, share: float = 1.0) -> bool:
        """Whether this share of the limit on evaluations or on different models is reached."""
        stop = self.problem.budget.stop
        if self.n_evaluated >= share * stop.evaluations:
            return True
        return stop.unique_models is not None and self.n_unique >= share * stop.unique_models

    def has_stalled(self) -> bool:
        """Whether the last populations, as many as there is patience for, brought nothing new."""
        patience = self.problem.budget.stop.patience
        if patience is None or len(self._trace) <= patience:
            return False
        before, last = self._trace[:-patience], self._trace[-patience:]
        return max(last) <= max(before) + _NO_GAIN

    def explore(
        self,
        rng: np.random.Generator,
        population: Population,
        start: Mask,
        mjmcmc: Mjmcmc | None = None,
        *,
        is_first: bool = False,
        is_last: bool = True,
    ) -> Exploration:
        """Explore the models of a population: enumerate them if that is affordable, else walk.

        The first population is the same in every chain, and enumerated once for all. One that is
        not the last may be searched quickly where its models will not matter: see
        `dbrm.search.refinement`.
        """
        shared = self.problem.explored_first if is_first else []
        if shared:
            found = shared[0]
        else:
            best_before = None if is_last else self._best[0]
            found = self._search(rng, population, start, mjmcmc, best_before)
            if found.walk is None:
                shared.append(found)
        self.record(found, population)
        self._trace.append(found.log_mass)
        return found

    def _search(
        self,
        rng: np.random.Generator,
        population: Population,
        start: Mask,
        mjmcmc: Mjmcmc | None,
        best_before: float | None,
    ) -> Exploration:
        features = population.features(self.registry)
        n_settled = population.n_settled
        prepared = self.problem.prepare(features, population.columns, n_settled)
        terms = population.prior_terms(self.problem, self.registry)
        if n_settled:
            terms, start = terms.beside(n_settled), start[n_settled:]
        budget = self.problem.budget
        if (
            self.problem.exact_populations
            and isinstance(prepared, AbstractExpandable)
            and prepared.size <= prepared.expansion_limit
        ):
            found = refine_population(
                prepared,
                terms,
                window=budget.window,
                max_kept=budget.max_models,
                start=start if self.problem.latent.effects else None,
                best_before=best_before,
                max_fits=prepared.max_fits,
            )
        elif prepared.size <= prepared.enumeration_limit:
            found = enumerate_population(
                prepared, terms, window=budget.window, max_kept=budget.max_models
            )
        else:
            start = terms.with_favoured(start)
            found = (mjmcmc or budget.mjmcmc).explore(rng, prepared, terms, start)
        return found.with_settled(n_settled)

    def record(self, found: Exploration, population: Population) -> None:
        """Add the models and counts of an exploration."""
        models = ModelTable.from_masks(
            found.masks,
            population.numbers,
            self.registry.keys,
            log_evidence=found.log_evidence,
            log_prior=found.log_prior,
            statuses=found.statuses,
            latent_keys=self.problem.latent.keys,
        )
        self._ledger.record(models, found.log_lost)
        self.n_evaluated += found.n_evaluated
        self._status_counts.update(found.status_counts)
        if found.walk is not None:
            self._proposed.update(found.walk.proposed)
            self._accepted.update(found.walk.accepted)
        self._note_best(found, population)

    def count_move(self, name: str, *, accepted: bool) -> None:
        """Count one move of a kind that explorations do not count."""
        self._proposed[name] += 1
        self._accepted[name] += accepted

    def _note_best(self, found: Exploration, population: Population) -> None:
        log_posterior = found.log_evidence + found.log_prior
        row = int(np.argmax(log_posterior))
        if log_posterior[row] > self._best[0]:
            parts = [str(feature) for feature in population.features(self.registry)]
            parts += self.problem.latent.names
            text = " + ".join(parts[j] for j in np.flatnonzero(found.masks[row]))
            self._best = (float(log_posterior[row]), text or "1")

    def progress(self, done: int, total: int) -> ChainProgress:
        """Progress after `done` of `total` populations or steps."""
        return ChainProgress(done, total, self.n_evaluated, *self._best)

    def models(self) -> ModelTable:
        """The models visited so far, each once, with priors of the simplest spellings met."""
        return with_prior(self._ledger.models(), self.problem, self.registry)

    def get_state(self) -> Snapshot:
        """The whole record."""
        ledger = self._ledger
        pending = ledger.pending()
        models = {} if pending is None else pending.to_arrays()
        own = Snapshot(
            content={
                "n_evaluated": self.n_evaluated,
                "n_settled": ledger.n_settled,
                "n_dropped": ledger.n_dropped,
                "status_counts": {str(code): n for code, n in self._status_counts.items()},
                "rejections": dict(self.rejections.counts),
                "proposed": dict(self._proposed),
                "accepted": dict(self._accepted),
                "best": self._best[1],
                "seconds": self.seconds,
            },
            arrays={
                "numbers": np.array([self._best[0], ledger.log_lost]),
                "trace": np.array(self._trace, dtype=np.float64),
            },
        )
        return Snapshot.join(
            own=own, models=Snapshot(arrays=models), registry=self.registry.get_state()
        )

    def set_state(self, snapshot: Snapshot) -> None:
        """Restore the record; the clock runs on from now."""
        own, arrays = snapshot.part("own"), snapshot.part("models").arrays
        content = own.content
        self.registry.set_state(snapshot.part("registry"))
        models = ModelTable(**arrays) if arrays else None
        sound = models is None or models.is_sound(len(self.problem.latent))
        refuse_unless(sound, "The table of a chain's models")
        self._ledger.restore(models, content["n_settled"])
        self._ledger.n_dropped = content["n_dropped"]
        best, self._ledger.log_lost = own.arrays["numbers"].tolist()
        self._best = (best, content["best"])
        self._trace = own.arrays["trace"].tolist()
        counts = content["status_counts"]
        self._status_counts = Counter({int(code): n for code, n in counts.items()})
        self.rejections.counts = dict(content["rejections"])
        self._proposed, self._accepted = Counter(content["proposed"]), Counter(content["accepted"])
        self.n_evaluated = content["n_evaluated"]
        self.set_clock(content["seconds"])

    def result(self, draws: Draws | None = None) -> ChainResult:
        """The result so far."""
        models = self.models()
        return ChainResult(
            features=self.registry.features,
            aliases=self.registry.aliases,
            models=models,
            log_lost=self._ledger.log_lost,
            n_evaluated=self.n_evaluated,
            status_counts=dict(self._status_counts),
            rejections=self.rejections.counts,
            trace=np.array(self._trace),
            moves={name: (n, self._accepted[name]) for name, n in self._proposed.items()},
            draws=draws,
            weight_draws=self.registry.weight_draws.counts,
        )


# The names are those of `ChainRecord.get_state`.
_COUNTS = MappingOf(Whole())
CHAIN_LAYOUT = Layout(
    {
        "chain.own.n_evaluated": Whole(),
        "chain.own.n_settled": Whole(),
        "chain.own.n_dropped": Whole(),
        "chain.own.status_counts": MappingOf(Whole(), keys=Whole(high=255)),
        "chain.own.rejections": _COUNTS,
        "chain.own.proposed": _COUNTS,
        "chain.own.accepted": _COUNTS,
        "chain.own.best": Text(),
        "chain.own.seconds": Real(low=0.0),
    },
    {
        "chain.own.numbers": ArrayOf("<f8", (2,), nan=True),
        "chain.own.trace": ArrayOf("<f8", (None,), nan=True),
        "chain.models.keys": ArrayOf("<u8", ("models", 2)),
        "chain.models.starts": ArrayOf("<i8", ("models+1",), low=0),
        "chain.models.members": ArrayOf("<i4", (None,), low=0, below="registered"),
        "chain.models.log_evidence": ArrayOf("<f8", ("models",), high=1e300),
        "chain.models.log_prior": ArrayOf("<f8", ("models",), high=1e300),
        "chain.models.statuses": ArrayOf("|u1", ("models",)),
        "chain.models.latent": ArrayOf("<u8", ("models",)),
        "chain.registry.keys": ArrayOf("<u8", ("registered", 2)),
        "chain.registry.marks": ArrayOf("|u1", ("registered", 16)),
        "chain.registry.owners": ArrayOf("<i8", ("aliases",), low=0, below="registered"),
        "chain.registry.drawn": ArrayOf("<u8", ("drawn", 2)),
        "chain.registry.draw_counts": ArrayOf("<i8", ("drawn",), low=1),
    },
    {
        "chain.registry.names": ListOf(Text(), "registered"),
        "chain.registry.aliases": ListOf(Text(), "aliases"),
    },
)
