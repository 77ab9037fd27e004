"""A page of results: what was measured, on which machine, with which versions."""

import csv
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "keep", "kept", "machine", "markdown_table", "read_rows", "write_rows"]

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
# Numbers of each benchmark, from which the page of all benchmarks is written.
NUMBERS = RESULTS / "numbers"
PACKAGES = ("dbrm", "numpy", "scipy", "numba", "scikit-learn")


def machine() -> str:
    """One paragraph about where and when this ran."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    today = datetime.now(tz=UTC).date().isoformat()
    return (
        f"Measured {today} at commit {_commit()} on {_processor()}, {os.cpu_count()} cores, "
        f"{platform.system()}; "
        f"Python {platform.python_version()}, {versions}."
    )


def keep(benchmark: str, numbers: Mapping[str, object]) -> None:
    """Keep the numbers of a benchmark with what they were measured on."""
    NUMBERS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"measured": machine()} | dict(numbers), indent=1, default=float)
    (NUMBERS / f"{benchmark}.json").write_text(text + "\n", encoding="utf-8")


def kept() -> dict[str, dict[str, Any]]:
    """The numbers of all benchmarks that were run, by name."""
    files = sorted(NUMBERS.glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _commit() -> str:
    """The commit of this checkout; a plus sign tells that the package has changed since."""
    root = Path(__file__).resolve().parents[1]
    commit = _git(root, "rev-parse", "--short", "HEAD") or "unknown"
    return f"{commit}+" if _git(root, "status", "--porcelain", "--", "src") else commit


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def read_rows(path: str | Path) -> list[dict[str, str]]:
    """Rows of a CSV file, by name."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: str | Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows that all have the same names."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
