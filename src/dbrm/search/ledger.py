"""The ledger of visited models: each model once, however often and wherever it was met.

A model is a set of feature numbers; its key is the exclusive or of its features'
128-bit keys, which does not depend on order and can be formed for thousands of masks
at once. The ledger's memory is bounded: when it is full the least probable models
are dropped, and their mass is counted as lost.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, Masks, StatusArray
from dbrm.errors import InvalidSettingError
from dbrm.search.exploration import log_sum_exp
from dbrm.status import Status

__all__ = [
    "Ledger",
    "ModelTable",
    "effect_keys",
    "effects_of",
    "model_keys",
    "pack_effects",
    "split_key",
    "unique_rows",
]

# Models worked on at a time.
_CHUNK = 1 << 14
# Deduplicate once the buffer holds this many models.
_FEW = 10_000

Keys = npt.NDArray[np.uint64]
Members = npt.NDArray[np.int32]
# One bit for each latent effect.
Bits = npt.NDArray[np.uint64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """Models in columns: model ``i`` holds ``members[starts[i]:starts[i + 1]]``.

    ``keys`` has two 64-bit halves per model, ``members`` are feature numbers in
    ascending order, bit ``k`` of ``latent`` says whether latent effect ``k`` is in the model.
    """

    keys: Keys
    starts: npt.NDArray[np.int64]
    members: Members
    log_evidence: FloatArray
    log_prior: FloatArray
    statuses: StatusArray
    latent: Bits

    def __len__(self) -> int:
        return int(self.log_evidence.size)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of features of each model."""
        return np.diff(self.starts)

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """For every entry of `members`, the model it belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def is_sound(self, n_latent: int) -> bool:
        """Whether columns of the right lengths, as read from a file, are a table of models."""
        starts, members = self.starts, self.members
        if starts[0] != 0 or starts[-1] != members.size or np.any(np.diff(starts) < 0):
            return False
        rising = np.diff(members) > 0
        # Where one model ends and the next begins, numbers may fall.
        rising |= np.diff(self.owners) > 0
        return (
            bool(rising.all())
            and bool(np.isin(self.statuses, list(Status)).all())
            and int(self.latent.max(initial=0)).bit_length() <= n_latent
        )

    def add_up(self, weights: FloatArray, n_features: int) -> FloatArray:
        """Summed weight of the models with each feature."""
        total = np.zeros(n_features)
        for some in _chunks(len(self)):
            inside = self.members[self.starts[some.start] : self.starts[some.stop]]
            spread = np.repeat(weights[some], self.sizes[some])
            total += np.bincount(inside, weights=spread, minlength=n_features)
        return total

    def sum_terms(self, terms: FloatArray) -> FloatArray:
        """Sum of the terms of each model's features."""
        sums = np.zeros(len(self))
        for some in _chunks(len(self)):
            inside = self.members[self.starts[some.start] : self.starts[some.stop]]
            owners = np.repeat(np.arange(some.stop - some.start), self.sizes[some])
            count = some.stop - some.start
            sums[some] = np.bincount(owners, weights=terms[inside], minlength=count)
        return sums

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The columns by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def features_of(self, row: int) -> Members:
        """Feature numbers of one model."""
        return self.members[self.starts[row] : self.starts[row + 1]]

    def take(self, rows: npt.NDArray[np.int64]) -> "ModelTable":
        """Return the chosen models, in the chosen order."""
        sizes = self.sizes[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        members = np.empty(int(starts[-1]), dtype=self.members.dtype)
        for some in _chunks(rows.size):
            inside = slice(starts[some.start], starts[some.stop])
            # Where each entry was: its place within its model, after the model's old start.
            shift = np.repeat(self.starts[:-1][rows[some]] - starts[some], sizes[some])
            members[inside] = self.members[shift + np.arange(inside.start, inside.stop)]
        return ModelTable(
            keys=self.keys[rows],
            starts=starts,
            members=members,
            log_evidence=self.log_evidence[rows],
            log_prior=self.log_prior[rows],
            statuses=self.statuses[rows],
            latent=self.latent[rows],
        )

    @classmethod
    def from_masks(
        cls,
        masks: Masks,
        features: Members,
        feature_keys: Keys,
        *,
        log_evidence: FloatArray,
        log_prior: FloatArray,
        statuses: StatusArray,
        latent_keys: Keys | None = None,
    ) -> "ModelTable":
        """Translate masks over a population into sets of feature numbers.

        Components after the features are latent effects with these keys.
        """
        effects = masks[:, features.size :]
        masks = masks[:, : features.size]
        order = np.argsort(features, kind="stable")
        names = features[order].astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(masks.sum(axis=1))])
        parts = [
            np.broadcast_to(names, masks[some].shape)[masks[some][:, order]]
            for some in _chunks(len(masks))
        ]
        members = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
        latent = pack_effects(effects)
        return cls(
            keys=model_keys(starts, members, feature_keys) ^ effect_keys(latent, latent_keys),
            starts=starts,
            members=members,
            log_evidence=np.asarray(log_evidence),
            log_prior=np.asarray(log_prior),
            statuses=np.asarray(statuses),
            latent=latent,
        )

    @classmethod
    def concatenate(cls, tables: "list[ModelTable]") -> "ModelTable":
        """Stack tables over the same feature numbers; models may repeat."""
        if len(tables) == 1:
            return tables[0]
        sizes = np.concatenate([table.sizes for table in tables])
        return cls(
            keys=np.concatenate([table.keys for table in tables]),
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            members=np.concatenate([table.members for table in tables]),
            log_evidence=np.concatenate([table.log_evidence for table in tables]),
            log_prior=np.concatenate([table.log_prior for table in tables]),
            statuses=np.concatenate([table.statuses for table in tables]),
            latent=np.concatenate([table.latent for table in tables]),
        )


