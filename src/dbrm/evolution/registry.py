r"""Numbers for features: one column, one number, whatever the spelling.

Columns that are equal up to an affine map span the same models beside an intercept,
so they are one feature; the simplest spelling names it and the others are kept as its
aliases. Candidates are found by a fingerprint of the standardised column and
confirmed on all rows.
"""

from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, IntArray
from dbrm.data import Table
from dbrm.evolution.snapshot import Snapshot
from dbrm.evolution.weight_draws import WeightDraws
from dbrm.features import Feature, evaluate
from dbrm.priors import ModelPrior
from dbrm.search import split_key

__all__ = ["Registry", "affine_mark", "same_up_to_affine", "simpler"]

_ROWS = 61
_DIGITS = 6
_SAME = 1e-10
# Bytes of a fingerprint.
_MARK = 16


class Registry:
    """Features met so far, numbered in order of appearance."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._by_key: dict[int, int] = {}
        self._by_print: dict[bytes, list[int]] = {}
        self.features: list[Feature] = []
        self.aliases: dict[int, list[Feature]] = {}
        self.weight_draws = WeightDraws()
        self._keys: list[tuple[int, int]] = []
        self._marks: list[bytes] = []

    def __len__(self) -> int:
        return len(self.features)

    @property
    def keys(self) -> npt.NDArray[np.uint64]:
        """Key of each number, in two 64-bit halves; that of its first spelling."""
        return np.array(self._keys, dtype=np.uint64).reshape(-1, 2)

    def known(self, feature: Feature) -> int | None:
        """Number of a feature met before under this spelling; ``None`` if there is none."""
        return self._by_key.get(feature.key)

    def number(self, feature: Feature, column: Column) -> int:
        """Number of a feature with this training column; a new one if it is new."""
        known = self._by_key.get(feature.key)
        if known is not None:
            return known
        mark = affine_mark(column)
        known = self._same_column(feature, column, mark)
        if known is not None:
            return known
        fresh = len(self.features)
        self.features.append(feature)
        self._keys.append(split_key(feature.key))
        self._by_key[feature.key] = fresh
        self._by_print.setdefault(mark, []).append(fresh)
        self._marks.append(mark)
        return fresh

    def recognise(self, feature: Feature, column: Column) -> int | None:
        """Number of a column met before; a spelling that is new becomes an alias of it."""
        known = self._by_key.get(feature.key)
        return (
            known if known is not None else self._same_column(feature, column, affine_mark(column))
        )

    def _same_column(self, feature: Feature, column: Column, mark: bytes) -> int | None:
        for candidate in self._by_print.get(mark, ()):
            columns, _ = evaluate([self.features[candidate]], self._table)
            if same_up_to_affine(column, columns[:, 0]):
                self.alias(candidate, feature)
                return candidate
        return None

    def alias(self, number: int, feature: Feature) -> None:
        """Add one more spelling; the simplest one names the feature."""
        if feature.key in self._by_key:
            return
        self._by_key[feature.key] = number
        current = self.features[number]
        if simpler(feature, current):
            self.features[number], feature = feature, current
        self.aliases.setdefault(number, []).append(feature)

    def log_prior(self, number: int, prior: ModelPrior) -> float:
        """Prior of a feature; of draws of a projection's weights, their share of it."""
        name = self.features[number]
        return prior.feature_log_prior(name) + self.log_share(number, name)

    def log_share(self, number: int, name: Feature) -> float:
        """Log of the share of a topology's draws that this column is; see `WeightDraws`."""
        spellings = (self.features[number], *self.aliases.get(number, ()))
        return self.weight_draws.log_share(name, spellings)

    def get_state(self) -> Snapshot:
        """All features with their spellings."""
        owners = [number for number, others in self.aliases.items() for _ in others]
        return Snapshot(
            arrays={
                "keys": self.keys,
                "marks": np.frombuffer(b"".join(self._marks), dtype=np.uint8).reshape(-1, _MARK),
                "owners": np.array(owners, dtype=np.int64),
                **self.weight_draws.get_state().arrays,
            },
            features={
                "names": list(self.features),
                "aliases": [alias for others in self.aliases.values() for alias in others],
            },
        )

    def set_state(self, snapshot: Snapshot) -> None:
        """Restore the features and spellings."""
        self.features = list(snapshot.features["names"])
        self._keys = [(int(high), int(low)) for high, low in snapshot.arrays["keys"]]
        self._marks = [mark.tobytes() for mark in snapshot.arrays["marks"]]
        self._by_key = {feature.key: number for number, feature in enumerate(self.features)}
        owners = snapshot.arrays["owners"].tolist()
        self.aliases = {}
        for number, alias in zip(owners, snapshot.features["aliases"], strict=True):
            self.aliases.setdefault(number, []).append(alias)
            self._by_key[alias.key] = number
        self._by_print = {}
        for number, mark in enumerate(self._marks):
            self._by_print.setdefault(mark, []).append(number)
        self.weight_draws.set_state(snapshot)


def simpler(first: Feature, second: Feature) -> bool:
    """Whether the first spelling is preferred: less complex, then first in the alphabet."""
    return (first.complexity, first.canonical) < (second.complexity, second.canonical)


def affine_mark(column: Column) -> bytes:
    """Hash of a column that affine maps leave alone (up to rounding)."""
    standard = _standardise(column)
    sample = standard[_marked_rows(column.size)]
    visible = np.flatnonzero(np.abs(sample) > 1e-3)
    if visible.size and sample[visible[0]] < 0:
        sample = -sample
    rounded = np.round(sample * 10**_DIGITS) + 0.0
    return blake2b(rounded.tobytes(), digest_size=_MARK).digest()


@lru_cache(maxsize=16)
def _marked_rows(n_rows: int) -> IntArray:
    return np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(np.int64)


def same_up_to_affine(first: Column, second: Column) -> bool:
    """Whether two columns have correlation plus or minus one, to rounding."""
    a, b = _standardise(first), _standardise(second)
    agreement = float(a @ b) / first.size
    sign = 1.0 if agreement > 0 else -1.0
    difference = a - sign * b
    return float(difference @ difference) / first.size < 2 * _SAME


def _standardise(column: Column) -> Column:
    """Mean zero and mean square one; safe for columns of any magnitude."""
    largest = np.max(np.abs(column))
    centred = column / largest if largest > 0 else column.copy()
    centred -= centred.mean()
    spread = float(np.sqrt(np.mean(centred * centred)))
    return np.asarray(centred / spread if spread > 0 else centred)
