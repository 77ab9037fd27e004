"""The errors users meet; every one is also a standard Python error.

A message names the argument or column, says what was expected and what was
got, and what to try. Numerical trouble inside loops is a `dbrm.status.Status`,
never an exception.
"""

from typing import Any

__all__ = [
    "ChainError",
    "CheckpointError",
    "DBRMError",
    "DBRMWarning",
    "ExportError",
    "FeatureSyntaxError",
    "FormulaError",
    "InvalidDataError",
    "InvalidFileError",
    "InvalidSettingError",
    "NotFittedYetError",
    "Terminated",
    "UnknownNameError",
]


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


class NotFittedYetError(DBRMError, AttributeError, ValueError):
    """Something was asked of a model that has not been fitted."""


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
