"""Evidence from rows that are out of core: visited in blocks, wherever they are."""

from dbrm.evidence.out_of_core.base import (
    AbstractColumns,
    AbstractOutOfCoreEngine,
    unsupported_out_of_core,
)
from dbrm.evidence.out_of_core.gaussian import OutOfCoreGaussianEngine
from dbrm.evidence.out_of_core.glm import OutOfCoreGlmEngine

__all__ = [
    "AbstractColumns",
    "AbstractOutOfCoreEngine",
    "OutOfCoreGaussianEngine",
    "OutOfCoreGlmEngine",
    "unsupported_out_of_core",
]
