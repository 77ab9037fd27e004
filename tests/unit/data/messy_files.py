"""Files as people have them, seventy-odd, each with what must come of it.

A file ends in the right numbers (``reads``: column and first values), in a table about which the
data check asks (``finds``: column and kind of finding), or in a message (``refuses``).
"""

from dataclasses import dataclass, field

import numpy as np

N_ROWS = 24
DRAW = np.random.default_rng(8)
SIZE = np.round(DRAW.uniform(1.0, 9.0, N_ROWS), 2)
PRICE = np.round(10.0 + 3.0 * SIZE + DRAW.normal(size=N_ROWS), 2)
SITES = DRAW.choice(["north", "south", "west"], N_ROWS)


@dataclass(frozen=True)
class MessyFile:
    """One file, and what must come of it."""

    text: str | bytes
    reads: dict = field(default_factory=dict)
    finds: dict = field(default_factory=dict)
    notes: str = ""
    refuses: str = ""
    name: str = "table.csv"
    n_rows: int = N_ROWS


def rows(*columns, separator=",", names="size,price,site"):
    """A table as text: these columns, by default size, price and site."""
    columns = columns or (SIZE, PRICE, SITES)
    lines = [separator.join(str(cell) for cell in row) for row in zip(*columns, strict=True)]
    return "\n".join([names.replace(",", separator), *lines]) + "\n"


def comma(values):
    """Numbers with decimal commas."""
    return [str(value).replace(".", ",") for value in values]


LARGE = np.round(1000.0 * SIZE + DRAW.integers(1, 900, N_ROWS))
RIGHT = {"size": SIZE, "price": PRICE}
DAYS = [f"2024-{1 + j % 12:02d}-{1 + j:02d}" for j in range(N_ROWS)]

