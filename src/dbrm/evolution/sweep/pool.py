"""The pool of a sweep: the features taken so far, and which of them make the best model.

It sees features and their training columns, never how they were ranked.
"""

from typing import final

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.evidence import AbstractPrepared
from dbrm.evolution.problem import Problem
from dbrm.evolution.registry import Registry
from dbrm.features import Feature, evaluate
from dbrm.search import Mjmcmc, OptimiserMix, PriorTerms, enumerate_population
from dbrm.status import Status

__all__ = ["SweepPool"]


@final
class SweepPool:
    """Features taken so far, each column once."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._registry = Registry(problem.table)
        self._heredity_rule = problem.heredity_rule(self._registry)
        self._columns: dict[int, Column | None] = {}

    def add(self, features: list[Feature], take: int, *, fresh_only: bool = True) -> list[int]:
        """Take features in, at most `take` new ones; return the numbers of those taken."""
        grammar = self._problem.grammar
        taken: list[int] = []
        for feature in features:
            if len(taken) == take:
                break
            simple = self._problem.simplify(feature)
            if not grammar.admits(simple):
                continue
            fitted, column, status = self._problem.column_of(simple)
            if status is not Status.OK:
                continue
            number = self._registry.number(fitted, column)
            if number not in self._columns:
                # Hundreds of columns: those of tall data are made again when they are needed.
                self._columns[number] = None if self._problem.out_of_core else column
            elif fresh_only:
                continue
            if number not in taken:
                taken.append(number)
        return taken

    def feature(self, number: int) -> Feature:
        """The feature of this number."""
        return self._registry.features[number]

    def columns(self, numbers: list[int]) -> Matrix:
        """Training columns of these features."""
        if not numbers:
            return np.empty((self._problem.table.n_rows, 0))
        kept = [column for n in numbers if (column := self._columns[n]) is not None]
        if len(kept) == len(numbers):
            return np.column_stack(kept)
        return evaluate([self.feature(number) for number in numbers], self._problem.table)[0]

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
        rest = [number for number in self._columns if number not in first]
        return [self.feature(number) for number in (*first, *rest)]
