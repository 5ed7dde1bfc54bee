"""What becomes of gangs, told to those who wait for it: events on a gang's owner and first pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from extender.controller.planning.scene import Look
from extender.controller.signs.events import EventType, Target
from extender.controller.signs.signs import Signs
from scoring import learning
from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import GangRules
from scoring.gangs.steps import overdue
from scoring.gangs.values import Gathered
from scoring.model import GangKey
from scoring.picture import Picture
from scoring.planning.seats import natural
from scoring.planning.values import Exclusion


class Witness:
    """Lets the leader's signs know what the planning loop sees and decides."""

    def __init__(
        self, signs: Signs, rules: GangRules, keys: Callable[[], Iterable[GangKey]]
    ) -> None:
        """`keys`: of all gangs that are planned."""
        self._signs = signs
        self._rules = rules
        self._keys = keys

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
            self._tell(gang, *_told(now))

    def lasts(self, gang: Gathered, now: GangPlan, now_s: float) -> None:
        """The record of a gang still is `now`."""
        if overdue(now, self._rules, now_s):
            note = f"{now.summary}: they hold GPUs for nothing until it is whole"
            self._tell(gang, "GangPartial", note, EventType.WARNING)

    def exclusions(self, picture: Picture) -> Iterable[Exclusion]:
        """The nodes that failed pods of gangs, and have not reported anew since.

        Those too of which the cache has not told yet: a replacement may come with the failure.
        """
        return learning.exclusions(picture.fleet, self._keys(), self._signs.learn())

    def _tell(self, gang: Gathered, reason: str, note: str, kind: EventType) -> None:
        first, *others = _targets(gang)
        self._signs.events.about(first, reason, note, kind, gang=gang.key, also=tuple(others))


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
