"""Fixtures that every test may use."""

import hashlib
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
def shared():
    """Folder of reference data beside the project; tests that need it skip without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"reference data are not here ({folder})")
    return folder


@pytest.fixture(scope="session")
def shared_data(shared):
    """The data sets inside `shared`."""
    return shared / "data"
