"""The reader's own time line: it advances only while the reader hears from the cache.

Stamps in the cache are the server's wall clock, which may jump when a failover moves to a server
whose clock differs, and a reader that was cut off must not see a whole fleet as old. So time is
counted in steps between answers, and a stamp is put on the line once, when it is first read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from extender.store.keys import text_of
from scoring.model import NodeName

DEPARTURE_S: Final = 5.0
"""The server's clock and this line may move apart by this much in one step."""
_LED: Final = re.compile(rb"([0-9]{1,15}) [0-9]{1,15}\Z")
"""The stamp of a leader: a time in ms, and its term."""


class Timeline:
    """`now_s` and `seen_s` in seconds; the line begins at the server's Unix time."""

    def __init__(self, redis_s: float) -> None:
        self.now_s = redis_s
        self.seen_s: Mapping[NodeName, float] = {}
        """Replaced as a whole with every new stamp, never changed."""
        self.junk: Mapping[NodeName, str] = {}
        """Stamps that are none."""
        self.leader_s: float | None = None
        """The last sign of a leader; None: there never was one."""
        self.leader_junk: str | None = None
        """Why the stamp of the leader is none; None: it is one, or there is none."""
        self.offset_s = 0.0
        """What to add to the server's Unix time to be on this line."""
        self._redis_s = redis_s
        self._raw: dict[bytes, bytes] = {}
        self._raw_leader: bytes | None = None

    @property
    def unix_s(self) -> float:
        """The server's time now."""
        return self.now_s - self.offset_s

    def advance(self, redis_s: float, elapsed_s: float) -> None:
        """Take the next answer's time, `elapsed_s` of local time after the one before.

        Pass 0 for time in which nothing was heard. Where the server's time departs by more than
        `DEPARTURE_S`, the line goes on by `elapsed_s`, and stamps that were read before keep their
        age until the next one.
        """
        step_s = redis_s - self._redis_s
        if abs(step_s - elapsed_s) > DEPARTURE_S:
            self.now_s += elapsed_s
            self.offset_s = self.now_s - redis_s
        else:
            self.now_s = max(self.now_s, redis_s + self.offset_s)
        self._redis_s = redis_s

    def replace_stamps(self, raw: Mapping[bytes, bytes]) -> None:
        """Take all stamps of the cache; nodes that are absent were never seen."""
        before, seen_s = self.seen_s, {}
        junk: dict[NodeName, str] = {}
        for key, stamp in raw.items():
            name = NodeName(text_of(key))
            if self._raw.get(key) == stamp and name in before:
                seen_s[name] = before[name]
            else:
                self._place(name, stamp, seen_s, junk)
        self._raw, self.seen_s, self.junk = dict(raw), seen_s, junk

    def update_stamps(self, raw: Mapping[bytes, bytes | None]) -> None:
        """Take the stamps of some nodes; None: it has none any more."""
        news = {key: stamp for key, stamp in raw.items() if self._raw.get(key) != stamp}
        if not news:
            return
        seen_s, junk = dict(self.seen_s), dict(self.junk)
        for key, stamp in news.items():
            name = NodeName(text_of(key))
            seen_s.pop(name, None)
            junk.pop(name, None)
            if stamp is None:
                del self._raw[key]
            else:
                self._raw[key] = stamp
                self._place(name, stamp, seen_s, junk)
        self.seen_s, self.junk = seen_s, junk

    def take_leader(self, raw: bytes | None) -> None:
        """Take the last stamp of a leader; None: the cache has none.

        A sign that was seen is not unseen by a cache that lost it, or knows only an older one.
        """
        if raw == self._raw_leader:
            return
        self._raw_leader, self.leader_junk = raw, None
        found = _LED.match(raw or b"")
        if found:
            led_s = self._placed(found[1])
            self.leader_s = led_s if self.leader_s is None else max(self.leader_s, led_s)
        elif raw is not None:
            self.leader_junk = f"{raw[:64]!r} is no time in ms and a term"

    def _placed(self, stamp: bytes) -> float:
        """A time in ms on the line. One ahead of us is a clock that went back: no reason to trust it
        for longer.
        """
        return min(int(stamp) / 1000 + self.offset_s, self.now_s)

    def _place(
        self,
        name: NodeName,
        stamp: bytes,
        seen_s: dict[NodeName, float],
        junk: dict[NodeName, str],
    ) -> None:
        if stamp.isdigit() and len(stamp) < 16:
            seen_s[name] = self._placed(stamp)
        else:
            junk[name] = f"{stamp[:32]!r} is no time in ms"
