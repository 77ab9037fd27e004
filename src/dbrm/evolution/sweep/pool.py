"""The pool of a sweep: the features taken so far, and which of them make the best model.

It sees features and their training columns, never how they were ranked.
"""

from typing import final

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.evidence import AbstractPrepared
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.features import ColumnCache, Feature, evaluate, fit_knots
from dbrm.search import Mjmcmc, OptimiserMix, PriorTerms, enumerate_population
from dbrm.status import Status

__all__ = ["SweepPool"]

# Cells (rows times columns) of columns that are kept, and of sub-expressions.
_MOST_CELLS = 4_000_000


@final
class SweepPool:
    """Features taken so far, each column once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._registry = Registry(problem.table)
        self._heredity_rule = problem.heredity_rule(self._registry)
        self._taken: dict[int, None] = {}
        self._evaluated: dict[int, tuple[Feature, Column | None] | None] = {}
        self._given: dict[int, Feature] = {}
        self._shared = ColumnCache()

    def evaluate(self, feature: Feature) -> tuple[Feature, Column] | None:
        """The feature with its knots learned, and its column; ``None`` if it has none.

        Every feature is evaluated once.
        """
        if feature.key not in self._evaluated:
            self._evaluated[feature.key] = self._column_of(feature)
        found = self._evaluated[feature.key]
        if found is None:
            return None
        fitted, column = found
        return fitted, self._column(fitted) if column is None else column

    def _column_of(self, feature: Feature) -> tuple[Feature, Column | None] | None:
        simple = self._problem.simplify(feature)
        if not self._problem.grammar.admits_law(simple):
            return None
        table = self._problem.table
        if len(self._shared) * table.n_rows > _MOST_CELLS:
            self._shared.clear()
        fitted = fit_knots(simple, table, self._shared)
        values, statuses = evaluate([fitted], table, self._shared)
        if statuses[0] != Status.OK:
            return None
        self._given.setdefault(fitted.key, simple)
        # Columns of tall data are computed again when they are needed.
        room = len(self._evaluated) * table.n_rows < _MOST_CELLS
        return fitted, values[:, 0] if room else None

    def _column(self, fitted: Feature) -> Column:
        return evaluate([fitted], self._problem.table)[0][:, 0]

    def add(self, features: list[Feature], take: int, *, fresh_only: bool = True) -> list[int]:
        """Take features in, at most `take` new ones; return the numbers of those taken."""
        taken: list[int] = []
        for feature in features:
            if len(taken) == take:
                break
            found = self.evaluate(feature)
            if found is None or not self._informative(found[0]):
                continue
            number = self._registry.number(*found)
            if number in self._taken and fresh_only:
                continue
            self._taken[number] = None
            if number not in taken:
                taken.append(number)
        return taken

    def _informative(self, fitted: Feature) -> bool:
        """Whether a feature carries what the problem asks for."""
        if self._registry.known(fitted) is None:
            return self._problem.column_of(fitted, self._shared)[2] is Status.OK
        return True

    def feature(self, number: int) -> Feature:
        """The feature of this number, as it was given: without numbers learned from the rows."""
        return self._given[self._registry.features[number].key]

    def columns(self, numbers: list[int]) -> Matrix:
        """Training columns of these features."""
        if not numbers:
            return np.empty((self._problem.table.n_rows, 0))
        found = [self.evaluate(self.feature(number)) for number in numbers]
        return np.column_stack([pair[1] for pair in found if pair is not None])

    def best_subset(self, numbers: list[int], start: list[int]) -> list[int]:
        """The most probable model over these features; if they are many, by ascent from `start`."""
        if not numbers:
            return []
        numbers = self._with_factors(numbers)
        prepared, terms = self._prepare(numbers)
        if len(numbers) <= prepared.enumeration_limit:
            best = enumerate_population(prepared, terms, window=1.0, max_kept=1).last
        else:
            steepest = Mjmcmc(optimisers=OptimiserMix.only("greedy"))
            inside = np.isin(numbers, self._with_factors(start))
            inside &= np.cumsum(inside) <= terms.max_size
            # Greedy ascent draws nothing that matters; the generator is only for the call.
            best = steepest.maximize(np.random.default_rng(0), prepared, terms, inside).last
        return [numbers[j] for j in np.flatnonzero(best)]

    def log_posterior(self, numbers: list[int]) -> float:
        """Log posterior, up to a constant, of the model of these features, from their rows."""
        _, terms = self._prepare(numbers)
        mask = np.ones((1, len(numbers)), dtype=np.bool_)
        evidence = self._problem.engine.log_evidence_of(self.columns(numbers), mask)[0][0]
        return float(evidence + terms.of(mask)[0])

    def best_of(self, others: list[int], options: list[int]) -> int:
        """Which of the options makes the most probable model with the others."""
        numbers = [*others, *options]
        masks = np.zeros((len(options), len(numbers)), dtype=np.bool_)
        masks[:, : len(others)] = True
        masks[np.arange(len(options)), len(others) + np.arange(len(options))] = True
        prepared, terms = self._prepare(numbers)
        values, _ = prepared.log_evidence(masks)
        return options[int(np.argmax(values + terms.of(masks)))]

    def _prepare(self, numbers: list[int]) -> tuple[AbstractPrepared, PriorTerms]:
        """These features as a population, and their prior."""
        features = [self.feature(number) for number in numbers]
        prior = self._problem.model_prior
        terms = self._problem.prior_terms([prior.feature_log_prior(f) for f in features])
        prepared = self._problem.engine.prepare(self.columns(numbers))
        return prepared, self._heredity_rule.restrict(terms, features, numbers)

    def _with_factors(self, numbers: list[int]) -> list[int]:
        """These features and the factors that heredity asks for."""
        wanted = list(numbers)
        for number in numbers:
            factors = self._heredity_rule.missing(self.feature(number), wanted)
            known = self.add(factors, len(factors), fresh_only=False)
            wanted.extend(factor for factor in known if factor not in wanted)
        return wanted

    def features(self, first: list[int]) -> list[Feature]:
        """All features, these first."""
        rest = [number for number in self._taken if number not in first]
        return [self.feature(number) for number in (*first, *rest)]
