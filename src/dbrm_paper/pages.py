"""A page of results: our numbers beside the printed ones, as Markdown, CSV and a picture."""

import csv
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import final

from dbrm_paper.comparison_picture import ComparedRow, save_comparison

__all__ = ["Page", "Section", "markdown_table", "write_page"]

_PACKAGES = ("dbrm", "numpy", "scipy", "numba", "scikit-learn")


@final
@dataclass(frozen=True, slots=True)
class Section:
    """A table under a heading; texts only."""

    heading: str
    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@final
@dataclass(frozen=True, slots=True)
class Page:
    """The content of a page.

    Parameters
    ----------
    name
        Name of its files, and of the table on the command line.
    intro, notes
        Paragraphs before the tables, and remarks after them.
    compared, axis, limits
        The picture: its rows, the label of its axis and the range of the axis.
    """

    name: str
    title: str
    intro: Sequence[str]
    sections: Sequence[Section]
    notes: Sequence[str] = ()
    compared: Sequence[ComparedRow] = ()
    axis: str = ""
    limits: tuple[float, float] | None = field(default=None)


def write_page(page: Page, folder: Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME-table.csv`` and ``NAME.png``; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    text, table, picture = (
        folder / f"{page.name}{suffix}" for suffix in (".md", "-table.csv", ".png")
    )
    lines = [f"# {page.title}", "", *_paragraphs(page.intro), _machine(), ""]
    for section in page.sections:
        lines += [f"## {section.heading}", "", markdown_table(section.header, section.rows), ""]
    if page.compared:
        lines += [f"![{page.title}: dbrm beside the paper]({picture.name})", ""]
    if page.notes:
        lines += ["## Remarks", "", *(f"* {note}" for note in page.notes), ""]
    text.write_text("\n".join(lines), encoding="utf-8")
    _write_csv(page, table)
    if not page.compared:
        return [text, table]
    save_comparison(picture, page.compared, page.axis, page.limits)
    return [text, table, picture]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    escaped = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def _paragraphs(texts: Sequence[str]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _write_csv(page: Page, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        for section in page.sections:
            writer.writerow(["section", *_distinct(section.header)])
            writer.writerows([section.heading, *row] for row in section.rows)


def _distinct(header: Sequence[str]) -> list[str]:
    """Make headers unique: a column "paper" also takes the name of the one before it."""
    before = ("", *header[:-1])
    return [
        f"paper {left}" if name == "paper" else name
        for left, name in zip(before, header, strict=True)
    ]


def _machine() -> str:
    """One sentence: when, on which machine and with which versions the page was written."""
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    today = datetime.now(tz=UTC).date().isoformat()
    return (
        f"Written {today} on {platform.machine()} with {os.cpu_count()} cores, "
        f"{platform.system()}; Python {platform.python_version()}, {versions}."
    )
