"""Schemas of saved files: types, ranges and lengths of JSON fields and of arrays.

A matching checksum does not make a file trustworthy, so its content is validated. A length may
have a name: all fields and arrays with the same name must have the same length. Other
constraints between parts are checked by the modules that use them.
"""

from __future__ import annotations

import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, prod
from typing import Any, NoReturn, final

import numpy as np
import numpy.typing as npt

from dbrm.errors import InvalidFileError

__all__ = [
    "FINITE",
    "AbstractField",
    "AnyOf",
    "ArrayOf",
    "Flag",
    "Header",
    "ListOf",
    "MappingOf",
    "Nullable",
    "Plain",
    "Real",
    "Record",
    "Schema",
    "Text",
    "Whole",
    "refuse_unless",
]

Lengths = dict[str, int]
#: Largest number that is not infinite.
FINITE = float(np.finfo(np.float64).max)
_LARGEST = 2**63 - 1
_MOST_NESTED = 20


class AbstractField(ABC):
    """One value in JSON."""

    @abstractmethod
    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        """Raise unless the value is valid; `where` is its name in the message."""


@final
@dataclass(frozen=True, slots=True)
class Text(AbstractField):
    """Text; one of `choices`, if given."""

    choices: tuple[str, ...] = ()

    def check(self, value: Any, where: str, lengths: Lengths) -> None:  # noqa: ARG002
        if not isinstance(value, str):
            refuse(where, "must be text", value)
        if self.choices and value not in self.choices:
            refuse(where, f"must be one of {', '.join(map(repr, self.choices))}", value)


@final
@dataclass(frozen=True, slots=True)
class Whole(AbstractField):
    """A whole number from `low` to `high`, or below the length called `below`."""

    low: int = 0
    high: int = _LARGEST
    below: str = ""

    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        high = lengths[self.below] - 1 if self.below else self.high
        # To Python, True and False are ints.
        if type(value) is not int or not self.low <= value <= high:
            refuse(where, f"must be a whole number from {self.low} to {high}", value)


@final
@dataclass(frozen=True, slots=True)
class Real(AbstractField):
    """A finite number from `low` to `high`."""

    low: float = -inf
    high: float = inf

    def check(self, value: Any, where: str, lengths: Lengths) -> None:  # noqa: ARG002
        known = type(value) is float or (type(value) is int and abs(value) <= _LARGEST)
        if not known or not isfinite(value) or not self.low <= value <= self.high:
            refuse(where, f"must be a finite number from {self.low} to {self.high}", value)


@final
@dataclass(frozen=True, slots=True)
class Flag(AbstractField):
    """True or false."""

    def check(self, value: Any, where: str, lengths: Lengths) -> None:  # noqa: ARG002
        if not isinstance(value, bool):
            refuse(where, "must be true or false", value)


@final
@dataclass(frozen=True, slots=True)
class Nullable(AbstractField):
    """Null, or a value of `inner`."""

    inner: AbstractField

    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        if value is not None:
            self.inner.check(value, where, lengths)


@final
@dataclass(frozen=True, slots=True)
class AnyOf(AbstractField):
    """A value of one of several fields."""

    options: tuple[AbstractField, ...]

    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        for option in self.options[:-1]:
            try:
                option.check(value, where, dict(lengths))
            except InvalidFileError:
                continue
            return
        self.options[-1].check(value, where, lengths)


@final
@dataclass(frozen=True, slots=True)
class ListOf(AbstractField):
    """A list; `length` is a number, or the name of a length."""

    inner: AbstractField
    length: int | str | None = None

    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, list):
            refuse(where, "must be a list", value)
        _agree(self.length, len(value), where, lengths)
        for index, item in enumerate(value):
            self.inner.check(item, f"{where}[{index}]", lengths)


@final
@dataclass(frozen=True, slots=True)
class MappingOf(AbstractField):
    """A mapping with values of one kind; `keys` are the whole numbers allowed as names."""

    inner: AbstractField
    keys: Whole | None = None

    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, dict):
            refuse(where, "must be a mapping", value)
        for name, item in value.items():
            if self.keys is not None:
                number = int(name) if re.fullmatch("[0-9]{1,18}", name) else name
                self.keys.check(number, f"{where}: name", lengths)
            self.inner.check(item, f"{where}.{name}", lengths)


@final
@dataclass(frozen=True, slots=True)
class Plain(AbstractField):
    """Any JSON that is not too deeply nested; checked where it is used."""

    def check(self, value: Any, where: str, lengths: Lengths) -> None:  # noqa: ARG002
        level = [value]
        for _ in range(_MOST_NESTED):
            inner = [list(v.values()) if isinstance(v, dict) else v for v in level]
            level = [item for v in inner if isinstance(v, list) for item in v]
            if not level:
                return
        refuse(where, f"must not be nested more than {_MOST_NESTED} deep", "something deeper")


