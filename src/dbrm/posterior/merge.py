"""From chains to one posterior: the union of the models that any chain visited.

Feature numbers differ between chains; columns do not. Features are renumbered in one
registry, so that a formula found twice under two spellings is one row. How chains are weighted
is the choice of a rule (`dbrm.posterior.merge_rules`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evolution import ChainResult, FeatureColumns, Problem, Registry, with_prior
from dbrm.features import Feature, evaluate
from dbrm.posterior.merge_rules import MERGE_RULES
from dbrm.search import (
    ModelTable,
    effect_keys,
    log_sum_exp,
    model_keys,
    unique_rows,
)
from dbrm.status import Status

__all__ = ["Merged", "Merger", "merge_chains"]

# Models this close to the best are recomputed from the rows, and at most this many.
REFINE_WINDOW = 12.0
REFINE_MOST = 300
# Models evaluated on all completed tables.
MOST_COMPLETED = 1_000
REFINE_ROUNDS = 5
# Largest number of rows times columns held at once while doing so.
REFINE_CELLS = 20_000_000
# Nats that a simpler spelling, which another chain knows, may be worth to a model.
SPELLING = 50.0
# Deduplicate once the buffer holds this many new models.
_BUFFER = 50_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """One posterior over models, most probable first.

    Parameters
    ----------
    log_mass, log_lost
        Log of the posterior mass of the models kept, and a bound on that of the others.
    n_refined
        Models whose evidence was recomputed from the rows.
    visited
        For each chain, the rows of `models` that it visited itself.
    frequency
        Share of the steps with each feature in the model, averaged over the chains;
        none for algorithms that do not sample from the posterior.
    unvisited
        Estimated probability of the models that no chain visited (`dbrm.posterior.unvisited`).
    row_terms
        Nats that models commonly gain by what only their rows say; added to those not refined.
    """

    features: list[Feature]
    aliases: dict[int, list[Feature]]
    models: ModelTable
    probability: FloatArray
    log_mass: float
    log_lost: float
    n_refined: int
    visited: list[IntArray]
    frequency: FloatArray | None
    unvisited: float = 0.0
    row_terms: float = 0.0


def merge_chains(results: list[ChainResult], problem: Problem, how: str = "union") -> Merged:
    """Merge chains, in the order of their numbers."""
    merger = Merger(problem, how)
    for result in results:
        merger.add(result)
    return merger.merged()


@final
class Merger:
    """Merges chains one after the other; memory grows with the number of distinct models.

    It keeps at most ``problem.budget.max_merged`` models. Beyond that the least probable are
    dropped, and their mass is added to the lost mass.

    Parameters
    ----------
    how
        Name of the rule by which chains are weighted.
    """

    def __init__(self, problem: Problem, how: str = "union") -> None:
        self._problem = problem
        self._rule = MERGE_RULES.find(how)()
        self._capacity = problem.budget.max_merged
        self._registry = Registry(problem.table)
        self._parts: list[_Part] = []
        self._n_deduplicated = 0
        self._peak = -np.inf
        # Once `max_merged` models are kept, a model below the worst of them is not added.
        self._floor = -np.inf
        self._log_lost: list[float] = []
        self._n_chains = 0
        self._frequency: FloatArray | None = np.zeros(0)
        self._merged: Merged | None = None
        self._included: list[list[Feature]] = []
        # Numbers of the features of the merged models.
        self._used: IntArray = np.zeros(0, dtype=np.int64)

    def include(self, model: list[Feature]) -> None:
        """Add a model that was found before the chains, which count as having visited it."""
        self._merged = None
        self._included.append(model)

    def add(self, result: ChainResult) -> None:
        """Add the models of the next chain."""
        self._merged = None
        log_posterior = _log_posterior(result.models)
        peak = float(np.max(log_posterior))
        window = self._problem.budget.window
        # Other chains may know simpler spellings, by which models of this one are more probable.
        best = max(peak, self._peak - SPELLING) if self._rule.common_scale else peak
        inside = log_posterior >= max(best - window, self._floor - SPELLING)
        self._log_lost += [log_sum_exp(log_posterior[~inside]), result.log_lost]
        kept = result.models.take(np.flatnonzero(inside))
        numbers = _number(kept, result, self._problem, self._registry)
        self._registry.weight_draws.add(result.weight_draws)
        finders = np.zeros((len(kept), self._n_chains // 64 + 1), dtype=np.uint64)
        finders[:, -1] = np.uint64(1) << np.uint64(self._n_chains % 64)
        table = _renumber(kept, numbers, self._registry, self._problem.latent.keys)
        log_weight = np.full(len(kept), self._rule.log_weight(log_posterior))
        self._parts.append(_Part(table, log_weight, finders))
        self._add_frequency(result, numbers)
        self._n_chains += 1
        self._peak = max(self._peak, peak)
        if sum(len(part.models) for part in self._parts) > self._n_deduplicated + _BUFFER:
            self._deduplicate()

    def _add_frequency(self, result: ChainResult, numbers: IntArray) -> None:
        if result.draws is None or self._frequency is None:
            self._frequency = None
            return
        totals = np.zeros(len(self._registry))
        totals[: self._frequency.size] = self._frequency
        used = np.flatnonzero(numbers[: result.draws.frequency.size] >= 0)
        np.add.at(totals, numbers[used], result.draws.frequency[used])
        self._frequency = totals

    def _deduplicate(self) -> "_Part":
        """Unite models that several chains found, and drop those that no longer matter."""
        parts, self._parts = self._parts, []
        part = _unite(parts, add_weights=self._rule.adds_weights)
        part = replace(part, models=with_prior(part.models, self._problem, self._registry))
        log_posterior = _log_posterior(part.models)
        self._peak = float(np.max(log_posterior))
        if self._rule.common_scale:
            outside = log_posterior < self._peak - self._problem.budget.window
            part = self._drop(part, log_posterior, outside)
            log_posterior = log_posterior[~outside]
        if len(part.models) > self._capacity:
            weighted = log_posterior + part.log_weight
            last = np.argsort(-weighted, kind="stable")[self._capacity :]
            outside = np.zeros(weighted.size, dtype=np.bool_)
            outside[last] = True
            part = self._drop(part, log_posterior, outside)
            if not self._rule.adds_weights:
                self._floor = float(np.min(log_posterior[~outside]))
        self._parts, self._n_deduplicated = [part], len(part.models)
        return part

    def _drop(self, part: "_Part", log_posterior: FloatArray, outside: Mask) -> "_Part":
        if not outside.any():
            return part
        self._log_lost.append(log_sum_exp(log_posterior[outside]))
        return part.take(np.flatnonzero(~outside))

    def _part_of(self, model: list[Feature]) -> "_Part":
        """A model as a table of one row, with its evidence from the rows."""
        problem, registry = self._problem, self._registry
        columns = evaluate(model, problem.table)[0]
        numbers = [registry.number(f, c) for f, c in zip(model, columns.T, strict=True)]
        members = np.unique(np.array(numbers, dtype=np.int32))
        starts = np.array([0, members.size])
        mask = np.ones((1, len(model)), dtype=np.bool_)
        values, statuses = problem.engine.log_evidence_of(columns, mask)
        table = ModelTable(
            keys=model_keys(starts, members, registry.keys),
            starts=starts,
            members=members,
            log_evidence=values,
            log_prior=np.zeros(1),
            statuses=statuses,
            latent=np.zeros(1, dtype=np.uint64),
        )
        table = with_prior(table, problem, registry)
        words = self._n_chains // 64 + 1
        finders = np.full((1, words), np.iinfo(np.uint64).max, dtype=np.uint64)
        weight = np.array([self._rule.log_weight(_log_posterior(table))])
        return _Part(table, weight, finders)

    def merged(self) -> Merged:
        """One posterior of all chains added so far; asked for again, the same."""
        if self._merged is None:
            self._merged = self._merge()
        return self._merged

    def with_features(self, features: Sequence[Feature], columns: Matrix) -> Merged:
        """The posterior with features that no model has yet, unless they are there already."""
        merged, registry = self.merged(), self._registry
        numbers = [registry.number(f, c) for f, c in zip(features, columns.T, strict=True)]
        fresh = [number for number in dict.fromkeys(numbers) if number not in set(self._used)]
        self._used = np.concatenate([self._used, np.array(fresh, dtype=np.int64)])
        return replace(merged, features=[registry.features[number] for number in self._used])

    def feature_terms(self) -> FloatArray:
        """Log prior of each feature of the posterior."""
        prior = self._problem.model_prior
        return np.array([self._registry.log_prior(int(j), prior) for j in self._used])

    def feature_keys(self) -> npt.NDArray[np.uint64]:
        """Key of each feature of the posterior."""
        return self._registry.keys[self._used]

    def _merge(self) -> Merged:
        problem, registry = self._problem, self._registry
        part = self._deduplicate()
        if problem.has_heredity_rule:
            # Simpler spellings found by another chain may have other factors.
            allowed = problem.heredity_rule(registry).allows(part.models)
            part = part.take(np.flatnonzero(allowed))
        if self._included:
            included = [self._part_of(model) for model in self._included]
            part = _unite([part, *included], add_weights=self._rule.adds_weights)
        models, refined = _refine(part.models, problem, registry)
        row_terms = _common_row_terms(part.models, models, refined, problem)
        if row_terms:
            log_evidence = models.log_evidence.copy()
            log_evidence[np.delete(np.arange(len(models)), refined)] += row_terms
            models = replace(models, log_evidence=log_evidence)
        if problem.subsampled or problem.completed:
            # The evidence of a sample, or of one completed table, is for the search only.
            part, models = part.take(refined), models.take(refined)
        weighted = _log_posterior(models) + part.log_weight
        log_mass = log_sum_exp(weighted)
        probability = np.exp(weighted - log_mass)
        order = np.lexsort((models.keys[:, 1], models.keys[:, 0], -probability))
        models, finders = models.take(order), part.finders[order]
        used = self._used = np.flatnonzero(np.bincount(models.members, minlength=len(registry)))
        position = np.zeros(len(registry), dtype=np.int32)
        position[used] = np.arange(used.size)
        frequency = self._frequency
        return Merged(
            features=[registry.features[number] for number in used],
            aliases={
                place: registry.aliases[int(number)]
                for place, number in enumerate(used)
                if int(number) in registry.aliases
            },
            models=replace(models, members=position[models.members]),
            probability=probability[order],
            log_mass=log_mass,
            log_lost=float(np.logaddexp.reduce(self._log_lost)),
            n_refined=int(refined.size),
            visited=[_visited(finders, chain) for chain in range(self._n_chains)],
            frequency=None if frequency is None else frequency[used] / self._n_chains,
            row_terms=row_terms,
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Models, the log of their summed chain weights, and a bit for each chain that visited them."""

    models: ModelTable
    log_weight: FloatArray
    finders: npt.NDArray[np.uint64]

    def take(self, rows: IntArray) -> "_Part":
        return _Part(self.models.take(rows), self.log_weight[rows], self.finders[rows])


