"""Chains that draw models from the posterior, after a first phase of GMJMCMC.

The first phase finds the features, of which a reservoir is filled, and a model to start from.
Then adaptation ends, the reservoir stays as it is, and a sampler makes `n_final` draws.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, Matrix
from dbrm.data import Table
from dbrm.data.schema import ArrayOf, ListOf, Text, refuse_unless
from dbrm.evolution.algorithms.base import AbstractChain
from dbrm.evolution.algorithms.gmjmcmc import Evolution, evolution_layout
from dbrm.evolution.chain import ChainProgress, ChainRecord, ChainResult, Draws
from dbrm.evolution.population import Basis
from dbrm.evolution.problem import Problem, SearchBudget
from dbrm.evolution.snapshot import Layout, Snapshot, get_generator_state, set_generator_state
from dbrm.features import Feature, covariate, evaluate
from dbrm.status import Status

__all__ = [
    "AbstractSampling",
    "Reservoir",
    "fill_reservoir",
    "reservoir_layout",
    "sampling_layout",
]


class AbstractSampling(AbstractChain):
    """One chain: populations that evolve, then draws of models."""

    default_draws = 1_000
    takes_groups = False
    takes_constraints = False
    needs_all_rows = True
    unit = "steps"

    @staticmethod
    def total(budget: SearchBudget) -> int:
        return budget.n_populations + budget.n_final

    def __init__(self, rng: np.random.Generator, problem: Problem) -> None:
        self._rng = rng
        self._chain = ChainRecord(problem)
        self._evolution = Evolution(rng, self._chain, share=0.5)
        self._draws: list[tuple[float, float]] = []

    @abstractmethod
    def _draw(self) -> tuple[float, int]:
        """Draw the next model: its log posterior and its size."""

    @abstractmethod
    def _frequency(self) -> FloatArray:
        """Share of the draws with each feature of the registry."""

    @abstractmethod
    def _get_sampler_state(self) -> Snapshot:
        """State of the sampler, empty before the first draw."""

    @abstractmethod
    def _set_sampler_state(self, snapshot: Snapshot) -> None:
        """Restore the sampler; the draws so far are restored before."""

    @property
    def finished(self) -> bool:
        return self._evolution.finished and (
            len(self._draws) == self._chain.problem.budget.n_final
            or (len(self._draws) > 0 and (self._chain.out_of_time() or self._chain.has_enough()))
        )

    @property
    def n_done(self) -> int:
        return self._evolution.n_done + len(self._draws)

    def advance(self, most: int) -> None:
        if not self._evolution.finished:
            self._evolution.advance(most)
            return
        log_posterior, size = self._draw()
        self._draws.append((log_posterior, float(size)))

    def progress(self) -> ChainProgress:
        return self._chain.progress(self.n_done, self.total(self._chain.problem.budget))

    def get_state(self) -> Snapshot:
        draws = np.array(self._draws, dtype=np.float64).reshape(-1, 2)
        return Snapshot.join(
            generator=get_generator_state(self._rng),
            chain=self._chain.get_state(),
            evolution=self._evolution.get_state(),
            draws=Snapshot(arrays={"draws": draws}),
            sampler=self._get_sampler_state() if self._draws else Snapshot(),
        )

    def set_state(self, snapshot: Snapshot) -> None:
        set_generator_state(self._rng, snapshot.part("generator"))
        self._chain.set_state(snapshot.part("chain"))
        self._evolution.set_state(snapshot.part("evolution"))
        draws = snapshot.part("draws").arrays["draws"]
        refuse_unless(len(draws) <= self._chain.problem.budget.n_final, "The draws of a chain")
        self._draws = [(value, size) for value, size in draws.tolist()]
        if self._draws:
            self._set_sampler_state(snapshot.part("sampler"))

    def result(self) -> ChainResult:
        log_posterior, size = np.array(self._draws, dtype=np.float64).reshape(-1, 2).T
        return self._chain.result(Draws(log_posterior, size, self._frequency()))


# Added to all weights: features without posterior support are drawn, too.
_LEAST_WEIGHT = 0.02


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """A fixed set of features with their training columns and weights.

    It holds covariates, the swept pool and what the first phase found. Weights follow the
    estimated inclusion, kept away from zero. The columns were computed from the `spellings`;
    names may change later.
    """

    numbers: npt.NDArray[np.int32]
    columns: Matrix
    weights: FloatArray
    spellings: list[Feature]

    def get_state(self) -> Snapshot:
        """Numbers, weights and spellings; the columns follow from them."""
        return Snapshot(
            arrays={"numbers": self.numbers, "weights": self.weights},
            features={"spellings": self.spellings},
        )

    @classmethod
    def from_state(cls, snapshot: Snapshot, table: Table) -> Self:
        """Restore a reservoir; its columns are computed again, as before."""
        spellings = snapshot.features["spellings"]
        columns = [evaluate([feature], table)[0][:, 0] for feature in spellings]
        values = np.column_stack(columns) if columns else np.empty((table.n_rows, 0))
        return cls(snapshot.arrays["numbers"], values, snapshot.arrays["weights"], spellings)


def fill_reservoir(chain: ChainRecord, capacity: int) -> Reservoir:
    """Collect covariates, the best features found so far, and the pool, up to `capacity`.

    Columns that are combinations of better ones are left out only if they are copies;
    dependent subsets have no evidence and are never visited.
    """
    problem, registry = chain.problem, chain.registry
    inclusion = _inclusion(chain)
    found = [registry.features[j] for j in np.argsort(-inclusion, kind="stable")]
    found = [f for f in found if inclusion[registry.known(f)] > 0]
    basics = [covariate(name) for name in problem.free_names[:capacity]]
    numbers: dict[int, None] = {}
    columns, spellings = [], []
    heredity_rule = problem.heredity_rule(registry)
    pool = [part for f in problem.pool for part in (*heredity_rule.missing(f, list(numbers)), f)]
    for feature in (*found[:capacity], *basics, *pool):
        if len(numbers) == capacity:
            break
        column, status = evaluate([feature], problem.table)
        if status[0] != Status.OK or not Basis(problem.always_columns, 1).admit(column[:, 0]):
            continue
        number = registry.number(feature, column[:, 0])
        if number not in numbers:
            numbers[number] = None
            columns.append(column[:, 0])
            spellings.append(feature)
    order = np.array(list(numbers), dtype=np.int32)
    support = np.zeros(len(registry))
    support[: inclusion.size] = inclusion
    values = np.column_stack(columns) if columns else np.empty((problem.table.n_rows, 0))
    return Reservoir(order, values, _LEAST_WEIGHT + support[order], spellings)


def _inclusion(chain: ChainRecord) -> FloatArray:
    """Renormalised inclusion probability of every feature met, from the chain's own ledger."""
    models = chain.models()
    log_posterior = models.log_evidence + models.log_prior
    mass = np.exp(log_posterior - log_posterior.max())
    mass /= mass.sum()
    return models.add_up(mass, len(chain.registry))


def sampling_layout(problem: Problem, content: Mapping[str, Any], sampler: Layout) -> Layout:
    """Layout of a chain that draws; before the first draw it has no `sampler`."""
    drawn = "sampler.state.model" in content
    draws = ArrayOf("<f8", ("draws" if drawn else 0, 2), high=1e300)
    layout = evolution_layout(problem, content).with_parts(Layout({}, {"draws.draws": draws}))
    return layout.with_parts(sampler) if drawn else layout


def reservoir_layout(name: str, length: str) -> Layout:
    """Layout of `Reservoir.get_state` under this name."""
    return Layout(
        {},
        {
            f"{name}.numbers": ArrayOf("<i4", (length,), low=0, below="registered"),
            f"{name}.weights": ArrayOf("<f8", (length,), low=0.0, high=1e15),
        },
        {f"{name}.spellings": ListOf(Text(), length)},
    )
