"""The checked table that the rest of the package works on: finite numbers in named columns.

`dbrm.data.intake` reads user input, `dbrm.data.recipe` prepares it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt

from dbrm._typing import Column, Matrix
from dbrm.errors import InvalidDataError, UnknownNameError, quote, suggest

__all__ = ["IndexColumns", "Table", "fingerprint", "is_binary"]

# By name: numbers, or text for named groups.
IndexColumns = Mapping[str, npt.NDArray[Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Named columns of finite numbers.

    Parameters
    ----------
    names
        Column names, all different, kept exactly as the user wrote them.
    values
        Rows by columns. Kept as float64, Fortran-ordered and read-only; copied
        unless it is all of that already.
    index_columns
        Columns that index latent effects (positions, times, groups), by name; not covariates.

    Attributes
    ----------
    binary
        Per column, whether it holds only zeros and ones.
    """

    names: tuple[str, ...]
    values: Matrix
    index_columns: IndexColumns = field(default_factory=dict)
    binary: tuple[bool, ...] = field(init=False)
    _position: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        values = _freeze(self.values)
        names = tuple(self.names)
        position = {name: index for index, name in enumerate(names)}
        if values.ndim != 2 or values.shape[1] != len(names):
            msg = (
                f"A table needs one name per column; got {len(names)} names for values "
                f"of shape {values.shape}."
            )
            raise InvalidDataError(msg)
        if len(position) != len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            msg = f"Column names must be unique; repeated: {quote(repeated)}."
            raise InvalidDataError(msg)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "binary", tuple(is_binary(column) for column in values.T))
        object.__setattr__(self, "_position", position)

    # Unpickled arrays come back writeable, so a copy is rebuilt, not restored.
    def __reduce__(self) -> tuple[type[Table], tuple[Any, ...]]:
        return Table, (self.names, self.values, self.index_columns)

    def __len__(self) -> int:
        """Return the number of rows, as data frames do."""
        return self.n_rows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def take(self, rows: npt.NDArray[Any]) -> Table:
        """Return some of the rows."""
        index = {name: content[rows] for name, content in self.index_columns.items()}
        return Table(self.names, self.values[rows], index)

    def only(self, names: Sequence[str]) -> Table:
        """Return some of the columns."""
        if tuple(names) == self.names:
            return self
        positions = [self._position[name] for name in names]
        return Table(tuple(names), self.values[:, positions], self.index_columns)

    def column(self, name: str) -> Column:
        """Return one column by name, a read-only view."""
        try:
            return self.values[:, self._position[name]]
        except KeyError:
            msg = (
                f"The table has no column {name!r}{suggest(name, self.names)}. "
                f"Its columns are {quote(self.names)}."
            )
            raise UnknownNameError(msg) from None

    def __contains__(self, name: object) -> bool:
        return name in self._position


def fingerprint(table: Table, *columns: Column) -> str:
    """Hash a table and any further columns, such as the response, by content.

    Two calls agree exactly when names, shapes and every bit of the numbers agree.

    Returns
    -------
    str
        SHA-256, as 64 hexadecimal digits.
    """
    digest = hashlib.sha256(repr((table.names, table.values.shape)).encode())
    for content in (table.values.T, *columns):
        digest.update(repr(content.shape).encode())
        digest.update(np.ascontiguousarray(content, dtype="<f8").data)
    for name, content in table.index_columns.items():
        digest.update(repr((name, content.shape, content.dtype.kind)).encode())
        digest.update(repr(content.tolist()).encode())
    return digest.hexdigest()


def is_binary(column: Column) -> bool:
    """Whether a column holds only zeros and ones."""
    # The first rows decide for nearly every column that is not binary.
    return all(bool(np.all((part == 0.0) | (part == 1.0))) for part in (column[:64], column[64:]))


def _freeze(values: Matrix) -> Matrix:
    ready = (
        isinstance(values, np.ndarray)
        and values.dtype == np.float64
        and values.flags.f_contiguous
        and not values.flags.writeable
    )
    frozen = values if ready else np.array(values, dtype=np.float64, order="F")
    frozen.flags.writeable = False
    return frozen
