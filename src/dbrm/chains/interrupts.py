"""Ctrl-C and SIGTERM: the search ends at the next population, and SIGTERM then ends the process.

Whoever runs the search may have a handler of SIGTERM: it is called once the search has ended.
A signal that the process ignores stays ignored.
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

__all__ = ["StopSign", "catch_interrupts", "pass_on_sigterm"]

# Seconds after a Ctrl-C in which another one raises, also in the next search of a loop; and
# after a SIGTERM in which another one is taken for the same: some send it to a process and
# once more to its group.
_AGAIN = 2.0
# When Ctrl-C came last in this process.
_last_interrupt = -_AGAIN

Handler = Callable[[int, FrameType | None], Any]


class StopSign:
    """A folder on this machine in which a file ``stop`` ends all slices."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.reason: str | None = None

    @property
    def given(self) -> bool:
        """Whether an end was asked for."""
        return self.reason is not None

    def give(self, reason: str) -> None:
        """Ask for an end."""
        self.reason = reason
        (Path(self.folder) / "stop").touch()

    def left_behind(self) -> set[int]:
        """Chains whose slices began and never ended; their marks are taken away."""
        marks = list(Path(self.folder).glob("running-*"))
        for mark in marks:
            mark.unlink(missing_ok=True)
        return {int(mark.name.removeprefix("running-")) for mark in marks}


@contextmanager
def catch_interrupts() -> Iterator[StopSign]:
    """Give the sign when this process is interrupted; only the main thread can know.

    A second SIGINT raises `KeyboardInterrupt` at once, and so does one within two seconds of
    another in this process: a loop over searches ends by two. After SIGTERM the caller, when he has
    kept what was found, calls `pass_on_sigterm`.
    """
    with tempfile.TemporaryDirectory(prefix="dbrm-") as folder:
        sign = StopSign(folder)
        if threading.current_thread() is not threading.main_thread():
            yield sign
            return
        try:
            with _installed({signal.SIGINT: _on_sigint(sign), signal.SIGTERM: _on_sigterm(sign)}):
                yield sign
        except KeyboardInterrupt:
            if sign.reason == "SIGTERM":
                pass_on_sigterm()
            raise


def pass_on_sigterm(found: Any = None) -> None:
    """Call the handler of SIGTERM; where there is none, end the process.

    Raises
    ------
    Terminated
        With what was `found`, if SIGTERM has its default handler.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL:
        raise Terminated(found)
    if callable(handler):
        handler(signal.SIGTERM, inspect.currentframe())


@contextmanager
def _installed(handlers: dict[signal.Signals, Handler]) -> Iterator[None]:
    """Have these handlers for a while, where there is one of Python's to be restored."""
    before = {number: signal.getsignal(number) for number in handlers}
    caught = {number: old for number, old in before.items() if old not in (None, signal.SIG_IGN)}
    try:
        for number in caught:
            signal.signal(number, handlers[number])
        yield
    finally:
        for number, old in caught.items():
            signal.signal(number, old)


def _on_sigint(sign: StopSign) -> Handler:
    owner = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        global _last_interrupt
        # A worker that was forked leaves it to the one that asked.
        if os.getpid() != owner:
            return
        now = time.monotonic()
        again = sign.given or now - _last_interrupt < _AGAIN
        _last_interrupt = now
        if again:
            raise KeyboardInterrupt
        sign.give("SIGINT")

    return handle


def _on_sigterm(sign: StopSign) -> Handler:
    owner = os.getpid()
    first: list[float] = []

    def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        now = time.monotonic()
        # A worker that was forked ends at once; so does a search that is asked again.
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if first and now - first[0] >= _AGAIN:
            raise KeyboardInterrupt
        first.append(now)
        sign.give("SIGTERM")

    return handle
