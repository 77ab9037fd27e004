"""Find out how a text file holds a table: its encoding, separator and line of names.

Lines that are not part of the table are passed over with a note; where a guess could be wrong
`InvalidFileError` says which lines to look at. The cells are read in `dbrm.data.files`.
"""

import csv
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import NoReturn, final

from dbrm.data.text_numbers import is_number, without_marks
from dbrm.errors import InvalidFileError, quote

__all__ = ["Layout", "find_layout"]

_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
# How files begin that are no text.
_OTHERS = {
    b"PK\x03\x04": "an Excel file or a zip archive: save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel file: save the sheet as CSV",
    b"PAR1": "a Parquet file: name it .parquet",
    b"ARROW1": "an Arrow file: name it .arrow",
    b"\x1f\x8b": "compressed: name it .csv.gz",
    b"%PDF": "a PDF file: copy the table into a spreadsheet, and save it as CSV",
}
_SEPARATORS = ",;\t|"
BLANKS = r"\s+"
_TRIED, _CHECKED = 100, 20_000_000
_NAMED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", BLANKS: "blanks"}


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """How the text holds the table.

    Parameters
    ----------
    text
        The decoded file.
    separator
        Between cells; a regular expression for blanks.
    names
        Of the columns; None for one to be left out.
    skipped
        Indices of lines, from 0, that do not belong to the table: all up to the line of names,
        and footnotes.
    notes
        What was recognised, for the user.
    """

    text: str
    separator: str
    names: tuple[str | None, ...]
    skipped: frozenset[int]
    notes: list[str] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True)
class _Row:
    """Cells of a row, and the lines of the file that it takes, counted from 0."""

    cells: list[str]
    first: int
    last: int

    @property
    def n_filled(self) -> int:
        return sum(bool(cell.strip()) for cell in self.cells)


def find_layout(path: str, encoding: str | None = None, separator: str | None = None) -> Layout:
    """Read a text file, and find out how it holds a table.

    Parameters
    ----------
    encoding, separator
        Recognised unless given.
    """
    notes: list[str] = []
    text = _decode(path, encoding, notes)
    if not text.strip():
        _refuse(path, "it is empty", "Check that it was saved.")
    if text.lstrip()[:1] in ("<", "{"):
        _refuse(path, "it holds HTML, XML or JSON, not rows of text", "Export the table as CSV.")
    declared = re.match(r"sep=(.)\r?\n", text)
    separator = separator or (declared[1] if declared else _find_separator(text))
    if separator in ("tab", "\\t"):
        separator = "\t"
    try:
        rows = _split(text, separator)
    except csv.Error as error:
        _refuse(path, str(error), 'Look for a cell with one quotation mark (") only.')
    if declared:
        rows = rows[1:]
    width = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    header, body = _find_header(path, rows, width, notes)
    names = _read_names(path, header, body, width, notes)
    body = _without_footnotes(body, width, notes)
    _refuse_second_header(path, header, body)
    _refuse_ragged(path, body, width, separator)
    kept = {line for row in body for line in range(row.first, row.last + 1)}
    end = rows[-1].last if rows else 0
    skipped = frozenset(line for line in range(end + 1) if line not in kept)
    return Layout(text, separator, names, skipped, notes)


def _decode(path: str, encoding: str | None, notes: list[str]) -> str:
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        content = file.read()
    for start, what in _OTHERS.items():
        if content.startswith(start):
            msg = f"{path} is not text but {what}."
            raise InvalidFileError(msg)
    if encoding is not None:
        try:
            return content.decode(encoding)
        except LookupError:
            msg = f"There is no encoding {encoding!r}. Try utf-8, latin-1, cp1252 or utf-16."
            raise InvalidFileError(msg) from None
        except UnicodeDecodeError as error:
            msg = f"{path} is not written in {encoding} ({error.reason}). Leave the encoding out."
            raise InvalidFileError(msg) from None
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return content.decode(name, errors="replace")
    if b"\x00" in content[:1000]:
        name = "utf-16-le" if content[1:2] == b"\x00" else "utf-16-be"
        notes.append(f"read as {name}")
        return content.decode(name, errors="replace")
    for name in ("utf-8", "cp1252", "latin-1"):
        try:
            text = content.decode(name)
        except UnicodeDecodeError:
            continue
        if name != "utf-8":
            notes.append(f"not UTF-8: read as {name}; give the encoding if letters look wrong")
        return text
    raise AssertionError(name)


def _find_separator(text: str) -> str:
    """Return the separator that gives the first lines the same number of cells, more than one."""
    head = "\n".join(text.splitlines()[:_TRIED])
    scores = {}
    for separator in (*_SEPARATORS, BLANKS):
        try:
            widths = Counter(len(row.cells) for row in _split(head, separator))
        except csv.Error:
            continue
        width, n_rows = widths.most_common(1)[0]
        if width > 1:
            # Blanks separate words, too: they count only where nothing else does.
            scores[separator] = (separator != BLANKS, n_rows / widths.total(), width)
    if not scores:
        return ","
    best = max(scores, key=scores.__getitem__)
    return best if best != BLANKS or scores[best][1] == 1.0 else ","


def _split(text: str, separator: str) -> list[_Row]:
    """Split text into the rows that are not blank; of a very long one only the beginning.

    Raises `csv.Error` for quotation marks that do not match.
    """
    text = text if len(text) <= _CHECKED else text[: text.rfind("\n", 0, _CHECKED)]
    if separator == BLANKS:
        lines = [(line.split(), j) for j, line in enumerate(text.splitlines())]
        return [_Row(cells, j, j) for cells, j in lines if cells]
    rows, before = [], 0
    stream = StringIO(text, newline="")
    for cells in (
        reader := csv.reader(stream, delimiter=separator, skipinitialspace=True, strict=True)
    ):
        if any(cell.strip() for cell in cells):
            rows.append(_Row(cells, before, reader.line_num - 1))
        before = reader.line_num
    return rows


