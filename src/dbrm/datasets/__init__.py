"""Data sets: real planets that ship with the package, the paper's, and simulated ones.

`load_exoplanets` and the simulations need no files and no network. The paper's other data
sets are downloaded on first use; their loaders live in `dbrm_paper.datasets` and are
imported from there when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dbrm.datasets.exoplanets import load_exoplanets
from dbrm.datasets.simulated import LOGIC_LAW, simulate_logic, simulate_planets

if TYPE_CHECKING:
    from dbrm_paper.datasets import (
        CATALOGUE,
        DataSet,
        DataUnavailableError,
        Split,
        load_arabidopsis,
        load_breast_cancer,
        load_neo_asteroids,
        load_spam,
    )

__all__ = [
    "CATALOGUE",
    "LOGIC_LAW",
    "DataSet",
    "DataUnavailableError",
    "Split",
    "load_arabidopsis",
    "load_breast_cancer",
    "load_exoplanets",
    "load_neo_asteroids",
    "load_spam",
    "simulate_logic",
    "simulate_planets",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        value = getattr(import_module("dbrm_paper.datasets"), name)
        globals()[name] = value
        return value
    msg = f"module 'dbrm.datasets' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
