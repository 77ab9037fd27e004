"""Things that users choose by name, such as algorithms and priors.

Each registers itself where it is defined. A package of such things imports all of its modules,
so that adding one means adding one file.
"""

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from dbrm.errors import UnknownNameError

__all__ = ["Choices", "import_modules"]

Choice = TypeVar("Choice")
Decorated = TypeVar("Decorated")


class Choices(dict[str, Choice]):
    """A registry of things of one kind, by name.

    Parameters
    ----------
    kind
        What they are, for messages: ``"algorithm"``.
    also
        What else users can give instead of a name.
    """

    def __init__(self, kind: str, also: str = "") -> None:
        super().__init__()
        self._kind, self._also = kind, also
        self._aliases: dict[str, str] = {}

    def register(self, name: str, *aliases: str) -> Callable[[Decorated], Decorated]:
        """Return a decorator that adds a class or function under a name."""

        def add(choice: Decorated) -> Decorated:
            for taken in (name, *aliases):
                if taken in self or taken in self._aliases:
                    msg = f"The name {taken!r} of this {self._kind} is taken."
                    raise ValueError(msg)
            self[name] = choice  # type: ignore[assignment]
            self._aliases.update(dict.fromkeys(aliases, name))
            return choice

        return add

    def find(self, name: str) -> Choice:
        """Look up a name or an alias, in any case, with ``-``, ``_`` and blanks equal."""
        plain = name.strip().lower().replace("_", "-").replace(" ", "-")
        plain = self._aliases.get(plain, plain)
        if plain in self:
            return self[plain]
        close = get_close_matches(plain, [*self, *self._aliases], n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        msg = f"There is no {self._kind} {name!r}.{hint} Known: {', '.join(self)}{self._also}."
        raise UnknownNameError(msg)


def import_modules(package: str, path: list[str]) -> None:
    """Import all modules of a package, whose ``__name__`` and ``__path__`` these are."""
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")
