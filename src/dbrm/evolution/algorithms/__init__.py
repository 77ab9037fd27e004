"""The algorithms, each in a file of its own, which registers it.

To add one, add a module with a class that derives from `AbstractChain`, states its traits
(`AbstractAlgorithm`) and is decorated with ``@ALGORITHMS.register(name)``.
"""

from dbrm._choices import import_modules
from dbrm.evolution.algorithms.base import (
    ALGORITHMS,
    AbstractAlgorithm,
    AbstractChain,
    Pause,
    ProgressCallback,
    find_algorithm,
    proceed,
)

__all__ = [
    "ALGORITHMS",
    "AbstractAlgorithm",
    "AbstractChain",
    "Pause",
    "ProgressCallback",
    "find_algorithm",
    "proceed",
]

import_modules(__name__, __path__)
