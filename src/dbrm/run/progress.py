"""Whether somebody watches a run, and the bar for whoever does."""

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from dbrm.chains import Progress
from dbrm.run.settings import Settings

__all__ = ["Bar", "enumeration_bar", "progress_bar", "shows_progress"]


@final
@dataclass(frozen=True, slots=True)
class Bar:
    """What a run tells about its progress; nothing where nobody watches.

    Parameters
    ----------
    update
        Called with a chain's number and its progress.
    phase
        Called with what the run does now.
    """

    update: Progress | None = None
    phase: Callable[[str], None] = lambda text: None  # noqa: ARG005


@contextmanager
def progress_bar(settings: Settings) -> Iterator[Bar]:
    """Show a bar of the chains, if it is wanted."""
    if not shows_progress(settings):
        yield Bar()
        return
    from dbrm.report import progress_bar as show

    with show(settings.n_first_chains, settings.n_populations, settings.time_budget) as board:
        yield Bar(board.update_chain, board.show_phase)


@contextmanager
def enumeration_bar(settings: Settings) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar of the models, if it is wanted."""
    if not shows_progress(settings):
        yield None
        return
    from dbrm.report import counting_bar

    with counting_bar("models") as update:
        yield update


def shows_progress(settings: Settings) -> bool:
    """Whether to show a bar; ``"auto"`` does on a terminal and in a notebook.

    Not in worker processes and threads, such as those of a cross-validation: several bars would
    overwrite each other.
    """
    if settings.progress != "auto":
        return settings.progress
    is_main = multiprocessing.current_process().name == "MainProcess"
    if not is_main or threading.current_thread() is not threading.main_thread():
        return False
    return _in_notebook() or bool(sys.stderr is not None and sys.stderr.isatty())


def _in_notebook() -> bool:
    # Nobody can be in a notebook without having imported IPython.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"
