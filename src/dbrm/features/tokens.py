"""Names and tokens: the lexical level of a feature's text.

Covariates may have any name. One that is an identifier is written bare, every other between
backticks. Nothing is ever evaluated; length and number of tokens are limited, and errors
point at the position. The module sees text only, never features.
"""

import re
from dataclasses import dataclass
from typing import NoReturn, final

from dbrm.errors import FeatureSyntaxError

__all__ = [
    "MAX_LENGTH",
    "MAX_TOKENS",
    "Token",
    "is_text",
    "quote",
    "raise_syntax_error",
    "tokenize",
    "unquote",
]

MAX_LENGTH = 100_000
MAX_TOKENS = 50_000

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<quoted>`(?:[^`\\]|\\.)*`)
    | (?P<parameter>\[[^\[\]`]*\])
    | (?P<symbol>\*\*|[-+*/^(){}|,])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_BARE = re.compile(r"[^\W\d]\w*")
_ESCAPES = {"\\": "\\\\", "`": "\\`", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPED = re.compile("[" + re.escape("".join(_ESCAPES)) + "]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# Characters shown on either side of an error.
_WINDOW = 30


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


@final
@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (for symbols the symbol itself), text and position."""

    kind: str
    text: str
    position: int


def tokenize(text: str) -> list[Token]:
    """Split the text into tokens; the last one has the kind ``end``."""
    if not is_text(text):
        msg = f"A feature is parsed from text; got {type(text).__name__}."
        raise FeatureSyntaxError(msg)
    if len(text) > MAX_LENGTH:
        msg = f"The text of a feature may have {MAX_LENGTH} characters; got {len(text)}."
        raise FeatureSyntaxError(msg)
    tokens: list[Token] = []
    position = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            _raise_for_character(text, position)
        kind, content = match.lastgroup, match[match.lastgroup]
        token = Token(content if kind == "symbol" else kind, content, match.start(kind))
        if len(tokens) >= MAX_TOKENS:
            raise_syntax_error(text, token.position, f"More than {MAX_TOKENS} tokens")
        tokens.append(token)
        position = match.end()
    return tokens


def raise_syntax_error(text: str, position: int, message: str) -> NoReturn:
    """Raise a `FeatureSyntaxError` that shows the position."""
    msg = f"{message}, at position {position}.\n{_pointer(text, position)}"
    raise FeatureSyntaxError(msg)


def _pointer(text: str, position: int) -> str:
    """Show the text around a position, with a caret under it."""
    start = max(0, position - _WINDOW)
    before = "..." if start else ""
    after = "..." if position + _WINDOW < len(text) else ""
    piece = re.sub(r"\s", " ", text[start : position + _WINDOW])
    return f"    {before}{piece}{after}\n    {' ' * (len(before) + position - start)}^"


def _raise_for_character(text: str, position: int) -> NoReturn:
    while text[position].isspace():
        position += 1
    character = text[position]
    if character in "`[":
        closing = {"`": "`", "[": "]"}[character]
        raise_syntax_error(text, position, f"This {character} is never closed by {closing}")
    hint = "; write such a column name between backticks, `like this`"
    raise_syntax_error(text, position, f"Unexpected character {character!r}{hint}")
