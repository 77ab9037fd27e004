"""What can be asked for: each table of the paper, its studies and its page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from dbrm.reproduce.classification import OWN, STRATEGIES, Classification
from dbrm.reproduce.classification_pages import accuracy_page, complexity_page, strategy_page
from dbrm.reproduce.competitors import COMPETITORS
from dbrm.reproduce.epigenetic import Epigenetic
from dbrm.reproduce.epigenetic_page import epigenetic_page
from dbrm.reproduce.inference_pages import law_page, logic_page, sigmoid_page
from dbrm.reproduce.laws import Law, SigmoidOnly
from dbrm.reproduce.logic import Logic
from dbrm.reproduce.pages import Page
from dbrm.reproduce.study import AbstractStudy, Record

__all__ = ["TABLES", "Table"]

EXAMPLES = ("asteroids", "breast-cancer", "spam")


@final
@dataclass(frozen=True, slots=True)
class Table:
    """A table of the paper.

    Parameters
    ----------
    studies
        Whose runs it needs.
    methods
        Which of their methods; all if not given.
    page
        Makes the page from all records, by study.
    """

    studies: tuple[AbstractStudy, ...]
    page: Callable[[Mapping[str, Sequence[Record]]], Page]
    methods: tuple[str, ...] | None = None


def _accuracy(name: str, example: str) -> Table:
    return Table(
        studies=(Classification(example),),
        page=lambda records: accuracy_page(name, example, records[example]),
        methods=(*OWN, *COMPETITORS),
    )


TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "table1": _accuracy("table1", "asteroids"),
        "table2": _accuracy("table2", "breast-cancer"),
        "table3": _accuracy("table3", "spam"),
        "table4": Table(
            tuple(Classification(example) for example in EXAMPLES),
            complexity_page,
            ("DBRM_G", "DBRM_R", "DBRM_G_PAR", "DBRM_R_PAR", "LBRM"),
        ),
        "mass": Table((Law("mass"),), lambda records: law_page("mass", records["mass"])),
        "kepler": Table((Law("kepler"),), lambda records: law_page("kepler", records["kepler"])),
        "appendix-a": Table(
            tuple(Classification(example) for example in EXAMPLES),
            strategy_page,
            ("DBRM_G", "DBRM_R", *STRATEGIES),
        ),
        "appendix-b": Table((SigmoidOnly(),), lambda records: sigmoid_page(records["appendix-b"])),
        "example6": Table((Logic(),), lambda records: logic_page(records["example6"])),
        "example7": Table((Epigenetic(),), lambda records: epigenetic_page(records["example7"])),
    }
)