def _unite(parts: "list[_Part]", *, add_weights: bool) -> _Part:
    """Every model once, in order of the keys, as it was found first; empties the list."""
    width = max(part.finders.shape[1] for part in parts)
    finders = np.concatenate(
        [np.pad(part.finders, ((0, 0), (0, width - part.finders.shape[1]))) for part in parts]
    )
    stacked = ModelTable.concatenate([part.models for part in parts])
    log_weights = np.concatenate([part.log_weight for part in parts])
    parts.clear()
    rows, position = unique_rows(stacked.keys)
    united = np.zeros((rows.size, width), dtype=np.uint64)
    np.bitwise_or.at(united, position, finders)
    log_weight = np.zeros(rows.size)
    if add_weights:
        log_weight = np.full(rows.size, -np.inf)
        # Masses of chains may differ by thousands of nats: no common scale would do.
        np.logaddexp.at(log_weight, position, log_weights)
    return _Part(stacked.take(rows), log_weight, united)


def _visited(finders: npt.NDArray[np.uint64], chain: int) -> IntArray:
    """Rows of the models that a chain visited."""
    word, bit = divmod(chain, 64)
    if word >= finders.shape[1]:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(finders[:, word] & (np.uint64(1) << np.uint64(bit)))


def _log_posterior(models: ModelTable) -> FloatArray:
    return models.log_evidence + models.log_prior


