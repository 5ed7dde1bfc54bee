"""What the planner found for a gang, as the record that the cache keeps of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from scoring.gangs.record import GangPlan, GangState, Seat
from scoring.gangs.values import GangPod, Gathered
from scoring.model import NodeName, PodUid
from scoring.planning.outcome import Lack, Outcome, Plan, Shortfall
from scoring.topology import Domain, Level

CLUSTER: Final = "the cluster"
INCOMPLETE: Final = frozenset({Lack.SIZE_UNKNOWN.value, Lack.MEMBERS_MISSING.value})
"""Lacks that no capacity cures."""


def record(
    gang: Gathered, outcome: Outcome | None, before: GangPlan | None, *, term: int, now_s: float
) -> GangPlan:
    """The record of `gang` now. `outcome`: None where nothing of it is to be planned.

    `before`: the record that stood, of which the time counts on as long as the state does.
    """
    members = gang.members
    places = outcome.places if isinstance(outcome, Plan) else {}
    seats = {
        pod.member.uid: _seat(pod, places.get(pod.member.uid))
        for pod in sorted(members, key=lambda pod: pod.member.uid)
    }
    bound = sum(seat.bound for seat in seats.values())
    state = _state(gang, outcome, bound)
    lacking = outcome if isinstance(outcome, Shortfall) else None
    lack = lacking.lack.value if lacking else ""
    same = (
        before is not None
        and (before.uid, before.state) == (gang.uid, state)
        and (before.lack in INCOMPLETE) == (lack in INCOMPLETE)
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
        domain=_domain(outcome),
        lack=lack,
        summary=lacking.summary if lacking else _summary(state, bound, len(seats), outcome),
        counts=MappingProxyType(
            {bar.value: count for bar, count in lacking.counts.items()} if lacking else {}
        ),
        nearest=_nearest(lacking),
        unblock=lacking.unblock if lacking else (),
    )


def _seat(pod: GangPod, planned: NodeName | None) -> Seat:
    bound = pod.member.bound
    return Seat(pod=pod.member.name, node=bound or planned, bound=bound is not None)


def _state(gang: Gathered, outcome: Outcome | None, bound: int) -> GangState:
    needed = gang.min if gang.min is not None else max(1, len(gang.members))
    if bound >= needed:
        return GangState.RUNNING
    if isinstance(outcome, Plan):
        return GangState.PLANNED
    return GangState.PARTIAL if bound else GangState.WAITING


def _domain(outcome: Outcome | None) -> str:
    found = outcome.domain if isinstance(outcome, Plan) else None
    return named(found) if found is not None else ""


def named(domain: Domain) -> str:
    """`clique c3`, and a node by its name alone."""
    return (
        domain.name if domain.level is Level.NODE else f"{domain.level.name.lower()} {domain.name}"
    )


def _summary(state: GangState, bound: int, members: int, outcome: Outcome | None) -> str:
    if not members:
        return "no pod of it is left"
    place = f" in {_domain(outcome) or CLUSTER}" if isinstance(outcome, Plan) else ""
    if state is GangState.PLANNED and isinstance(outcome, Plan):
        seated = len(outcome.places)
        told = f"{seated} of {members} members have a node{place}"
        return f"{told}, {bound} of them run" if bound else told
    return f"{bound} of {members} members run{place}"


def _nearest(found: Shortfall | None) -> str:
    if found is None or found.nearest is None:
        return ""
    miss = found.nearest
    near = f"{miss.placed} of {miss.needed} members fit in {miss.domain}"
    return "; ".join((near, *miss.cures))


def seats_taken(record: GangPlan) -> dict[PodUid, NodeName]:
    """The planned nodes of the members that are not bound yet."""
    return {uid: seat.node for uid, seat in record.seats.items() if seat.node and not seat.bound}
