"""Words shared by the messages of this package: quoted names, rows, near misses.

Long lists are cut, so that a table of ten thousand columns does not print them all.
It sees text and row masks, never data.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice

import numpy as np

from dbrm._typing import Mask

__all__ = ["name_rows", "quote", "suggest"]


def quote(names: Collection[object], limit: int = 10) -> str:
    """List names in quotes; after `limit` of them, say how many more there are."""
    shown = ", ".join(repr(name) for name in islice(names, limit))
    hidden = len(names) - limit
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def name_rows(selected: Mask, limit: int = 5) -> str:
    """Name the first selected rows, counted from 0: ``rows 0, 4, 7, ...``."""
    rows = np.flatnonzero(selected)
    shown = ", ".join(str(row) for row in rows[:limit])
    return f"{'row' if rows.size == 1 else 'rows'} {shown}{', ...' if rows.size > limit else ''}"


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'a' or 'b'?)``, or nothing if no known name is close."""
    near = get_close_matches(unknown, list(known), n=3)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
