r"""A check with random features after a search: would one of them make a better model?

Chains that share covariates and pool can agree although all of them missed something. The
candidates here do not depend on the chains' paths: products of distinct covariates of every size,
and features that the operators make from covariates and from the features found. Each is tried
beside the best model, and in place of each of its features. Candidates are ranked by the score
test; of the best few the exact log posterior is computed and the largest gain reported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.data import to_unit_length
from dbrm.evolution.operators import Parents, create
from dbrm.evolution.problem import Problem
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.evolution.sweep.levels import Scored
from dbrm.evolution.sweep.products import Subsets, draw_subsets, most_factors, product_columns
from dbrm.evolution.sweep.scores import Baselines
from dbrm.features import ColumnCache, Feature, Transform, evaluate, fit_knots, multiply
from dbrm.status import Status

__all__ = ["Candidate", "check_candidates"]

# Limits: cells (rows times products) computed, products, and features of other kinds.
_CELLS, _MOST_PRODUCTS, _OTHERS = 20_000_000, 60_000, 1_000
# Rows used for ranking, columns held at once, candidates whose evidence is computed.
_MOST_ROWS, _AT_ONCE, _CHECKED = 2_000, 500, 12
# Places of the best model in which candidates are tried, and features found to make others from.
_MOST_PLACES, _PARENTS = 10, 20
# Spread below which a column, scaled to one, counts as constant; products have seven digits.
_FLAT = 1e-6


@final
@dataclass(frozen=True, slots=True)
class Candidate:
    """A feature that the search did not find.

    `gain` is by how much it raises the log posterior of the best model, beside its features or
    in the place of one of them.
    """

    feature: str
    gain: float


def check_candidates(
    rng: np.random.Generator,
    problem: Problem,
    model: Sequence[Feature],
    found: Sequence[Feature],
    *,
    share: float = 1.0,
    engineered: bool = True,
) -> Candidate | None:
    """The best of many random features beside the features of the best model.

    Parameters
    ----------
    model
        The features of the best model.
    found
        Features with posterior support, most probable first, as parents of others.
    share
        Share of the usual number of candidates.
    engineered
        Whether models may contain other features than covariates.

    Returns
    -------
    Candidate or None
        Also where it is no gain; ``None`` if no candidate could be evaluated.
    """
    check = _Check(problem, list(model))
    ranked: list[tuple[_ExpectedGain, Feature]] = []
    covariates = problem.covariates
    others = list(covariates)
    if engineered:
        others += check.created(rng, found, int(share * _OTHERS))
        for subsets, columns in check.products(rng, share):
            for expected_gain, j in check.best_of(columns, check.price_of_products(subsets)):
                ranked.append((expected_gain, multiply(*(covariates[i] for i in subsets[j]))))
    for start in range(0, len(others), _AT_ONCE):
        part = others[start : start + _AT_ONCE]
        columns, prices = check.columns_of(part)
        ranked += [(expected_gain, part[j]) for expected_gain, j in check.best_of(columns, prices)]
    ranked.sort(key=lambda pair: (-pair[0].gain, pair[1].canonical))
    best: dict[int, tuple[_ExpectedGain, Feature]] = {}
    for expected_gain, feature in ranked:
        if problem.grammar.admits(feature) and len(best) < _CHECKED:
            best.setdefault(feature.key, (expected_gain, feature))
    exact = [check.exact(feature, expected_gain.place) for expected_gain, feature in best.values()]
    candidates = [candidate for candidate in exact if candidate is not None]
    return max(candidates, key=lambda candidate: candidate.gain, default=None)


@final
@dataclass(frozen=True, slots=True)
class _ExpectedGain:
    """Expected gain in log posterior of a column, at its best place."""

    gain: float
    place: int


class _Check:
    """Ranks columns by expected gain in log posterior, at every place of one model."""

    def __init__(self, problem: Problem, model: list[Feature]) -> None:
        self._problem = problem
        self._model = model
        n_rows = problem.table.n_rows
        self._rows = np.linspace(0, n_rows - 1, min(n_rows, _MOST_ROWS)).astype(np.int64)
        self._sample = problem.table.take(self._rows)
        self._columns = evaluate(model, problem.table)[0]
        self._log_posterior = self._exact(self._columns, model)
        self._left_out = [None, *range(min(len(model), _MOST_PLACES))]
        self._baselines = Baselines(problem, self._columns, self._left_out).on(self._rows)
        self._offsets = [self._offset(j) for j in self._left_out]

    def _exact(self, columns: Matrix, features: list[Feature]) -> float:
        prior = self._problem.model_prior
        terms = sum(prior.feature_log_prior(feature) for feature in features)
        size = float(prior.size_log_prior(np.array([len(features)]))[0])
        return self._problem.engine.log_evidence(columns)[0] + terms + size

    def _offset(self, left_out: int | None) -> float:
        """Log posterior without the candidate, less that of the best model; its price in size."""
        kept = [j for j in range(len(self._model)) if j != left_out]
        features = [self._model[j] for j in kept]
        if len(features) + 1 > self._problem.max_model_size:
            return -np.inf
        size = np.array([len(features), len(features) + 1])
        price = np.diff(self._problem.model_prior.size_log_prior(size))
        log_posterior = self._exact(self._columns[:, kept], features)
        return log_posterior - self._log_posterior + float(price[0])

    def products(self, rng: np.random.Generator, share: float) -> Iterator[tuple[Subsets, Scored]]:
        """Products of distinct covariates with their columns, block by block."""
        count = int(share * min(_CELLS // self._rows.size, _MOST_PRODUCTS))
        largest = most_factors(self._problem.grammar, self._sample.n_columns)
        values = self._sample.values
        # Products of many large numbers overflow, and scale does not matter.
        values = values / np.maximum(np.max(np.abs(values), axis=0), np.finfo(float).tiny)
        for subsets in draw_subsets(rng, self._sample.n_columns, 2, largest, count):
            for start in range(0, len(subsets), _AT_ONCE):
                part = subsets[start : start + _AT_ONCE]
                yield part, product_columns(values, part, _FLAT)

    def price_of_products(self, subsets: Subsets) -> FloatArray:
        """Log prior of products of one size, from an example."""
        covariates = self._problem.covariates
        example = multiply(*(covariates[i] for i in subsets[0]))
        price = self._problem.model_prior.feature_log_prior(example)
        return np.full(len(subsets), price)

    def created(
        self, rng: np.random.Generator, found: Sequence[Feature], count: int
    ) -> list[Feature]:
        """Features that the operators make from covariates, from what was found, and from these."""
        problem, cache = self._problem, ColumnCache()
        first = list(found[:_PARENTS])
        made: dict[int, Feature] = {}
        parents = first
        for _ in range(count):
            pool = Parents(parents, np.ones(len(parents)), problem.covariates)
            feature = create(rng, pool, problem.grammar, self._project)
            if feature is None:
                continue
            feature = fit_knots(problem.simplify(feature), problem.table)
            if evaluate([feature], self._sample, cache)[1][0] == Status.OK:
                made.setdefault(feature.key, feature)
                parents = [*first, *list(made.values())[-_PARENTS:]]
        return list(made.values())

    def _project(
        self, rng: np.random.Generator, transform: Transform, children: list[Feature]
    ) -> Feature | None:
        """A projection with fitted weights; none where fits take long or weights are drawn."""
        problem = self._problem
        quick = isinstance(problem.grammar.projection, OptimizeThenTransform)
        whole = self._sample.n_rows == problem.table.n_rows
        return problem.projector.build(rng, transform, children) if quick and whole else None

    def columns_of(self, features: Sequence[Feature]) -> tuple[Matrix, FloatArray]:
        """Columns of features on the rows for ranking, at unit length, and their log priors."""
        prior = self._problem.model_prior
        prices = np.array([prior.feature_log_prior(feature) for feature in features])
        columns, _ = evaluate(features, self._sample)
        return to_unit_length(columns, smallest=_FLAT), prices

    def best_of(self, columns: Scored, prices: FloatArray) -> list[tuple[_ExpectedGain, int]]:
        """The best few columns, which have unit length, each with its expected gain."""
        shares = self._baselines.shares(columns)
        usable = np.isfinite(shares)
        gains = np.full(shares.shape, -np.inf)
        for k, score_test in enumerate(self._baselines.score_tests):
            gain = score_test.gain(np.where(usable[k], shares[k], 0.0))
            gains[k] = np.where(usable[k], gain + self._offsets[k] + prices, -np.inf)
        best, places = gains.max(axis=0), gains.argmax(axis=0)
        order = np.argsort(-best, kind="stable")[:_CHECKED].tolist()
        return [(_ExpectedGain(best[j], places[j]), j) for j in order if np.isfinite(best[j])]

    def exact(self, feature: Feature, place: int) -> Candidate | None:
        """Its exact gain at this place."""
        problem = self._problem
        feature, column, status = problem.column_of(feature)
        if status is not Status.OK:
            return None
        left_out = self._left_out[place]
        kept = [j for j in range(len(self._model)) if j != left_out]
        features = [*(self._model[j] for j in kept), feature]
        whole = np.column_stack([self._columns[:, kept], column])
        gain = self._exact(whole, features) - self._log_posterior
        return Candidate(str(feature), float(gain)) if np.isfinite(gain) else None