def _number(
    models: ModelTable, result: ChainResult, problem: Problem, registry: Registry
) -> IntArray:
    """For each feature of the chain its number in the common registry, -1 if it is not used."""
    numbers = np.full(len(result.features), -1, dtype=np.int64)
    for number in np.unique(models.members):
        feature = result.features[number]
        known = registry.known(feature)
        if known is None:
            columns, _ = evaluate([feature], problem.table)
            known = registry.number(feature, columns[:, 0])
        for alias in result.aliases.get(int(number), ()):
            registry.alias(known, alias)
        numbers[number] = known
    return numbers


def _renumber(
    models: ModelTable,
    numbers: IntArray,
    registry: Registry,
    latent_keys: npt.NDArray[np.uint64],
) -> ModelTable:
    """The chain's models in terms of the common numbers."""
    members = numbers[models.members].astype(np.int32)
    # Sorted within models: by one number that has the model first. Most are sorted already.
    behind = np.flatnonzero(np.diff(members) < 0) + 1
    if not np.isin(behind, models.starts).all():
        ranked = models.owners * (int(members.max()) + 1)
        ranked += members
        ranked.sort()
        members = (ranked % (int(members.max()) + 1)).astype(np.int32)
    keys = model_keys(models.starts, members, registry.keys)
    return replace(models, keys=keys ^ effect_keys(models.latent, latent_keys), members=members)


