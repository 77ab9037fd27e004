"""The errors users meet, and the wording they share; every one is also a standard Python error.

A message names the argument or column, says what was expected and what was
got, and what to try. Numerical trouble inside loops is a `dbrm.status.Status`,
never an exception.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any, NoReturn

__all__ = [
    "ChainError",
    "CheckpointError",
    "DBRMError",
    "DBRMWarning",
    "DataCheckWarning",
    "ExportError",
    "FeatureSyntaxError",
    "FormulaError",
    "InvalidDataError",
    "InvalidFileError",
    "InvalidSettingError",
    "Terminated",
    "UnknownNameError",
    "quote",
    "raise_unknown",
    "suggest",
]

# Known names listed in one message.
_LISTED = 40


class DBRMError(Exception):
    """Base of all errors raised on purpose by this package."""


class InvalidDataError(DBRMError, ValueError):
    """The table, the response or the weights cannot be used as they are."""


class InvalidFileError(DBRMError, ValueError):
    """A file is damaged, of a newer version, or was not written by this package."""


class CheckpointError(DBRMError, RuntimeError):
    """A folder of checkpoints is in use, cannot be written, or belongs to another run."""


class ChainError(DBRMError, RuntimeError):
    """No chain came to an end; the message tells how the first one failed."""


class InvalidSettingError(DBRMError, ValueError):
    """A setting is outside its range or contradicts another one."""


class UnknownNameError(DBRMError, KeyError):
    """A name (column, transform, prior, family) is not among those known."""

    def __str__(self) -> str:
        """Return the message itself; `KeyError` would print its repr."""
        return str(self.args[0]) if self.args else ""


class FeatureSyntaxError(DBRMError, ValueError):
    """A feature's text does not follow the grammar of `dbrm.parse_feature`."""


class FormulaError(DBRMError, ValueError):
    """A formula such as ``y ~ x`` cannot be read, or asks for something that there is not."""


class ExportError(DBRMError, ValueError):
    """A model cannot be written in the language asked for."""


class Terminated(SystemExit):
    """SIGTERM ended a search: the process ends with exit code 143 unless this is caught.

    Parameters
    ----------
    posterior
        What was found until then; None if nothing was.
    """

    def __init__(self, posterior: Any = None) -> None:
        super().__init__(143)
        self.posterior = posterior

    def __reduce__(self) -> tuple[type["Terminated"], tuple[()]]:
        """Travel between processes without what was found."""
        return Terminated, ()


class DBRMWarning(UserWarning):
    """Something the user should know that did not stop the work."""


class DataCheckWarning(DBRMWarning):
    """A column or the response looks like something that a regression should not be given."""


def quote(names: Collection[object], limit: int = 10) -> str:
    """List names in quotes; beyond `limit`, say how many more there are."""
    shown = ", ".join(repr(name) for name in islice(names, limit))
    hidden = len(names) - limit
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def suggest(unknown: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'a' or 'b'?)``, or nothing if no known name is close."""
    close = _close(unknown, list(known))
    return f" (did you mean {close}?)" if close else ""


def raise_unknown(kind: str, name: object, known: Iterable[str], *, hint: str = "") -> NoReturn:
    """Raise the error for an unknown name, with close matches and the known names.

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
    close = _close(str(name)[:200], names)
    if close:
        message += f" Did you mean {close}?"
    if names:
        listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
        message += f" Known {kind}s: {listed}."
    message = f"{message} {hint}".rstrip()
    raise UnknownNameError(message)


def _close(unknown: str, known: list[str]) -> str:
    return " or ".join(map(repr, get_close_matches(unknown, known, n=3)))
