r"""Answers by covariate: how probable, how important, in which direction, and with which other.

One covariate is one column of the user's table: the levels of a factor, a column of missing
values and a logarithm belong to the column they are made from. It sees the averaged models and
training rows; neither responses nor latent effects.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, final

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.data import ColumnRule, Recipe, Table
from dbrm.evidence import Link
from dbrm.features import Feature, evaluate
from dbrm.posterior.prediction import AveragedModels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["covariate_table", "interaction_table", "owners"]

# Training rows over which contributions are computed, an even sample of all.
_ROWS = 128
# Features of at most this many covariates are split exactly.
_MOST_EXACT = 4
# Functions with less than this share of the standard deviation of the predictor are left out.
_NEGLIGIBLE = 1e-3
# Share of all movement that is upward (downward) for a covariate to count as increasing.
_MONOTONE = 0.95

Group = frozenset[str]


def owners(recipe: Recipe) -> dict[str, str]:
    """The covariate that each column of the table is made from."""
    return {output: rule.name for rule in recipe.columns for output in rule.outputs}


def groups_of(features: Iterable[Feature], recipe: Recipe) -> list[Group]:
    """The covariates of each feature."""
    owner = owners(recipe)
    return [frozenset(owner[name] for name in feature.covariates) for feature in features]


def covariate_table(
    averaged: AveragedModels,
    recipe: Recipe,
    training: Table,
    link: Link,
    probability: Callable[[str], float],
) -> "pd.DataFrame":
    """See `dbrm.Posterior.covariates`; `probability` is that of taking part in any way."""
    import pandas as pd

    kept = set(recipe.names)
    rules = [rule for rule in recipe.columns if kept.intersection(rule.outputs)]
    rows = training.take(np.unique(np.linspace(0, training.n_rows - 1, _ROWS).astype(np.int64)))
    split = _Split(averaged, recipe, rows)
    split.run()
    total = sum(float(np.var(part)) for part in split.contributions.values())
    found = []
    for rule in rules:
        part = split.contributions.get(rule.name)
        share = 0.0 if part is None or not total > 0 else float(np.var(part)) / total
        direction = _direction(rule, split, link)
        found.append((rule.name, probability(rule.name), share, direction))
    table = pd.DataFrame(found, columns=["covariate", "probability", "share", "direction"])
    order = np.lexsort((-table["probability"], -table["share"]))
    return table.iloc[order].reset_index(drop=True)


def interaction_table(
    groups: Iterable[Group], probability: Callable[[str, str], float]
) -> "pd.DataFrame":
    """See `dbrm.Posterior.interactions`; `probability` is that of being in one feature."""
    import pandas as pd

    pairs = sorted({pair for group in set(groups) for pair in combinations(sorted(group), 2)})
    found = [(first, second, probability(first, second)) for first, second in pairs]
    table = pd.DataFrame(found, columns=["first", "second", "probability"])
    order = np.argsort(-table["probability"].to_numpy(), kind="stable")
    return table.iloc[order].reset_index(drop=True)


@final
@dataclass(eq=False)
class _Split:
    """Splits the averaged linear predictor into contributions of covariates.

    Parameters
    ----------
    contributions
        Of each covariate, by row.
    curves
        Linear predictor with one covariate as in row i (rows), all others as in row j (columns).
    """

    averaged: AveragedModels
    recipe: Recipe
    rows: Table
    contributions: dict[str, Column] = field(default_factory=dict)
    curves: dict[str, Matrix] = field(default_factory=dict)

    def run(self) -> None:
        functions = self._functions()
        values = {group: self._at_rows(*parts) for group, parts in functions.items()}
        spread = {group: float(np.std(column)) for group, column in values.items()}
        least = _NEGLIGIBLE * sum(spread.values())
        for group, parts in functions.items():
            if spread[group] > least:
                self._split(group, parts, values[group])

    def _functions(self) -> dict[Group, tuple[list[Feature], list[float]]]:
        """Features of the same covariates, with their averaged coefficients."""
        averaged = self.averaged
        features = (*averaged.always, *averaged.features)
        weight = _averaged_slopes(averaged, averaged.evaluate(self.rows).mean(axis=0))
        found: dict[Group, tuple[list[Feature], list[float]]] = {}
        for feature, group, value in zip(
            features, groups_of(features, self.recipe), weight, strict=True
        ):
            members, weights = found.setdefault(group, ([], []))
            members.append(feature)
            weights.append(float(value))
        return found

    def _at_rows(self, features: list[Feature], weights: list[float]) -> Column:
        return self._evaluate(features, weights, {n: self.rows.column(n) for n in self.rows.names})

    def _evaluate(
        self, features: list[Feature], weights: list[float], columns: Mapping[str, Column]
    ) -> Column:
        with np.errstate(all="ignore"):
            clip = self.averaged.ranges if self.averaged.hold else None
            return np.asarray(evaluate(features, columns, clip_to=clip)[0] @ np.array(weights))

    def _split(self, group: Group, parts: tuple[list[Feature], list[float]], own: Column) -> None:
        if len(group) == 1:
            (name,) = group
            self._add(name, own - own.mean(), np.repeat(own[:, None], own.size, axis=1))
            return
        means = {frozenset[str](): np.full(own.size, own.mean()), group: own}
        exact = len(group) <= _MOST_EXACT
        for held in _splits(group, exact=exact):
            grid = self._grid(held, group, parts)
            if len(held) == 1:
                (name,) = held
                self._add(name, np.zeros(own.size), grid)
            means[held] = _mean(grid, 1)
            if exact and group - held not in means:
                means[group - held] = _mean(grid, 0)
        for name, part in _shapley(group, means).items():
            self.contributions[name] += part

    def _grid(self, held: Group, group: Group, parts: tuple[list[Feature], list[float]]) -> Matrix:
        """The function with the `held` covariates of row i, the others of the group of row j."""
        owner, n = owners(self.recipe), self.rows.n_rows
        columns = {}
        for name in self.rows.names:
            column = self.rows.column(name)
            if owner[name] in held:
                columns[name] = np.repeat(column, n)
            elif owner[name] in group:
                columns[name] = np.tile(column, n)
        return self._evaluate(*parts, columns).reshape(n, n)

    def _add(self, name: str, part: Column, curve: Matrix) -> None:
        self.contributions[name] = self.contributions.get(name, 0.0) + part
        self.curves[name] = self.curves.get(name, 0.0) + curve


def _averaged_slopes(averaged: AveragedModels, means: Column) -> Column:
    """Coefficient of each feature, zero in the models without it, averaged over models.

    Of models of the root of the response, those of the tangent at the row of these `means`.
    """
    fixed = len(averaged.always)
    total = np.zeros(fixed + len(averaged.features))
    for model, members in enumerate(averaged.models):
        own = np.concatenate([np.arange(fixed), fixed + members])
        slopes = averaged.probability[model] * averaged.tangent(model, means[own])[1]
        total[:fixed] += slopes[:fixed]
        total[fixed + members] += slopes[fixed:]
    return np.asarray(total / averaged.probability.sum())


def _splits(group: Group, *, exact: bool) -> list[Group]:
    """Sets of covariates to hold: single ones first, and one of each pair of complements."""
    names = sorted(group)
    found = [frozenset([name]) for name in names]
    if exact:
        half = len(names) // 2
        for size in range(2, half + 1):
            found += [frozenset(part) for part in combinations(names, size)]
    return found


def _shapley(group: Group, means: Mapping[Group, Column]) -> dict[str, Column]:
    """Contributions of covariates: each set's own part of the function, in equal shares."""
    parts: dict[Group, Column] = {}
    for held in sorted(means, key=len):
        inside = [parts[other] for other in parts if other < held]
        parts[held] = means[held] - sum(inside, start=np.zeros(len(means[held])))
    return {
        name: sum(
            (part / len(held) for held, part in parts.items() if name in held),
            start=np.zeros(len(means[group])),
        )
        for name in group
    }


