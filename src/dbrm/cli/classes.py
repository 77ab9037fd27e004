"""Text labels of a response as zeros and ones."""

import re
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dbrm.data.columns import read_column, refuse_missing, to_levels
from dbrm.data.text_numbers import is_number
from dbrm.errors import InvalidDataError, quote

__all__ = ["Classes", "class_values", "read_classes"]

# More different texts are no classes but a mistake.
_MOST_CLASSES = 20
_NAME = re.compile(r"(.+)\[(.+)\]", re.DOTALL)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """A response of classes.

    Parameters
    ----------
    name
        What the response is called; for two classes with the label that is 1.
    values
        1 for the second of two classes; labels of more classes.
    family, message
        The family for it, and what to tell the user.
    """

    name: str
    values: Any
    family: str
    message: str


def read_classes(name: str, content: Any, family: str | None) -> Classes | None:
    """Read a response of classes; None if it holds numbers, or is for another family."""
    column = read_column(name, content)
    if column.coded and family not in (None, "binomial"):
        return None
    if not column.coded:
        different = np.unique(column.values[~column.missing])
        is_two = different.size == 2 and tuple(different) != (0.0, 1.0)
        if column.kind != "boolean" and not (family == "binomial" and is_two):
            return None
        column = to_levels(column)
    refuse_missing([column], advice="Remove these rows.")
    n_classes = len(column.levels)
    texts = [level for level in column.levels if not is_number(level)]
    if texts and len(texts) < n_classes / 2:
        msg = (
            f"The response {name!r} holds numbers, and in some rows text: "
            f"{quote(texts, limit=4)}. Correct or remove these rows."
        )
        raise InvalidDataError(msg)
    if family is None and 2 < n_classes <= min(_MOST_CLASSES, column.values.size / 5):
        listed = quote(column.levels, limit=_MOST_CLASSES)
        message = f"The response {name!r} has {n_classes} classes: {listed} (--family multinomial)."
        return Classes(name, content, "multinomial", message)
    if n_classes != 2:
        msg = (
            f"The response {name!r} holds {n_classes} different texts "
            f"({quote(column.levels, limit=4)}) where numbers or two classes are needed. For few "
            "classes use --family multinomial; numbers must be numbers in every row."
        )
        raise InvalidDataError(msg)
    zero, one = column.levels
    message = (
        f"The response {name!r} has two classes: 1 is {one!r}, 0 is {zero!r} (--family binomial)."
    )
    values = (column.values == 1).astype(np.float64)
    return Classes(f"{name}[{one}]", values, "binomial", message)


def class_values(name: str, columns: dict[str, Any]) -> Any:
    """The response of a saved run, from a table with its column or with its labels."""
    if name in columns:
        return columns[name]
    match = _NAME.fullmatch(name)
    if match is None or match[1] not in columns:
        return None
    column = read_column(match[1], columns[match[1]])
    coded = column if column.coded else to_levels(column)
    if match[2] not in coded.levels:
        return None
    return (coded.values == coded.levels.index(match[2])).astype(np.float64)
