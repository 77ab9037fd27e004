"""Latent effects as words on the command line: ``RW1(time)``."""

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dbrm.latent import Latent

__all__ = ["read_latent"]

_EFFECT = re.compile(r"\s*(\w+)\s*\((.*)\)\s*")


def read_latent(texts: list[str], columns: dict[str, Any]) -> "list[Latent]":
    """Latent effects from their texts, each a name with a column of the table."""
    from dbrm.evidence.latent import LATENT_EFFECTS

    effects = []
    for text in texts:
        match = _EFFECT.fullmatch(text)
        if match is None or match[1] not in LATENT_EFFECTS:
            msg = (
                f"--latent must be one of {', '.join(LATENT_EFFECTS)} with a column; got {text!r}."
            )
            raise typer.BadParameter(msg)
        kind, column = LATENT_EFFECTS[match[1]], match[2].strip()
        if column not in columns and (column or not _may_lack_a_column(kind)):
            msg = f"the table has no column {column!r}. Its columns: {', '.join(columns)}."
            raise typer.BadParameter(msg)
        effects.append(kind(column) if column else kind())
    return effects


def _may_lack_a_column(kind: type[Any]) -> bool:
    return any(part.name == "column" and part.default is None for part in fields(kind))
