"""A walk of MJMCMC through one population that can be interrupted and resumed.

In how many pieces a walk is made does not change its steps. Between pieces its state is a few
arrays. Models are evaluated by the population.
"""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dbrm._kernels import mjmcmc as source
from dbrm._kernels.compilation import plain
from dbrm._kernels.evaluation import COMPILED_CONTEXTS
from dbrm._kernels.store import Store, new_store, refill
from dbrm._typing import FloatArray, IntArray, Mask, Masks
from dbrm.data.schema import refuse_unless
from dbrm.search.exploration import Exploration, PreparedPopulation, PriorTerms, Walk, log_sum_exp
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.search.mjmcmc import Mjmcmc

__all__ = ["KERNEL_NAMES", "Walker", "collect", "kernels", "new_target"]

Words = npt.NDArray[np.uint64]

KERNEL_NAMES = tuple(item.name for item in fields(source.KernelMix))

_STORED = ("words", "values", "priors", "statuses")
_PLACE = source.Position._fields
_PER_STEP = ("log_posterior", "size", "kernel", "accepted")
# Masks turned into numbers at a time.
_CHUNK = 1 << 14


class Walker:
    """A walk through the masks of a population.

    Parameters
    ----------
    settings
        Its length and its kernels.
    population, terms
        What it walks through, and the prior there.
    start
        The first mask.
    """

    def __init__(
        self, settings: "Mjmcmc", population: PreparedPopulation, terms: PriorTerms, start: Mask
    ) -> None:
        size = population.size
        self._settings = settings
        self._size = size
        self._plan = settings.plan()
        self._store = new_store(settings.capacity(size), max(1, -(-size // 64)))
        self._target = new_target(population, self._store, terms)
        self._trace = _new_trace(settings.n_steps, self._store)
        mask = terms.without_orphans(start)
        self._position = source.new_position(mask, np.full(size, 0.5))

    @property
    def n_done(self) -> int:
        """Steps made so far."""
        return int(self._position.step[0])

    @property
    def n_models(self) -> int:
        """Different models met so far."""
        return int(self._store.counts[0])

    def best(self) -> tuple[float, Mask]:
        """Log posterior and mask of the best model so far."""
        store, count = self._store, self.n_models
        row = int(np.argmax(store.values[:count] + store.priors[:count]))
        mask = _unpack(store.words[row : row + 1], self._size)[0]
        return float(store.values[row] + store.priors[row]), mask

    def walk(self, rng: np.random.Generator, n_steps: int) -> None:
        """Make `n_steps` more steps, or those that are left if they are fewer."""
        until = min(self.n_done + n_steps, self._settings.n_steps)
        loop = kernels(self._target).mjmcmc_loop
        loop(rng, self._target, self._plan, self._position, self._trace, until)

    def found(self) -> Exploration:
        """The exploration so far."""
        return collect(
            self._store,
            self._position.mask,
            window=self._settings.window,
            max_kept=self._settings.max_kept,
            walk=(self._trace, self._plan.adapt_until, self.n_done),
        )

    def to_arrays(self) -> dict[str, Any]:
        """The state of the walk, for `restore`."""
        count, done = self.n_models, self.n_done
        return {
            **{f"store_{name}": getattr(self._store, name)[:count] for name in _STORED},
            "store_counts": self._store.counts,
            "store_log_lost": self._store.log_lost,
            **{f"position_{name}": getattr(self._position, name) for name in _PLACE},
            **{f"trace_{name}": getattr(self._trace, name)[:done] for name in _PER_STEP},
            "trace_visits": self._trace.visits[:count],
            "trace_proposed_by": self._trace.proposed_by,
            "trace_accepted_by": self._trace.accepted_by,
        }

    def restore(self, arrays: dict[str, Any]) -> None:
        """Resume a walk with the same settings from the arrays of `to_arrays`."""
        store = self._store
        self._check(arrays)
        refill(store, *(np.ascontiguousarray(arrays[f"store_{name}"]) for name in _STORED))
        store.counts[:] = arrays["store_counts"]
        store.log_lost[:] = arrays["store_log_lost"]
        for name in _PLACE:
            getattr(self._position, name)[:] = arrays[f"position_{name}"]
        for name in (*_PER_STEP, "visits", "proposed_by", "accepted_by"):
            given = arrays[f"trace_{name}"]
            getattr(self._trace, name)[: given.size] = given

    def _check(self, arrays: dict[str, Any]) -> None:
        """Raise unless the arrays are of a walk like this one: compiled code trusts them."""
        words, steps = arrays["store_words"], arrays["trace_size"]
        count, done = len(words), int(arrays["position_step"][0])
        spare = self._size % 64
        beyond = words[:, -1:] >> np.uint64(spare) if spare else words[:, :0]
        sound = (
            words.shape[1] == self._store.words.shape[1]
            and 0 < count <= self._store.values.size
            and len(np.unique(words, axis=0)) == count
            and not beyond.any()
            and int(arrays["store_counts"][0]) == count
            and arrays["position_mask"].size == self._size
            and arrays["trace_proposed_by"].size == len(KERNEL_NAMES)
            and done == steps.size <= self._settings.n_steps
            and bool(np.isin(arrays["store_statuses"], list(Status)).all())
        )
        refuse_unless(sound, "The walk of a chain")


def kernels(target: source.Target) -> Any:
    """The compiled functions where the engine's evaluation is compiled, else their plain twins."""
    return source if isinstance(target.context, COMPILED_CONTEXTS) else plain(source)


def new_target(population: PreparedPopulation, store: Store, terms: PriorTerms) -> source.Target:
    """What a loop samples from."""
    return source.Target(
        population.context,
        store,
        terms.feature,
        terms.size,
        terms.parents,
        terms.needed,
        terms.latent,
    )


def collect(
    store: Store,
    last: Mask,
    *,
    window: float,
    max_kept: int,
    walk: tuple[source.Trace, int, int] | None = None,
) -> Exploration:
    """Models worth keeping, and the sums over all of them.

    Parameters
    ----------
    walk
        Trace of a walk, the steps of it that served adaptation, and those made.
    """
    count = int(store.counts[0])
    words = store.words[:count]
    log_evidence, log_prior = store.values[:count], store.priors[:count]
    log_posterior = log_evidence + log_prior
    log_mass = log_sum_exp(log_posterior)
    # Steepest ascent among dependent columns may meet no model with evidence.
    share = np.exp(log_posterior - (log_mass if log_mass > -np.inf else 0.0))
    kept = np.flatnonzero(log_posterior >= log_posterior.max() - window)
    if kept.size > max_kept:
        kept = kept[np.argsort(-log_posterior[kept], kind="stable")[:max_kept]]
    left_out = np.delete(log_posterior, kept)
    counts = np.bincount(store.statuses[:count], minlength=1)
    return Exploration(
        masks=_unpack(words[kept], last.size),
        log_evidence=log_evidence[kept],
        log_prior=log_prior[kept],
        statuses=store.statuses[:count][kept],
        inclusion=np.minimum(_add_up(share, words, last.size), 1.0),
        log_mass=log_mass,
        log_lost=float(np.logaddexp(log_sum_exp(left_out), store.log_lost[0])),
        n_evaluated=count + int(store.counts[2]),
        status_counts={int(s): int(counts[s]) for s in np.flatnonzero(counts)},
        last=last,
        walk=None if walk is None else _walk(*walk, words, kept, last.size),
    )


def _walk(
    trace: source.Trace, adapted: int, done: int, words: Words, kept: IntArray, size: int
) -> Walk:
    visits = trace.visits[: len(words)]
    return Walk(
        frequency=_add_up(visits, words, size) / max(int(visits.sum()), 1),
        visits=visits[kept],
        log_posterior=trace.log_posterior[adapted:done],
        size=trace.size[adapted:done],
        proposed=dict(zip(KERNEL_NAMES, trace.proposed_by.tolist(), strict=True)),
        accepted=dict(zip(KERNEL_NAMES, trace.accepted_by.tolist(), strict=True)),
    )


def _add_up(weights: npt.NDArray[Any], words: Words, size: int) -> FloatArray:
    """Summed weight of the models with each feature."""
    total = np.zeros(size)
    for start in range(0, len(words), _CHUNK):
        total += weights[start : start + _CHUNK] @ _unpack(words[start : start + _CHUNK], size)
    return total


def _new_trace(n_steps: int, store: Store) -> source.Trace:
    n_kernels = len(KERNEL_NAMES)
    return source.Trace(
        log_posterior=np.empty(n_steps),
        size=np.empty(n_steps, dtype=np.int32),
        kernel=np.empty(n_steps, dtype=np.int8),
        accepted=np.empty(n_steps, dtype=np.bool_),
        visits=np.zeros(store.values.size, dtype=np.int64),
        proposed_by=np.zeros(n_kernels, dtype=np.int64),
        accepted_by=np.zeros(n_kernels, dtype=np.int64),
    )


def _unpack(words: Words, size: int) -> Masks:
    """Turn packed words into boolean masks."""
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :size].astype(np.bool_)