class Ledger:
    """Collects models population by population.

    Parameters
    ----------
    max_models
        Capacity. Beyond it the least probable models are dropped and their
        posterior mass is added to `log_lost`.
    """

    def __init__(self, max_models: int) -> None:
        if max_models < 1:
            msg = f"max_models must be at least 1; got max_models={max_models!r}."
            raise InvalidSettingError(msg)
        self._max_models = max_models
        self._pending: list[ModelTable] = []
        self._n_pending = 0
        self._n_settled = 0
        self.n_dropped = 0
        self.log_lost = -np.inf

    def record(self, models: ModelTable, log_lost: float = -np.inf) -> None:
        """Add models; those already there are recognised by their key."""
        self._pending.append(models)
        self._n_pending += len(models)
        self.log_lost = float(np.logaddexp(self.log_lost, log_lost))
        bearable = max(2 * self._n_settled, _FEW)
        if self._n_pending > min(bearable, 2 * self._max_models):
            self.models()

    def pending(self) -> ModelTable | None:
        """The records as they are, repeated models and all; none if there are none."""
        return ModelTable.concatenate(self._pending) if self._pending else None

    def restore(self, pending: ModelTable | None, n_settled: int) -> None:
        """Take over the records of another ledger; `models` then has the same effects."""
        self._pending = [] if pending is None else [pending]
        self._n_pending = 0 if pending is None else len(pending)
        self._n_settled = n_settled

    @property
    def n_settled(self) -> int:
        """Different models when they were last counted."""
        return self._n_settled

    def models(self) -> ModelTable:
        """All models once each, in order of their keys."""
        table = ModelTable.concatenate(self._pending)
        self._pending = []
        table = table.take(unique_rows(table.keys)[0])
        if len(table) > self._max_models:
            log_posterior = table.log_evidence + table.log_prior
            order = np.argsort(-log_posterior, kind="stable")
            dropped = log_sum_exp(log_posterior[order[self._max_models :]])
            self.log_lost = float(np.logaddexp(self.log_lost, dropped))
            self.n_dropped += len(table) - self._max_models
            table = table.take(np.sort(order[: self._max_models]))
        self._pending = [table]
        self._n_pending = self._n_settled = len(table)
        return table


def split_key(key: int) -> tuple[int, int]:
    """Halves of a 128-bit feature key."""
    return key >> 64, key & 0xFFFFFFFFFFFFFFFF


def model_keys(starts: npt.NDArray[np.int64], members: Members, feature_keys: Keys) -> Keys:
    """Exclusive or of the feature keys of each model; the empty model has key zero."""
    keys = np.zeros((starts.size - 1, 2), dtype=np.uint64)
    for some in _chunks(starts.size - 1):
        first, last = starts[some.start], starts[some.stop]
        filled = some.start + np.flatnonzero(np.diff(starts[some.start : some.stop + 1]))
        if filled.size:
            parts, begin = feature_keys[members[first:last]], starts[filled] - first
            keys[filled] = np.bitwise_xor.reduceat(parts, begin, axis=0)
    return keys


def pack_effects(masks: Masks) -> Bits:
    """Bit ``k`` of each row says whether column ``k`` of the mask is set."""
    weights = np.uint64(1) << np.arange(masks.shape[1], dtype=np.uint64)
    return np.asarray((masks * weights).sum(axis=1, dtype=np.uint64))


def effects_of(bits: Bits, n_latent: int) -> Masks:
    """The inverse of `pack_effects`."""
    shifted = bits[:, None] >> np.arange(n_latent, dtype=np.uint64)
    return (shifted & np.uint64(1)).astype(np.bool_)


def effect_keys(bits: Bits, latent_keys: Keys | None) -> Keys:
    """Exclusive or of the keys of each model's latent effects."""
    keys = np.zeros((bits.size, 2), dtype=np.uint64)
    if latent_keys is not None:
        for column, key in zip(effects_of(bits, len(latent_keys)).T, latent_keys, strict=True):
            keys[column] ^= key
    return keys


def _chunks(count: int) -> list[slice]:
    """Rows in pieces: what is made of them on the way takes several times their memory."""
    return [slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK)]


def unique_rows(keys: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First occurrence of each key, in order of the keys; and for every row, which one it is."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    ordered = keys[order]
    fresh = np.ones(len(keys), dtype=np.bool_)
    fresh[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    position = np.empty(len(keys), dtype=np.int64)
    position[order] = np.cumsum(fresh) - 1
    return order[fresh], position
