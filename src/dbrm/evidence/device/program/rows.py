"""Rows on the device: arrays in blocks, copied there and back."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dbrm.evidence.device.program.session import QUICK, in_64_bits

__all__ = ["Rows", "place", "place_rows", "stack_rows", "to_host"]

Array = Any


class Rows(NamedTuple):
    """Rows on the device, in blocks.

    columns: block x column x row; mean, total, offset: block x row, total zero where padded;
    reach: largest absolute value of each column.
    """

    columns: Array
    mean: Array
    total: Array
    offset: Array
    reach: Array


@in_64_bits
def place_rows(
    device: Any, columns: Array, mean: Array, total: Array, offset: Array, *, block: int
) -> Rows:
    """Copy rows to the device, padded to whole blocks with copies of the first row."""
    k, n = columns.shape
    n_blocks = -(-n // block)

    def padded(values: Array, filler: Array) -> Array:
        wide = np.empty((len(values), n_blocks * block))
        wide[:, :n] = values
        wide[:, n:] = filler
        return wide

    flat = padded(columns, columns[:, :1]).reshape(k, n_blocks, block).swapaxes(0, 1)
    rest = [
        padded(values[None], filler).reshape(n_blocks, block)
        for values, filler in ((mean, mean[0]), (total, 0.0), (offset, offset[0]))
    ]
    reach = np.max(np.abs(columns), axis=1)
    put = partial(jax.device_put, device=device)
    mean, total, offset = map(put, rest)
    return Rows(put(np.ascontiguousarray(flat)), mean, total, offset, put(reach))


@in_64_bits
def place(device: Any, values: Array) -> Array:
    """Copy numbers to the device."""
    return jax.device_put(values, device)


@in_64_bits
@partial(jax.jit, compiler_options=QUICK)
def stack_rows(columns: list[Array], mean: Array, total: Array, offset: Array) -> Rows:
    """One block of rows from columns on the device."""
    reach = jnp.zeros(len(columns))
    return Rows(jnp.stack(columns)[None], mean[None], total[None], offset[None], reach)


@in_64_bits
def to_host(values: Array) -> Any:
    """The numbers of one array of the device, or of several."""
    return jax.tree.map(np.asarray, values)
