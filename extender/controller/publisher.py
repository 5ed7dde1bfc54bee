"""The thread that brings what is wanted into the cache, and again whenever the cache lost it.

Only a leader writes, under its term. One that stands by keeps what is wanted, and looks whether the
cache is there. When it begins to lead it compares everything with the cache, where what stands already
is no change, and lets go what stands and is not wanted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from extender.controller.wanted import REFLECTED, RULED, Wanted
from extender.kube.backoff import Backoff
from extender.store.errors import FencedError, StoreError
from extender.store.schema import Kind
from extender.store.writer import Writer

BATCH: Final = 300
"""Documents in one script: some milliseconds of the server's time, in which nobody else is served."""
BATCH_BYTES: Final = 2 * 1024 * 1024
"""The same for large ones: a plan of 512 members has 50 kB."""
COALESCE_S: Final = 0.02
"""Changes that come within this time after the first go together."""
TICK_S: Final = 1.0
RESYNC_S: Final = 600.0
"""How often everything is compared with the cache although nothing changed: somebody may have
deleted or replaced a document by hand."""
PRUNE_S: Final = 60.0
"""How often one that stands by forgets what another has removed, lest it grow."""
STANDBY_S: Final = 0.1
"""How soon it notices that it leads."""
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
    term: int | None = None
    """The term in which it writes; None: it stands by, or is fenced off."""
    fenced: int = 0
    """How often the cache had seen a leader of a higher term."""
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
        term: Callable[[], int | None],
        outranked: Callable[[int], None],
        tick_s: float = TICK_S,
        resync_s: float = RESYNC_S,
        prune_s: float = PRUNE_S,
    ) -> None:
        """Write nothing before `start`.

        Args:
            writer: closed with the publisher.
            wanted: what is to stand.
            origins: one of each reflected kind.
            term: that in which this controller leads now; None: it does not. Asked often.
            outranked: told once of each term in which the cache had seen a higher one, and which;
                called on the publisher's thread.
            tick_s: how often the cache is asked whether it is there.
            resync_s: how often everything is compared with it.
            prune_s: how often one that stands by forgets what is gone.
        """
        self._writer = writer
        self._wanted = wanted
        self._origins = origins
        self._doubted: list[Origin] = []
        """Those whose documents are yet to be compared with the cache."""
        self._unswept: set[Kind] = set()
        """The ruled kinds of which strangers may stand."""
        self._leads_in = term
        self._outranked = outranked
        self._refused: int | None = None
        """The last term that the cache refused."""
        self._tick_s = tick_s
        self._resync_s = resync_s
        self._prune_s = prune_s
        self._status = Status()
        self._instance: bytes | None = None
        self._generation = 0
        self._due_s = self._resync_due_s = self._prune_due_s = 0.0
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

    def pending(self) -> int:
        """How many documents are yet to be written; 0 of one that stands by."""
        return 0 if self._status.term is None else self._wanted.pending()

    def lag_s(self) -> float:
        """How long the oldest of them waits; 0: there is none."""
        return 0.0 if self._status.term is None else self._wanted.lag_s()

    def start(self) -> None:
        """Begin to write, while this controller leads."""
        self._prune_due_s = time.monotonic() + self._prune_s
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
        term = self._term()
        if term is None:
            self._stand_by(now_s)
            return
        if term != self._status.term:
            self._take_over(term, now_s)
        if now_s >= self._resync_due_s:
            self._doubt(now_s)
        self._compare()
        self._sweep()
        if self._wanted.wait(min(STEP_S, self._tick_s)):
            if self._wanted.pending() < BATCH:
                self._stop.wait(COALESCE_S)
            if self._term() == term:
                self._write(term)

    def _term(self) -> int | None:
        """The term to write in; None: none, or the cache refused it."""
        term = self._leads_in()
        if term is None or term == self._refused:
            return None
        self._refused = None
        return term

    def _stand_by(self, now_s: float) -> None:
        if self._status.term is not None:
            _log.info("publisher_stands_by", term=self._status.term)
            self._status = replace(self._status, term=None)
        if now_s >= self._prune_due_s:
            for kind in REFLECTED:
                self._wanted.prune(kind, self._writer.ids(kind))
            self._prune_due_s = now_s + self._prune_s
        self._stop.wait(STANDBY_S)

    def _take_over(self, term: int, now_s: float) -> None:
        """Begin to write in a term: another leader may have written anything before."""
        self._wanted.lead(term)
        self._doubt(now_s)
        self._unswept = set(RULED)
        for origin in self._origins:
            if self._wanted.strays(origin.kind, self._writer.ids(origin.kind)):
                origin.lost()
        self._status = replace(self._status, term=term)
        _log.info("publisher_leads", term=term)

    def _look(self) -> None:
        """Find out whether the cache is there, and still the same."""
        pulse = self._writer.pulse()
        self._see(pulse.instance, pulse.generation)
        if not self.pending():  # else the next write tells whether it takes any
            self._works()
        for origin in self._origins:
            origin.answered()

    def _write(self, term: int) -> None:
        try:
            done = self._writer.mirror(self._wanted.take(BATCH, BATCH_BYTES), term=term)
        except FencedError as error:
            self._wanted.give_back()
            self._fenced(error)
            return
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
        """Compare everything with the cache, and sweep again: a lost removal is wanted by nobody. One
        that stands by does so when it takes over.
        """
        if self._status.term is None:
            return
        self._doubt(time.monotonic())
        self._unswept = set(RULED)
        for origin in self._origins:
            origin.lost()

    def _doubt(self, now_s: float) -> None:
        """Take nothing for written, as far as it is no old news."""
        self._doubted = list(self._origins)
        for kind in RULED:
            self._wanted.doubt(kind)
        self._resync_due_s = now_s + self._resync_s

    def _sweep(self) -> None:
        """Let go what stands of a ruled kind and is not wanted, once the leader has said what is."""
        for kind in tuple(self._unswept):
            if self._wanted.ruled(kind):
                self._wanted.sweep(kind, self._writer.ids(kind))
                self._unswept.remove(kind)

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

    def _fenced(self, error: FencedError) -> None:
        """Write nothing more in this term."""
        _log.warning("publisher_fenced", term=error.term, highest=error.highest)
        self._refused = error.term
        self._status = replace(self._status, term=None, fenced=self._status.fenced + 1)
        self._outranked(error.highest)

    def _failed(self, problem: str) -> None:
        if self._status.problem is None:
            # Said once: it is over with the first write that is taken.
            _log.warning("cache_unreachable", problem=problem)
        self._status = replace(self._status, connected=False, problem=problem)
        self._due_s = 0.0  # look before the next write
