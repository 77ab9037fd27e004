"""How functions are compiled, and how to get them uncompiled.

Numba wraps every function for calls from Python, and the wrapper can take longer to compile
than the function. And it optimises a function once by itself and again in each of its callers:
one that is called from a single place is better written out there.
"""

from functools import cache
from types import FunctionType, ModuleType, SimpleNamespace

from numba.core.dispatcher import Dispatcher

__all__ = ["INTERNAL", "ONCE", "plain"]

# Options of functions that only other compiled functions call, from anywhere or from one place.
INTERNAL = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
ONCE = {**INTERNAL, "inline": "always"}


@cache
def plain(module: ModuleType) -> SimpleNamespace:
    """Return the module's functions as ordinary Python that calls ordinary Python.

    For likelihoods written in Python, and for exact tests. Functions of other modules stay
    compiled; they take arrays only.
    """
    names = dict(vars(module))
    for name, value in vars(module).items():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
            source = value.py_func
            names[name] = FunctionType(source.__code__, names, name, source.__defaults__)
    return SimpleNamespace(**names)
