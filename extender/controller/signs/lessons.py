"""Keeps what failed pods say of their nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from extender.controller.signs.events import Events, EventType, Target
from extender.controller.signs.outbox import MOST, Outbox
from extender.controller.signs.ports import CacheWriter, View
from scoring import learning
from scoring.model import Rejection
from scoring.picture import Picture

AGAIN_S: Final = 2.0
"""From a write that the cache did not take to the next."""


class Lessons:
    """The failed pods of one cluster. For one thread at a time."""

    def __init__(
        self,
        cache: CacheWriter,
        view: View,
        events: Events,
        term: Callable[[], int],
    ) -> None:
        """`term`: of the leader that this process is."""
        self.outbox: Final = Outbox[Rejection]("rejections", self._keep)
        self.known = 0
        """Failures that were known already, or too old."""
        self._cache = cache
        self._view = view
        self._events = events
        self._term = term
        self._again_s = 0.0
        self._untold: deque[Rejection] = deque(maxlen=MOST)

    @property
    def untold(self) -> Sequence[Rejection]:
        """What was learnt, and no Fleet showed at the last tick."""
        return tuple(self._untold)

    def forget(self) -> None:
        """Another leads: what waits is its to find out."""
        self.outbox.clear()
        self._untold.clear()

    def tick(self, picture: Picture, now_s: float) -> None:
        """Learn from what failed since."""
        if now_s >= self._again_s:
            self._again_s = now_s + AGAIN_S
            for lost in self.outbox.take_lost():
                self.outbox.put(lost)
        fleet = picture.fleet
        self._untold = deque(learning.untold(self._untold, fleet), maxlen=MOST)
        for pod in self._view.take_failed():
            found = learning.learnt(pod, fleet, fleet.now_s - fleet.ahead_s, picture.policy)
            if found is None:
                self.known += 1
                continue
            self.outbox.put(found)
            self._untold.append(found)
            self._tell(found)

    def _tell(self, rejection: Rejection) -> None:
        mark = self._view.marks().get(rejection.node)
        note = f"failed pod {rejection.name} of {rejection.owner}: {rejection.reason}"
        self._events.about(
            Target(kind="Node", name=rejection.node, uid=mark.uid if mark else ""),
            "PodRejected",
            f"{note}. Pods of the same owner come here last for a while.",
            EventType.WARNING,
        )

    def _keep(self, rejection: Rejection) -> None:
        self._cache.reject(rejection, term=self._term())
