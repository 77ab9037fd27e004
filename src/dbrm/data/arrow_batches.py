"""Parquet and Arrow files, and pyarrow's data sets, in batches; only needed columns are read."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, final

from dbrm.data import rows as blocks
from dbrm.data.batches import AbstractBatches, Batch, split_table
from dbrm.data.intake import RawTable, read_table
from dbrm.errors import InvalidFileError

__all__ = ["ARROW_SUFFIXES", "ArrowBatches", "open_dataset"]

T = TypeVar("T")

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
ARROW_SUFFIXES = tuple(_FORMATS)


def open_dataset(path: str | os.PathLike[str]) -> Any:
    """Open a file, or a folder of Parquet files, as a pyarrow data set."""
    try:
        import pyarrow.dataset
    except ImportError as error:
        msg = f"{path} is read in blocks by pyarrow: pip install pyarrow."
        raise InvalidFileError(msg) from error
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS and not Path(path).is_dir():
        msg = (
            f"{path}: tables are read in blocks from files that end in {', '.join(_FORMATS)}, or "
            "from a folder of Parquet files. Read others into a data frame."
        )
        raise InvalidFileError(msg)
    kind = _FORMATS.get(suffix, "parquet")
    try:
        return pyarrow.dataset.dataset(str(path), format=kind)
    except (OSError, pyarrow.ArrowInvalid) as error:
        msg = f"{path} cannot be read: {error}"
        raise InvalidFileError(msg) from error


@final
@dataclass(frozen=True, eq=False)
class ArrowBatches(AbstractBatches):
    """Rows of a pyarrow data set.

    Parameters
    ----------
    dataset
        The data set.
    covariates
        The columns to use.
    roles
        Columns of the response and of what belongs to its rows, by what they are.
    """

    dataset: Any
    covariates: tuple[str, ...]
    roles: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        return self.covariates

    @cached_property
    def _count(self) -> int:
        return int(self.dataset.count_rows())

    @property
    def n_rows(self) -> int:
        return self._count

    @property
    def named(self) -> bool:
        return True

    def each(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        start = 0
        for table in self._tables(list(dict.fromkeys([*names, *self.roles.values()]))):
            found = read_table(table)
            content = dict(zip(found.names, found.contents, strict=True))
            raw = RawTable(
                tuple(names), tuple(content[name] for name in names), found.n_rows, named=True
            )
            yield work(
                Batch(start, raw, {role: content[name] for role, name in self.roles.items()})
            )
            start += found.n_rows

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        wanted = list(dict.fromkeys([*self.covariates, *self.roles.values()]))
        return split_table(self.dataset.to_table(columns=wanted), self.covariates, self.roles)

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        """Tables of as many rows as a block has; the last one may be shorter."""
        import pyarrow as pa

        waiting: list[Any] = []
        n_waiting = 0
        for batch in self._scan(columns):
            waiting.append(batch)
            n_waiting += batch.num_rows
            while n_waiting >= blocks.BLOCK_ROWS:
                whole = pa.Table.from_batches(waiting)
                yield whole.slice(0, blocks.BLOCK_ROWS)
                rest = whole.slice(blocks.BLOCK_ROWS)
                waiting, n_waiting = rest.to_batches(), rest.num_rows
        if n_waiting:
            yield pa.Table.from_batches(waiting)

    def _scan(self, columns: list[str]) -> Iterator[Any]:
        """Batches as they are stored; one at a time, so that little is held."""
        import pyarrow.dataset as ds

        options: dict[str, Any] = {}
        if isinstance(getattr(self.dataset, "format", None), ds.ParquetFileFormat):
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
                use_buffered_stream=True, pre_buffer=False
            )
        batches: Iterator[Any] = self.dataset.to_batches(
            columns=columns,
            batch_size=blocks.BLOCK_ROWS,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
            **options,
        )
        return batches
