"""The thread that brings what is wanted into the cache, and again whenever the cache lost it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from extender.controller.wanted import Wanted
from extender.kube.backoff import Backoff
from extender.store.errors import StoreError
from extender.store.schema import Kind
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
    """Whether the cache answers, and took what it was last given."""
    problem: str | None = None
    """Why the cache takes nothing; None: it does, or was not asked yet."""
    written: int = 0
    removed: int = 0
    losses: int = 0
    """How often the cache turned out to have lost its data."""


class Origin(Protocol):
    """Where the documents of one kind come from. Called on the publisher's thread."""

    @property
    def kind(self) -> Kind:
        """That of its documents."""

    @property
    def fresh(self) -> bool:
        """Whether what is wanted of it is news, and not what was true long ago."""

    def lost(self) -> None:
        """The cache may have lost writes. Removals among them only a new sweep finds out."""

    def answered(self) -> None:
        """A sign of life from the cache."""


class Publisher:
    """Writes what `wanted` says. `start` it once, `close` it at the end."""

    def __init__(
        self,
        writer: Writer,
        wanted: Wanted,
        origins: Sequence[Origin],
        *,
        tick_s: float = TICK_S,
        resync_s: float = RESYNC_S,
    ) -> None:
        """`origins`: one of each kind that is wanted."""
        self._writer = writer
        self._wanted = wanted
        self._origins = origins
        self._doubted: list[Origin] = []
        """Those whose documents are yet to be compared with the cache."""
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
            self._doubted = list(self._origins)
            self._resync_due_s = now_s + self._resync_s
        self._compare()
        if self._wanted.wait(min(STEP_S, self._tick_s)):
            if self._wanted.pending() < BATCH:
                self._stop.wait(COALESCE_S)
            self._write()

    def _look(self) -> None:
        """Find out whether the cache is there, and still the same."""
        pulse = self._writer.pulse()
        self._see(pulse.instance, pulse.generation)
        if not self._wanted.pending():  # else the next write tells whether it takes any
            self._works()
        for origin in self._origins:
            origin.answered()

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
        self._works()

    def _works(self) -> None:
        """The cache took a write, or answers while none waits for it."""
        if self._status.problem is not None:
            _log.info("cache_reachable")
            self._lost()  # it may be another server, which missed the last writes
        self._status = replace(self._status, connected=True, problem=None)

    def _lost(self) -> None:
        """Compare everything with the cache, and sweep again: a lost removal is wanted by nobody."""
        self._doubted = list(self._origins)
        for origin in self._origins:
            origin.lost()

    def _compare(self) -> None:
        """Doubt what is to be compared. What is old news waits: another controller may know better."""
        for origin in tuple(self._doubted):
            if origin.fresh:
                self._wanted.doubt(origin.kind)
                self._doubted.remove(origin)

    def _see(self, instance: bytes | None, generation: int) -> None:
        """Take note of which data the cache holds; where it is other data, write everything again."""
        known = self._instance
        if known is not None and (instance != known or generation < self._generation):
            _log.warning("cache_lost_its_data", generation=generation)
            self._lost()
            self._status = replace(self._status, losses=self._status.losses + 1)
        self._instance, self._generation = instance, generation

    def _failed(self, problem: str) -> None:
        if self._status.problem is None:
            # Said once: it is over with the first write that is taken.
            _log.warning("cache_unreachable", problem=problem)
        self._status = replace(self._status, connected=False, problem=problem)
        self._due_s = 0.0  # look before the next write
