"""Checked rows of tall data: a recipe applied to one batch at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np

from dbrm._typing import Column
from dbrm.data.batches import AbstractBatches, Batch
from dbrm.data.recipe import Recipe
from dbrm.data.response import check_response, check_vector, check_weights
from dbrm.data.rows import AbstractRows, Block

__all__ = ["BatchRows", "read_extra"]

T = TypeVar("T")


@final
@dataclass(frozen=True, eq=False)
class BatchRows(AbstractRows):
    """Rows of a table in batches, as a recipe makes them."""

    batches: AbstractBatches
    recipe: Recipe
    is_binary: tuple[bool, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.recipe.names

    @property
    def n_rows(self) -> int:
        return self.batches.n_rows

    @property
    def binary(self) -> tuple[bool, ...]:
        return self.is_binary

    def each(self, work: Callable[[Block], T], names: Sequence[str]) -> Iterator[T]:
        recipe = self.recipe.only(names)
        return self.batches.each(_OnBlock(work, recipe), recipe.needed)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _OnBlock(Generic[T]):
    """The work on a block, done on a batch."""

    work: Callable[[Block], T]
    recipe: Recipe

    def __call__(self, batch: Batch) -> T:
        n = batch.raw.n_rows
        columns: dict[str, Column] = {}
        if self.recipe.names:
            table = self.recipe.apply_raw(batch.raw, checked=True)
            columns = {name: table.column(name) for name in table.names}
        extras = {
            name: content if _is_plain(content) else read_extra(name, content, n)
            for name, content in batch.extras.items()
        }
        return self.work(Block(batch.start, n, columns, extras))


def _is_plain(content: Any) -> bool:
    """Whether these are numbers already, which were checked when the recipe was learned."""
    return isinstance(content, np.ndarray) and content.dtype == np.float64


def read_extra(name: str, content: Any, n_rows: int) -> Column:
    """The response, or what belongs to its rows, checked."""
    if name == "response":
        return check_response(content, n_rows)
    if name == "weights":
        return check_weights(content, n_rows)
    return check_vector(content, n_rows, name=name)
