r"""Heredity: a product requires its factors in the model; a group is in it whole or not at all.

The factors of a product are the different features multiplied: those of :math:`x x z` are
:math:`x` and :math:`z`, that of :math:`x x` is :math:`x`. Under strong heredity a model with a
product contains all of its factors, under weak heredity at least one; other models have prior
probability zero. Features that every model contains count as present. Factors are columns: a
factor is there under any spelling equal to it up to an affine map. Products inside a function
or a projection, as in ``troot(x*x*z)``, need nothing.

The covariates of a group, such as the levels of a factor, need each other: a model contains
all of them or none. What is made from them is free.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, Mask
from dbrm.data import Table
from dbrm.evolution.registry import Registry
from dbrm.features import Feature, Product, evaluate
from dbrm.search import ModelTable, PriorTerms
from dbrm.status import Status

__all__ = ["Heredity", "HeredityRule"]

Heredity = Literal["weak", "strong"]
Numbers = npt.NDArray[np.int32]


class HeredityRule:
    """Which features of a registry require which others; none without heredity and groups."""

    def __init__(
        self,
        heredity: Heredity | None,
        always: Sequence[Feature],
        table: Table,
        registry: Registry,
        groups: Sequence[Sequence[Feature]] = (),
    ) -> None:
        self._heredity = heredity
        self._groups = {member: group for group in groups for member in group}
        self._table = table
        self._registry = registry
        self._rules = heredity is not None or bool(self._groups)
        self._always = {self.number(feature) for feature in always if self._rules}

    def missing(self, feature: Feature, present: Sequence[int]) -> list[Feature]:
        """Factors that a feature lacks among those present, simplest first."""
        factors, _ = self._needs(feature)
        return [factor for number, factor in factors.items() if number not in present]

    def satisfied(self, feature: Feature, present: Sequence[int]) -> bool:
        """Whether a feature may be in a model of all those present."""
        factors, needed = self._needs(feature)
        return sum(number in present for number in factors) >= needed

    def restrict(
        self, terms: PriorTerms, features: Sequence[Feature], numbers: Sequence[int] | Numbers
    ) -> PriorTerms:
        """The prior of the masks over these features, with heredity."""
        if not self._rules:
            return terms
        position = {int(number): place for place, number in enumerate(numbers)}
        size = terms.feature.size
        parents = np.zeros((size, size), dtype=np.bool_)
        needed = np.zeros(size, dtype=np.int64)
        for place, feature in enumerate(features):
            factors, needed[place] = self._needs(feature)
            parents[place, [position[n] for n in factors if n in position]] = True
        return replace(terms, parents=parents, needed=needed) if needed.any() else terms

    def allows(self, models: ModelTable) -> Mask:
        """Which models obey the rule, their features under their simplest spelling."""
        allowed = np.ones(len(models), dtype=np.bool_)
        if not self._rules:
            return allowed
        features = self._registry.features
        needy = [n for n in np.unique(models.members) if self._needs(features[n])[1]]
        owners, n_models = models.owners, len(models)
        for number in needy:
            factors, needed = self._needs(features[number])
            has = np.bincount(owners[models.members == number], minlength=n_models) > 0
            beside = np.isin(models.members, list(factors))
            allowed &= ~has | (np.bincount(owners[beside], minlength=n_models) >= needed)
        return allowed

    def surviving(self, terms: PriorTerms, survives: Mask, inclusion: FloatArray) -> Mask:
        """Keep as many parents as the surviving features need, the most probable first."""
        survives = survives.copy()
        # Twice: a parent may have parents itself, where its simplest spelling is a product.
        for place in 2 * np.flatnonzero(terms.needed).tolist():
            if survives[place]:
                own = np.flatnonzero(terms.parents[place])
                own = own[np.lexsort((-inclusion[own], ~survives[own]))]
                survives[own[: terms.needed[place]]] = True
        return survives

    def _needs(self, feature: Feature) -> tuple[dict[int, Feature], int]:
        """Factors by number, without those always in, and how many of them are needed."""
        if feature in self._groups:
            group = {self.number(member): member for member in self._groups[feature]}
            others = {n: f for n, f in group.items() if f != feature and n not in self._always}
            return others, len(others)
        if self._heredity is None or not isinstance(feature, Product):
            return {}, 0
        factors = {self.number(factor): factor for factor in feature.factors}
        others = {n: factor for n, factor in factors.items() if n not in self._always}
        if self._heredity == "strong":
            return others, len(others)
        return others, int(len(others) == len(factors))

    def number(self, feature: Feature) -> int:
        """Number of a feature's column; -1, which no population has, if it is no column."""
        known = self._registry.known(feature)
        if known is not None:
            return known
        columns, statuses = evaluate([feature], self._table)
        if statuses[0] != Status.OK:
            return -1
        return self._registry.number(feature, columns[:, 0])
