"""The data of the paper's examples, and simulated data with a known law."""

from dbrm.datasets.catalogue import CATALOGUE, DataSet
from dbrm.datasets.fetch import DataUnavailableError
from dbrm.datasets.paper import (
    Split,
    load_arabidopsis,
    load_breast_cancer,
    load_exoplanets,
    load_neo_asteroids,
    load_spam,
)
from dbrm.datasets.simulated import LOGIC_LAW, simulate_logic, simulate_planets

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
