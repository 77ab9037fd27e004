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
# A last row that is no row, and a ruled line below the names.
_TOTAL = re.compile(
    r"(grand |sub-?)?totals?|sums?|averages?|mean|summe|gesamt|mittelwert|somme|moyenne|totale"
    r"|suma",
    re.IGNORECASE,
)
_RULE = re.compile(r":?[-=+]{2,}:?")
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
    codes
        Positions of columns whose numbers begin with zeros, 01067: codes, which stay text.
    notes
        What was recognised, for the user.
    """

    text: str
    separator: str
    names: tuple[str | None, ...]
    skipped: frozenset[int]
    codes: frozenset[int] = frozenset()
    notes: list[str] = field(default_factory=list)

    @property
    def table_text(self) -> str:
        """The lines of the rows alone."""
        lines = enumerate(_lines(self.text))
        return "".join(line for number, line in lines if number not in self.skipped)


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
    _refuse_fixed_width(path, header, body, width)
    names = _read_names(path, header, body, width, notes)
    body = _without_footnotes(body, width, notes)
    body = _without_totals(_without_repeated_names(header, body, notes), notes)
    _refuse_second_header(path, header, body)
    _refuse_ragged(path, body, width, separator)
    kept = {line for row in body for line in range(row.first, row.last + 1)}
    end = rows[-1].last if rows else 0
    skipped = frozenset(line for line in range(end + 1) if line not in kept)
    codes = frozenset(_find_codes(names, body))
    if codes:
        shown = quote([str(names[j]) for j in sorted(codes)], limit=5)
        notes.append(f"numbers that begin with zeros are codes, not quantities: {shown}")
    return Layout(text, separator, names, skipped, codes, notes)


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
    n_zeros = content[:1000].count(b"\x00")
    if 0 < n_zeros < len(content[:1000]) / 4:
        _refuse(path, "it holds bytes of zero", "It is not a text file, or it is damaged.")
    if n_zeros:
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
        split = [(line.split(), j) for j, line in enumerate(_lines(text))]
        return [_Row(cells, j, j) for cells, j in split if cells]
    rows, before = [], 0
    lines = _lines(text)
    for cells in (
        reader := csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    ):
        if any(cell.strip() for cell in cells):
            rows.append(_Row(cells, before, reader.line_num - 1))
        before = reader.line_num
    return rows


def _lines(text: str) -> StringIO:
    """The lines of a text, with their ends."""
    return StringIO(text, newline="")


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
    stripped = [cell.strip() for cell in header.cells]
    if len(set(stripped)) == len(set(header.cells)):
        # Blanks around names are rarely meant, unless they tell two names apart.
        names = list(stripped)
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


def _without_repeated_names(header: _Row, body: list[_Row], notes: list[str]) -> list[_Row]:
    """Rows without further copies of the names, and without a ruled line below them."""
    names = [cell.strip() for cell in header.cells]
    kept = [row for row in body if [cell.strip() for cell in row.cells] != names]
    if len(kept) < len(body):
        again = next(row for row in body if [cell.strip() for cell in row.cells] == names)
        notes.append(f"line {again.first + 1} repeats the names of the columns: passed over")
    if len(kept) > 1 and all(_RULE.fullmatch(cell.strip()) for cell in kept[0].cells if cell):
        kept = kept[1:]
    return kept


def _without_totals(body: list[_Row], notes: list[str]) -> list[_Row]:
    """Rows without a last one of sums or means, which says so in its first cell."""
    if len(body) < 3:
        return body
    *others, last = body
    word = next(cell for cell in last.cells if cell.strip())
    if not _TOTAL.fullmatch(word.strip()) or any(word in row.cells for row in others):
        return body
    notes.append(f"line {last.first + 1} is no row of the table: passed over: {quote([word])}")
    return others


def _refuse_fixed_width(path: str, header: _Row, body: Sequence[_Row], width: int) -> None:
    """Raise if columns are separated by blanks, but not all cells are filled."""
    if width == 1 and re.search(r"\S\s{2,}\S", header.cells[0]):
        counts = Counter(len(row.cells[0].split()) for row in body)
        if counts.most_common(1)[0][0] > 1:
            _refuse(
                path,
                "its columns seem to be separated by blanks, but not every row has as many cells",
                "Write NA where a value is missing, or save it with commas or tabs between cells.",
            )


def _find_codes(names: Sequence[str | None], body: Sequence[_Row]) -> list[int]:
    """Columns of whole numbers some of which begin with a zero and have at least four digits."""
    found = []
    for j, name in enumerate(names):
        cells = [row.cells[j].strip() for row in body if j < len(row.cells)]
        filled = without_marks(cells)
        if name is None or not filled or not all(map(str.isdecimal, filled)):
            continue
        if any(len(cell) > 3 and cell.startswith("0") for cell in filled):
            found.append(j)
    return found


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
