"""Tests of `dbrm_paper.datasets.authors_files`; nothing is downloaded."""

import hashlib
import sys

import pooch
import pytest

from dbrm_paper.datasets import DataUnavailableError, authors_files

NAME = "spam/spam.data"


def test_a_local_copy_needs_every_file(monkeypatch, tmp_path):
    monkeypatch.setenv("DBRM_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match=r"has no file 'spam/spam.data'.*copy of"):
        authors_files.locate(NAME)


def test_a_changed_file_is_noticed(monkeypatch, tmp_path):
    path = tmp_path / NAME
    path.parent.mkdir()
    path.write_text("TypeFlag\n0\n")
    monkeypatch.setenv("DBRM_DATA", str(tmp_path))
    with pytest.raises(DataUnavailableError, match="differs from the authors' file"):
        authors_files.locate(NAME)
    monkeypatch.setitem(authors_files.SHA256, NAME, hashlib.sha256(path.read_bytes()).hexdigest())
    assert authors_files.locate(NAME) == path


def test_without_network_the_message_says_what_to_do(monkeypatch):
    def fail(*args, **kwargs):
        raise ConnectionError("no route to host")

    monkeypatch.delenv("DBRM_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(OSError, match=r"no route to host.*Is there a network\?.*DBRM_DATA"):
        authors_files.locate(NAME)


def test_without_pooch_the_message_says_what_to_do(monkeypatch):
    monkeypatch.delenv("DBRM_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataUnavailableError, match=r"pip install 'dbrm\[data\]'.*DBRM_DATA"):
        authors_files.locate(NAME)


def test_downloads_the_pinned_file_once(monkeypatch, tmp_path):
    asked = []

    def retrieve(url, known_hash, fname, path):
        asked.append((url, known_hash))
        return str(path / fname)

    monkeypatch.delenv("DBRM_DATA", raising=False)
    monkeypatch.setattr(pooch, "retrieve", retrieve)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    assert authors_files.locate("asteroids/Recognize/NotNeas8+.txt").name == "NotNeas8+.txt"
    assert asked == [
        (
            "https://raw.githubusercontent.com/aliaksah/EMJMCMC2016/"
            "3954d55fc45296297ee561e0f97f85eb5048c39e/examples/DBRM%20supplementaries/"
            "asteroids/Recognize/NotNeas8%2B.txt",
            "sha256:ea24074193445d81d5b47c19007af6d1658cb98e0f5394b3661e4399a7b347b8",
        )
    ]
