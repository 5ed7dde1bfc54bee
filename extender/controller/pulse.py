"""The thread that lets the leader speak in time, and leaves its sign of life in the cache."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from extender.store.errors import FencedError, StoreError

TICK_S: Final = 0.1
LIFE_S: Final = 5.0
"""How often the sign of life is renewed: readers take a leader of whom they heard nothing for a
minute for gone."""
AGAIN_S: Final = 1.0
"""... and when it is tried again after the cache took it not."""

_log = structlog.get_logger("surefoot.controller")


class Speaker(Protocol):
    """Whoever speaks in time: the leader's signs."""

    def tick(self) -> None:
        """Say what is due."""


class Cache(Protocol):
    """Where the sign of life stands."""

    def lead(self, *, term: int) -> None:
        """Leave a sign that a leader of `term` is at work. May raise `StoreError`."""


class Pulse:
    """Beats from `start` to `close`."""

    def __init__(
        self,
        signs: Speaker,
        cache: Cache,
        term: Callable[[], int | None],
        outranked: Callable[[int], None],
    ) -> None:
        """`term`: that in which this process leads; None: it does not. `outranked` is told of a higher
        one that the cache has seen.
        """
        self._signs = signs
        self._cache = cache
        self._term = term
        self._outranked = outranked
        self._lived: int | None = None
        """The term of the last sign of life."""
        self._life_s = 0.0
        """When the next is due."""
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="surefoot-pulse", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread to end."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            for beat in (self._live, self._signs.tick):
                try:
                    beat()
                except Exception as error:  # noqa: BLE001 - neither must stop the other
                    self._fail(f"{type(error).__name__}: {error}", surprise=True)

    def _live(self) -> None:
        """Leave the sign of life, if it is time."""
        term, now_s = self._term(), time.monotonic()
        if term == self._lived and now_s < self._life_s:
            return
        self._lived, self._life_s = term, now_s + LIFE_S
        if term is None:
            return
        try:
            self._cache.lead(term=term)
        except FencedError as error:
            self._outranked(error.highest)
        except StoreError as error:
            self._life_s = now_s + AGAIN_S
            self._fail(str(error))
        else:
            self._problem = ""

    def _fail(self, problem: str, *, surprise: bool = False) -> None:
        if problem != self._problem:
            self._problem = problem
            (_log.exception if surprise else _log.warning)("pulse_failed", problem=problem)
