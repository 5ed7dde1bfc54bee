"""The thread that follows one kind of objects: a list, then the changes after it, for ever.

It keeps no objects: a handler takes of each what it needs. A watch that ends, breaks or falls silent
goes on from the version that was heard last; only a version that is gone, or garbage, costs a new
list. Every try that fails makes the next one wait longer, so nothing here can spin.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Final, Generic, Protocol, TypeVar

import msgspec
import structlog
from msgspec import Raw

from extender.kube import answers
from extender.kube import client as http
from extender.kube.backoff import Backoff
from extender.kube.client import Client
from extender.kube.discovery import Fixed, Place
from extender.kube.errors import (
    ABSENT,
    GarbageError,
    GoneError,
    KubeError,
    RefusedError,
    SilentError,
)
from extender.kube.shapes import EVENT, HEADED, PAGE, Event, Header, Page
from extender.kube.status import Restart, Status, Timing

T = TypeVar("T")

_log = structlog.get_logger("surefoot.kube.reflector")


class Handler(Protocol[T]):
    """What takes the objects in. Called on the reflector's thread, one call at a time."""

    def read(self, header: Header, raw: Raw) -> T | None:
        """What is kept of an object; None: nothing. `raw` does not outlive the call."""

    def listing(self) -> None:
        """A list is about to begin: all that exists from now on will be in it."""

    def listed(self, found: dict[str, T], *, whole: bool) -> None:
        """All that exists, by key. Not `whole`: some of it could not be read and is missing here."""

    def changed(self, key: str, now: T | None) -> None:
        """One object came, changed, or went; None: nothing is kept of it."""


PAGE_SIZE: Final = 500
"""Objects of one request: 5 MB of ordinary pods."""
CLOSE_S: Final = 2.0


