"""Columns kept aside as they are: the positions and groups of latent effects."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dbrm.data.columns import read_column
from dbrm.data.intake import RawTable
from dbrm.errors import InvalidDataError, quote, suggest

__all__ = ["Places", "read_places"]

# By column: numbers, or texts for groups with names.
Places = Mapping[str, npt.NDArray[Any]]


def read_places(raw: RawTable, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """The columns of these names, without missing values."""
    found = {}
    for name in names:
        if name not in raw.names:
            msg = (
                f"latent names the column {name!r}{suggest(name, raw.names)}, which the data do "
                f"not have. Columns: {quote(raw.names)}."
            )
            raise InvalidDataError(msg)
        column = read_column(name, raw.contents[raw.names.index(name)])
        absent = np.flatnonzero(column.missing)
        if absent.size:
            msg = (
                f"The column {name!r} of a latent effect has no value in row {absent[0]}"
                f"{f' and {absent.size - 1} more rows' if absent.size > 1 else ''}. "
                "Remove these rows."
            )
            raise InvalidDataError(msg)
        if column.kind == "categorical":
            found[name] = np.array(column.levels)[column.values]
        else:
            found[name] = np.asarray(column.values, dtype=np.float64)
    return found
