"""Latent effects as words on the command line: ``RW1(time)``."""

import re
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dbrm.latent import Latent

__all__ = ["read_latent"]

_EFFECT = re.compile(r"\s*(\w+)\s*\((.*)\)\s*")
_NAMES = ("AR1", "IID", "OU", "RW1", "RW2", "RandomIntercept")


def read_latent(texts: list[str], columns: dict[str, Any]) -> "list[Latent]":
    """Latent effects from their texts, each a name with a column of the table."""
    from dbrm import latent

    effects = []
    for text in texts:
        match = _EFFECT.fullmatch(text)
        if match is None or match[1] not in _NAMES:
            msg = f"--latent must be one of {', '.join(_NAMES)} with a column; got {text!r}."
            raise typer.BadParameter(msg)
        column = match[2].strip()
        if column not in columns and not (match[1] == "IID" and column == ""):
            msg = f"the table has no column {column!r}. Its columns: {', '.join(columns)}."
            raise typer.BadParameter(msg)
        effects.append(getattr(latent, match[1])(*[column] if column else []))
    return effects
