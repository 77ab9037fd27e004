"""Files with a checksum that holds, made on purpose: every part of a good one altered."""

import copy
import hashlib
import json
import warnings
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np

# What a field of the JSON may be replaced by; the last two are text of JSON, not values.
ODD = [-1, 0, 1, 1.5, 2**31, 2**70, True, None, "text", "", [], [7], [[7]], {}, {"a": 1}]
ODD_TEXT = ["NaN", "1e400"]
TRAILER = 76


def sign(path, members, method=ZIP_STORED):
    """Write members, of which names may repeat, with a checksum that holds."""
    buffer = BytesIO()
    pairs = members.items() if isinstance(members, dict) else members
    with warnings.catch_warnings(), ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in pairs:
            archive.writestr(name, content)
        archive.comment = b" " * TRAILER
    body = buffer.getvalue()[:-TRAILER]
    path.write_bytes(body + b"dbrm sha256 " + hashlib.sha256(body).hexdigest().encode())


def npy(array):
    raw = BytesIO()
    np.lib.format.write_array(raw, np.asarray(array), version=(1, 0), allow_pickle=False)
    return raw.getvalue()


def odd_contents(content):
    """The JSON with one field replaced, left out or added, as text."""
    mark = "\u241fhere\u241f"
    for path in paths_of(content):
        for odd in (*ODD, mark):
            changed = copy.deepcopy(content)
            holder = changed
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = odd
            text = json.dumps(changed)
            if odd == mark:
                for raw in ODD_TEXT:
                    yield f"{path} = {raw}", text.replace(json.dumps(mark), raw)
            else:
                yield f"{path} = {odd!r}", text
        changed = copy.deepcopy(content)
        holder = changed
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
        yield f"{path} left out", json.dumps(changed)
    yield "one more field", json.dumps(content | {"more": 1})


def paths_of(value, path=()):
    """Every field, and the first two and the last items of every list."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths_of(inner, (*path, name))
    elif isinstance(value, list):
        for index in sorted({0, 1, len(value) - 1} & set(range(len(value)))):
            yield from paths_of(value[index], (*path, index))


def odd_arrays(array):
    """One array in many wrong ways, as bytes of a member."""
    yield "empty", npy(array[:0])
    yield "shorter", npy(array[:-1])
    yield "longer", npy(np.concatenate([array, array[:1]]))
    yield "repeated", npy(np.concatenate([array, array]))
    yield "no dimension", npy(np.float64(1.0))
    yield "one dimension more", npy(array[None])
    yield "flat", npy(np.append(array.ravel(), array.ravel()[:1]))
    yield "text", npy(np.full(array.shape, "text"))
    yield "complex", npy(array.astype(np.complex128))
    yield "booleans", npy(array != 0)
    yield "other byte order", npy(array.astype(array.dtype.newbyteorder()))
    yield "small integers", npy(np.nan_to_num(array.astype(np.float64)).clip(0, 9).astype(np.int8))
    yield "reversed", npy(array[::-1])
    for fill in (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 5e-324):
        yield f"as floats, {fill}", npy(np.full(array.shape, fill))
        changed = array.astype(np.float64)
        changed.flat[-1:] = fill
        yield f"as floats, the last {fill}", npy(changed)
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        for fill in (limits.min, limits.max, 0, 1, 1000):
            fill = min(max(fill, limits.min), limits.max)
            yield f"all {fill}", npy(np.full(array.shape, fill, dtype=array.dtype))
            changed = array.copy()
            changed.flat[-1:] = fill
            yield f"the last {fill}", npy(changed)
    good = npy(array)
    yield "no header", b""
    yield "half of it", good[: len(good) // 2]
    yield "more than it says", good + b"\0" * 8
    yield "another magic", b"\x93NUMPX" + good[6:]
    yield "another version", good[:6] + b"\x07\x00" + good[8:]
    for shape in ("(-1,)", "(True,)", "(10**9, 10**9)", "(4611686018427387904, 4)", "'x'"):
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
        yield f"shape {shape}", start + header
    for dtype in ("|O", "<U1000000000", "V8", "<f16", "<M8[s]", "nonsense"):
        header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': (1,), }}\n".encode()
        start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
        yield f"type {dtype}", start + header + b"\0" * 8


def crafted(members):
    """Names and members of every crafted file."""
    content = json.loads(members["content.json"])
    for name, text in odd_contents(content):
        yield f"content {name}", members | {"content.json": text.encode()}
    for name in members:
        yield f"{name} left out", {key: value for key, value in members.items() if key != name}
        yield f"{name} twice", [*members.items(), (name, members[name])]
        if name.endswith(".npy"):
            array = np.load(BytesIO(members[name]))
            for what, raw in odd_arrays(array):
                yield f"{name}: {what}", members | {name: raw}
    for name in ("extra.npy", "../extra.npy", "averaged_latent_99_mean.npy", "readme.txt", ".npy"):
        yield f"{name} beside", members | {name: npy(np.zeros(2))}
    yield "deep JSON", members | {"content.json": b"[" * 100_000 + b"]" * 100_000}
    yield "long number", members | {"content.json": b'{"format": ' + b"9" * 10_000 + b"}"}
    for nonsense in (b"", b"[]", b"{}", b"nan", b"\xff", b'"text"', b"1"):
        yield f"content {nonsense!r}", members | {"content.json": nonsense}
