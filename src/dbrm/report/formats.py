"""Formats of the report: a function from `Contents` to text, by the ending of the file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dbrm.report.contents import Contents, describe
from dbrm.report.html import to_html

if TYPE_CHECKING:
    from dbrm.posterior import Posterior, Rows

__all__ = ["FORMATS", "write_report"]

FORMATS: dict[str, Callable[[Contents], str]] = {".html": to_html}


def write_report(
    posterior: "Posterior",
    path: str | os.PathLike[str],
    rows: "Rows | None",
    title: str | None,
    test: "Rows | None" = None,
) -> None:
    """Write a report to a file; it is HTML unless the ending says otherwise."""
    write = FORMATS.get(Path(path).suffix.lower(), to_html)
    Path(path).write_text(write(describe(posterior, rows, title, test)), encoding="utf-8")
