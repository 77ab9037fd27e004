"""Which device to use, and the sizes of arrays there."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from dbrm.errors import InvalidSettingError

__all__ = ["choose_platform", "load_program", "padded_rows", "padded_width"]

# With fewer rows `device="auto"` stays on the CPU.
_FEW_ROWS = 1_000
# Numbers of columns on the device.
_WIDTHS = (16, 21, 32)


def choose_platform(device: str, n_rows: int) -> str | None:
    """The platform of JAX for the setting `device`; ``None`` for compiled code on the CPU.

    Raises
    ------
    InvalidSettingError
        If a graphics processor is asked for and there is none, or no JAX.
    """
    if device == "cpu" or (device == "auto" and (n_rows < _FEW_ROWS or find_spec("jax") is None)):
        return None
    if find_spec("jax") is None:
        msg = (
            "device='gpu' needs JAX, which is not installed: pip install 'dbrm[gpu]' 'jax[cuda13]' "
            "(the second for NVIDIA cards; see JAX's pages for others). Or leave device= out."
        )
        raise InvalidSettingError(msg)
    program = load_program()
    if program.find_devices("gpu"):
        program.keep_programs()
        return "gpu"
    if device == "auto":
        return None
    msg = (
        "device='gpu' needs a graphics processor, and JAX sees none. If there is one, install "
        "JAX's package for it, such as pip install 'jax[cuda13]' for NVIDIA cards. Or set "
        "device='auto', which takes the CPU where there is no other."
    )
    raise InvalidSettingError(msg)


def padded_width(n_columns: int) -> int:
    """Columns on the device: populations of similar sizes share a program."""
    return next((width for width in _WIDTHS if width >= n_columns), 16 * -(-n_columns // 16))


def padded_rows(n_rows: int) -> int:
    """Rows on the device: numbers of rows that differ little share a program."""
    step = 1 << max(int(np.log2(n_rows)) - 3, 3)
    return step * -(-n_rows // step)


def load_program() -> Any:
    """The programs for the device; JAX is imported when they are first needed."""
    from dbrm.evidence.device import program

    return program