def _refine(
    models: ModelTable, problem: Problem, registry: Registry
) -> tuple[ModelTable, IntArray]:
    """Recompute the evidence of the leading models from the rows, by the accurate route.

    If other models lead afterwards, because the first ones had lost digits, those are recomputed
    next. The evidence of a subsample may rank models far from where they belong: then the first
    `REFINE_MOST` are recomputed, however far behind they seem to be. Where all models turn out to
    have dependent columns, as approximations of a law without noise may, they keep the evidence
    that the search gave them, and their fits a status that says so.

    Returns
    -------
    The models, and the rows of those recomputed.
    """
    given, refined = models, np.zeros(len(models), dtype=np.bool_)
    refines = problem.out_of_core is not None or problem.engine.refines or bool(problem.completed)
    once = problem.subsampled or bool(problem.completed)
    rounds = 1 if once else REFINE_ROUNDS
    window = np.inf if once else REFINE_WINDOW + problem.engine.row_terms_at_most
    most = MOST_COMPLETED if problem.completed else REFINE_MOST
    for _ in range(rounds if refines else 0):
        log_posterior = _log_posterior(models)
        order = np.argsort(-log_posterior, kind="stable")[:most]
        # To the search all perfect fits, and those that rounding hides, are equal.
        perfect = np.any(models.statuses[order] == Status.PERFECT_FIT)
        leading = order[perfect | (log_posterior[order] >= log_posterior[order[0]] - window)]
        leading = leading[~refined[leading]]
        if leading.size == 0:
            break
        models, leading = _refine_rows(models, leading, problem, registry)
        refined[leading] = True
    if not once and not np.isfinite(_log_posterior(models)).any():
        return given, np.empty(0, dtype=np.int64)
    return models, np.flatnonzero(refined)


def _common_row_terms(
    before: ModelTable, after: ModelTable, refined: IntArray, problem: Problem
) -> float:
    """Median change of the log evidence of refined models by what only their rows say.

    Perfect fits do not count, whose evidence changes by what rounding had hidden.
    """
    if not problem.engine.has_row_terms:
        return 0.0
    sound = refined[after.statuses[refined] == Status.OK]
    changes = after.log_evidence[sound] - before.log_evidence[sound]
    return float(np.median(changes)) if sound.size else 0.0


def _refine_rows(
    models: ModelTable, leading: IntArray, problem: Problem, registry: Registry
) -> tuple[ModelTable, IntArray]:
    """Recompute these models, or as many of the first as fit into memory."""
    # Columns of all leading models are held at once; with many rows fewer models fit.
    while True:
        wanted = np.unique(np.concatenate([models.features_of(row) for row in leading]))
        cells = 0 if problem.out_of_core is not None else wanted.size * problem.table.n_rows
        if leading.size == 1 or cells <= REFINE_CELLS:
            break
        leading = leading[: leading.size // 2]
    features = [registry.features[number] for number in wanted]
    masks = np.zeros((leading.size, wanted.size), dtype=np.bool_)
    for position, row in enumerate(leading):
        masks[position, np.searchsorted(wanted, models.features_of(row))] = True
    log_evidence, statuses = models.log_evidence.copy(), models.statuses.copy()
    if problem.out_of_core is not None:
        found = problem.out_of_core.log_evidence_of(FeatureColumns(tuple(features)), masks)
    elif problem.completed:
        found = _average_completed(problem, features, masks, models.log_prior[leading])
    else:
        found = problem.engine.log_evidence_of(evaluate(features, problem.table)[0], masks)
    log_evidence[leading], statuses[leading] = found
    return replace(models, log_evidence=log_evidence, statuses=statuses), leading


def _average_completed(
    problem: Problem, features: Sequence[Feature], masks: Masks, log_prior: FloatArray
) -> tuple[FloatArray, StatusArray]:
    r"""Log evidence that gives models the average of their probabilities over completed tables.

    With :math:`Z_k` the mass of all these models on table :math:`k`, a model has
    :math:`\frac1K\sum_k p(y|M, X_k) / Z_k`, times the geometric mean of the masses.
    """
    values, statuses = [], np.zeros(len(masks), dtype=np.uint8)
    for table, engine in problem.completed:
        columns, usable = evaluate(features, table)
        broken = masks[:, usable != Status.OK].any(axis=1)
        found, status = engine.log_evidence_of(columns, masks)
        values.append(np.where(broken, -np.inf, found))
        statuses = np.maximum(statuses, status)
    evidence = np.array(values)
    masses = np.logaddexp.reduce(evidence + log_prior, axis=1)
    combined = np.logaddexp.reduce(evidence - masses[:, None], axis=0) - np.log(len(values))
    return combined + masses.mean(), statuses.astype(np.uint8)
