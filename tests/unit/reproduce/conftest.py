"""Fixtures for tests of `dbrm.reproduce`."""

import pytest


@pytest.fixture
def raw(shared_data, monkeypatch):
    """The authors' files."""
    folder = shared_data / "raw"
    if not (folder / "kepler and mass" / "exa1.csv").is_file():
        pytest.skip(f"the authors' files are not in {folder}")
    monkeypatch.setenv("DBRM_DATA", str(folder))
    return folder
