"""The thread that brings what is wanted into the cache, and again whenever the cache lost it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from extender.controller.wanted import Wanted
from extender.kube.backoff import Backoff
from extender.store.errors import StoreError
from extender.store.writer import Writer

BATCH: Final = 300
"""Documents in one script: some milliseconds of the server's time, in which nobody else is served."""
COALESCE_S: Final = 0.02
"""Changes that come within this time after the first go together."""
TICK_S: Final = 1.0
RESYNC_S: Final = 600.0
"""How often everything is compared with the cache although nothing changed: somebody may have
deleted or replaced a document by hand."""
STEP_S: Final = 0.25
"""Longest wait: how long `close` may take while the cache answers."""

_log = structlog.get_logger("surefoot.controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the publisher says of itself."""

    connected: bool = False
    problem: str | None = None
    """Why the cache takes nothing; None: it does, or was not asked yet."""
    written: int = 0
    removed: int = 0
    losses: int = 0
    """How often the cache turned out to have lost its data."""


class Publisher:
    """Writes what `wanted` says. `start` it once, `close` it at the end."""

    def __init__(
        self,
        writer: Writer,
        wanted: Wanted,
        answered: Callable[[], None],
        *,
        tick_s: float = TICK_S,
        resync_s: float = RESYNC_S,
    ) -> None:
        """`answered` is called after each sign of life from the cache, on this thread."""
        self._writer = writer
        self._wanted = wanted
        self._answered = answered
        self._tick_s = tick_s
        self._resync_s = resync_s
        self._status = Status()
        self._instance: bytes | None = None
        self._generation = 0
        self._due_s = self._resync_due_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="surefoot-publisher", daemon=True)

    @property
    def status(self) -> Status:
        """What the publisher says of itself now."""
        return self._status

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to write."""
        self._resync_due_s = time.monotonic() + self._resync_s
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread to end. What is not written yet the next start finds out."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        backoff = Backoff(first_s=0.05, last_s=5.0)
        while not self._stop.is_set():
            try:
                self._step()
            except StoreError as error:
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
                _log.exception("publisher_failed")
                self._failed(f"{type(error).__name__}: {error}")
            else:
                backoff.reset()
                continue
            self._stop.wait(backoff.pause_s())

    def _step(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._look()
            self._due_s = now_s + self._tick_s
        if now_s >= self._resync_due_s:
            self._wanted.doubt()
            self._resync_due_s = now_s + self._resync_s
        if self._wanted.wait(min(STEP_S, self._tick_s)):
            if self._wanted.pending() < BATCH:
                self._stop.wait(COALESCE_S)
            self._write()

    def _look(self) -> None:
        """Find out whether the cache is there, and still the same."""
        pulse = self._writer.pulse()
        if self._status.problem is not None:
            _log.info("cache_reachable")
            self._wanted.doubt()  # it may be another server, which missed the last writes
        self._status = replace(self._status, connected=True, problem=None)
        self._see(pulse.instance, pulse.generation)
        self._answered()

    def _write(self) -> None:
        try:
            done = self._writer.mirror(self._wanted.take(BATCH))
        except BaseException:
            self._wanted.give_back()
            raise
        self._wanted.done()
        self._status = replace(
            self._status,
            written=self._status.written + done.written,
            removed=self._status.removed + done.removed,
        )
        self._see(done.instance, done.generation)

    def _see(self, instance: bytes | None, generation: int) -> None:
        """Take note of which data the cache holds; where it is other data, write everything again."""
        known = self._instance
        if known is not None and (instance != known or generation < self._generation):
            _log.warning("cache_lost_its_data", generation=generation)
            self._status = replace(self._status, losses=self._status.losses + 1)
            self._wanted.doubt()
        self._instance, self._generation = instance, generation

    def _failed(self, problem: str) -> None:
        if self._status.problem is None:
            _log.warning("cache_unreachable", problem=problem)
        self._status = replace(self._status, connected=False, problem=problem)
        self._due_s = 0.0  # look before the next write
