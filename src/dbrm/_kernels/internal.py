"""Options of functions that only other compiled functions call.

Numba wraps every function for calls from Python. For arguments of fifty arrays the wrapper
takes longer to compile than the function.
"""

__all__ = ["INTERNAL"]

INTERNAL = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