@final
@dataclass(frozen=True, slots=True)
class Record(AbstractField):
    """Named fields, checked in this order; those in `optional` may be absent."""

    fields: Mapping[str, AbstractField]
    optional: frozenset[str] = frozenset()

    def check(self, value: Any, where: str, lengths: Lengths) -> None:
        if not isinstance(value, dict):
            refuse(where or "The content", "must be a mapping", value)
        within = f"{where}." if where else ""
        for name in value.keys() - self.fields.keys():
            msg = f"{within}{name} is not known"
            raise InvalidFileError(msg)
        for name, inner in self.fields.items():
            if name in value:
                inner.check(value[name], within + name, lengths)
            elif name not in self.optional:
                msg = f"{within}{name} is missing"
                raise InvalidFileError(msg)


@final
@dataclass(frozen=True, slots=True)
class Header:
    """The header of an array, read before it is unpacked.

    Parameters
    ----------
    fortran
        Whether the first index changes fastest.
    start
        Bytes before the first entry.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    start: int

    @property
    def native(self) -> np.dtype[Any]:
        """The type in the byte order of this machine."""
        return self.dtype.newbyteorder("=")

    @property
    def n_bytes(self) -> int:
        """Bytes of all entries."""
        return prod(self.shape) * self.dtype.itemsize


@final
@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array.

    Parameters
    ----------
    dtype
        As NumPy writes it; empty for any.
    shape
        Per dimension a number, the name of a length (``"models+1"`` for one more), or ``None``
        for any length. A ``#`` in a name is the first number in the array's own name.
    low, high
        Range of the entries.
    below
        Name of the length that entries, being positions in something, must be below.
    nan
        Whether entries may be missing.
    """

    dtype: str
    shape: tuple[int | str | None, ...]
    low: float = -inf
    high: float = inf
    below: str = ""
    nan: bool = False

    def check_header(self, header: Header, where: str, lengths: Lengths, number: str) -> None:
        """Raise unless type and shape are valid."""
        if self.dtype and header.native != self.dtype:
            refuse(where, f"must be of type {self.dtype}", header.dtype)
        if len(header.shape) != len(self.shape):
            refuse(where, f"must have {len(self.shape)} dimensions", header.shape)
        for wanted, found in zip(self.shape, header.shape, strict=True):
            length = wanted.replace("#", number) if isinstance(wanted, str) else wanted
            _agree(length, found, where, lengths)

    def check_values(self, array: npt.NDArray[Any], where: str, lengths: Lengths) -> None:
        """Raise unless every entry is inside the range."""
        if array.dtype.kind not in "iuf" or array.size == 0:
            return
        high = lengths[self.below] - 1 if self.below else self.high
        if array.dtype.kind == "f" and np.isnan(array).any():
            if not self.nan:
                refuse(where, "must hold numbers", "NaN")
            array = array[~np.isnan(array)]
        # Compared as Python numbers: a 64-bit integer is not always a float.
        for entry in (array.min(), array.max()) if array.size else ():
            if not self.low <= entry.item() <= high:
                refuse(where, f"must hold numbers from {self.low} to {high}", entry.item())


@final
@dataclass(frozen=True)
class Schema:
    """Content and arrays of a file.

    Parameters
    ----------
    arrays
        By name. A ``#`` in a name stands for a number, a ``*`` for any text: there may be any
        number of such arrays, or none.
    optional
        Names of other arrays that may be absent.
    """

    content: Record
    arrays: Mapping[str, ArrayOf] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()

    def check_headers(self, headers: Mapping[str, Header], lengths: Lengths) -> None:
        """Raise unless all required arrays are there, each of its type and shape."""
        for name in self.arrays:
            if not {"#", "*"} & set(name) and name not in headers and name not in self.optional:
                msg = f"{name} is missing"
                raise InvalidFileError(msg)
        for name, header in headers.items():
            array, number = self._find(name)
            array.check_header(header, name, lengths, number)

    def check_values(self, arrays: Mapping[str, npt.NDArray[Any]], lengths: Lengths) -> None:
        """Raise unless the entries of all arrays are inside their ranges."""
        for name, array in arrays.items():
            self._find(name)[0].check_values(array, name, lengths)

    def _find(self, name: str) -> tuple[ArrayOf, str]:
        for pattern, array in self._patterns:
            found = pattern.fullmatch(name)
            if found:
                return array, found[1] if found.groups() else ""
        msg = f"{name} is not known"
        raise InvalidFileError(msg)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], ArrayOf]]:
        return [
            (re.compile(re.escape(name).replace(r"\#", "([0-9]+)").replace(r"\*", "(.+)")), array)
            for name, array in self.arrays.items()
        ]


def refuse(where: str, wanted: str, got: Any) -> NoReturn:
    """Raise for an invalid part of a file."""
    msg = f"{where} {wanted}; got {reprlib.repr(got)}"
    raise InvalidFileError(msg)


def refuse_unless(sound: object, what: str) -> None:
    """Raise if parts of a file are inconsistent."""
    if not sound:
        msg = f"{what} does not fit the other parts"
        raise InvalidFileError(msg)


def _agree(wanted: int | str | None, found: int, where: str, lengths: Lengths) -> None:
    if wanted is None:
        return
    if isinstance(wanted, str):
        name, plus, _ = wanted.partition("+1")
        wanted = lengths.setdefault(name, found - bool(plus)) + bool(plus)
    if wanted != found:
        refuse(where, f"must have length {wanted}", found)
