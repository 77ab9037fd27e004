"""What concerns JAX as a whole: its devices, its precision, and where it keeps programs."""

import os
from collections.abc import Callable
from functools import wraps
from math import inf
from pathlib import Path
from typing import Any

import jax

__all__ = ["QUICK", "find_devices", "in_64_bits", "keep_programs", "memory_of"]


# Options of XLA for programs that are compiled in a fraction of the time. Trying out the algorithms
# of matrix products takes most of it; the one chosen would depend on timing, and with it the last
# digits.
QUICK = {"xla_gpu_autotune_level": 0}


def in_64_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run with 64-bit numbers, whatever the setting of JAX in this process."""

    @wraps(function)
    def wide(*args: Any, **kwargs: Any) -> Any:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wide


def find_devices(platform: str) -> list[Any]:
    """Devices of JAX of a platform, ``"gpu"`` or ``"cpu"``; none where there is no such."""
    # Three quarters of a large memory at once would take JAX one or two seconds.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        return list(jax.devices(platform))
    except RuntimeError:
        return []


def memory_of(device: Any) -> float:
    """Bytes that JAX may use on a device; infinite where it does not say."""
    known = device.memory_stats() or {}
    return float(known.get("bytes_limit", inf))


def keep_programs() -> None:
    """Keep compiled programs in a folder of the user, unless JAX has been told where."""
    if jax.config.jax_compilation_cache_dir is None:
        folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dbrm" / "jax"
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
