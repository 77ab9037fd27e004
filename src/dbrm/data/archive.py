"""One file of arrays and JSON, with a checksum, for posteriors and for checkpoints.

The file is a zip archive of ``content.json`` and ``<name>.npy`` members. Its comment, the
last bytes of the file, holds the SHA-256 of every byte before it. Nothing is ever
unpickled. Whatever is wrong with a file ends in one `InvalidFileError`.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from dbrm.errors import DBRMError, InvalidFileError

__all__ = ["is_leftover", "read_archive", "write_archive"]

Arrays = dict[str, npt.NDArray[Any]]

FORMAT = 1
_MARK = b"dbrm sha256 "
_TRAILER = len(_MARK) + 64
_CONTENT = "content.json"
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")


def write_archive(
    path: str | os.PathLike[str],
    content: Mapping[str, Any],
    arrays: Arrays,
    *,
    compressed: bool = True,
) -> None:
    """Write the file whole or not at all, and have it on the disk before returning."""
    body = json.dumps({"format": FORMAT, **content}, allow_nan=False, default=_plain).encode()
    buffer = BytesIO()
    method = ZIP_DEFLATED if compressed else ZIP_STORED
    with ZipFile(buffer, "w") as archive:
        archive.writestr(_member(_CONTENT, method), body)
        for name, array in arrays.items():
            raw = BytesIO()
            np.lib.format.write_array(raw, np.asarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy", method), raw.getvalue())
        archive.comment = b" " * _TRAILER
    data = buffer.getvalue()[:-_TRAILER]
    _write_atomically(Path(path), data + _MARK + hashlib.sha256(data).hexdigest().encode())


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Read what `write_archive` wrote."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror or error}."
        raise InvalidFileError(msg) from error
    body, trailer = data[:-_TRAILER], data[-_TRAILER:]
    if not trailer.startswith(_MARK):
        msg = f"{path} was not written by dbrm, or its end is missing."
        raise InvalidFileError(msg)
    if trailer[len(_MARK) :] != hashlib.sha256(body).hexdigest().encode():
        msg = f"{path} is damaged: its checksum does not match."
        raise InvalidFileError(msg)
    try:
        return _unpack(data)
    except DBRMError:
        raise
    # A file made on purpose can make the readers below raise anything.
    except Exception as error:
        msg = f"{path} does not hold what dbrm writes ({type(error).__name__}: {error})."
        raise InvalidFileError(msg) from error


def _unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    with ZipFile(BytesIO(data)) as archive:
        content = json.loads(archive.read(_CONTENT))
        version = content["format"]
        if not isinstance(version, int) or version > FORMAT:
            msg = (
                f"The file has format {version!r}; this version of dbrm reads formats up to "
                f"{FORMAT}. It was written by a newer dbrm: upgrade to read it."
            )
            raise InvalidFileError(msg)
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(
                BytesIO(archive.read(name)), allow_pickle=False
            )
            for name in archive.namelist()
            if name != _CONTENT
        }
    return content, arrays


def _plain(number: np.generic) -> Any:
    """A NumPy number as Python's own."""
    return number.item()


def _member(name: str, method: int) -> ZipInfo:
    """A member without a time stamp: the same content is the same file."""
    member = ZipInfo(name)
    member.compress_type = method
    return member


def is_leftover(name: str, kept: re.Pattern[str]) -> bool:
    """Whether a name is that of a half-written file, left by a killed process.

    `kept` matches the names of the files that are written; a temporary file has the name of
    the file it was to become, with a dot before it and something random after it.
    """
    found = _TEMPORARY.fullmatch(name)
    return found is not None and kept.fullmatch(found[1]) is not None


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    # Mode "x" never opens a file that is there, and the system applies the user's mask.
    file = temporary.open("xb")
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Have the new name of a file on the disk; not every system lets folders be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
