"""`import dbrm` is quick and brings in only what it needs; what it needs is declared."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import dbrm

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
# Slow to import, or optional: loaded when first needed.
LATE = (
    "arviz",
    "dask",
    "dbrm_paper",
    "formulaic",
    "jax",
    "joblib",
    "matplotlib",
    "numba",
    "pandas",
    "polars",
    "ray",
    "scipy",
    "sklearn",
    "sympy",
)
# A promise is 0.6 s on a quiet machine; tests share theirs with others.
GENEROUS_SECONDS = 0.6

IMPORT = """
import json, sys, time
started = time.perf_counter()
import dbrm
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "modules": sorted(sys.modules)}))
"""


def run_import():
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


def test_import_is_quick():
    assert min(run_import()["seconds"] for _ in range(3)) < GENEROUS_SECONDS


def test_import_brings_in_nothing_slow():
    modules = {name.partition(".")[0] for name in run_import()["modules"]}
    assert modules.isdisjoint(LATE)


def test_tables_are_read_without_a_data_frame_library():
    """`dbrm.data` reads them all and imports none; nor do data sets at import."""
    code = (
        "import sys, dbrm.data, dbrm.datasets; "
        "heavy = {'pandas', 'polars', 'pyarrow', 'pooch', 'sklearn', 'scipy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"


@pytest.mark.parametrize("name", dbrm.__all__)
def test_every_public_name_is_there(name):
    assert getattr(dbrm, name) is not None
    assert name in dir(dbrm)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = dbrm.nonsense


def test_no_drawer_for_leftovers():
    """Every file is named after its one idea."""
    drawers = {"utils", "util", "helpers", "misc", "common"}
    for name in ("dbrm", "dbrm_paper"):
        package = Path(find_spec(name).origin).parent
        assert not [path for path in package.rglob("*.py") if path.stem in drawers]


def third_party_imports():
    """Names of the packages, other than Python's own, that the code under src imports."""
    here = {path.name for path in SOURCE.iterdir()}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            else:
                continue
            tops = {name.partition(".")[0] for name in names}
            yield from tops - sys.stdlib_module_names - here


def test_every_import_is_declared():
    """What the package imports it asks for itself, not through another package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    named = {re.match(r"[\w-]+", line)[0] for line in declared}
    imported = {{"sklearn": "scikit-learn"}.get(name, name) for name in third_party_imports()}
    assert {"numpy", "scikit-learn", "dask"} <= imported
    assert imported <= named


def test_the_version_is_written_once():
    pattern = re.compile(rf"version[\W_]+{re.escape(dbrm.__version__)}\b", flags=re.IGNORECASE)
    files = [ROOT / "pyproject.toml", ROOT / "CITATION.cff", *SOURCE.rglob("*.py")]
    written = [path for path in files if pattern.search(path.read_text(encoding="utf-8"))]
    assert written == [SOURCE / "dbrm" / "_version.py"]
