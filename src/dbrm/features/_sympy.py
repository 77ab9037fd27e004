"""SymPy, imported at the first use: `import dbrm` must not pay for it."""

from importlib import import_module
from typing import Any, final

__all__ = ["sympy"]


@final
class _LazySympy:
    """Stands for the module `sympy`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(import_module("sympy"), name)
        except ImportError as error:
            msg = 'Export to SymPy needs the sympy package: pip install "dbrm[sympy]".'
            raise ImportError(msg) from error


sympy: Any = _LazySympy()
