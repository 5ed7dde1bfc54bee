"""What a leader's writes ask before they are sent: does it still lead?"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from extender.kube.errors import FencedError

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot_s() -> float:
    """Seconds on a clock that goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(_CLOCK)


class Fence:
    """One term of a leader. It holds until a moment that each renewal moves on.

    Once ended it never holds again: who leads again has a higher term, and another fence.
    """

    def __init__(
        self, term: int, *, until_s: float = math.inf, clock: Callable[[], float] = since_boot_s
    ) -> None:
        self.term: Final = term
        """Higher than that of every leader before."""
        self._until_s = until_s
        self._clock = clock
        self._ended = False
        self._sending = threading.Lock()

    def holds(self) -> bool:
        """Whether the process still leads in this term."""
        return not self._ended and self._clock() < self._until_s

    def check(self) -> None:
        """Pass where the fence holds.

        Raises:
            FencedError: it does not.
        """
        if not self.holds():
            raise FencedError(f"no longer the leader of term {self.term}, so nothing is written")

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Check, and send within: one request at a time, so that a process that is stopped here
        for longer than its term has one request past the check, and no second one.

        Raises:
            FencedError: the fence does not hold.
        """
        with self._sending:
            self.check()
            yield

    def extend(self, until_s: float) -> None:
        """A renewal came through."""
        self._until_s = until_s

    def end(self) -> None:
        """Hold no longer. When this returns, nothing more is being sent."""
        self._ended = True
        with self._sending:
            pass  # whoever passed before has sent its request
