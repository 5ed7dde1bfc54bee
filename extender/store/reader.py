"""The thread that keeps a picture of the cache and hands out a new Fleet with each change.

It loads everything, then follows the stream of changes. It loads again after a gap and after every
reconnect. While it is cut off nothing is published, so the Fleet's `now_s` stands still; `status`
says since when. When the cache lost its data (another `instance`, or a generation that fell), the
old Fleet serves until 90 % of its nodes are back, or it is `max_snapshot_age_s` old, time in which
the cache could not be reached included: older than that, it is nobody's word any more.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from extender.store import keys, load
from extender.store.connect import READER_TIMEOUT_S, StoreSettings, connect
from extender.store.errors import StoreError, reaching
from extender.store.load import Census
from extender.store.picture import Changed, Picture
from extender.store.schema import Kind
from extender.store.scripts import Scripts
from extender.store.status import Status
from extender.store.timeline import Timeline
from scoring.model import Fleet

Publish = Callable[[Fleet, Changed], None]
"""Called on the reader's thread with each new Fleet, and the nodes whose documents, allocations,
overrides or breakers changed (None: the cache was read anew, and any may have; empty: none). Nodes
whose telemetry grew old, or is fresh again, are not among them: they follow from `now_s` and
`seen_s`."""

TICK_S: Final = 1.0
SEEN_EVERY_S: Final = 5.0
COALESCE_S: Final = 0.01
"""Changes that come within this time after the first are one new Fleet."""
BLOCK_S: Final = 0.25
"""Longest blocking read: how long `close` may take."""
BACK_RATIO: Final = 0.9
FIRST_BACKOFF_S: Final = 0.05
LAST_BACKOFF_S: Final = 1.0

_log = structlog.get_logger("surefoot.store.reader")


@dataclass(slots=True, kw_only=True)
class _Adopted:
    """The data that the published Fleets are made of."""

    instance: bytes | None
    generation: int
    picture: Picture
    timeline: Timeline
    synced_s: float
    """Local time at which the time line advanced last."""

    def lost(self, instance: bytes | None, generation: int) -> bool:
        """Whether the cache is not the one that was adopted, or forgot some of it."""
        return instance != self.instance or generation < self.generation

    def mostly_in(self, found: Census) -> bool:
        """Whether enough of the adopted nodes are back, with a stamp where they had one."""
        names, seen_s = self.picture.node_names(), self.timeline.seen_s
        back = sum(
            name in found.nodes and (name in found.seen or name not in seen_s) for name in names
        )
        return back >= BACK_RATIO * len(names)


class Reader:
    """Follows one cache. `start` it once, `close` it at the end."""

    def __init__(
        self,
        settings: StoreSettings,
        publish: Publish,
        *,
        max_snapshot_age_s: float = 300.0,
        seen_every_s: float = SEEN_EVERY_S,
        tick_s: float = TICK_S,
    ) -> None:
        self._server = settings.server
        self._client = connect(settings, timeout_s=READER_TIMEOUT_S)
        self._scripts = Scripts(self._client)
        self._publish = publish
        self._max_snapshot_age_s = max_snapshot_age_s
        self._seen_every_s = seen_every_s
        self._tick_s = tick_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="surefoot-reader", daemon=True)
        self._status = Status()
        self._adopted: _Adopted | None = None

    @property
    def status(self) -> Status:
        """What the reader says of itself now."""
        return self._status

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """Stop reading, and wait for the thread to end."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._client.close()

    def _run(self) -> None:
        backoff_s = FIRST_BACKOFF_S
        while not self._stop.is_set():
            began_s = time.monotonic()
            try:
                with reaching(self._server):
                    if self._adopt():
                        self._follow()
            except StoreError as error:
                self._cut_off(str(error))
            except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
                _log.exception("reader_failed")
                self._cut_off(f"{type(error).__name__}: {error}")
            # What lasted was sound; what fails or needs a reload at once must not make us spin.
            lasted = time.monotonic() - began_s > LAST_BACKOFF_S
            backoff_s = FIRST_BACKOFF_S if lasted else min(2 * backoff_s, LAST_BACKOFF_S)
            self._stop.wait(backoff_s * random.uniform(0.5, 1.0))

    def _adopt(self) -> bool:
        """Load everything and publish it; False: not yet, the old Fleet serves on."""
        if not self._may_adopt(load.census(self._client)):
            return False
        contents = load.contents(self._client)
        if not self._may_adopt(contents.census):
            return False
        picture = Picture(contents)
        if self._adopted is None:
            timeline = Timeline(contents.redis_s)
        else:
            # Time stood still while nothing was heard.
            timeline = self._adopted.timeline
            timeline.advance(contents.redis_s, 0.0)
        timeline.replace_stamps(contents.seen)
        timeline.take_leader(contents.leader)
        picture.expire(timeline.unix_s)
        self._adopted = _Adopted(
            instance=contents.instance,
            generation=contents.generation,
            picture=picture,
            timeline=timeline,
            synced_s=time.monotonic(),
        )
        if self._status.recovering_since_s is not None:
            _log.info("cache_refilled", server=self._server, generation=contents.generation)
        self._status = replace(
            self._status, reloads=self._status.reloads + 1, recovering_since_s=None
        )
        self._hand_out(None)
        return True

    def _may_adopt(self, found: Census) -> bool:
        self._heard()
        held = self._adopted
        if held is None or not held.lost(found.instance, found.generation):
            return True
        now_s = time.monotonic()
        if held.mostly_in(found) or now_s - held.synced_s >= self._max_snapshot_age_s:
            return True
        if self._status.recovering_since_s is None:
            _log.warning("cache_lost_its_data", server=self._server, nodes=len(found.nodes))
            self._status = replace(self._status, recovering_since_s=now_s)
        return False

    def _follow(self) -> None:
        """Publish changes, and a Fleet each tick; return when only a full load can help."""
        held = self._adopted
        tick_s = time.monotonic() + self._tick_s
        seen_s = time.monotonic() + self._seen_every_s
        while held and not self._stop.is_set():
            now_s = time.monotonic()
            if now_s >= tick_s:
                with_seen = now_s >= seen_s
                if not self._tick(held, with_seen=with_seen):
                    return
                tick_s = now_s + self._tick_s
                seen_s = now_s + self._seen_every_s if with_seen else seen_s
            elif self._changes_within(held, min(tick_s - now_s, BLOCK_S)):
                self._stop.wait(COALESCE_S)
                if not self._catch_up(held):
                    return

    def _changes_within(self, held: _Adopted, wait_s: float) -> bool:
        since: dict[Any, Any] = {keys.CHANGES.name: f"{held.generation}-1"}
        found = self._client.xread(since, count=1, block=max(1, round(wait_s * 1000)))
        self._heard()
        return bool(found)

    def _tick(self, held: _Adopted, *, with_seen: bool) -> bool:
        pulse = load.pulse(self._client, with_seen=with_seen)
        self._heard()
        if held.lost(pulse.instance, pulse.generation):
            return False
        self._sync(held, pulse.redis_s)
        if pulse.seen is not None:
            held.timeline.replace_stamps(pulse.seen)
            held.timeline.take_leader(pulse.leader)
        self._hand_out(held.picture.expire(held.timeline.unix_s))
        return pulse.generation == held.generation or self._catch_up(held)

    def _catch_up(self, held: _Adopted) -> bool:
        news = self._scripts.changed_since(held.generation)
        self._heard()
        if held.lost(news.instance, news.generation) or not news.complete:
            return False
        self._sync(held, news.redis_s)
        held.generation = news.generation
        stamps = {one.id: one.seen for one in news.documents if one.kind is Kind.NODE}
        held.timeline.update_stamps(stamps)
        self._hand_out(held.picture.apply(news.documents))
        return True

    def _sync(self, held: _Adopted, redis_s: float) -> None:
        now_s = time.monotonic()
        held.timeline.advance(redis_s, now_s - held.synced_s)
        held.synced_s = now_s

    def _hand_out(self, changed: Changed) -> None:
        held = self._adopted
        if held is None:
            return
        fleet = held.picture.fleet(held.generation, held.timeline)
        self._publish(fleet, changed)
        self._status = replace(
            self._status,
            loaded=True,
            generation=held.generation,
            quarantined=len(fleet.quarantined),
        )

    def _heard(self) -> None:
        if self._status.problem is not None:
            _log.info("cache_reachable", server=self._server)
        self._status = replace(self._status, connected=True, heard_s=time.monotonic(), problem=None)

    def _cut_off(self, problem: str) -> None:
        if self._status.connected or self._status.problem is None:
            _log.warning("cache_unreachable", server=self._server, problem=problem)
        self._status = replace(self._status, connected=False, problem=problem)
