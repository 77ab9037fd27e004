"""What commands share: errors and warnings as one line each, JSON as text, columns by name."""

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Annotated, Any

import typer

from dbrm.errors import DBRMError, DBRMWarning, suggest

__all__ = [
    "Decimal",
    "Encoding",
    "Separator",
    "find_column",
    "in_options",
    "json_text",
    "settings_as_options",
    "show_errors",
]

Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of a text file, such as latin-1; recognised by default."),
]
Separator = Annotated[
    str | None, typer.Option(help="Separator of the cells of a text file; recognised by default.")
]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal mark of a text file, . or , (recognised by default).")
]

# Options that are not called as the argument of dbrm.fit is.
_CALLED = {
    "sample_weight": "weights",
    "random_state": "seed",
    "n_jobs": "jobs",
    "time_budget": "time",
}
_NAME = (
    "family|link|latent|transforms|prior|penalty|preset|algorithm|n_chains|n_populations|subsample|"
    "missing|unseen|device|checkpoint|ignore|offset|trials|exposure|decimal|encoding|"
    "sample_weight|random_state|n_jobs|time_budget"
)
# What is said in Python, and how to say it here; tried in this order.
_TRANSLATIONS = (
    (r"latent=dbrm\.latent\.(\w+)\('?([^')]*)'?\)", r'--latent "\1(\2)"'),
    (r" ?\(check=False turns the data check off\.\)", ""),
    (r"use DBRMClassifier, or y == \S+ with ", "use "),
    (
        r"To model classes use DBRMClassifier; otherwise convert it to numbers\.",
        "For two classes use --family binomial.",
    ),
    (
        r"Turn it into numbers first, for example with t = .*?\.dt\.days\.",
        "Put columns of numbers in its place, such as year, month, or days since the first date; "
        "or leave it out with --ignore.",
    ),
    (r" If they are names of groups, X\[name\]\.astype\('category'\) says so\.", ""),
    (r" \(pandas\.to_numeric\)", ""),
    (r": X\[name\]\.str\.strip\(\)\.str\.lower\(\)", ""),
    (r"dbrm\.latent\.", ""),
    (r"^y (?=holds|contains|must|should|is)", "The response "),
    (r"\bX (?=contains|lacks|has)", "The table "),
)


@contextmanager
def show_errors() -> Iterator[None]:
    """Print errors and warnings as one line each; exit with code 1 after an error, no traceback."""
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = in_options(str(message))
        if text not in seen:
            seen.add(text)
            typer.echo(f"Warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DBRMWarning)
        warnings.showwarning = show
        try:
            yield
        except (DBRMError, OSError) as error:
            typer.echo(f"Error: {in_options(str(error))}", err=True)
            raise typer.Exit(1) from None


def in_options(message: str) -> str:
    """Say in terms of options what a message says in terms of Python's arguments."""
    for pattern, text in _TRANSLATIONS:
        message = re.sub(pattern, text, message, flags=re.DOTALL)
    message = re.sub(rf"^({_NAME})(?= must be)", lambda match: _option(match[1]), message)
    message = message.replace("must be one of None, ", "must be one of ")
    message = re.sub(rf"\b({_NAME})=\[([^\]]*)\]", _as_option, message)
    message = re.sub(rf"\b({_NAME})='([^']*)'", _as_option, message)
    message = re.sub(rf"\b({_NAME})=([\w.-]*\w)", _as_option, message)
    plain = "|".join([*_CALLED, "n_chains", "n_populations"])
    return re.sub(rf"(?<![\w-])({plain})\b=?", lambda match: _option(match[1]), message)


def settings_as_options(summary: str) -> str:
    """Write the settings that a summary advises as options; names and formulas stay as they are."""
    return re.sub(r"\b(n_chains|n_populations|time_budget)=(\d+)", _as_option, summary)


def _as_option(match: re.Match[str]) -> str:
    value = match[2].replace("'", "").replace(", ", ",")
    if not re.fullmatch(r"-?\w[\w.,/\-]*", value):
        value = f"'{value}'"
    return f"{_option(match[1])} {value}"


def _option(argument: str) -> str:
    return "--" + _CALLED.get(argument, argument).replace("_", "-")


def find_column(columns: dict[str, Any], name: str) -> Any:
    """A column of a table, or an error that lists the columns there are."""
    if name not in columns:
        near = suggest(name, columns)
        msg = f"the table has no column {name!r}{near}. Its columns: {', '.join(columns)}."
        raise typer.BadParameter(msg)
    return columns[name]


def json_text(value: Any) -> str:
    """Write tables and numbers as JSON; what is not a finite number becomes null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value
