"""Records of runs in a CSV file that only grows, so that nothing is computed twice.

A record is written and flushed when its run ends. A line that was cut off when the machine
stopped is dropped at the next start, and its run repeated.
"""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import final

from dbrm.errors import InvalidDataError
from dbrm.reproduce.study import AbstractStudy, Key, Record

__all__ = ["Results"]


@final
class Results:
    """The records of one study in a folder."""

    def __init__(self, folder: Path, study: AbstractStudy) -> None:
        self.path = folder / f"{study.name}.csv"
        self._key = study.key_columns
        self._columns = (*study.key_columns, *study.value_columns)
        self._records = self._read()

    @property
    def records(self) -> list[Record]:
        """All records, in the order in which their runs ended."""
        return list(self._records)

    def missing(self, keys: Iterable[Key]) -> list[Key]:
        """Those keys whose runs are not in the file."""
        known = {self._identity(record) for record in self._records}
        return [key for key in keys if self._identity(key) not in known]

    def append(self, record: Record) -> None:
        """Write one record, and see to it that it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(record)
            file.flush()
            os.fsync(file.fileno())
        self._records.append(record)

    def _identity(self, record: Record) -> tuple[str, ...]:
        return tuple(record[name] for name in self._key)

    def _read(self) -> list[Record]:
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")
        if not whole:
            self.path.unlink()
            return []
        rows = list(csv.reader(whole.splitlines()))
        if tuple(rows[0]) != self._columns:
            msg = (
                f"{str(self.path)!r} has the columns {', '.join(rows[0])}; expected "
                f"{', '.join(self._columns)}. It is from another version: choose another --out."
            )
            raise InvalidDataError(msg)
        return [dict(zip(self._columns, row, strict=True)) for row in rows[1:]]
