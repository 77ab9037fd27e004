"""Rows of data: with their response for checks, and in blocks for predictions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm._typing import Column, IntArray, TableLike
from dbrm.data import (
    Recipe,
    Table,
    check_vector,
    is_source,
    open_batches,
    read_extra,
    refuse_other_order,
)
from dbrm.errors import InvalidDataError
from dbrm.formula import FormulaRecipe

__all__ = ["Block", "Rows", "split_rows"]

# A table of rows, with their offset, trials and exposure.
Block = tuple[Table, Any, Any, Any]
# Most rows of a block.
_ROWS = 100_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table with a response, and what belongs to its rows.

    Parameters
    ----------
    offset
        Known part of the linear predictor, exposure included.
    trials
        Numbers of trials of a binomial response.
    event
        Of survival times: one where the event was seen, zero where the time is censored.
    """

    table: Table
    response: Column
    offset: Column | None = None
    trials: Column | None = None
    event: Column | None = None

    def take(self, kept: IntArray) -> "Rows":
        """Some of the rows."""
        return Rows(
            table=self.table.take(kept),
            response=self.response[kept],
            offset=None if self.offset is None else self.offset[kept],
            trials=None if self.trials is None else self.trials[kept],
            event=None if self.event is None else self.event[kept],
        )


def split_rows(
    recipe: Recipe | FormulaRecipe, X: TableLike, offset: Any, trials: Any, exposure: Any
) -> Iterator[Block]:
    """Blocks of a table in memory, a file, a pyarrow data set or a Dask collection.

    In the latter offset, trials and exposure are names of columns (Dask arrays beside a Dask
    array).
    """
    if is_source(X):
        yield from _stream(recipe, X, {"offset": offset, "trials": trials, "exposure": exposure})
        return
    refuse_other_order(X, offset=offset, trials=trials, exposure=exposure)
    if isinstance(recipe, FormulaRecipe):
        offset = recipe.offset_of(X, offset)
    table = recipe.apply(X)
    n = table.n_rows
    if n <= _ROWS:
        yield table, offset, trials, exposure
        return
    given = {"offset": offset, "trials": trials, "exposure": exposure}
    vectors = {
        name: None if value is None else check_vector(value, n, name=name)
        for name, value in given.items()
    }
    for start in range(0, n, _ROWS):
        rows = np.arange(start, min(start + _ROWS, n))
        first, second, third = (None if v is None else v[rows] for v in vectors.values())
        yield table.take(rows), first, second, third


def _stream(recipe: Recipe | FormulaRecipe, X: Any, given: dict[str, Any]) -> Iterator[Block]:
    if isinstance(recipe, FormulaRecipe):
        msg = "Predictions of a model with a formula need X in memory: pass a data frame."
        raise InvalidDataError(msg)
    roles = {name: value for name, value in given.items() if value is not None}
    batches = open_batches(X, roles)
    lacking = [name for name in recipe.needed if name not in batches.names]
    if lacking:
        msg = f"X lacks columns of the training data: {', '.join(map(repr, lacking))}."
        raise InvalidDataError(msg)
    for batch in batches.stream(recipe.needed):
        n = batch.raw.n_rows
        found = {name: read_extra(name, content, n) for name, content in batch.extras.items()}
        first, second, third = (found.get(name) for name in given)
        yield recipe.apply_raw(batch.raw), first, second, third
