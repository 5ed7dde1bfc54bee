"""Ctrl-C and its kin, turned into one exception that never falls between a process and its keeper."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from extender.ending import SIGNALS


class Interrupted(BaseException):
    """A signal asked for the end; `code` is the exit code that shells expect."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.code = 128 + number


class Interrupts:
    """While entered, the signals raise `Interrupted` in the main thread, once."""

    def __init__(self) -> None:
        self.received: int | None = None
        """The first signal that came."""
        self._held = False
        self._done = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            # Interrupted, the process is about to end: a second Ctrl-C must not change how.
            signal.signal(number, handler if self.received is None else signal.SIG_IGN)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold a signal back until the block ends, so that what it starts can be ended."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.received is not None:
            raise Interrupted(self.received)

    def ignore(self) -> None:
        """From here on nothing interrupts: the end is under way."""
        self._done = True

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        first = self.received is None
        if first:
            self.received = number
        if first and not self._held and not self._done:
            raise Interrupted(number)
