"""The same kernels, uncompiled: for likelihoods written in Python, and for exact tests."""

from functools import cache
from types import FunctionType, ModuleType, SimpleNamespace

from numba.core.dispatcher import Dispatcher

__all__ = ["plain"]


@cache
def plain(module: ModuleType) -> SimpleNamespace:
    """Return the module's functions as ordinary Python that calls ordinary Python.

    Kernels of other modules stay compiled; they take arrays only.
    """
    names = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
            source = value.py_func
            names[name] = FunctionType(source.__code__, names, name, source.__defaults__)
    return SimpleNamespace(**names)
