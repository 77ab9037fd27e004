"""Compiled loops: arrays in, arrays out; they see nothing else of the package.

Every kernel is plain Python that Numba compiles at its first call (never at
import) and keeps on disk: beside the source, or in the user's cache folder. Where neither can
be written, compiled code lasts as long as the process and its workers.
``kernel.py_func`` is the same source uncompiled.
"""

import atexit
import os
import shutil
import tempfile
import warnings

import numba as nb


def _probe():
    pass


try:
    # Compiles nothing, but asks for a place to keep it.
    nb.njit(cache=True)(_probe)
except RuntimeError:
    _folder = tempfile.mkdtemp(prefix="dbrm-numba-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    # By the environment workers find it too.
    os.environ["NUMBA_CACHE_DIR"] = nb.config.CACHE_DIR = _folder
    warnings.warn(
        "dbrm keeps compiled code on disk, but can write neither to its own folder nor to your "
        "cache folder: it will be compiled anew in every process, which takes up to a minute. Set "
        "NUMBA_CACHE_DIR to a folder that can be written.",
        stacklevel=2,
    )
