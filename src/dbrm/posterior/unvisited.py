r"""The probability of models that no chain visited, estimated by random walks.

Where many features matter, each of which has a few close relatives, there are more models than any
search visits: with nine features that each have relatives of half their probability, the best
model and all that differ from it in one feature hold a seventh of the mass. Probabilities that add
up to one over the visited models then claim too much for what the best ones have in common.

Walks over the models of the leading features and their relatives, with the posterior as their
stationary distribution, spend a share :math:`\nu` of their time at visited models. These keep their
ratios, and have :math:`\nu` together; what the walks saw besides represents all others, each model
by the share of the time spent there (Clyde and Ghosh 2012, for a finite population):

.. math:: \hat p(M|y) = \nu \, \frac{p(y|M)\,p(M)}{\sum_{M' \in V} p(y|M')\,p(M')} \;\; (M \in V),
    \qquad \hat p(M|y) = \frac{n_M}{n} \;\; (M \notin V) .

A walk adds or drops a feature, or exchanges one for a relative, and accepts by Metropolis' and
Hastings' rule. Walks start at models drawn from the visited ones. What they find in the first part
counts as visited, so that the second part is not used twice.

What only the rows say of a model, of its intercept or its digits, is known of the leading visited
ones; others are taken to gain as many nats by it as is common. At the end it is computed for those
where walks were most often, and their steps are weighted by the difference.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.data import to_unit_length
from dbrm.evidence import AbstractEngine, GaussianEngine, GlmEngine
from dbrm.evolution import Problem, find_relatives
from dbrm.features import evaluate
from dbrm.posterior.merge import Merged, Merger
from dbrm.search import ModelTable, PreparedPopulation, PriorTerms, log_sum_exp
from dbrm.status import Status

__all__ = ["with_unvisited"]

# Where the best model has more than this nothing is missing.
_CERTAIN = 0.95
# Features that walks may use, as many relatives, and the least probability of one; the numbers that
# both together may have, and the fewest of each.
_MOST_FEATURES, _LEAST_INCLUSION = 200, 1e-4
_MOST_NUMBERS, _FEWEST_FEATURES = 20_000_000, 50
# Features whose relatives take part, and the least probability of one.
_MOST_LEADING, _LEADING = 15, 0.05
# Walks, their steps, and the share of the steps whose models count as visited.
_WALKS, _STEPS, _FIRST = 64, 500, 0.4
# Rows times models that are fitted by Newton's method at most, and the fewest steps.
_MOST_ROWS, _FEWEST_STEPS = 16_000_000, 50
# Probability of an exchange, and the power of the correlation by which relatives are drawn.
_EXCHANGE, _POWER = 0.5, 6
# Models whose steps are weighted by what their rows say, and nats that this may be at most.
_MOST_WEIGHTED, _MOST_NATS = 200, 30.0
# Share of the probability of the best model that one which was not visited may have.
_BELOW_BEST = 0.99
# A feature is added or dropped in proportion to the root of its probability, at least of this.
_FLOOR = 1e-3


def with_unvisited(rng: np.random.Generator, problem: Problem, merger: Merger) -> Merged:
    """The posterior with models that no chain visited; the same if there are hardly any."""
    merged = merger.merged()
    n_before, n_steps = len(merged.features), _affordable_steps(problem)
    sure = merged.probability[0] > _CERTAIN or merged.models.statuses[0] != Status.OK
    most = min(_MOST_FEATURES, _MOST_NUMBERS // (2 * problem.table.n_rows))
    if sure or n_steps < _FEWEST_STEPS or most < _FEWEST_FEATURES:
        return merged
    inclusion = merged.models.add_up(merged.probability, n_before)
    leading = np.argsort(-inclusion, kind="stable")[:most]
    leading = leading[inclusion[leading] >= _LEAST_INCLUSION]
    likely = leading[inclusion[leading] >= _LEADING][:_MOST_LEADING]
    relatives = find_relatives(problem, [merged.features[j] for j in likely], most)
    merged = merger.with_features(*relatives)
    pool = np.union1d(leading, np.arange(n_before, len(merged.features)))
    weights = np.full(len(merged.features), _FLOOR)
    weights[:n_before] = np.maximum(inclusion, _FLOOR)
    columns = evaluate([merged.features[j] for j in pool], problem.table)[0]
    walks = _Walks(
        _on_processor(problem.engine).prepare(columns),
        problem.prior_terms(merger.feature_terms()[pool].tolist()),
        *_exchanges(columns),
        np.cumsum(np.sqrt(weights[pool])),
        _Known.of(merged, merger.feature_keys()[pool]) if problem.engine.has_row_terms else None,
    )
    states = walks.start(_draw_models(rng, merged, pool, _WALKS))
    found: list[_States] = []
    for _ in range(n_steps if len(states.masks) else 0):
        states = walks.step(rng, states)
        found.append(states)
    if found:
        keys, n_first = merger.feature_keys(), int(_FIRST * n_steps)
        first, second = (
            _weighted(_States.concatenate(part), walks, problem.engine, columns)
            for part in (found[:n_first], found[n_first:])
        )
        merged = _combine(
            merged, _table(first[0], pool, keys), _table(second[0], pool, keys), second[1]
        )
    return _without_unused(merged, n_before)


def _without_unused(merged: Merged, n_before: int) -> Merged:
    """Without those of the new features that are in no model."""
    used = np.bincount(merged.models.members, minlength=len(merged.features)) > 0
    used[:n_before] = True
    place = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return replace(
        merged,
        features=[feature for feature, kept in zip(merged.features, used, strict=True) if kept],
        models=replace(merged.models, members=place[merged.models.members]),
    )


def _on_processor(engine: AbstractEngine) -> AbstractEngine:
    """The same engine without a graphics processor: steps are many, with few models each."""
    return replace(engine, platform=None) if isinstance(engine, GlmEngine) else engine


def _affordable_steps(problem: Problem) -> int:
    """Steps of each walk: all where a model takes microseconds, few or none where it takes long.

    Models must be sets of features whose evidence comes from the rows in memory.
    """
    engine = problem.engine
    if (
        not problem.estimate_unvisited
        or problem.out_of_core is not None
        or problem.completed
        or problem.latent.effects
        or problem.has_heredity_rule
        or problem.constraints is not None
    ):
        return 0
    if isinstance(engine, GaussianEngine):
        return _STEPS
    if isinstance(engine, GlmEngine) and engine.settling_limit:
        return min(_STEPS, _MOST_ROWS // (_WALKS * problem.table.n_rows))
    return 0


def _draw_models(rng: np.random.Generator, merged: Merged, pool: IntArray, count: int) -> Masks:
    """Models drawn by their probability; features outside the pool are left out."""
    position = np.full(len(merged.features), -1)
    position[pool] = np.arange(pool.size)
    rows = rng.choice(merged.probability.size, count, p=merged.probability)
    masks = np.zeros((count, pool.size), dtype=np.bool_)
    for mask, row in zip(masks, rows, strict=True):
        own = position[merged.models.features_of(int(row))]
        mask[own[own >= 0]] = True
    return masks


def _exchanges(columns: Matrix) -> tuple[Matrix, Matrix]:
    """Log probabilities with which a feature (rows) is exchanged for another; cumulated ones."""
    unit = to_unit_length(columns, fill=0.0)
    weights: Matrix = np.abs(unit.T @ unit) ** _POWER
    np.fill_diagonal(weights, 0.0)
    weights += np.finfo(float).tiny
    weights /= weights.sum(axis=1, keepdims=True)
    return np.log(weights), np.cumsum(weights, axis=1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _States:
    """Where walks are: masks over the pool, with what is known of these models."""

    masks: Masks
    log_evidence: FloatArray
    log_prior: FloatArray
    statuses: StatusArray

    @property
    def log_posterior(self) -> FloatArray:
        return self.log_evidence + self.log_prior

    def moved(self, other: "_States", accepted: Mask) -> "_States":
        """The other states where they are accepted."""
        return _States(
            np.where(accepted[:, None], other.masks, self.masks),
            np.where(accepted, other.log_evidence, self.log_evidence),
            np.where(accepted, other.log_prior, self.log_prior),
            np.where(accepted, other.statuses, self.statuses),
        )

    @classmethod
    def concatenate(cls, states: "list[_States]") -> "_States":
        """All states, one after the other."""
        return cls(
            *(
                np.concatenate([getattr(one, name) for one in states])
                for name in ("masks", "log_evidence", "log_prior", "statuses")
            )
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """Log evidence of the visited models, in the order of their keys.

    Parameters
    ----------
    feature_keys
        Of the features of the pool.
    row_terms
        Nats that other models commonly gain by what only their rows say.
    """

    keys: npt.NDArray[np.uint64]
    log_evidence: FloatArray
    feature_keys: npt.NDArray[np.uint64]
    row_terms: float

    @classmethod
    def of(cls, merged: Merged, feature_keys: npt.NDArray[np.uint64]) -> "_Known":
        keys = merged.models.keys[:, 0]
        order = np.argsort(keys)
        log_evidence = merged.models.log_evidence[order]
        return cls(keys[order], log_evidence, feature_keys[:, 0], merged.row_terms)

    def keys_of(self, masks: Masks) -> npt.NDArray[np.uint64]:
        """Keys of models."""
        parts = np.where(masks, self.feature_keys, np.uint64(0))
        return np.asarray(np.bitwise_xor.reduce(parts, axis=1))

    def look_up(self, masks: Masks) -> tuple[Mask, FloatArray]:
        """Which models are visited ones, and the log evidence of these."""
        wanted = self.keys_of(masks)
        place = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        there = self.keys[place] == wanted
        return there, self.log_evidence[place[there]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Walks:
    """The target and the proposals of walks over one pool.

    Parameters
    ----------
    exchanges, cumulated
        Log probabilities of exchanges; and cumulated ones, by rows.
    flips
        Cumulated weights of the features that are added or dropped.
    known
        The visited models, where their rows say more than the population.
    """

    population: PreparedPopulation
    terms: PriorTerms
    exchanges: Matrix
    cumulated: Matrix
    flips: FloatArray
    known: _Known | None = None

    def start(self, masks: Masks) -> _States:
        """The states of those of these models that have evidence."""
        states = self._at(masks)
        return self._at(masks[np.isfinite(states.log_posterior)])

    def step(self, rng: np.random.Generator, states: _States) -> _States:
        """One step of every walk."""
        masks, count = states.masks.copy(), len(states.masks)
        rows, log_ratio = np.arange(count), np.zeros(count)
        swaps = rng.random(count) < _EXCHANGE
        draws = rng.random((3, count))
        # Which feature leaves: each of the model's is as likely.
        order = np.cumsum(masks, axis=1)
        left = np.argmax(order > (draws[0] * order[:, -1]).astype(int)[:, None], axis=1)
        joined = (self.cumulated[left] < draws[1][:, None]).sum(axis=1)
        joined = np.minimum(joined, masks.shape[1] - 1)
        log_ratio[swaps] = (self.exchanges[joined, left] - self.exchanges[left, joined])[swaps]
        # A feature that is there already cannot come in, nor can one leave an empty model: it then
        # stays, so that additions are as frequent as in other models.
        possible = ~swaps | (masks.any(axis=1) & ~masks[rows, joined])
        flipped = np.searchsorted(self.flips, draws[2] * self.flips[-1], side="right")
        flipped = np.minimum(flipped, masks.shape[1] - 1)
        swaps &= possible
        masks[rows[swaps], left[swaps]] = False
        masks[rows[swaps], joined[swaps]] = True
        alone = possible & ~swaps
        masks[rows[alone], flipped[alone]] ^= True
        there = self._at(masks)
        gain = there.log_posterior - states.log_posterior + log_ratio
        accepted = np.log(rng.random(count)) < gain
        return states.moved(there, accepted & possible)

    def _at(self, masks: Masks) -> _States:
        allowed = masks.sum(axis=1) <= self.terms.max_size
        values, statuses = np.full(len(masks), -np.inf), np.zeros(len(masks), dtype=np.uint8)
        if allowed.any():
            values[allowed], statuses[allowed] = self.population.log_evidence(masks[allowed])
        if self.known is not None:
            there, evidence = self.known.look_up(masks)
            values[there] = evidence
            values[~there] += self.known.row_terms
        values[np.isnan(values)] = -np.inf
        log_prior = np.where(allowed, 0.0, -np.inf)
        log_prior[allowed] = self.terms.of(masks[allowed])
        return _States(masks, values, log_prior, statuses)


def _weighted(
    states: _States, walks: _Walks, engine: AbstractEngine, columns: Matrix
) -> tuple[_States, FloatArray]:
    """States with the evidence from their rows, and the weights of the steps that follow."""
    if walks.known is None:
        return states, np.ones(len(states.masks))
    outside = np.flatnonzero(~walks.known.look_up(states.masks)[0])
    masks = states.masks[outside]
    _, rows, place, counts = np.unique(
        walks.known.keys_of(masks), return_index=True, return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:_MOST_WEIGHTED]
    gain = np.zeros(rows.size)
    from_rows, _ = engine.log_evidence_of(columns, masks[rows[most]])
    gain[most] = np.minimum(from_rows - states.log_evidence[outside][rows[most]], _MOST_NATS)
    gains = np.zeros(len(states.masks))
    gains[outside] = gain[place]
    return replace(states, log_evidence=states.log_evidence + gains), np.exp(gains)


def _table(states: _States, pool: IntArray, keys: npt.NDArray[np.uint64]) -> ModelTable:
    """The models of states, each as often as a walk was there."""
    return ModelTable.from_masks(
        states.masks,
        pool.astype(np.int32),
        keys,
        log_evidence=states.log_evidence,
        log_prior=states.log_prior,
        statuses=states.statuses,
    )


def _combine(merged: Merged, first: ModelTable, second: ModelTable, weights: FloatArray) -> Merged:
    """Visited models, among them those of the first part of the walks, and representatives.

    Parameters
    ----------
    weights
        Of the steps of the second part.
    """
    known = merged.models.keys[:, 0]
    _, rows = np.unique(first.keys[:, 0], return_index=True)
    fresh = rows[~np.isin(first.keys[rows, 0], known) & np.isfinite(first.log_evidence[rows])]
    visited = ModelTable.concatenate([merged.models, first.take(fresh)])
    log_posterior = visited.log_evidence + visited.log_prior
    log_mass = log_sum_exp(log_posterior)
    others, rows, place = np.unique(second.keys[:, 0], return_index=True, return_inverse=True)
    outside = ~np.isin(others, visited.keys[:, 0])
    share = np.bincount(place, weights)[outside] / max(weights.sum(), np.finfo(float).tiny)
    probability = np.exp(log_posterior - log_mass)
    # Representatives must not come before the best model.
    share = np.minimum(share, _BELOW_BEST * probability.max() * (1.0 - share.sum()))
    probability *= 1.0 - share.sum()
    models = ModelTable.concatenate([visited, second.take(rows[outside])])
    probability = np.concatenate([probability, share])
    order = np.argsort(-probability, kind="stable")
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return replace(
        merged,
        models=models.take(order),
        probability=probability[order],
        log_mass=log_mass,
        visited=[np.sort(place[rows]) for rows in merged.visited],
        unvisited=float(share.sum()),
    )
