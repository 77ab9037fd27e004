"""The paper's data sets by name: what they are, which files they need, where these are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, final

from dbrm.datasets.exoplanets import EXOPLANETS_FILE, load_exoplanets
from dbrm_paper.datasets.authors_files import SHA256, find_local, locate
from dbrm_paper.datasets.loaders import (
    Split,
    load_arabidopsis,
    load_breast_cancer,
    load_neo_asteroids,
    load_spam,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CATALOGUE", "DataSet"]


@final
@dataclass(frozen=True, slots=True)
class DataSet:
    """One of the paper's data sets.

    Parameters
    ----------
    name, example
        Its name on the command line, and the paper's examples that use it.
    response, rows
        Name of the response; number of rows, or of training and test rows, as text.
    folder
        Its folder among the authors' files; None for the table that ships with dbrm.
    load
        Its loader.
    """

    name: str
    example: str
    response: str
    rows: str
    folder: str | None
    load: Callable[[], pd.DataFrame | Split]

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the authors' files it is made of."""
        if self.folder is None:
            return ()
        return tuple(name for name in SHA256 if name.startswith(f"{self.folder}/"))

    @property
    def place(self) -> Path | None:
        """Folder of its files, if all of them are on this machine."""
        if self.folder is None:
            return EXOPLANETS_FILE.parent
        found = [find_local(name) for name in self.files]
        if any(path is None for path in found):
            return None
        (first, *_) = [path for path in found if path is not None]
        return first.parents[self.files[0].count("/") - 1]

    def fetch(self) -> list[Path]:
        """Paths of its files, after downloading those that are missing."""
        if self.folder is None:
            return [EXOPLANETS_FILE]
        return [locate(name) for name in self.files]

    def tables(self) -> dict[str, pd.DataFrame]:
        """The prepared tables, by part: ``train`` and ``test``, or ``all``."""
        loaded = self.load()
        if isinstance(loaded, Split):
            return {"train": loaded.train, "test": loaded.test}
        return {"all": loaded}


_ENTRIES = (
    DataSet("asteroids", "1", "neo", "64 + 20,702", "asteroids", load_neo_asteroids),
    DataSet("breast-cancer", "2", "malignant", "143 + 426", "breast cancer", load_breast_cancer),
    DataSet("spam", "3", "spam", "1,536 + 3,065", "spam", load_spam),
    DataSet("exoplanets", "4, 5", "SemiMajorAxisAU", "223", None, load_exoplanets),
    DataSet(
        "arabidopsis", "7", "methylated_bases", "500", "epigenetic modifications", load_arabidopsis
    ),
)
CATALOGUE: Mapping[str, DataSet] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
