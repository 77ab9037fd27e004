"""A folder in which a run survives its process.

It holds ``run.dbrm``, which says what the run is, with a copy beside it, and for every chain
its last two states, ``chain-00000.a.dbrm`` and ``.b.dbrm``, written in turn. Every file is an
archive with a checksum, under its name only once all of it is on the disk. A lock that the
system gives up with the process keeps two runs apart; processes forked from it do not hold it.
"""

import logging
import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, final
from weakref import WeakSet

from dbrm.chains.log import log_event
from dbrm.data.archive import Arrays, is_leftover, read_archive, write_archive
from dbrm.data.schema import Record, Schema, Text, Whole
from dbrm.errors import CheckpointError, DBRMError, DBRMWarning, InvalidFileError
from dbrm.evolution import Problem, Snapshot
from dbrm.evolution.algorithms.base import LayoutOf
from dbrm.evolution.snapshot import Layout
from dbrm.features import Feature, parse_feature, write_features

__all__ = ["Checkpoint"]

# Of the files in the folder; raised whenever a chain of an older version could not go on.
FORMAT = 1
_HEADS = ("run.dbrm", "run.copy.dbrm")
_STAMP = {
    "format": Whole(1),
    "checkpoint": Whole(FORMAT, FORMAT),
    "version": Text(),
    "run": Text(),
}
_FILES = re.compile(r"run\.dbrm|run\.copy\.dbrm|chain-\d{5,}\.[ab]\.dbrm")


@final
class Checkpoint:
    """The folder of one run, locked while it is open.

    Parameters
    ----------
    folder
        Where it is.
    make
        Whether to make the folder if it is not there.
    version
        Of dbrm. States of another version are refused: their steps might differ.
    """

    def __init__(self, folder: str | os.PathLike[str], version: str, *, make: bool = True) -> None:
        self.folder = Path(folder)
        self._version = version
        self._run = ""
        self._turn: dict[int, int] = {}
        self._texts: dict[Feature, str] = {}
        try:
            if make:
                self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.folder / "lock")
            self._remove_leftovers()
        except OSError as error:
            msg = f"The checkpoint folder {self.folder} cannot be used: {error.strerror or error}."
            raise CheckpointError(msg) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.close()

    @property
    def begun(self) -> bool:
        """Whether there is a run in the folder."""
        return any((self.folder / name).exists() for name in _HEADS)

    def _remove_leftovers(self) -> None:
        """Remove what a killed process had not finished writing; nobody else writes now."""
        for file in self.folder.iterdir():
            if is_leftover(file.name, _FILES):
                file.unlink(missing_ok=True)

    def write_head(self, run: str, content: dict[str, Any], arrays: Arrays) -> None:
        """Say what the run is; `run` is a name that no other run has."""
        self._run = run
        body = self._stamp() | content
        for name in _HEADS:
            self._write(name, body, arrays, compressed=True)

    def read_head(self, schema: Schema) -> tuple[dict[str, Any], Arrays]:
        """What the run is, from the copy if need be; `schema` says what `write_head` was given."""

        def whole(_: dict[str, Any]) -> Schema:
            return replace(schema, content=Record({**_STAMP, **schema.content.fields}))

        try:
            content, arrays = self._read(_HEADS[0], whole)
        except InvalidFileError as error:
            try:
                content, arrays = self._read(_HEADS[1], whole)
            except InvalidFileError:
                raise error from None
            _warn(f"{error} Its copy is sound and was used.")
        self._run = content["run"]
        return content, arrays

    def save_chain(self, index: int, snapshot: Snapshot, problem: Problem, n_done: int) -> None:
        """Keep the state of a chain, in place of the last but one."""
        turn = self._turn.get(index, -1) + 1
        features = {key: self._spell(value, problem) for key, value in snapshot.features.items()}
        content = self._stamp() | {
            "turn": turn,
            "n_done": n_done,
            "content": snapshot.content,
            "features": features,
        }
        self._write(_name(index, turn), content, snapshot.arrays, compressed=False)
        self._turn[index] = turn
        message = f"Chain {index}: population {n_done} is on the disk"
        log_event(logging.DEBUG, "checkpoint", message, chain=index, population=n_done)

    def load_chain(self, index: int, problem: Problem, layout_of: LayoutOf) -> Snapshot | None:
        """The newest sound state of a chain; none if it has to begin anew."""

        def schema_of(content: dict[str, Any]) -> Schema:
            inner = content.get("content")
            return _chain_schema(layout_of(problem, inner if isinstance(inner, dict) else {}))

        found, trouble = [], []
        for turn in (0, 1):
            if not (self.folder / _name(index, turn)).exists():
                continue
            try:
                found.append(self._read(_name(index, turn), schema_of))
            except InvalidFileError as error:
                trouble.append(str(error))
        for content, _ in found:
            if content["run"] != self._run:
                msg = (
                    f"{self.folder} holds a state of chain {index} that belongs to another run. "
                    "Keep one folder per run."
                )
                raise CheckpointError(msg)
        newest = max(found, key=lambda pair: int(pair[0]["turn"]), default=None)
        if trouble:
            place = f"from population {newest[0]['n_done']}" if newest else "from its beginning"
            _warn(f"{' '.join(trouble)} Chain {index} goes on {place}.")
        if newest is None:
            return None
        content, arrays = newest
        self._turn[index] = int(content["turn"])
        features = {key: self._parse(texts, problem) for key, texts in content["features"].items()}
        return Snapshot(content["content"], arrays, features)

    def _stamp(self) -> dict[str, Any]:
        return {"checkpoint": FORMAT, "version": self._version, "run": self._run}

    def _write(
        self, name: str, content: dict[str, Any], arrays: Arrays, *, compressed: bool
    ) -> None:
        try:
            write_archive(self.folder / name, content, arrays, compressed=compressed)
        except OSError as error:
            msg = (
                f"The checkpoint {self.folder / name} cannot be written: "
                f"{error.strerror or error}. What was written before is unharmed: make room, then "
                f"dbrm.resume({str(self.folder)!r}) goes on from there."
            )
            raise CheckpointError(msg) from error

    def _read(
        self, name: str, schema_of: Callable[[dict[str, Any]], Schema]
    ) -> tuple[dict[str, Any], Arrays]:
        path = self.folder / name

        def of_this_version(content: dict[str, Any]) -> Schema:
            if content.get("checkpoint") != FORMAT or content.get("version") != self._version:
                wrote = content.get("version", "something else")
                msg = (
                    f"{path} was written by dbrm {wrote} (checkpoint format "
                    f"{content.get('checkpoint')}); this is dbrm {self._version} (format {FORMAT}),"
                    " which might take other steps. Resume with the version that wrote it, or "
                    "begin anew in another folder."
                )
                raise CheckpointError(msg)
            return schema_of(content)

        return read_archive(path, of_this_version)

    def _spell(self, features: Iterable[Feature], problem: Problem) -> list[str]:
        """Text of the features; each is checked once."""
        texts = []
        for feature in features:
            # Equal features may differ in the weights of projections.
            text = self._texts.get(feature)
            if text is None or text != str(feature):
                names, transforms = problem.table.names, problem.grammar.transforms
                (text,) = write_features([feature], names, transforms)
                self._texts[feature] = text
            texts.append(text)
        return texts

    def _parse(self, texts: list[str], problem: Problem) -> list[Feature]:
        names, transforms = problem.table.names, problem.grammar.transforms
        try:
            return [parse_feature(text, names, transforms=transforms) for text in texts]
        except DBRMError as error:
            msg = (
                f"{self.folder} holds features that cannot be read: {error} If the run used "
                "transforms of your own, pass the same ones."
            )
            raise CheckpointError(msg) from error


