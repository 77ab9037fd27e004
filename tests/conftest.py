"""Fixtures that every test may use."""

import hashlib
import tarfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


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
