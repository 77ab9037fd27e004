"""Generalised linear models on a graphics processor, by JAX, which is imported when asked for."""

from dbrm.evidence.device.platform import choose_platform, start_device
from dbrm.evidence.device.population import DevicePopulation, can_use_device
from dbrm.evidence.device.rows import DeviceRows, HeldPopulation, Part, Reader

__all__ = [
    "DevicePopulation",
    "DeviceRows",
    "HeldPopulation",
    "Part",
    "Reader",
    "can_use_device",
    "choose_platform",
    "start_device",
]
