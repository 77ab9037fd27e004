"""From the name of a table to its page: run what is missing, then write."""

from collections.abc import Callable
from pathlib import Path

from dbrm.errors import UnknownNameError
from dbrm.reproduce.pages import write_page
from dbrm.reproduce.results import Results
from dbrm.reproduce.running import carry_out
from dbrm.reproduce.study import Options
from dbrm.reproduce.tables import TABLES

__all__ = ["reproduce"]

# Told how many runs are done, and how many there are.
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
        Of the records (one CSV file per study, which only grows) and of the pages. Runs in
        these files are not repeated; a page shows all records of its table, of earlier
        calls too.
    jobs
        Runs at a time, each in a process of its own; -1 for all cores.

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
