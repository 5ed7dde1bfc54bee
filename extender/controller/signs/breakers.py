"""Lets the breakers of pools stand in the cache, and says so when one trips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import structlog

from extender.controller.signs.events import Events, EventType, Target
from extender.controller.signs.ports import BreakerSink
from extender.controller.wanted import Wanted
from extender.store import render
from extender.store.schema import Kind
from scoring import breakers
from scoring.breakers import Memory
from scoring.model import Breaker, BreakerState
from scoring.picture import Picture

TICK_S: Final = 1.0

_log = structlog.get_logger("surefoot.controller.signs")
_TOLD: Final = {
    BreakerState.FROZEN: (
        "PoolFrozen",
        "many nodes of pool {} fell silent together: they keep their last verdicts for a while",
    ),
    BreakerState.OPEN: (
        "PoolBreakerOpen",
        "soft causes keep gangs off much of pool {}, or newly off many nodes: look for a reason",
    ),
    BreakerState.CLOSED: ("PoolBreakerClosed", "pool {} is judged as usual again"),
}


class Breakers:
    """The breakers of one fleet. For one thread at a time."""

    def __init__(
        self, sink: BreakerSink, events: Events, home: Target, term: Callable[[], int]
    ) -> None:
        """`home`: what stands for Surefoot itself; events on pools are about it. `term`: of the
        leader that this process is.
        """
        self.trips: Final[Counter[BreakerState]] = Counter()
        """How often a pool came into a state that is not closed."""
        self._sink = sink
        self._events = events
        self._home = home
        self._term = term
        self.forget()

    @property
    def pools(self) -> Counter[BreakerState]:
        """How many pools are in each state that is not closed."""
        return Counter(word.state for word in self._words.values())

    def forget(self) -> None:
        """Begin anew, from the words that stand."""
        self._memory: Memory | None = None
        self._words: dict[str, Breaker] = {}
        self._next_s = 0.0

    def tick(self, picture: Picture, now_s: float) -> None:
        """Look at the pools."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + TICK_S
        first = self._memory is None
        words, self._memory = breakers.look(picture, self._memory)
        before, self._words = self._words, dict(words)
        if words == before and not first:
            return
        self._sink.stand(
            {
                pool: word
                if word.until_s is None
                else replace(word, until_s=word.until_s - picture.fleet.ahead_s)
                for pool, word in words.items()
            },
            self._term(),
        )
        for pool in sorted(before.keys() | words.keys()):
            if not first or picture.fleet.breakers.get(pool) is None:
                self._turned(pool, _state(before.get(pool)), _state(words.get(pool)))

    def _turned(self, pool: str, before: BreakerState, now: BreakerState) -> None:
        if before is now:
            return
        if now is not BreakerState.CLOSED:
            self.trips[now] += 1
        reason, note = _TOLD[now]
        _log.warning("breaker_turned", pool=pool, state=now.value, before=before.value)
        bad = now is not BreakerState.CLOSED
        kind = EventType.WARNING if bad else EventType.NORMAL
        self._events.about(self._home, reason, note.format(pool), kind)


class RuledBreakers:
    """Breakers among what the publisher brings into the cache."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def stand(self, breakers: Mapping[str, Breaker], term: int) -> None:
        """Want these words on pools, and no others; of an earlier term than the publisher's: nothing."""
        papers = [render.document(word) for word in breakers.values()]
        self._wanted.rule(Kind.BREAKER, {paper.id: paper.encoded for paper in papers}, term)


def _state(word: Breaker | None) -> BreakerState:
    return BreakerState.CLOSED if word is None else word.state
