"""What becomes of gangs, told to those who wait for it: events on a gang's owner and first pod."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from extender.controller.planning.scene import Look
from extender.controller.signs.events import QUIET_S, EventType, Target
from extender.controller.signs.signs import Signs
from scoring import learning
from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.recording import INCOMPLETE
from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.picture import Picture
from scoring.planning.seats import natural
from scoring.planning.values import Exclusion

GATHERS_S: Final = 10.0
"""How long the pods of a gang may take to come before that is worth an event. It would be the only
one for a minute, when there is more to say of a gang that is complete."""


class Witness:
    """Lets the leader's signs know what the planning loop sees and decides."""

    def __init__(self, signs: Signs, keys: Callable[[], Iterable[GangKey]]) -> None:
        """`keys`: of all gangs that are planned."""
        self._signs = signs
        self._keys = keys
        self._overdue_s: dict[GangKey, float] = {}
        """When each gang that is overdue was told of last."""

    def looked(self, look: Look) -> None:
        """The fleet is like this now."""
        self._signs.on_fleet(look.before, look.picture, None if look.anew else look.changed)

    def succeeded(self, term: int | None) -> None:
        """The term in which this process leads is another now; None: it leads in none."""
        if term is None:
            self._signs.rest()
        else:
            self._signs.lead(term)

    def planned(self, gang: Gathered, before: GangPlan | None, now: GangPlan) -> None:
        """The record of a gang is `now`."""
        said = None if before is None else replace(before, term=now.term, counts=now.counts)
        if said != now:
            gathers = now.lack in INCOMPLETE
            self._tell(gang, *_told(now), after_s=GATHERS_S if gathers else 0.0)

    def last(self, overdue: Iterable[tuple[Gathered, GangPlan]], now_s: float) -> None:
        """These gangs, and no others, have run in part for too long. Each is told of once in a while,
        however often this is called.
        """
        said_s, self._overdue_s = self._overdue_s, {}
        for gang, now in overdue:
            at_s = said_s.get(gang.key, -math.inf)
            if now_s - at_s >= QUIET_S:
                at_s = now_s
                note = f"{now.summary}: they hold GPUs for nothing until it is whole"
                self._tell(gang, "GangPartial", note, EventType.WARNING)
            self._overdue_s[gang.key] = at_s

    def exclusions(self, picture: Picture) -> Iterable[Exclusion]:
        """The nodes that failed pods of gangs, and have not reported anew since.

        Those too of which the cache has not told yet: a replacement may come with the failure.
        """
        return learning.exclusions(picture.fleet, self._keys(), self._signs.learn())

    def _tell(
        self, gang: Gathered, reason: str, note: str, kind: EventType, *, after_s: float = 0.0
    ) -> None:
        first, *others = _targets(gang)
        self._signs.events.about(
            first, reason, note, kind, gang=gang.key, also=tuple(others), after_s=after_s
        )


def _told(now: GangPlan) -> tuple[str, str, EventType]:
    """Reason, note and type of the event for a record."""
    if now.lack:
        return f"Gang{now.lack}", now.summary, EventType.WARNING
    if now.state is GangState.RUNNING:
        return "GangRuns", now.summary, EventType.NORMAL
    return "GangPlanned", now.summary, EventType.NORMAL


def _targets(gang: Gathered) -> list[Target]:
    """The first pod by name, one that waits if there is one, and the owner."""
    pods = sorted(
        gang.members or gang.pods,
        key=lambda pod: (pod.member.bound is not None, natural(pod.member.name)),
    )
    first = pods[0]
    found = [
        Target(kind="Pod", namespace=first.namespace, name=first.member.name, uid=first.member.uid)
    ]
    if first.owner is not None:
        owner = first.owner
        found.append(
            Target(
                api_version="",
                kind=owner.kind,
                namespace=first.namespace,
                name=owner.name,
                uid=owner.uid,
            )
        )
    return found
