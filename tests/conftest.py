"""Fixtures that every test may use, and how the suite runs.

The default suite is the same in every run: Hypothesis derives its examples from the tests
themselves. ``pytest -m slow`` runs the long tests, and every property again with new examples.
"""

import hashlib
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import is_hypothesis_test, settings

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.register_profile("random", derandomize=False, deadline=None, print_blob=True)


def pytest_configure(config):
    settings.load_profile("random" if _is_slow_suite(config) else "fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Properties belong to the slow suite too, where their examples are random."""
    if _is_slow_suite(config):
        for item in items:
            if is_hypothesis_test(item.obj):
                item.add_marker("slow")


def _is_slow_suite(config):
    return config.option.markexpr == "slow"


def pytest_xdist_auto_num_workers(config):
    """``--trace`` needs the terminal, as ``--pdb`` does, for which pytest-xdist knows it."""
    return 0 if config.option.trace else None


@pytest.fixture
def rng(request):
    """A generator seeded from the test's own name: the same in every run and order."""
    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


@pytest.fixture(scope="session")
def reference():
    """Folder of numbers that others computed, and of small tables."""
    return ROOT / "tests" / "reference"


@pytest.fixture(scope="session")
def authors_files(reference, tmp_path_factory):
    """The data of the paper as its authors distribute them, for `DBRM_DATA`."""
    folder = tmp_path_factory.mktemp("authors")
    with tarfile.open(reference / "authors_files.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def raw(authors_files, monkeypatch):
    """The authors' files, where the loaders look for them."""
    monkeypatch.setenv("DBRM_DATA", str(authors_files))
    return authors_files
