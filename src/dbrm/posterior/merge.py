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

from dbrm._typing import FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.evolution import ChainResult, Problem, Registry
from dbrm.features import Feature, evaluate
from dbrm.search import ModelTable, log_sum_exp, model_keys, unique_rows

__all__ = ["Merge", "Merged", "merge_chains"]

Merge = Literal["union", "mass", "uniform"]

# Models this close to the best are recomputed from the rows, at most so many.
REFINE_WINDOW = 12.0
REFINE_MOST = 300


@final
@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """One posterior over models, most probable first."""

    features: list[Feature]
    aliases: dict[int, list[Feature]]
    models: ModelTable
    probability: FloatArray
    log_mass: float
    log_lost: float
    n_refined: int


def merge_chains(results: list[ChainResult], problem: Problem, how: Merge = "union") -> Merged:
    """Merge chains, in the order of their numbers."""
    if how not in ("union", "mass", "uniform"):
        msg = f"merge must be 'union', 'mass' or 'uniform'; got merge={how!r}."
        raise InvalidSettingError(msg)
    peaks = [float(np.max(_log_posterior(result.models))) for result in results]
    registry = Registry(problem.table)
    tables, cut, weights = [], [-np.inf], []
    for result, peak in zip(results, peaks, strict=True):
        log_posterior = _log_posterior(result.models)
        # In a plain average a chain that lags behind counts as much as the others.
        best = peak if how == "uniform" else max(peaks)
        inside = log_posterior >= best - problem.effort.window
        cut.append(log_sum_exp(log_posterior[~inside]))
        cut.append(result.log_lost)
        kept = result.models.take(np.flatnonzero(inside))
        tables.append(_renumber(kept, result, problem, registry))
        mass = log_sum_exp(log_posterior) if how == "uniform" else 0.0
        weights.append(np.full(len(kept), -mass))
    stacked = ModelTable.concatenate(tables)
    rows = unique_rows(stacked.keys)
    models = stacked.take(rows)
    log_weight = np.zeros(len(models))
    if how != "union":
        log_weight = _log_multiplicity(stacked, models, np.concatenate(weights))
    models = _with_prior(models, problem, registry)
    models, n_refined = _refine(models, problem, registry)
    return _finish(models, log_weight, registry, float(np.logaddexp.reduce(cut)), n_refined)


def _log_posterior(models: ModelTable) -> FloatArray:
    return models.log_evidence + models.log_prior


def _renumber(
    models: ModelTable, result: ChainResult, problem: Problem, registry: Registry
) -> ModelTable:
    """Give the chain's features their numbers in the common registry."""
    used = np.unique(models.members)
    numbers = np.zeros(len(result.features), dtype=np.int32)
    for number in used:
        feature = result.features[number]
        known = registry.known(feature)
        if known is None:
            columns, _ = evaluate([feature], problem.table)
            known = registry.number(feature, columns[:, 0])
        for alias in result.aliases.get(int(number), ()):
            registry.alias(known, alias)
        numbers[number] = known
    members = numbers[models.members]
    order = np.lexsort((members, models.owners))
    members = members[order]
    return ModelTable(
        keys=model_keys(models.starts, members, registry.keys),
        starts=models.starts,
        members=members,
        log_evidence=models.log_evidence,
        log_prior=models.log_prior,
        statuses=models.statuses,
    )


def _log_multiplicity(
    stacked: ModelTable, models: ModelTable, log_weights: FloatArray
) -> FloatArray:
    """Log of the summed chain weights of each unique model."""
    position = {key.tobytes(): row for row, key in enumerate(models.keys)}
    rows = np.array([position[key.tobytes()] for key in stacked.keys], dtype=np.int64)
    totals = np.full(len(models), -np.inf)
    # Masses of chains may differ by thousands of nats: no common scale would do.
    np.logaddexp.at(totals, rows, log_weights)
    return totals


def _with_prior(models: ModelTable, problem: Problem, registry: Registry) -> ModelTable:
    """Prior of each model under the simplest spelling of its features."""
    prior = problem.model_prior
    terms = np.array([prior.feature_log_prior(feature) for feature in registry.features])
    sums = np.bincount(models.owners, weights=terms[models.members], minlength=len(models))
    sizes = np.arange(int(models.sizes.max(initial=0)) + 1)
    return _replace(models, log_prior=sums + prior.size_log_prior(sizes)[models.sizes])


def _refine(
    models: ModelTable, problem: Problem, registry: Registry
) -> tuple[ModelTable, int]:
    """Recompute the evidence of the leading models from the rows, by the accurate route."""
    log_posterior = _log_posterior(models)
    order = np.argsort(-log_posterior, kind="stable")[:REFINE_MOST]
    leading = order[log_posterior[order] >= log_posterior[order[0]] - REFINE_WINDOW]
    log_evidence, statuses = models.log_evidence.copy(), models.statuses.copy()
    wanted = np.unique(np.concatenate([models.features_of(row) for row in leading]))
    columns, _ = evaluate([registry.features[number] for number in wanted], problem.table)
    for row in leading:
        chosen = np.searchsorted(wanted, models.features_of(row))
        log_evidence[row], statuses[row] = problem.engine.log_evidence(columns[:, chosen])
    return _replace(models, log_evidence=log_evidence, statuses=statuses), int(leading.size)


def _finish(
    models: ModelTable,
    log_weight: FloatArray,
    registry: Registry,
    log_lost: float,
    n_refined: int,
) -> Merged:
    weighted = _log_posterior(models) + log_weight
    log_mass = log_sum_exp(weighted)
    probability = np.exp(weighted - log_mass)
    order = np.lexsort((models.keys[:, 1], models.keys[:, 0], -probability))
    models, probability = models.take(order), probability[order]
    features, aliases, models = _drop_unused(models, registry)
    return Merged(features, aliases, models, probability, log_mass, log_lost, n_refined)


def _drop_unused(
    models: ModelTable, registry: Registry
) -> tuple[list[Feature], dict[int, list[Feature]], ModelTable]:
    """Keep only features that some model uses."""
    used, members = np.unique(models.members, return_inverse=True)
    features = [registry.features[number] for number in used]
    aliases = {
        position: registry.aliases[int(number)]
        for position, number in enumerate(used)
        if int(number) in registry.aliases
    }
    return features, aliases, _replace(models, members=members.astype(np.int32))


def _replace(models: ModelTable, **changes: npt.NDArray[np.generic]) -> ModelTable:
    fields = {name: getattr(models, name) for name in ModelTable.__slots__}
    return ModelTable(**(fields | changes))
