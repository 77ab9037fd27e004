"""The paper's data sets: the authors' files, loaders, and a catalogue of them all."""

from dbrm_paper.datasets.authors_files import DataUnavailableError
from dbrm_paper.datasets.catalogue import CATALOGUE, DataSet
from dbrm_paper.datasets.loaders import (
    Split,
    load_arabidopsis,
    load_breast_cancer,
    load_neo_asteroids,
    load_spam,
)

__all__ = [
    "CATALOGUE",
    "DataSet",
    "DataUnavailableError",
    "Split",
    "load_arabidopsis",
    "load_breast_cancer",
    "load_neo_asteroids",
    "load_spam",
]
