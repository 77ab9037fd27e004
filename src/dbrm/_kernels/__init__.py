"""Compiled loops: arrays in, arrays out; they see nothing else of the package.

Every kernel is plain Python that Numba compiles at its first call (never at
import) and keeps on disk. ``kernel.py_func`` is the same source uncompiled.
"""