def _mean(grid: Matrix, axis: int) -> Column:
    """Mean of the values that are defined."""
    defined = np.isfinite(grid)
    total = np.where(defined, grid, 0.0).sum(axis=axis)
    return np.asarray(total / np.maximum(defined.sum(axis=axis), 1))


def _direction(rule: ColumnRule, split: _Split, link: Link) -> str:
    """Which way the mean goes as the covariate grows, in all rows."""
    curve = split.curves.get(rule.name)
    if curve is None:
        return "none"
    if rule.coded and rule.kind != "ordered":
        return "by level"
    order = _in_order(rule, split.rows)
    steps = np.diff(curve[order], axis=0)
    steps = steps[np.isfinite(steps)]
    up, down = float(steps[steps > 0].sum()), float(-steps[steps < 0].sum())
    if not up + down > 0:
        return "none"
    if link.name == "inverse":
        up, down = down, up
    share = up / (up + down)
    if share >= _MONOTONE:
        return "increasing"
    return "decreasing" if share <= 1 - _MONOTONE else "mixed"


def _in_order(rule: ColumnRule, rows: Table) -> np.typing.NDArray[np.intp]:
    """Rows with a value, the smallest first."""
    names = [name for name in rule.outputs if name in rows.names]
    present = np.ones(rows.n_rows, dtype=np.bool_)
    if rule.missing_column in names:
        missing = rows.column(rule.missing_column)
        present = missing <= 0.5 * (missing.min() + missing.max())
        names = [name for name in names if name != rule.missing_column] or names
    column = rows.column(rule.name if rule.name in names else names[0])
    order = np.argsort(column, kind="stable")
    return order[present[order]]
