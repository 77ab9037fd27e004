"""Parquet and Arrow files, and pyarrow data sets, in batches; only needed columns are read."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, final

from dbrm.data.out_of_core import batches as blocks
from dbrm.data.out_of_core.batches import AbstractBatches, Batch, ColumnRoles
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
    roles
        What its columns are for.
    """

    dataset: Any
    roles: ColumnRoles

    @property
    def names(self) -> tuple[str, ...]:
        return self.roles.covariates

    @cached_property
    def _count(self) -> int:
        return int(self.dataset.count_rows())

    @property
    def n_rows(self) -> int:
        return self._count

    @property
    def named(self) -> bool:
        return True

    def map(self, work: Callable[[Batch], T], names: Sequence[str]) -> Iterator[T]:
        start = 0
        for table in self._tables(self.roles.needed(names)):
            yield work(self.roles.to_batch(table, start, names))
            start += table.num_rows

    def load(self) -> tuple[dict[str, Any], dict[str, Any]]:
        columns = self.roles.needed(self.roles.covariates)
        return self.roles.split(self.dataset.to_table(columns=columns))

    def _tables(self, columns: list[str]) -> Iterator[Any]:
        """Yield tables of `BLOCK_ROWS` rows; the last one may be shorter."""
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
        """Yield record batches as they are stored, one in memory at a time."""
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
