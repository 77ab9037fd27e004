"""Ctrl-C and SIGTERM: the search ends at the next population; SIGTERM then ends the process.

If the user has a handler of SIGTERM, it is called once the search has ended. Signals that the
process ignores stay ignored.
"""

import inspect
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from dbrm.errors import Terminated

__all__ = ["StopEvent", "catch_interrupts", "pass_on_sigterm"]

# Seconds after a Ctrl-C in which another one raises, also in the next search of a loop; and
# after a SIGTERM in which another one is taken for the same: some send it to a process and
# once more to its group.
_AGAIN = 2.0
# When Ctrl-C came last in this process.
_last_interrupt = -_AGAIN

Handler = Callable[[int, FrameType | None], Any]


class StopEvent:
    """A request to stop that all processes of this machine see: a file ``stop`` in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.reason: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self.reason is not None

    def request(self, reason: str) -> None:
        """Request a stop."""
        self.reason = reason
        (Path(self.folder) / "stop").touch()

    def unfinished_chains(self) -> set[int]:
        """Chains whose work units began and never ended; forgets them."""
        marks = list(Path(self.folder).glob("running-*"))
        for mark in marks:
            mark.unlink(missing_ok=True)
        return {int(mark.name.removeprefix("running-")) for mark in marks}


@contextmanager
def catch_interrupts() -> Iterator[StopEvent]:
    """Request a stop when this process is interrupted; only the main thread receives signals.

    A second SIGINT raises `KeyboardInterrupt` at once, and so does one within two seconds of
    another in this process: two of them end a loop over searches. After SIGTERM the caller saves
    the results and then calls `pass_on_sigterm`.
    """
    with tempfile.TemporaryDirectory(prefix="dbrm-") as folder:
        stop = StopEvent(folder)
        if threading.current_thread() is not threading.main_thread():
            yield stop
            return
        try:
            with _installed({signal.SIGINT: _on_sigint(stop), signal.SIGTERM: _on_sigterm(stop)}):
                yield stop
        except KeyboardInterrupt:
            if stop.reason == "SIGTERM":
                pass_on_sigterm()
            raise


def pass_on_sigterm(found: Any = None) -> None:
    """Call the user's handler of SIGTERM; without one, end the process.

    Raises
    ------
    Terminated
        With the results in `found`, if SIGTERM has its default handler.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL:
        raise Terminated(found)
    if callable(handler):
        handler(signal.SIGTERM, inspect.currentframe())


@contextmanager
def _installed(handlers: dict[signal.Signals, Handler]) -> Iterator[None]:
    """Install handlers for a while, where there is one of Python's to restore."""
    before = {number: signal.getsignal(number) for number in handlers}
    caught = {number: old for number, old in before.items() if old not in (None, signal.SIG_IGN)}
    try:
        for number in caught:
            signal.signal(number, handlers[number])
        yield
    finally:
        for number, old in caught.items():
            signal.signal(number, old)


def _on_sigint(stop: StopEvent) -> Handler:
    owner = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        global _last_interrupt
        # Forked workers inherit this handler; only the driver acts.
        if os.getpid() != owner:
            return
        now = time.monotonic()
        again = stop.is_set or now - _last_interrupt < _AGAIN
        _last_interrupt = now
        if again:
            raise KeyboardInterrupt
        stop.request("SIGINT")

    return handle


def _on_sigterm(stop: StopEvent) -> Handler:
    owner = os.getpid()
    first: list[float] = []

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        now = time.monotonic()
        # A forked worker ends at once; so does a search at the second signal.
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if first and now - first[0] >= _AGAIN:
            raise KeyboardInterrupt
        first.append(now)
        stop.request("SIGTERM")

    return handle
