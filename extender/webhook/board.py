"""The picture that requests read, and the rankings kept ready for the needs that are asked about.

The reader's thread pins up a new `View` for each change of the fleet; request threads read the
newest one and never wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from scoring import picture, ranking
from scoring.model import Fleet, Need, NodeName
from scoring.picture import Picture
from scoring.policy import Policy
from scoring.ranking import Ranking

KEEP_S: Final = 600.0
"""How long a ranking is kept ready for a need that nobody asks about any more."""

MOST: Final = 64
"""How many needs have a ranking kept ready; the least recently asked go first."""


@dataclass(frozen=True, slots=True)
class View:
    """One picture with the rankings made of it so far."""

    picture: Picture
    rankings: dict[Need, Ranking] = field(default_factory=dict)

    @property
    def at(self) -> tuple[int, float]:
        """Generation and time of its snapshot."""
        return self.picture.fleet.generation, self.picture.fleet.now_s


class Board:
    """Where the reader publishes and requests look. Safe for many threads."""

    def __init__(self, policy: Policy, clock: Callable[[], float], max_age_s: float) -> None:
        self._policy = policy
        self._clock = clock
        self._max_age_s = max_age_s
        self._view: View | None = None
        self._heard_s = clock()
        self._asked_s: dict[Need, float] = {}
        self._building = threading.Lock()

    def publish(self, fleet: Fleet, changed: Collection[NodeName] | None) -> None:
        """Pin up `fleet`, which differs from the last one in the nodes `changed` (None: all).

        Called by one thread, at every sign of life from the cache.
        """
        old = self._view
        if old is None or changed is None:
            self._pin(picture.picture(fleet, self._policy), None, old)
            return
        names = {*changed, *picture.due(old.picture, fleet)}
        self._pin(picture.advanced(old.picture, fleet, names), names, old)

    def _pin(self, fresh: Picture, names: Collection[NodeName] | None, old: View | None) -> None:
        rankings = {}
        for need in self._wanted(old):
            if names is None or old is None or need not in old.rankings:
                rankings[need] = picture.ranking_of(fresh, need)
            elif names:
                rankings[need] = ranking.changed(
                    old.rankings[need], fresh.candidates, names, self._policy
                )
            else:
                rankings[need] = old.rankings[need]
        self._view = View(fresh, rankings)
        self._heard_s = self._clock()

    def _wanted(self, old: View | None) -> list[Need]:
        """The needs asked about lately, the most recent first."""
        if old is None:
            return []
        since_s = self._clock() - KEEP_S
        lately = [(at_s, need) for need, at_s in list(self._asked_s.items()) if at_s >= since_s]
        lately.sort(key=lambda each: -each[0])
        self._asked_s = {need: at_s for at_s, need in lately[:MOST]}
        return list(self._asked_s)

    def view(self) -> View | None:
        """The newest view; None where there is none, or the cache has been silent for too long."""
        return None if self.age_s() > self._max_age_s else self._view

    def latest(self) -> View | None:
        """The newest view, however old."""
        return self._view

    def age_s(self) -> float:
        """Seconds since the last sign of life from the cache."""
        return self._clock() - self._heard_s

    def ranking(self, view: View, need: Need) -> Ranking:
        """The ranking of `view` for `need`: at once where it is kept ready."""
        self._asked_s[need] = self._clock()
        found = view.rankings.get(need)
        if found is not None:
            return found
        with self._building:  # several pods of one new kind come at once: one of them does the work
            found = view.rankings.get(need)
            if found is None:
                found = view.rankings[need] = picture.ranking_of(view.picture, need)
        return found
