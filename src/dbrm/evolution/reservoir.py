r"""A finite stock of features for the reversible samplers.

It holds the covariates, the swept pool and what a first GMJMCMC phase found, each with a
weight that follows its estimated inclusion, kept away from zero. It is frozen before
the samplers start counting: adaptation has ended by then.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, Matrix
from dbrm.data import Table
from dbrm.evolution.chain import ChainRecord
from dbrm.evolution.independence import Basis
from dbrm.evolution.snapshot import Snapshot
from dbrm.features import Feature, covariate, evaluate
from dbrm.status import Status

__all__ = ["Reservoir", "fill_reservoir"]

# A feature without support is still drawn with this weight.
_LEAST_WEIGHT = 0.02


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reservoir:
    """Features with their training columns and weights.

    `spellings` are those that the columns were computed from; names may change later.
    """

    numbers: npt.NDArray[np.int32]
    columns: Matrix
    weights: FloatArray
    spellings: list[Feature]

    def get_state(self) -> Snapshot:
        """Everything but the columns."""
        return Snapshot(
            arrays={"numbers": self.numbers, "weights": self.weights},
            features={"spellings": self.spellings},
        )

    @classmethod
    def from_state(cls, snapshot: Snapshot, table: Table) -> Self:
        """The frozen reservoir, its columns computed as before."""
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
