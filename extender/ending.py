"""Ctrl-C and its kin, waited for rather than raised."""

from __future__ import annotations

import signal
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """While entered, the signals that end a process are kept until somebody asks for them.

    Raised out of a handler they would fall anywhere: into the finaliser of a client, which swallows
    them (seen with redis-py's `Pipeline.__del__`), or into a C extension, which may not live
    through it (seen with hiredis). Only the main thread can enter.
    """

    def __init__(self) -> None:
        # Its put may be called from a handler, whatever the thread is doing: see `queue`.
        self._came: SimpleQueue[int] = SimpleQueue()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        heeded = set(SIGNALS)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            heeded.discard(signal.SIGHUP)  # `nohup` is to outlive its terminal
        self._before = {number: signal.signal(number, self._keep) for number in heeded}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def within(self, seconds: float) -> bool:
        """Wait for a signal for so long at most; whether one came, now or before."""
        try:
            self._came.put(self._came.get(timeout=seconds))
        except Empty:
            return False
        return True

    def _keep(self, number: int, _frame: FrameType | None) -> None:
        self._came.put(number)
