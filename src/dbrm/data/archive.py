"""Read and write one file of arrays and JSON with a checksum, for posteriors and checkpoints.

The file is a zip archive of ``content.json`` and ``<name>.npy`` members. Its comment, the
last bytes of the file, holds the SHA-256 of every byte before it. Nothing is ever
unpickled. A checksum is not a signature, so names, sizes, types and shapes of the members are
checked before they are unpacked. Every problem raises `InvalidFileError`.
"""

import hashlib
import json
import os
import re
import reprlib
import secrets
import struct
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from dbrm.data.schema import Header, Schema
from dbrm.errors import DBRMError, InvalidFileError

__all__ = ["is_leftover", "read_archive", "write_archive"]

Arrays = dict[str, npt.NDArray[Any]]

FORMAT = 1
_MARK = b"dbrm sha256 "
_TRAILER = len(_MARK) + 64
_CONTENT = "content.json"
_ARRAY = ".npy"
# The header of an .npy file, for the types that we write.
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<type>[|<>](b1|[iu][1248]|f[48]|U[1-9]\d{0,8}))', "
    rb"'fortran_order': (?P<order>True|False), "
    rb"'shape': \((?P<shape>(\d{1,15}(, |,(?=\))|(?=\))))*)\), \} *\n",
    re.DOTALL,
)
_LONGEST_HEADER = 1 << 12
# What zipfile and zlib raise for a file that is not an archive.
_NO_ARCHIVE = (
    BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")


def write_archive(
    path: str | os.PathLike[str],
    content: Mapping[str, Any],
    arrays: Arrays,
    *,
    compressed: bool = True,
) -> None:
    """Write the file atomically, and sync it to disk before returning."""
    body = json.dumps({"format": FORMAT, **content}, allow_nan=False, default=_plain).encode()
    members = {_CONTENT: body}
    for name, array in arrays.items():
        raw = BytesIO()
        np.lib.format.write_array(raw, np.asarray(array), (1, 0), allow_pickle=False)
        members[name + _ARRAY] = raw.getvalue()
    data = _pack(members, ZIP_DEFLATED if compressed else ZIP_STORED)
    if not _is_within_limits(members, data):
        data = _pack(members, ZIP_STORED)
    data = data[:-_TRAILER]
    _write_atomically(Path(path), data + _MARK + hashlib.sha256(data).hexdigest().encode())


def read_archive(
    path: str | os.PathLike[str], schema_of: Callable[[dict[str, Any]], Schema] | None = None
) -> tuple[dict[str, Any], Arrays]:
    """Read what `write_archive` wrote.

    Parameters
    ----------
    schema_of
        Maps the content to the schema of the file, or raises. Types and shapes of arrays are
        checked before any of them is unpacked.
    """
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
        with ZipFile(BytesIO(data)) as archive:
            return _unpack(archive, len(data), schema_of)
    except InvalidFileError as error:
        msg = f"{path} does not hold what dbrm writes: {error}."
        raise InvalidFileError(msg) from error
    except DBRMError:
        raise
    except _NO_ARCHIVE as error:
        msg = f"{path} does not hold what dbrm writes ({type(error).__name__}: {error})."
        raise InvalidFileError(msg) from error


def _unpack(
    archive: ZipFile, size: int, schema_of: Callable[[dict[str, Any]], Schema] | None
) -> tuple[dict[str, Any], Arrays]:
    members = _members(archive, size)
    content = _read_content(archive.read(members.pop(_CONTENT)))
    headers = {name: _read_header(archive, member) for name, member in members.items()}
    schema = None if schema_of is None else schema_of(content)
    lengths: dict[str, int] = {}
    if schema is not None:
        schema.content.check(content, "", lengths)
        schema.check_headers(headers, lengths)
    arrays = {name: _read_array(archive, members[name], headers[name]) for name in members}
    if schema is not None:
        schema.check_values(arrays, lengths)
    return content, arrays


def _members(archive: ZipFile, size: int) -> dict[str, ZipInfo]:
    """Return the content and the arrays by name, after a check of their sizes."""
    members: dict[str, ZipInfo] = {}
    for member in archive.infolist():
        known = member.filename == _CONTENT or member.filename.endswith(_ARRAY)
        if not known or member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            msg = f"{member.filename!r} is not a member of such a file"
            raise InvalidFileError(msg)
        name = member.filename.removesuffix(_ARRAY)
        if name in members:
            msg = f"{member.filename!r} occurs twice"
            raise InvalidFileError(msg)
        members[name] = member
    if _CONTENT not in members:
        msg = f"{_CONTENT} is missing"
        raise InvalidFileError(msg)
    content, total = members[_CONTENT].file_size, sum(m.file_size for m in members.values())
    if content > most_content(size) or total > most_unpacked(size):
        msg = (
            f"its {size:,} bytes would unpack to {total:,} bytes, {content:,} of them JSON, which "
            "is more than dbrm packs into a file of this size"
        )
        raise InvalidFileError(msg)
    return members


def most_unpacked(size: int) -> int:
    """Return the most bytes that the members of a file of this size may unpack to."""
    return max(1 << 26, 50 * size)


def most_content(size: int) -> int:
    """Return the most bytes of JSON, which takes some ten times as many in memory."""
    return max(1 << 22, 10 * size)


def _is_within_limits(members: Mapping[str, bytes], data: bytes) -> bool:
    """Whether `read_archive` accepts the sizes in this file."""
    total = sum(len(member) for member in members.values())
    return len(members[_CONTENT]) <= most_content(len(data)) and total <= most_unpacked(len(data))


def _pack(members: Mapping[str, bytes], method: int) -> bytes:
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, member in members.items():
            archive.writestr(_member(name, method), member)
        archive.comment = b" " * _TRAILER
    return buffer.getvalue()


def _read_content(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        msg = f"{_CONTENT} is not JSON ({error})"
        raise InvalidFileError(msg) from error
    if not isinstance(content, dict):
        msg = f"{_CONTENT} is not a mapping"
        raise InvalidFileError(msg)
    version = content.get("format")
    # To Python, True is an int.
    if type(version) is not int or version < 1:
        msg = f"its format must be a whole number from 1 to {FORMAT}; got {reprlib.repr(version)}"
        raise InvalidFileError(msg)
    if version > FORMAT:
        msg = (
            f"it has format {version!r}; this version of dbrm reads formats up to "
            f"{FORMAT}. It was written by a newer dbrm: upgrade to read it"
        )
        raise InvalidFileError(msg)
    return content


def _refuse_constant(text: str) -> NoReturn:
    msg = f"{text} is not a number in JSON"
    raise ValueError(msg)


def _read_header(archive: ZipFile, member: ZipInfo) -> Header:
    """Read type, shape and order of an array, and check them against the member's size."""
    with archive.open(member) as file:
        found = _HEADER.match(file.read(_LONGEST_HEADER))
    if found:
        shape = tuple(int(length) for length in re.findall(rb"\d+", found["shape"]))
        dtype, fortran = np.dtype(found["type"].decode()), found["order"] == b"True"
        header = Header(dtype, shape, fortran, found.end())
        if header.n_bytes == member.file_size - found.end():
            return header
    msg = f"{member.filename!r} is not an array that dbrm writes"
    raise InvalidFileError(msg)


def _read_array(archive: ZipFile, member: ZipInfo, header: Header) -> npt.NDArray[Any]:
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    flat = np.frombuffer(archive.read(member)[header.start :], dtype=header.dtype)
    return np.array(flat.reshape(header.shape, order=order), dtype=header.native, order="K")


def _plain(number: np.generic) -> Any:
    """Convert a NumPy number to a Python one."""
    return number.item()


def _member(name: str, method: int) -> ZipInfo:
    """Return a member without a time stamp, so that equal content gives equal files."""
    member = ZipInfo(name)
    member.compress_type = method
    return member


def is_leftover(name: str, kept: re.Pattern[str]) -> bool:
    """Whether this is the name of a temporary file that a killed process left behind.

    `kept` matches the names of finished files; a temporary file has the name of one, with a dot
    before it and random digits after it.
    """
    found = _TEMPORARY.fullmatch(name)
    return found is not None and kept.fullmatch(found[1]) is not None


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    # Mode "x" never opens an existing file, and the system applies the user's umask.
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
    """Sync the new name of a file to disk, where the system can open folders."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