def _find_header(
    path: str, rows: Sequence[_Row], width: int, notes: list[str]
) -> tuple[_Row, list[_Row]]:
    """Return the row of names, past titles and comments, and the rows after it."""
    start = 0
    while start < len(rows) - 1 and _is_title(rows[start], width):
        start += 1
    if start:
        shown = quote([rows[j].cells[0][:40] for j in range(start)], limit=2)
        notes.append(f"lines before the names of the columns are passed over: {shown}")
    header, body = rows[start], list(rows[start + 1 :])
    if not body:
        _refuse(path, "it has names of columns but no rows", "Check that it was saved whole.")
    filled = [cell for cell in header.cells if cell.strip()]
    if filled and all(map(is_number, filled)) and len(filled) == width:
        years = all(re.fullmatch(r"\s*(19|20)\d\d\s*", cell) for cell in filled)
        if not years:
            _refuse(
                path,
                f"line {header.first + 1} holds numbers where names of columns are needed",
                "Write a name for every column into the first line.",
            )
    return header, body


def _is_title(row: _Row, width: int) -> bool:
    if row.cells[0].lstrip().startswith("#") and len(row.cells) != width:
        return True
    return width > 2 and row.n_filled <= 1


def _read_names(
    path: str, header: _Row, body: Sequence[_Row], width: int, notes: list[str]
) -> tuple[str | None, ...]:
    names: list[str | None] = list(header.cells)
    if len(names) == width - 1 and len({row.cells[0] for row in body}) == len(body):
        notes.append("the first column has no name: taken as names of rows, and left out")
        return (None, *names)
    while len(names) > width and not (names[-1] or "").strip():
        names.pop()
    blank = [j for j, name in enumerate(names) if not (name or "").strip()]
    empty = [j for j in blank if all(not "".join(row.cells[j : j + 1]).strip() for row in body)]
    if len(names) != width or len(blank) - len(empty) > 1 or set(blank) - set(empty) - {0}:
        n_names = len(names) - len(blank)
        second = "".join(body[0].cells)
        merged = not any(map(is_number, without_marks(body[0].cells))) and second
        advice = (
            f"Line {body[0].first + 1} may hold the names, below merged cells: delete line "
            f"{header.first + 1}."
            if merged
            else "Write a name for every column into that line."
        )
        what = f"line {header.first + 1} has {n_names} names for {width} columns"
        _refuse(path, what, advice)
    if 0 in blank and 0 not in empty:
        names[0] = "Unnamed: 0"
    for j in empty:
        names[j] = None
    if empty:
        notes.append(f"{len(empty)} empty columns without a name are left out")
    repeated = [name for name, n in Counter(names).items() if name is not None and n > 1]
    if repeated:
        msg = (
            f"{path}: column names must be unique; repeated: {quote(repeated)}. Rename or remove "
            f"columns in {'the first line' if header.first == 0 else 'the line of names'} of the "
            "file."
        )
        raise InvalidFileError(msg)
    return tuple(names)


def _without_footnotes(body: list[_Row], width: int, notes: list[str]) -> list[_Row]:
    end = len(body)
    while end > 1 and width > 2 and body[end - 1].n_filled <= 1:
        end -= 1
    if end < len(body):
        shown = quote([row.cells[0][:40] for row in body[end:]], limit=2)
        notes.append(f"lines after the table are passed over: {shown}")
    return body[:end]


def _refuse_second_header(path: str, header: _Row, body: Sequence[_Row]) -> None:
    """Raise if the row below the names holds units, or a second line of names."""
    first, others = body[0].cells, body[1:30]
    if len(others) < 3:
        return
    numeric = [
        j
        for j in range(len(header.cells))
        if all(_is_number_or_gap(row.cells, j) for row in others)
        and any(map(is_number, [row.cells[j] for row in others if j < len(row.cells)]))
    ]
    odd = [j for j in numeric if j < len(first) and without_marks(first[j : j + 1])]
    odd = [j for j in odd if not is_number(first[j])]
    if odd and len(odd) >= len(numeric) / 2:
        _refuse(
            path,
            f"line {body[0].first + 1} holds units or further names ({quote([first[odd[0]]])}) "
            "where the first values are expected",
            "Delete that line, or write it into the names above.",
        )


def _is_number_or_gap(cells: list[str], j: int) -> bool:
    return j >= len(cells) or not without_marks(cells[j : j + 1]) or is_number(cells[j])


def _refuse_ragged(path: str, body: Sequence[_Row], width: int, separator: str) -> None:
    ragged = [
        row
        for row in body
        if len(row.cells) < width or any(cell.strip() for cell in row.cells[width:])
    ]
    if not ragged:
        return
    lines = ", ".join(str(row.first + 1) for row in ragged[:5])
    more = f" and {len(ragged) - 5} more" if len(ragged) > 5 else ""
    used = _NAMED.get(separator, repr(separator))
    _refuse(
        path,
        f"the table has {width} columns, separated by {used}, but line {lines}{more} "
        f"has {len(ragged[0].cells)} cells",
        "Put text that contains the separator in quotes, and decimal commas as points; a missing "
        "value is an empty cell between two separators.",
    )


def _refuse(path: str, what: str, advice: str) -> NoReturn:
    msg = f"{path} cannot be read as a table: {what}. {advice}"
    raise InvalidFileError(msg)
