"""Which device to use, and the sizes of arrays there."""

from importlib.util import find_spec
from threading import Thread
from typing import Any

import numpy as np

from dbrm.errors import InvalidSettingError

__all__ = [
    "choose_platform",
    "load_program",
    "padded_rows",
    "padded_width",
    "start_device",
]

# With fewer rows `device="auto"` stays on the CPU: a default fit is as fast there.
_FEW_ROWS = 100_000
# Least rows on the device, rows up to which few sizes are told apart, and the powers of two in
# which sizes are told apart, below and above.
_SMALLEST, _SMALL = 256, 1 << 14
_FEW_STEPS, _MANY_STEPS = 1, 3
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


def start_device() -> None:
    """Begin to start JAX, beside other work: that takes a second or two.

    `choose_platform` waits for it, and says what is wrong if it fails.
    """
    if find_spec("jax") is not None:
        Thread(target=lambda: load_program().find_devices("gpu"), name="dbrm-device-start").start()


def padded_width(n_columns: int) -> int:
    """Columns on the device: populations of similar sizes share a program."""
    return next((width for width in _WIDTHS if width >= n_columns), 16 * -(-n_columns // 16))


def padded_rows(n_rows: int) -> int:
    """Rows on the device: numbers of rows that differ little share a program.

    Two sizes between powers of two for few rows, which differ between populations because equal
    rows are merged; eight for many.
    """
    steps = _FEW_STEPS if n_rows <= _SMALL else _MANY_STEPS
    step = 1 << max(int(np.log2(max(n_rows, _SMALLEST))) - steps, 0)
    return step * -(-max(n_rows, _SMALLEST) // step)


def load_program() -> Any:
    """The programs for the device; JAX is imported when they are first needed."""
    from dbrm.evidence.device import program

    return program
