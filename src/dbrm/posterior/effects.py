"""Effects of single covariates, averaged over models: curves, slopes, contributions.

Everything is computed at the rows of a table with some columns set to other values; bands
are quantiles over draws of models and coefficients, and hold no noise of the response.
Latent effects are held at zero.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm._typing import Column, Mask, Matrix, TableLike
from dbrm.data import ColumnRule, Recipe, Table
from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.formula import FormulaRecipe
from dbrm.posterior.draws import CoefficientDraws, draw_models
from dbrm.posterior.new_data import check_level
from dbrm.posterior.prediction import AveragedModels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Effects"]

# Rows that curves are averaged over, and points of a curve, unless asked otherwise.
_ROWS, _POINTS = 300, 40
# The same of a surface, which has the square of so many points.
_SURFACE_ROWS, _SURFACE_POINTS = 20, 15
# Slopes are differences over this share of a covariate's standard deviation.
_STEP = 0.01

Change = dict[str, Any]


@final
class Effects:
    """Curves, slopes and contributions of one posterior: ``posterior.effects``."""

    def __init__(
        self,
        averaged: AveragedModels,
        reader: Recipe | FormulaRecipe,
        recipe: Recipe,
        training: Table,
    ) -> None:
        self._averaged = averaged
        self._reader = reader
        self._recipe = recipe
        self._training = training

    def partial_dependence(
        self,
        covariate: str,
        X: TableLike | None = None,
        *,
        grid: int | Sequence[Any] = _POINTS,
        level: float = 0.95,
        draws: int = 500,
        random_state: int | None = 0,
        rows: int = _ROWS,
    ) -> "pd.DataFrame":
        r"""Mean response as one covariate varies, the others as they are.

        .. math:: f_j(v) = \frac1n \sum_i E(y \mid x_{i,-j},\, x_{ij} = v)

        Parameters
        ----------
        covariate
            Name of a column of the data; of a factor all levels are shown.
        X
            Rows to average over; without them, training rows.
        grid
            Number of points between the extremes, or the values themselves.
        level
            Posterior probability inside the band.
        rows
            Most rows to average over, evenly spaced among those given.

        Returns
        -------
        DataFrame
            ``value``, ``mean``, ``lower``, ``upper``.
        """
        import pandas as pd

        check_level(level)
        table = self._rows(X, rows)
        values, changes = self._settings(covariate, grid, self._rows(X))
        drawn = self._draw(draws, random_state)
        stacked = _stack(table, changes)
        mean = np.concatenate([block.mean() for block in self._averaged.blocks(stacked)])
        curves = _average_rows(drawn.mean(stacked), len(changes))
        lower, upper = _band(curves, level)
        mean = _average_rows(mean[None], len(changes))[0]
        return pd.DataFrame({"value": values, "mean": mean, "lower": lower, "upper": upper})

    def surface(
        self,
        first: str,
        second: str,
        X: TableLike | None = None,
        *,
        grid: int = _SURFACE_POINTS,
    ) -> "pd.DataFrame":
        r"""Mean response as two covariates vary together, the others as they are.

        .. math:: f_{jk}(u, v) = \frac1n \sum_i E(y \mid x_{i,-jk},\, x_{ij} = u, x_{ik} = v)

        Parameters
        ----------
        X
            Rows to average over; without them, training rows. At most 20 are used.
        grid
            Number of points between the extremes of each covariate; of a factor all levels.

        Returns
        -------
        DataFrame
            The two covariates by their names, and ``mean``; the second varies fastest.
        """
        import pandas as pd

        if first == second:
            msg = f"surface needs two different covariates; got {first!r} twice."
            raise InvalidSettingError(msg)
        table = self._rows(X, _SURFACE_ROWS)
        seen = self._rows(X)
        rows, columns = self._settings(first, grid, seen), self._settings(second, grid, seen)
        changes = [a | b for a in rows[1] for b in columns[1]]
        stacked = _stack(table, changes)
        mean = np.concatenate([block.mean() for block in self._averaged.blocks(stacked)])
        pairs = [(u, v) for u in rows[0] for v in columns[0]]
        found = pd.DataFrame(pairs, columns=[first, second])
        found["mean"] = _average_rows(mean[None], len(changes))[0]
        return found

    def marginal_effects(
        self,
        X: TableLike | None = None,
        *,
        level: float = 0.95,
        draws: int = 500,
        random_state: int | None = 0,
    ) -> "pd.DataFrame":
        r"""Average slope of the mean response in every covariate.

        For a numeric covariate :math:`\frac1n \sum_i \partial E(y|x_i)/\partial x_{ij}`, by
        central differences over a hundredth of its standard deviation; for a covariate of
        zeros and ones, and for each level of a factor, the difference to zero or to the
        first level.

        Returns
        -------
        DataFrame
            ``covariate``, ``effect``, ``lower``, ``upper``; one row per covariate that some
            model uses, factors one row per level.
        """
        import pandas as pd

        check_level(level)
        table = self._rows(X)
        drawn = self._draw(draws, random_state)
        rows = []
        for name, low, high, width in self._steps(table):
            stacked = _stack(table, [low, high])
            mean = np.concatenate([block.mean() for block in self._averaged.blocks(stacked)])
            slopes = np.diff(_average_rows(drawn.mean(stacked), 2), axis=1) / width
            slope = np.diff(_average_rows(mean[None], 2)[0])[0] / width
            lower, upper = _band(slopes, level)
            rows.append((name, slope, lower[0], upper[0]))
        return pd.DataFrame(rows, columns=["covariate", "effect", "lower", "upper"])

    def contributions(self, X: TableLike) -> "pd.DataFrame":
        r"""Contribution of each feature to the linear predictor of each row.

        .. math:: \hat\eta(x) = \Bigl[\sum_M p_M \bar\eta_M\Bigr]
            + \sum_F \sum_{M \ni F} p_M \hat\beta_{MF} \{F(x) - \bar F\}

        with means over the training rows: the first column is the baseline, the others add
        up with it to the averaged linear predictor, an offset aside; models of the root of the
        response take part by their tangents at the average row. Features that move these rows
        most come first.
        """
        import pandas as pd

        table = self._reader.apply(X)
        names, parts = self._parts(table)
        return pd.DataFrame(parts, columns=["(baseline)", *names])

    def _parts(self, table: Table) -> tuple[list[str], Matrix]:
        averaged = self._averaged
        features = (*averaged.always, *averaged.features)
        centre = averaged.evaluate(self._training).mean(axis=0)
        columns = averaged.evaluate(table)
        n_always = len(averaged.always)
        parts = np.zeros((table.n_rows, 1 + len(features)))
        total = np.zeros(table.n_rows)
        for model, (members, p) in enumerate(
            zip(averaged.models, averaged.probability, strict=True)
        ):
            positions = np.concatenate([np.arange(n_always), n_always + members])
            defined: Mask = np.asarray(np.isfinite(columns[:, positions]).all(axis=1))
            weight = p * defined
            level, slopes = averaged.tangent(model, centre[positions])
            parts[:, 0] += weight * level
            moved = np.where(defined[:, None], columns[:, positions] - centre[positions], 0.0)
            parts[:, 1 + positions] += weight[:, None] * moved * slopes
            total += weight
        with np.errstate(invalid="ignore"):
            parts /= np.where(total > 0, total, np.nan)[:, None]
        order = np.argsort(-np.nansum(np.abs(parts[:, 1:]), axis=0), kind="stable")
        return [str(features[j]) for j in order], parts[:, [0, *(1 + order)]]

    def _draw(self, draws: int, random_state: int | None) -> CoefficientDraws:
        return draw_models(np.random.default_rng(random_state), self._averaged, draws)

    def _rows(self, X: TableLike | None, most: int = _ROWS) -> Table:
        table = self._training if X is None else self._reader.apply(X)
        if table.n_rows <= most:
            return table
        rows = np.linspace(0, table.n_rows - 1, most).astype(np.int64)
        return Table(table.names, table.values[rows])

    @property
    def covariates(self) -> list[str]:
        """Columns of the data that some averaged model uses."""
        used = set().union(
            *(f.covariates for f in (*self._averaged.always, *self._averaged.features))
        )
        return [rule.name for rule in self._recipe.columns if used.intersection(rule.outputs)]

    @property
    def leading_covariate(self) -> str:
        """The covariate with the largest posterior probability of being used at all."""
        averaged, mass = self._averaged, dict.fromkeys(self.covariates, 0.0)
        if not mass:
            msg = "No model uses any covariate, so there is no dependence to show."
            raise InvalidSettingError(msg)
        owner = {output: rule.name for rule in self._recipe.columns for output in rule.outputs}
        for members, p in zip(averaged.models, averaged.probability, strict=True):
            terms = (*averaged.always, *(averaged.features[j] for j in members))
            for name in {owner[column] for term in terms for column in term.covariates}:
                mass[name] += p
        return max(mass, key=lambda name: mass[name])

    def training_values(self, covariate: str) -> Column:
        """Values of a numeric covariate in the training rows, in the user's units."""
        mean, sd = self._unit(self._rule(covariate).name)
        return mean + sd * self._training.column(covariate)

    def _settings(
        self, name: str, grid: int | Sequence[Any], table: Table
    ) -> tuple[list[Any], list[Change]]:
        """Values of a covariate in the user's terms, and what they mean for the table."""
        rule = self._rule(name)
        if rule.coded:
            levels = list(rule.classes) if isinstance(grid, int) else list(grid)
            return levels, [self._level(rule, level) for level in levels]
        if not isinstance(grid, int):
            values = np.asarray(grid, dtype=np.float64)
        elif rule.kind == "boolean" or _is_switch(table.column(name), self._unit(name)):
            values = np.array([0.0, 1.0])
        else:
            mean, sd = self._unit(name)
            column = mean + sd * table.column(name)
            values = np.linspace(column.min(), column.max(), grid)
        return values.tolist(), [self._number(rule, value) for value in values]

    def _rule(self, name: str) -> ColumnRule:
        rules = {rule.name: rule for rule in self._recipe.columns}
        if name not in rules:
            msg = f"There is no covariate {name!r}. Covariates: {', '.join(rules)}."
            raise UnknownNameError(msg)
        if not set(rules[name].outputs) & set(self._recipe.names):
            msg = f"The covariate {name!r} was left out of the data: {dict(self._recipe.dropped)}."
            raise InvalidSettingError(msg)
        return rules[name]

    def _unit(self, name: str) -> tuple[float, float]:
        """What scaling subtracted from a column and divided it by."""
        if self._recipe.scale is None:
            return 0.0, 1.0
        j = self._recipe.names.index(name)
        return self._recipe.means[j], self._recipe.sds[j]

    def _number(self, rule: ColumnRule, value: float) -> Change:
        return self._present(rule) | self._scaled(rule.at_value(np.array(value)))

    def _scaled(self, values: Mapping[str, Any]) -> Change:
        """Values of columns in the user's units as those of the table, which has some of them."""
        change = {}
        for name in set(values).intersection(self._recipe.names):
            mean, sd = self._unit(name)
            change[name] = (values[name] - mean) / sd
        return change

    def _level(self, rule: ColumnRule, level: str) -> Change:
        if level in rule.classes:
            return self._scaled(rule.at_class(level))
        if level not in rule.levels:
            msg = f"{level!r} is no level of {rule.name!r}: {', '.join(rule.levels)}."
            raise InvalidSettingError(msg)
        return self._scaled(rule.at_level(level))

    def _present(self, rule: ColumnRule) -> Change:
        """A value that is set is not missing."""
        name = rule.missing_column
        if not (rule.indicator and name in self._recipe.names):
            return {}
        mean, sd = self._unit(name)
        return {name: -mean / sd}

    def _steps(self, table: Table) -> Iterator[tuple[str, Change, Change, float]]:
        """For each covariate: two settings to compare, and the distance between them."""
        for name in self.covariates:
            rule = self._rule(name)
            if rule.coded:
                reference, *others = rule.classes
                for level in others:
                    change = self._level(rule, level)
                    yield f"{name}[{level}]", self._level(rule, reference), change, 1.0
                continue
            mean, sd = self._unit(name)
            column = table.column(name)
            if rule.kind == "boolean" or _is_switch(column, (mean, sd)):
                yield name, self._number(rule, 0.0), self._number(rule, 1.0), 1.0
                continue
            values = mean + sd * column
            half = 0.5 * _STEP * float(np.std(values))
            low, high = (self._scaled(rule.at_value(values + h)) for h in (-half, half))
            yield name, low, high, 2 * half


def _is_switch(column: Column, unit: tuple[float, float]) -> bool:
    values = np.unique(unit[0] + unit[1] * column)
    return bool(np.allclose(values, [0.0, 1.0]) if values.size == 2 else False)


def _stack(table: Table, changes: Sequence[Change]) -> Table:
    """The table once per change, with the columns that it names replaced."""
    values = np.tile(table.values, (len(changes), 1))
    for place, change in enumerate(changes):
        rows = slice(place * table.n_rows, (place + 1) * table.n_rows)
        for name, value in change.items():
            values[rows, table.names.index(name)] = value
    return Table(table.names, values)


def _average_rows(values: Matrix, n_changes: int) -> Matrix:
    """Mean over the rows of each copy of the table, for every draw; undefined rows left out."""
    copies = values.reshape(len(values), n_changes, -1)
    defined = np.isfinite(copies)
    with np.errstate(invalid="ignore"):
        total = np.where(defined, copies, 0.0).sum(axis=2)
        return np.asarray(total / np.where(defined.any(axis=2), defined.sum(axis=2), np.nan))


def _band(values: Matrix, level: float) -> tuple[Column, Column]:
    lower, upper = np.nanquantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return lower, upper
