"""Operators that learn: what each one achieved decides how often it is used."""

from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray
from dbrm.data.schema import refuse_unless
from dbrm.evolution.problem import Operators
from dbrm.evolution.snapshot import Snapshot

__all__ = ["OperatorMemory"]

# No operator in use is drawn with a smaller probability.
_LEAST_SHARE = 0.05


class OperatorMemory:
    r"""Remembers which operator made which feature, and how many of them proved useful.

    A feature is useful if, in the population for which it was made, its inclusion
    probability reaches the threshold of the filtration. With :math:`w_k` the user's weight
    of operator k, :math:`n_k` features made and :math:`u_k` of them useful, the operator is
    drawn with probability proportional to

    .. math:: w_k \frac{u_k + 1}{n_k + 2},

    kept above a small share. One more feature changes the estimate by at most
    :math:`1 / (n_k + 2)`, and every :math:`n_k` grows without bound: adaptation diminishes.
    """

    def __init__(self, operators: Operators) -> None:
        self._names = [item.name for item in fields(operators)]
        self._given = operators
        self._made = np.zeros(len(self._names))
        self._useful = np.zeros(len(self._names))
        self._waiting: dict[int, int] = {}

    def note(self, number: int, kind: int) -> None:
        """Operator `kind` made the feature of this number."""
        self._waiting[number] = kind

    def learn(
        self, numbers: npt.NDArray[np.int32], inclusion: FloatArray, threshold: float
    ) -> None:
        """See what became of the features made since the last time."""
        for number, probability in zip(numbers.tolist(), inclusion.tolist(), strict=True):
            kind = self._waiting.get(number)
            if kind is not None:
                self._made[kind] += 1
                self._useful[kind] += probability >= threshold
        self._waiting.clear()

    def get_state(self) -> Snapshot:
        """What was learned, and the features whose fate is not known yet."""
        waiting = np.array(list(self._waiting.items()), dtype=np.int64).reshape(-1, 2)
        return Snapshot(arrays={"made": self._made, "useful": self._useful, "waiting": waiting})

    def set_state(self, snapshot: Snapshot) -> None:
        """Know what the frozen memory knew."""
        self._made = snapshot.arrays["made"].copy()
        self._useful = snapshot.arrays["useful"].copy()
        waiting = snapshot.arrays["waiting"]
        refuse_unless(np.all(waiting[:, 1] < len(self._names)), "The memory of operators")
        self._waiting = dict(waiting.tolist())

    def operators(self) -> Operators:
        """The weights to use next; they add to one."""
        weights = np.array([getattr(self._given, name) for name in self._names])
        shares = weights * (self._useful + 1) / (self._made + 2)
        shares = np.where(weights > 0, np.maximum(shares / shares.sum(), _LEAST_SHARE), 0.0)
        shares /= shares.sum()
        return replace(self._given, **dict(zip(self._names, shares.tolist(), strict=True)))
