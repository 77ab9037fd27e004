"""The path of formulas: for every complexity the most probable one, and what each step gains.

Reads the models that the search kept, the submodels of the best one and single covariates; fits
those on the path.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import exp, isfinite, nan
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from dbrm._typing import Masks
from dbrm.evidence import GaussianEngine, GlmEngine, ModelFit
from dbrm.evolution import Problem
from dbrm.features import Feature, evaluate
from dbrm.posterior.source import LiveSource

if TYPE_CHECKING:
    import pandas as pd

    from dbrm.posterior.posterior import Posterior

__all__ = ["PathStep", "find_path", "path_table"]

# Submodels of the best model are looked at up to this number of its features.
_MOST_FEATURES: dict[type, int] = {GaussianEngine: 10, GlmEngine: 5}
# Single covariates that are looked at.
_MOST_COVARIATES = 50


@final
@dataclass(frozen=True, slots=True)
class PathStep:
    """One formula of the path.

    Parameters
    ----------
    complexity, size
        Sum of the complexities of the features, and their number.
    r2
        Share of the variation explained; NaN where a model has no likelihood.
    probability
        Of this very set of features.
    coefficients
        The intercept, those of features in every model, then those of the features.
    """

    complexity: int
    size: int
    formula: str
    features: tuple[str, ...]
    r2: float
    log_evidence: float
    probability: float
    coefficients: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file, which has no NaN."""
        return asdict(self) | {"r2": self.r2 if isfinite(self.r2) else None}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        r2 = nan if content["r2"] is None else content["r2"]
        sequences = {key: tuple(content.get(key, ())) for key in ("features", "coefficients")}
        return cls(**(content | {"r2": r2} | sequences))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A model, and its rank among those kept, -1 for others."""

    complexity: int
    log_evidence: float
    log_posterior: float
    features: tuple[Feature, ...]
    rank: int


def find_path(posterior: "Posterior") -> list[PathStep]:
    """The formulas of the path, simplest first."""
    best: dict[int, _Candidate] = {}
    for candidate in (*_kept(posterior), *_submodels(posterior)):
        before = best.get(candidate.complexity)
        if before is None or candidate.log_posterior > before.log_posterior:
            best[candidate.complexity] = candidate
    steps, highest = [], -np.inf
    top = max(candidate.log_posterior for candidate in best.values())
    for complexity in sorted(best):
        candidate = best[complexity]
        if candidate.log_evidence > highest or candidate.log_posterior == top:
            steps.append(_step(posterior, candidate))
            highest = max(highest, candidate.log_evidence)
    return steps


def path_table(steps: list[PathStep]) -> "pd.DataFrame":
    """The path as a table; see `Posterior.path`."""
    import pandas as pd

    table = pd.DataFrame([asdict(step) for step in steps]).drop(columns="coefficients")
    table.insert(6, "step", table["log_evidence"].diff())
    return table


def _kept(posterior: "Posterior") -> Iterator[_Candidate]:
    """The most probable model of every complexity among those kept."""
    models, features = posterior._merged.models, posterior._merged.features
    rows = np.arange(len(models))
    if _is_out_of_core(posterior):
        # A pass over data out of core for each fit: those that are there already.
        rows = rows[: posterior.n_averaged]
    cost = np.array([feature.complexity for feature in features] or [0])
    complexity = models.sum_terms(cost.astype(np.float64)).astype(np.int64)[rows]
    # Not by probability, which some models have in the place of others that no chain visited.
    log_posterior = (models.log_evidence + models.log_prior)[rows]
    order = np.argsort(-log_posterior, kind="stable")
    for total, place in zip(*np.unique(complexity[order], return_index=True), strict=True):
        row = order[place]
        evidence, prior = float(models.log_evidence[row]), float(models.log_prior[row])
        chosen = tuple(features[j] for j in models.features_of(int(row)))
        yield _Candidate(int(total), evidence, evidence + prior, chosen, int(row))


def _is_out_of_core(posterior: "Posterior") -> bool:
    source = posterior._source
    return isinstance(source, LiveSource) and source.problem.out_of_core is not None


def _submodels(posterior: "Posterior") -> Iterator[_Candidate]:
    """Models that are often too poor to be kept: parts of the best one, and covariates."""
    source, members = posterior._source, posterior._merged.models.features_of(0)
    if not isinstance(source, LiveSource) or source.problem.out_of_core is not None:
        return
    problem = source.problem
    most = 0 if problem.has_heredity_rule else _MOST_FEATURES.get(type(problem.engine), 0)
    if 0 < members.size <= most:
        features = [posterior._merged.features[j] for j in members]
        masks: Masks = np.arange(2**members.size)[:, None] >> np.arange(members.size) & 1 == 1
        yield from _evaluated(problem, features, masks)
    if most:
        free = [f for f in problem.covariates if f not in problem.always][:_MOST_COVARIATES]
        yield from _evaluated(problem, free, np.eye(len(free), dtype=np.bool_))


def _evaluated(problem: Problem, features: list[Feature], masks: Masks) -> Iterator[_Candidate]:
    """Models of some features."""
    engine, columns = problem.engine, evaluate(features, problem.table)[0]
    if engine.has_row_terms:
        # Populations compare models as if intercept and coefficients were any numbers.
        values, _ = engine.log_evidence_of(columns, masks)
    else:
        values, _ = problem.prepare(features, columns).log_evidence(masks)
    prior = problem.prior_terms([problem.model_prior.feature_log_prior(f) for f in features])
    log_prior = prior.of(masks)
    for mask, evidence, price in zip(masks, values.tolist(), log_prior.tolist(), strict=True):
        chosen = tuple(feature for feature, inside in zip(features, mask, strict=True) if inside)
        if isfinite(evidence + price):
            complexity = sum(feature.complexity for feature in chosen)
            yield _Candidate(complexity, evidence, evidence + price, chosen, -1)


def _step(posterior: "Posterior", candidate: _Candidate) -> PathStep:
    # A model without a rank has no latent effects, like all models of its run.
    effects = posterior._effect_masks[max(candidate.rank, 0)]
    merged = posterior._merged
    probability = exp(min(0.0, candidate.log_posterior - merged.log_mass)) * (1 - merged.unvisited)
    if _is_out_of_core(posterior):
        fit = posterior.model(candidate.rank).fit
    else:
        fit = posterior._source.fit(candidate.features, effects)
    model = posterior._describe(list(candidate.features), effects, fit, probability)
    return PathStep(
        complexity=candidate.complexity,
        size=len(candidate.features),
        formula=model.formula,
        features=tuple(str(feature) for feature in candidate.features),
        r2=_explained(posterior, fit),
        log_evidence=candidate.log_evidence,
        probability=probability,
        coefficients=tuple(model.fit.coefficients.tolist()),
    )


def _explained(posterior: "Posterior", fit: ModelFit) -> float:
    r""":math:`R^2 = 1 - \exp\{2 (\ell_0 - \ell) / n\}` against the model without features."""
    none = np.zeros(len(posterior._source.effects), dtype=np.bool_)
    empty = posterior._source.fit([], none).log_likelihood
    gain = 2.0 * (fit.log_likelihood - empty) / posterior.n_rows
    return float(-np.expm1(-gain)) if isfinite(gain) else nan
