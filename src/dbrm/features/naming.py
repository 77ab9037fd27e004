"""How names look in a feature's text, and what is said about unknown ones.

Covariates may have any name. One that is an identifier is written bare, every
other between backticks. The module sees text only, never features.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NoReturn

from dbrm.errors import UnknownNameError

__all__ = ["is_text", "quote", "raise_unknown", "unquote"]

_BARE = re.compile(r"[^\W\d]\w*")
_ESCAPES = {"\\": "\\\\", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LISTED = 40


def is_text(value: object) -> bool:
    """Whether a value, whatever its declared type, is text."""
    return isinstance(value, str)


def quote(name: str) -> str:
    r"""Write a covariate's name so that the parser reads it back.

    Examples
    --------
    >>> quote("x1"), quote("a b"), quote("2nd"), quote("a`b")
    ('x1', '`a b`', '`2nd`', '`a\\`b`')
    """
    if name.isidentifier() and _BARE.fullmatch(name):
        return name
    return "`" + _ESCAPED.sub(lambda match: _ESCAPES[match[0]], name) + "`"


def unquote(text: str) -> str:
    """Undo `quote`."""
    if not text.startswith("`"):
        return text
    return _ESCAPE.sub(lambda match: _UNESCAPES.get(match[1], match[1]), text[1:-1])


def raise_unknown(kind: str, name: object, known: Iterable[str], *, hint: str = "") -> NoReturn:
    """Raise the error for a name nobody knows, with close matches and the known names.

    Parameters
    ----------
    kind
        What the name should have been: ``"transform"``, ``"column"``.
    name
        The name as given.
    known
        The names that would have been accepted.
    hint
        One more sentence, put last.
    """
    names = list(dict.fromkeys(known))
    shown = repr(name) if len(repr(name)) <= 80 else repr(name)[:77] + "..."
    message = f"Unknown {kind} {shown}."
    close = get_close_matches(str(name)[:200], names, n=3)
    if close:
        message += f" Did you mean {' or '.join(repr(match) for match in close)}?"
    if names:
        listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        message += f" Known {kind}s: {listed}."
    message = f"{message} {hint}".rstrip()
    raise UnknownNameError(message)