FILES = {
    # Encodings.
    "byte order mark": MessyFile(rows().encode("utf-8-sig"), RIGHT),
    "latin-1": MessyFile(
        rows(names="größe,price,site").encode("latin-1"), {"größe": SIZE}, notes="cp1252"
    ),
    "windows": MessyFile(
        rows(SIZE, PRICE, ["5 €"] * N_ROWS).encode("cp1252"), RIGHT, notes="not UTF-8"
    ),
    "utf-16": MessyFile(rows().encode("utf-16"), RIGHT),
    "utf-16 without a mark": MessyFile(rows().encode("utf-16-le"), RIGHT, notes="utf-16-le"),
    "windows line ends": MessyFile(rows().replace("\n", "\r\n"), RIGHT),
    # Separators.
    "semicolons and decimal commas": MessyFile(
        rows(comma(SIZE), comma(PRICE), SITES, separator=";"), RIGHT, notes="decimal commas"
    ),
    "bars": MessyFile(rows(separator="|"), RIGHT),
    "blanks": MessyFile(rows(separator="   "), RIGHT, name="table.txt"),
    "a line that says sep": MessyFile("sep=;\n" + rows(separator=";"), RIGHT),
    "decimal commas between commas": MessyFile(
        rows(comma(SIZE), comma(PRICE), SITES), refuses="columns, separated by commas|names for"
    ),
    # Numbers.
    "thousands": MessyFile(
        rows([f'"{value:,.1f}"' for value in LARGE], PRICE, SITES),
        {"size": LARGE},
        notes="between thousands",
    ),
    "points between thousands": MessyFile(
        rows(
            [f"{value:,.0f}".replace(",", ".") for value in LARGE],
            comma(PRICE),
            SITES,
            separator=";",
        ),
        {"size": LARGE, "price": PRICE},
    ),
    "thousands or decimals": MessyFile(
        rows([f"{value:,.0f}" for value in LARGE], [3, 4] * 12, SITES, separator="\t"),
        refuses=r"may have a decimal comma.*decimal=','",
    ),
    "units": MessyFile(
        rows([f"{value} kg" for value in SIZE], [f"${value}" for value in PRICE], SITES),
        RIGHT,
        notes="unit 'kg'",
    ),
    "two units": MessyFile(
        rows([f"{value} {'kg' if value > 3 else 'lb'}" for value in SIZE], PRICE, SITES),
        finds={"size": "numbers and text"},
    ),
    "marks of missing values": MessyFile(
        rows(["?", "n/a", "-", *SIZE[3:]], PRICE, SITES),
        {"size": [np.nan] * 3 + list(SIZE[3:]), "price": PRICE},
        notes="'?' as missing values in 'size'",
    ),
    "codes of missing values": MessyFile(
        rows([-999.0, -999.0, -999.0, *SIZE[3:]], PRICE, SITES),
        finds={"size": "code of missing values"},
    ),
    "mixed types": MessyFile(
        rows(["about 5", "broken", *SIZE[2:]], PRICE, SITES), finds={"size": "numbers and text"}
    ),
    # Columns that should not be covariates.
    "dates": MessyFile(rows(SIZE, PRICE, DAYS), finds={"site": "dates"}),
    "dates with names of months": MessyFile(
        rows(SIZE, PRICE, [f"{1 + j} Mar 2024" for j in range(N_ROWS)]), finds={"site": "dates"}
    ),
    "dates as numbers": MessyFile(
        rows([day.replace("-", "") for day in DAYS], PRICE, SITES), finds={"size": "dates"}
    ),
    "row numbers": MessyFile(
        rows(range(N_ROWS), SIZE, PRICE, names=",size,price"),
        RIGHT,
        finds={"Unnamed: 0": "identifier"},
    ),
    "names of rows": MessyFile(
        rows([f"r{j}" for j in range(N_ROWS)], SIZE, PRICE, SITES), RIGHT, notes="names of rows"
    ),
    "identifiers": MessyFile(
        rows(SIZE, PRICE, [f"A{j:03d}-{j % 7}" for j in range(N_ROWS)]), finds={"site": "left out"}
    ),
    "several spellings": MessyFile(
        rows(SIZE, PRICE, ["North", "north ", "south", "SOUTH"] * 6), finds={"site": "spellings"}
    ),
    "a copy of the response": MessyFile(
        rows(SIZE, PRICE, np.round(1.19 * PRICE, 4)), finds={"site": "leakage"}
    ),
    # Lines that are no rows.
    "a title above": MessyFile("Sales 2024,,\n\n" + rows(), RIGHT, notes="passed over: 'Sales"),
    "a footnote below": MessyFile(rows() + "\nSource: our own,,\n", RIGHT, notes="after the table"),
    "comments above": MessyFile("# made by a machine\n# twice\n" + rows(), RIGHT),
    "merged cells": MessyFile("what,,where\n" + rows(), refuses="merged cells: delete line 1"),
    "a line of units": MessyFile(
        rows().replace("site\n", "site\nm,EUR,\n"), refuses="line 2 holds units"
    ),
    "no names": MessyFile(rows(SIZE, PRICE, PRICE, names="1.5,2,3"), refuses="1 holds numbers"),
    "ragged rows": MessyFile(rows() + "3,4\n5,6,west,7\n", refuses="line 26, 27 has 2 cells"),
    "trailing separators": MessyFile(rows().replace("\n", ",\n"), RIGHT, notes="empty columns"),
    "repeated names": MessyFile(rows(names="size,price,size"), refuses="repeated: 'size'"),
    "only names": MessyFile("size,price\n", refuses="no rows"),
    "nothing": MessyFile("\n", refuses="empty"),
    "an open quote": MessyFile(rows() + '3,4,"west\n', refuses="quotation mark"),
    # Other formats under this name.
    "a spreadsheet": MessyFile(b"PK\x03\x04 and so on", refuses="save the sheet as CSV"),
    "a web page": MessyFile("<html><table></table></html>", refuses="Export the table as CSV"),
    "a spreadsheet by name": MessyFile(b"PK", refuses="spreadsheet as CSV", name="table.xlsx"),
    # Quotation marks, and lines inside them.
    "line breaks in cells": MessyFile(
        rows(SIZE, PRICE, ['"no\nrth"', "south"] * 12) + "\nSource: our own,,\n",
        RIGHT,
        notes="after the table",
    ),
    "line breaks in names": MessyFile(rows(names='"size\n(m)",price,site'), {"size\n(m)": SIZE}),
    "everything in quotes": MessyFile(
        rows(*([f'"{v}"' for v in c] for c in (SIZE, PRICE, SITES)), names='"size","price","site"'),
        RIGHT,
    ),
    "quotes inside quotes": MessyFile(rows(SIZE, PRICE, ['"a ""b"" c"', "x"] * 12), RIGHT),
    "blank lines between rows": MessyFile(rows().replace("\n", "\n\n"), RIGHT),
    "blanks around names": MessyFile(rows(names=" size , price ,site"), RIGHT),
    "line ends of an old Macintosh": MessyFile(rows().replace("\n", "\r"), RIGHT),
    "unicode text of a spreadsheet": MessyFile(rows(separator="\t").encode("utf-16"), RIGHT),
    "utf-16 with decimal commas": MessyFile(
        rows(comma(SIZE), comma(PRICE), SITES, separator=";").encode("utf-16"),
        RIGHT,
        notes="decimal commas",
    ),
    "a mark and a line that says sep": MessyFile(
        ("\ufeffsep=;\n" + rows(separator=";")).encode(), RIGHT
    ),
    # Further numbers.
    "percent": MessyFile(rows([f"{v} %" for v in SIZE], PRICE, SITES), RIGHT, notes="unit '%'"),
    "euros behind": MessyFile(rows(SIZE, [f"{v} €" for v in PRICE], SITES), RIGHT, notes="'€'"),
    "dollars with thousands": MessyFile(
        rows(SIZE, [f'"${1000 * v:,.2f}"' for v in PRICE], SITES),
        {"size": SIZE, "price": [float(f"{1000 * v:.2f}") for v in PRICE]},
        notes="between thousands",
    ),
    "narrow blanks between thousands": MessyFile(
        rows([f"{v:,.0f}".replace(",", "\u202f") for v in LARGE], PRICE, SITES), {"size": LARGE}
    ),
    "a typeset minus": MessyFile(
        rows([f"\u2212{v}" for v in SIZE], PRICE, SITES), {"size": -SIZE, "price": PRICE}
    ),
    "errors of a spreadsheet": MessyFile(
        rows(["#DIV/0!", "#REF!", "#N/A", *SIZE[3:]], PRICE, SITES),
        {"size": [np.nan] * 3 + list(SIZE[3:])},
        notes="'#DIV/0!', '#REF!' as missing values",
    ),
    "negative numbers in brackets": MessyFile(
        rows([f"({v})" if v < 3 else v for v in SIZE], PRICE, SITES),
        finds={"size": "numbers and text"},
    ),
    "below a limit": MessyFile(
        rows(["<1.0", "<1.0", *SIZE[2:]], PRICE, SITES), finds={"size": "numbers and text"}
    ),
    "postal codes": MessyFile(
        rows([f"0{1000 + j % 3}" for j in range(N_ROWS)], PRICE, SITES),
        {"price": PRICE},
        notes="are codes, not quantities: 'size'",
    ),
    "days of a spreadsheet": MessyFile(
        rows(range(45000, 45000 + N_ROWS), PRICE, SITES, names="date,price,site"),
        finds={"date": "dates"},
    ),
    "seconds since 1970": MessyFile(
        rows(
            1_700_000_000 + 86_400 * np.arange(N_ROWS), PRICE, SITES, names="timestamp,price,site"
        ),
        finds={"timestamp": "dates"},
    ),
    "true and false": MessyFile(rows(SIZE, PRICE, ["TRUE", "false"] * 12), RIGHT),
    # Further lines that are no rows.
    "a total": MessyFile(
        rows() + f"Total,{PRICE.sum():.2f},\n", RIGHT, notes="line 26 is no row of the table"
    ),
    "sums without a word": MessyFile(
        rows(SIZE, PRICE, PRICE) + f"{SIZE.sum():.2f},{PRICE.sum():.2f},{PRICE.sum():.2f}\n",
        finds={"": "totals"},
        n_rows=N_ROWS + 1,
    ),
    "names again below": MessyFile(
        rows() + rows(), {"size": np.tile(SIZE, 2)}, notes="line 26 repeats", n_rows=2 * N_ROWS
    ),
    "two lines of names": MessyFile(
        rows().replace("site\n", "site\nSize,Price,Site\n"), refuses="line 2 holds units or further"
    ),
    "a ruled line": MessyFile(rows(separator="|").replace("site\n", "site\n---|---|---\n"), RIGHT),
    "gaps between blanks": MessyFile(
        "size   price  site\n"
        + "".join(
            f"{a:<6} {'' if a < 3 else b:<6} {c}\n"
            for a, b, c in zip(SIZE, PRICE, SITES, strict=True)
        ),
        refuses="Write NA where a value is missing",
    ),
    "bytes of zero": MessyFile(rows().replace("south", "so\x00uth"), refuses="bytes of zero"),
    "no bytes": MessyFile(b"", refuses="empty"),
    # The response.
    "one value everywhere": MessyFile(rows(SIZE, [5] * N_ROWS, SITES), finds={"": "response"}),
    "no value anywhere": MessyFile(rows(SIZE, ["NA"] * N_ROWS, SITES), finds={"": "response"}),
    "text among the responses": MessyFile(
        rows(SIZE, [*PRICE[:9], "broken", *PRICE[10:]], SITES), finds={"": "response"}
    ),
}