class Reflector(Generic[T]):
    """Follows the objects of one kind. `start` it once, `close` it at the end."""

    def __init__(
        self,
        client: Client,
        place: str | Place,
        handler: Handler[T],
        *,
        timing: Timing | None = None,
    ) -> None:
        """`place`: a path, as `/api/v1/pods`, or what knows it where the kind may not be served.
        Then the handler gets an empty list, and discovery is asked again after a while.
        """
        self._place = Fixed(place) if isinstance(place, str) else place
        self.name: Final = self._place.name
        """The kind, as the path says it: `pods`."""
        self.restarts: Final[Counter[Restart]] = Counter()
        self._client = client
        self._path = ""
        self._handler = handler
        self._timing = timing or Timing()
        self._status = Status()
        self._version: str | None = None
        """What was heard last; None: only a list helps."""
        self._stop = threading.Event()
        self._again = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"surefoot-{self.name}", daemon=True)

    @property
    def status(self) -> Status:
        """What the reflector says of itself now."""
        return self._status

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    @property
    def fresh(self) -> bool:
        """Whether the server was heard within the time that a watch may be silent."""
        silence_s = self._status.silence_s(time.monotonic())
        return silence_s is not None and silence_s <= self._timing.silence_s

    def start(self) -> None:
        """Begin to list."""
        self._thread.start()

    def relist(self) -> None:
        """List again soon, whatever the watch says; called from another thread."""
        self._again.set()
        self._client.cut()

    def close(self) -> None:
        """Stop, and wait for the thread to end: at once, unless a server is yet to begin its answer.
        Then it is left to the end of the process.
        """
        self._stop.set()
        until_s = time.monotonic() + CLOSE_S
        while self._thread.is_alive() and time.monotonic() < until_s:
            self._client.cut()
            self._thread.join(0.05)
        self._client.close()

    def _run(self) -> None:
        timing = self._timing
        backoff = Backoff(first_s=timing.first_pause_s, last_s=timing.last_pause_s)
        while not self._stop.is_set():
            began_s, asked_s = time.monotonic(), 0.0
            try:
                self._follow()
                reason, problem = Restart.ENDED, None
            except KubeError as error:
                reason, problem = _reason_of(error), str(error)
                if isinstance(error, RefusedError):
                    asked_s = error.retry_after_s
                    if error.status == ABSENT:
                        self._version = None  # it may be served elsewhere by now, or nowhere
            except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
                _log.exception("reflector_failed", kind=self.name)
                reason, problem = Restart.GARBAGE, f"{type(error).__name__}: {error}"
            if self._stop.is_set():
                return
            if self._again.is_set():
                reason, problem = Restart.ASKED, None
            if reason in _WITH_LIST:
                self._version = None
            if time.monotonic() - began_s > timing.last_pause_s:
                backoff.reset()
            self._restarted(reason, problem)
            self._stop.wait(backoff.pause_s(asked_s))

    def _follow(self) -> None:
        """List where need be, and watch until something ends that."""
        if self._version is None or self._again.is_set():
            self._version = None
            self._path = self._located()
            self._again.clear()
            if not self._stop.is_set():
                self._list()
        if self._version is not None and not self._again.is_set():
            self._watch()

    def _located(self) -> str:
        """The path, once the kind is served. Until then the handler knows that nothing exists."""
        while not self._stop.is_set():
            path = self._place.path(self._client)
            if path is not None:
                return path
            self._heard()
            if self._again.is_set() or self._status.served or not self._status.synced:
                self._again.clear()
                self._handler.listing()
                self._handler.listed({}, whole=True)
                self._synced(served=False)
                _log.info("not_served", kind=self.name)
            self._stop.wait(self._timing.absent_s * random.uniform(0.5, 1.0))
        return ""

    def _list(self) -> None:
        """Hand everything out as it is at one moment, a page at a time."""
        began_s = time.monotonic()
        self._handler.listing()
        found: dict[str, T] = {}
        query: dict[str, str | int] = {"limit": PAGE_SIZE}
        version, whole = "", True
        while not self._stop.is_set():
            page = self._page(query)
            self._heard()
            version = version or page.metadata.resource_version
            for raw in page.items or ():
                whole = self._take(raw, found) and whole
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        else:
            return
        if not version:
            raise GarbageError(f"a list of {self.name} names no resourceVersion")
        self._handler.listed(found, whole=whole)
        self._version = version
        self._synced(served=True)
        self._status = replace(self._status, lists=self._status.lists + 1)
        took_s = round(time.monotonic() - began_s, 3)
        _log.info("listed", kind=self.name, kept=len(found), version=version, took_s=took_s)

    def _page(self, query: dict[str, str | int]) -> Page:
        try:
            return PAGE.decode(self._client.get(self._path, query))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GarbageError(f"a list of {self.name} cannot be read: {error}") from error

    def _take(self, raw: Raw, found: dict[str, T]) -> bool:
        """Keep of one object what the handler wants; False: it cannot be told which it is."""
        try:
            header = HEADED.decode(raw).metadata
            kept = self._handler.read(header, raw)
        except Exception as error:  # noqa: BLE001 - one object must never hide all the others
            self._skip(error)
            return False
        if kept is not None:
            found[header.key] = kept
        return True

    def _watch(self) -> None:
        """Hand out changes after the version that was heard last, until the server ends it."""
        watch_s = self._timing.watch_s * random.uniform(1.0, 2.0)
        query: http.Query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
            "timeoutSeconds": round(watch_s),
        }
        with self._client.lines(self._path, query, silence_s=self._timing.silence_s) as lines:
            self._heard()
            # Looked at before the first line too: `relist` cuts only what is open by then.
            while not self._again.is_set() and (line := next(lines, None)) is not None:
                self._event(line)
                self._heard()

    def _event(self, line: bytes) -> None:
        try:
            event = EVENT.decode(line)
            if event.type == "ERROR":
                raise answers.refusal("the watch", bytes(event.object), status=500)
            header = HEADED.decode(event.object).metadata
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GarbageError(f"an event of {self.name} cannot be read: {error}") from error
        match event.type:
            case "ADDED" | "MODIFIED":
                self._change(header, event)
            case "DELETED":
                self._handler.changed(header.key, None)
            case "BOOKMARK":
                pass
            case other:
                raise GarbageError(f"an event of {self.name} has the unknown type {other[:32]!r}")
        if header.resource_version:
            self._version = header.resource_version

    def _change(self, header: Header, event: Event) -> None:
        """Hand out what the object comes to; one that cannot be read stays what it was."""
        try:
            kept = self._handler.read(header, event.object)
        except Exception as error:  # noqa: BLE001 - one object must never stop all the others
            self._skip(error)
        else:
            self._handler.changed(header.key, kept)

    def _skip(self, error: Exception) -> None:
        self._status = replace(self._status, skipped=self._status.skipped + 1)
        _log.warning("object_skipped", kind=self.name, problem=f"{type(error).__name__}: {error}")

    def _synced(self, *, served: bool) -> None:
        first_s = self._status.synced_s
        synced_s = time.monotonic() if first_s is None else first_s
        self._status = replace(self._status, synced_s=synced_s, barred=None, served=served)

    def _heard(self) -> None:
        if self._status.problem is not None:
            _log.info("watch_resumed", kind=self.name)
        self._status = replace(self._status, heard_s=time.monotonic(), problem=None)

    def _restarted(self, reason: Restart, problem: str | None) -> None:
        self.restarts[reason] += 1
        if problem is not None and self._status.problem is None:
            # Said once: what follows are more tries.
            _log.warning("watch_lost", kind=self.name, reason=reason.value, problem=problem)
        barred = None if self._status.synced else problem or self._status.barred
        self._status = replace(self._status, problem=problem, barred=barred)


_WITH_LIST: Final = frozenset({Restart.ASKED, Restart.GONE, Restart.GARBAGE})
"""What only a new list helps against."""
_REASONS: Final[tuple[tuple[type[KubeError], Restart], ...]] = (
    (GoneError, Restart.GONE),
    (RefusedError, Restart.REFUSED),
    (SilentError, Restart.SILENT),
    (GarbageError, Restart.GARBAGE),
)


def _reason_of(error: KubeError) -> Restart:
    return next((why for kind, why in _REASONS if isinstance(error, kind)), Restart.BROKEN)
