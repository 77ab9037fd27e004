"""`import dbrm` is quick and brings in only what it needs."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dbrm

# Slow to import, or optional: loaded when first needed.
LATE = (
    "arviz",
    "dask",
    "formulaic",
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
    package = Path(find_spec("dbrm").origin).parent
    assert not [path for path in package.rglob("*.py") if path.stem in drawers]
