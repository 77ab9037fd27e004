"""Ctrl-C and SIGTERM: the first one asks for an end, the second one is as always."""

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

__all__ = ["StopSign", "catch_interrupts"]


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
    """Give the sign when this process is interrupted; only the main thread can know."""
    with tempfile.TemporaryDirectory(prefix="dbrm-") as folder:
        sign = StopSign(folder)
        if threading.current_thread() is not threading.main_thread():
            yield sign
            return

        def handle(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            if sign.given:
                raise KeyboardInterrupt
            sign.give(signal.Signals(number).name)

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, handle) for number in numbers]
        try:
            yield sign
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
