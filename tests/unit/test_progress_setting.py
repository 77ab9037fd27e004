"""Where a bar is shown: on terminals and in notebooks, unless the user says otherwise."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from dbrm.errors import InvalidSettingError
from dbrm.run import progress
from dbrm.run.progress import shows_progress
from dbrm.run.settings import Settings


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ZMQInteractiveShell:
    """The class of the shell of a notebook, which is known by its name."""


@pytest.fixture(autouse=True)
def no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)


def test_a_bar_by_default_on_a_terminal_only(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert shows_progress(Settings())
    assert not shows_progress(Settings(progress=False))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not shows_progress(Settings())
    assert shows_progress(Settings(progress=True))
    # Programs without a console have no standard error at all.
    monkeypatch.setattr(sys, "stderr", None)
    assert not shows_progress(Settings())


def test_a_bar_in_notebooks_but_not_in_other_shells(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    shell = ZMQInteractiveShell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert shows_progress(Settings())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not shows_progress(Settings())


def test_workers_are_silent(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with ThreadPoolExecutor(1) as pool:
        assert not pool.submit(shows_progress, Settings()).result()
    worker = SimpleNamespace(name="LokyProcess-1")
    monkeypatch.setattr(progress.multiprocessing, "current_process", lambda: worker)
    assert not shows_progress(Settings())


def test_other_values_are_refused():
    with pytest.raises(InvalidSettingError, match="progress must be one of True, False, 'auto'"):
        Settings(progress="always")
