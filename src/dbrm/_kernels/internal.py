"""Options of functions that only other compiled functions call.

Numba wraps every function for calls from Python, and the wrapper can take longer to compile
than the function. And it optimises a function once by itself and again in each of its callers:
one that is called from a single place is better written out there.
"""

__all__ = ["INTERNAL", "ONCE"]

INTERNAL = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
ONCE = {**INTERNAL, "inline": "always"}
