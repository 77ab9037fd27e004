r"""From chains to one posterior: the union of the models that any chain visited.

Feature numbers differ between chains; columns do not. Features are renumbered in one
registry, so that a law found twice under two spellings is one row. Weights:

* ``"union"``: every model once, weight :math:`p(y|M)p(M)` (default);
* ``"mass"``: the paper's :math:`u_b`, which counts a model once per chain that met it;
* ``"uniform"``: the plain average of the chains' own posteriors.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, IntArray
from dbrm.errors import InvalidSettingError
from dbrm.evolution import ChainResult, Problem, Registry
from dbrm.features import Feature, evaluate
from dbrm.search import ModelTable, log_sum_exp, model_keys, unique_rows

__all__ = ["Merge", "Merged", "merge_chains"]

Merge = Literal["union", "mass", "uniform"]

# Models this close to the best are recomputed from the rows, at most so many.
REFINE_WINDOW = 12.0
REFINE_MOST = 300
# Rows times columns held at once while doing so.
REFINE_CELLS = 20_000_000


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


def merge_chains(results: list[ChainResult], problem: Problem, how: Merge = "union") -> Merged:
    """Merge chains, in the order of their numbers."""
    if how not in ("union", "mass", "uniform"):
        msg = f"merge must be 'union', 'mass' or 'uniform'; got merge={how!r}."
        raise InvalidSettingError(msg)
    peaks = [float(np.max(_log_posterior(result.models))) for result in results]
    registry = Registry(problem.table)
    tables, cut, weights, numbers = [], [-np.inf], [], []
    for result, peak in zip(results, peaks, strict=True):
        log_posterior = _log_posterior(result.models)
        # In a plain average a chain that lags behind counts as much as the others.
        best = peak if how == "uniform" else max(peaks)
        inside = log_posterior >= best - problem.effort.window
        cut.append(log_sum_exp(log_posterior[~inside]))
        cut.append(result.log_lost)
        kept = result.models.take(np.flatnonzero(inside))
        numbers.append(_number(kept, result, problem, registry))
        tables.append(_renumber(kept, numbers[-1], registry))
        mass = log_sum_exp(log_posterior) if how == "uniform" else 0.0
        weights.append(np.full(len(kept), -mass))
    if problem.heredity is not None:
        # Simpler spellings found by another chain may have other factors.
        kinship = problem.kinship(registry)
        allowed = [kinship.allows(table) for table in tables]
        tables = [table.take(np.flatnonzero(a)) for table, a in zip(tables, allowed, strict=True)]
        weights = [weight[a] for weight, a in zip(weights, allowed, strict=True)]
    stacked = ModelTable.concatenate(tables)
    models = stacked.take(unique_rows(stacked.keys))
    rows = _positions(stacked, models)
    log_weight = np.zeros(len(models))
    if how != "union":
        log_weight = _log_multiplicity(rows, len(models), np.concatenate(weights))
    models = _with_prior(models, problem, registry)
    models, n_refined = _refine(models, problem, registry)
    weighted = _log_posterior(models) + log_weight
    log_mass = log_sum_exp(weighted)
    probability = np.exp(weighted - log_mass)
    order = np.lexsort((models.keys[:, 1], models.keys[:, 0], -probability))
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    used, members = np.unique(models.take(order).members, return_inverse=True)
    return Merged(
        features=[registry.features[number] for number in used],
        aliases={
            position: registry.aliases[int(number)]
            for position, number in enumerate(used)
            if int(number) in registry.aliases
        },
        models=_replace(models.take(order), members=members.astype(np.int32)),
        probability=probability[order],
        log_mass=log_mass,
        log_lost=float(np.logaddexp.reduce(cut)),
        n_refined=n_refined,
        visited=np.split(rank[rows], np.cumsum([len(table) for table in tables])[:-1]),
        frequency=_frequency(results, numbers, used.astype(np.int64)),
    )


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


def _renumber(models: ModelTable, numbers: IntArray, registry: Registry) -> ModelTable:
    """The chain's models in terms of the common numbers."""
    members = numbers[models.members].astype(np.int32)
    members = members[np.lexsort((members, models.owners))]
    keys = model_keys(models.starts, members, registry.keys)
    return _replace(models, keys=keys, members=members)


def _positions(stacked: ModelTable, models: ModelTable) -> IntArray:
    """For each stacked model the row of its only copy."""
    position = {key.tobytes(): row for row, key in enumerate(models.keys)}
    return np.array([position[key.tobytes()] for key in stacked.keys], dtype=np.int64)


def _log_multiplicity(rows: IntArray, n_models: int, log_weights: FloatArray) -> FloatArray:
    """Log of the summed chain weights of each unique model."""
    totals = np.full(n_models, -np.inf)
    # Masses of chains may differ by thousands of nats: no common scale would do.
    np.logaddexp.at(totals, rows, log_weights)
    return totals


def _frequency(
    results: list[ChainResult], numbers: list[IntArray], used: IntArray
) -> FloatArray | None:
    """Visit frequencies of the features, averaged over chains."""
    totals = np.zeros(used.size)
    for result, common in zip(results, numbers, strict=True):
        if result.draws is None:
            return None
        chosen = np.flatnonzero(np.isin(common[: result.draws.frequency.size], used))
        positions = np.searchsorted(used, common[chosen])
        np.add.at(totals, positions, result.draws.frequency[chosen] / len(results))
    return totals


def _with_prior(models: ModelTable, problem: Problem, registry: Registry) -> ModelTable:
    """Prior of each model under the simplest spelling of its features."""
    prior = problem.model_prior
    terms = np.array([prior.feature_log_prior(feature) for feature in registry.features])
    sums = np.bincount(models.owners, weights=terms[models.members], minlength=len(models))
    sizes = np.arange(int(models.sizes.max(initial=0)) + 1)
    return _replace(models, log_prior=sums + prior.size_log_prior(sizes)[models.sizes])


def _refine(models: ModelTable, problem: Problem, registry: Registry) -> tuple[ModelTable, int]:
    """Recompute the evidence of the leading models from the rows, by the accurate route."""
    if not problem.engine.refines:
        return models, 0
    log_posterior = _log_posterior(models)
    order = np.argsort(-log_posterior, kind="stable")[:REFINE_MOST]
    leading = order[log_posterior[order] >= log_posterior[order[0]] - REFINE_WINDOW]
    # Columns of all leading models are held at once; with many rows there is room for fewer.
    while True:
        wanted = np.unique(np.concatenate([models.features_of(row) for row in leading]))
        if leading.size == 1 or wanted.size * problem.table.n_rows <= REFINE_CELLS:
            break
        leading = leading[: leading.size // 2]
    columns, _ = evaluate([registry.features[number] for number in wanted], problem.table)
    masks = np.zeros((leading.size, wanted.size), dtype=np.bool_)
    for position, row in enumerate(leading):
        masks[position, np.searchsorted(wanted, models.features_of(row))] = True
    log_evidence, statuses = models.log_evidence.copy(), models.statuses.copy()
    log_evidence[leading], statuses[leading] = problem.engine.log_evidence_of(columns, masks)
    return _replace(models, log_evidence=log_evidence, statuses=statuses), int(leading.size)


def _replace(models: ModelTable, **changes: npt.NDArray[np.generic]) -> ModelTable:
    fields = {name: getattr(models, name) for name in ModelTable.__slots__}
    return ModelTable(**(fields | changes))
