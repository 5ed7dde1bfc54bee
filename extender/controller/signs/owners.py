"""Events on what owns pods that wait, where the planning loop tells nothing of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from extender.controller.signs.events import QUIET_S, Events, EventType, Target
from extender.controller.signs.ports import View
from scoring import refusals
from scoring.model import GangKey
from scoring.refusals import Refusal

TICK_S: Final = 5.0
PATIENCE_S: Final = 10.0
"""How long pods may wait before that is worth an event: most are placed by a later cycle."""
AGAIN_S: Final = 1_800.0
"""How often the same is said while it lasts: the API server forgets events after an hour."""
MOST_TOLD: Final = 50
"""Owners that one tick tells of; the others' turn comes."""


@dataclass(slots=True)
class _Wait:
    """An owner of pods that wait."""

    since_s: float
    said: Refusal | None = None
    said_s: float = -math.inf

    def due(self, found: Refusal, now_s: float) -> bool:
        """Whether `found` is to be said now: it is news, or was said long ago."""
        quiet_s = QUIET_S if found != self.said else AGAIN_S
        return now_s >= max(self.since_s + PATIENCE_S, self.said_s + quiet_s)


class Owners:
    """The owners of one cluster's pods. For one thread at a time."""

    def __init__(self, view: View, events: Events, told: Callable[[], Collection[GangKey]]) -> None:
        """`told`: the gangs that somebody else tells of."""
        self._view = view
        self._events = events
        self._told = told
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._waits: dict[str, _Wait] = {}
        self._next_s = 0.0

    def tick(self, now_s: float) -> None:
        """Say what is news, of each owner or gang once a minute at most."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + TICK_S
        found = refusals.refusals(self._view.refused(), self._told())
        self._waits = {
            key: wait
            for key, wait in self._waits.items()
            if key in found or now_s < wait.said_s + QUIET_S
        }
        for key in found:
            self._waits.setdefault(key, _Wait(now_s))
        due = [key for key, refusal in found.items() if self._waits[key].due(refusal, now_s)]
        for key in sorted(due, key=lambda key: self._waits[key].said_s)[:MOST_TOLD]:
            wait = self._waits[key]
            wait.said, wait.said_s = found[key], now_s
            self._say(found[key])

    def _say(self, refusal: Refusal) -> None:
        owner = refusal.owner
        target = Target(
            api_version="",
            kind=owner.kind,
            namespace=refusal.namespace,
            name=owner.name,
            uid=owner.uid,
        )
        self._events.about(target, refusal.reason.value, refusal.note, EventType.WARNING)
