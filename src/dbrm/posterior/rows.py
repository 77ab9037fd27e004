"""Rows with their response: what checks of a model are made on."""

from dataclasses import dataclass
from typing import final

from dbrm._typing import Column
from dbrm.data import Table

__all__ = ["Rows"]


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
    """

    table: Table
    response: Column
    offset: Column | None = None
    trials: Column | None = None
