"""The tables of the paper by name; `reproduce` runs what is missing and writes the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import final

from dbrm.errors import UnknownNameError
from dbrm_paper.classification import OWN, STRATEGIES, Classification
from dbrm_paper.classification_pages import accuracy_page, complexity_page, strategy_page
from dbrm_paper.competitors import COMPETITORS
from dbrm_paper.epigenetic import Epigenetic, epigenetic_page
from dbrm_paper.inference_pages import law_page, logic_page, sigmoid_page
from dbrm_paper.laws import Law, SigmoidOnly
from dbrm_paper.logic import Logic
from dbrm_paper.pages import Page, write_page
from dbrm_paper.runs import AbstractStudy, Options, Record, Results, carry_out

__all__ = ["TABLES", "Table", "reproduce"]

EXAMPLES = ("asteroids", "breast-cancer", "spam")


@final
@dataclass(frozen=True, slots=True)
class Table:
    """A table of the paper.

    Parameters
    ----------
    studies
        The studies whose runs it needs.
    methods
        Which of their methods; all if not given.
    page
        Function that makes the page from the records of all its studies.
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

# Called with the number of runs done and the total.
Watch = Callable[[int, int], None]


def reproduce(
    name: str, folder: Path, options: Options, *, jobs: int = 1, watch: Watch | None = None
) -> list[Path]:
    """Carry out the runs of a table that are not in the folder yet, and write its page.

    Parameters
    ----------
    name
        One of `TABLES`.
    folder
        Folder of the records (one CSV file per study, appended to) and of the pages. Runs in
        these files are not repeated; a page shows all records of its table, including those
        of earlier calls.
    jobs
        Number of runs at a time, each in its own process; -1 for all cores.

    Returns
    -------
        The files of the page.
    """
    if name not in TABLES:
        msg = f"There is no table {name!r}. There are {', '.join(TABLES)}."
        raise UnknownNameError(msg)
    table = TABLES[name]
    plans = [(study, study.plan(options, table.methods)) for study in table.studies]
    total = sum(len(keys) for _, keys in plans)
    before, records = 0, {}
    for study, keys in plans:
        results = Results(folder, study)
        for done in carry_out(study, keys, results, jobs=jobs):
            if watch is not None:
                watch(before + done, total)
        before += len(keys)
        records[study.name] = results.records
    return write_page(table.page(records), folder)
