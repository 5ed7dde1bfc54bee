"""What the planner found for a gang, as the record that the cache keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from scoring.gangs.record import NO_COUNTS, GangPlan, GangState, Seat, tally
from scoring.gangs.values import GangPod, Gathered
from scoring.model import NodeName, PodUid
from scoring.planning.outcome import Lack, Outcome, Plan, Shortfall
from scoring.topology import Domain, Level

UNJUDGED: Final = frozenset(
    {Lack.KIND_UNREADABLE.value, Lack.WRITE_REFUSED.value, Lack.INTERNAL_ERROR.value}
)
"""Lacks that are none of the gang's: it is not looked for what it needs, and whether it fits."""
INCOMPLETE: Final = UNJUDGED | {Lack.SIZE_UNKNOWN.value, Lack.MEMBERS_MISSING.value}
"""Lacks that no capacity cures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What stands of a gang, whether it was planned now or before."""

    places: Mapping[PodUid, NodeName]
    domain: str = ""
    lack: str = ""
    told: str = ""
    counts: Mapping[str, int] = field(default_factory=lambda: NO_COUNTS)
    nearest: str = ""
    unblock: tuple[str, ...] = ()


def record(
    gang: Gathered, outcome: Outcome | None, before: GangPlan | None, *, term: int, now_s: float
) -> GangPlan:
    """The record of `gang` now. `outcome`: None where it was not planned anew, so that what stood
    stands, and only its pods are looked at.

    `before`: the record that stood, of which the time counts on as long as the state does.
    """
    members = sorted(gang.members, key=lambda pod: pod.member.uid)
    # Of a gang without members nothing stands: what it lacked was theirs.
    known = before if before and before.uid == gang.uid and members else None
    found = _found(outcome, known)
    seats = {pod.member.uid: _seat(pod, found.places.get(pod.member.uid)) for pod in members}
    state = _state(gang, seats)
    same = (
        before is not None
        and (before.uid, before.state) == (gang.uid, state)
        and (before.lack in INCOMPLETE) == (found.lack in INCOMPLETE)
    )
    return GangPlan(
        gang=gang.key,
        convention=gang.convention,
        uid=gang.uid,
        term=term,
        hold=gang.hold,
        state=state,
        min=gang.min,
        size=gang.size,
        seats=MappingProxyType(seats),
        since_s=before.since_s if same and before else now_s,
        partial_s=_partial_s(state, seats, known, now_s),
        domain=found.domain,
        lack=found.lack,
        summary=found.told or _summary(gang, state, seats, found.domain),
        counts=found.counts,
        nearest=found.nearest,
        unblock=found.unblock,
    )


def is_unjudged(outcome: Outcome | None) -> bool:
    """Whether a gang waits for no lack of its own."""
    return isinstance(outcome, Shortfall) and outcome.lack.value in UNJUDGED


def holds_good(gang: Gathered, record: GangPlan) -> bool:
    """Whether `record` is still about the gang as it is: the same members, none of them elsewhere
    than planned, as many needed. Then only what is free elsewhere can make another plan better.
    """
    if (record.uid, record.min, record.size, record.hold) != (
        gang.uid,
        gang.min,
        gang.size,
        gang.hold,
    ):
        return False
    members = gang.members
    if len(members) != len(record.seats):
        return False
    for pod in members:
        seat = record.seats.get(pod.member.uid)
        if seat is None or seat.bound > (pod.member.bound is not None):
            return False
        if pod.member.bound is not None and pod.member.bound != seat.node:
            return False
    return True


def _found(outcome: Outcome | None, before: GangPlan | None) -> _Found:
    match outcome:
        case Plan():
            return _Found(
                places=outcome.places, domain=named(outcome.domain) if outcome.domain else ""
            )
        case Shortfall():
            return _Found(
                places={},
                lack=outcome.lack.value,
                told=outcome.summary,
                counts=MappingProxyType({bar.value: n for bar, n in outcome.counts.items()}),
                nearest=outcome.nearest.told if outcome.nearest else "",
                unblock=outcome.unblock,
            )
        case None if before is not None:
            return _Found(
                places={uid: seat.node for uid, seat in before.seats.items() if seat.node},
                domain=before.domain,
                lack=before.lack,
                told=before.summary if before.lack else "",
                counts=before.counts,
                nearest=before.nearest,
                unblock=before.unblock,
            )
        case None:
            return _Found(places={})


def _seat(pod: GangPod, planned: NodeName | None) -> Seat:
    bound = pod.member.bound
    return Seat(pod=pod.member.name, node=bound or planned, bound=bound is not None)


def _state(gang: Gathered, seats: Mapping[PodUid, Seat]) -> GangState:
    count = tally(seats)
    needed = gang.min if gang.min is not None else max(1, count.existing)
    if count.bound >= needed:
        return GangState.RUNNING
    if count.seated >= needed:
        return GangState.PLANNED
    return GangState.PARTIAL if count.bound else GangState.WAITING


def named(domain: Domain) -> str:
    """`clique c3`, and a node by its name alone."""
    name = domain.name
    return name if domain.level is Level.NODE else f"{domain.level.value} {name}"


def _partial_s(
    state: GangState, seats: Mapping[PodUid, Seat], before: GangPlan | None, now_s: float
) -> float | None:
    """Since when the gang runs in part. Plans that come and go meanwhile are no reason to begin anew."""
    if state is GangState.RUNNING or not any(seat.bound for seat in seats.values()):
        return None
    return now_s if before is None or before.partial_s is None else before.partial_s


def _summary(gang: Gathered, state: GangState, seats: Mapping[PodUid, Seat], domain: str) -> str:
    if not seats:
        held = sum(not (pod.finished or pod.leaving) for pod in gang.pods)
        pods = "1 pod of it waits" if held == 1 else f"{held} pods of it wait"
        return f"{pods} at the gate of another" if held else "no pod of it is left"
    count, place = tally(seats), f" in {domain}" if domain else ""
    if state is GangState.PLANNED:
        told = f"{count.seated} of {count.existing} members have a node{place}"
        return f"{told}, {count.bound} of them run" if count.bound else told
    return f"{count.bound} of {count.existing} members run{place}"