def _chain_schema(layout: Layout) -> Schema:
    content = {
        **_STAMP,
        "turn": Whole(),
        "n_done": Whole(),
        "features": Record(layout.features),
        "content": Record(layout.content),
    }
    return Schema(Record(content), layout.arrays)


def _name(index: int, turn: int) -> str:
    return f"chain-{index:05d}.{'ab'[turn % 2]}.dbrm"


def _warn(message: str) -> None:
    log_event(logging.WARNING, "damaged", message)
    warnings.warn(message, DBRMWarning, stacklevel=2)


def _lock(path: Path) -> IO[str]:
    """Open a file that no other process can open this way at the same time."""
    file = path.open("a+")
    try:
        _lock_file(file)
    except OSError as error:
        file.seek(0)
        owner = file.read().strip() or "another process"
        file.close()
        msg = (
            f"The checkpoint folder {path.parent} is in use by {owner}. Two runs cannot share a "
            "folder: wait for it to end, or choose another folder."
        )
        raise CheckpointError(msg) from error
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {socket.gethostname()}")
    file.flush()
    _LOCKS.add(file)
    return file


def _lock_file(file: IO[str]) -> None:
    try:
        import fcntl
    except ImportError:
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


# A lock of `flock` lives as long as any process has the file open: workers that a pool forks
# would keep it when this process is killed.
_LOCKS: WeakSet[IO[str]] = WeakSet()


def _close_inherited_locks() -> None:
    for file in list(_LOCKS):
        file.close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_close_inherited_locks)
