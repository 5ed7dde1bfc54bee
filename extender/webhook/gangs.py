"""The JSON of /gangs, `surefoot get gangs` and `surefoot explain --gang`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scoring.gangs import telling
from scoring.gangs.record import GangPlan, GangState, tally
from scoring.gangs.sitting import leads, plan_of
from scoring.model import Convention, Fleet, GangKey
from scoring.policy import Policy


def listing(fleet: Fleet, policy: Policy, state: GangState | None) -> dict[str, Any]:
    """All gangs that have a record, or those in `state`, by key."""
    return {
        "generation": fleet.generation,
        "leader": leader(fleet, policy),
        "gangs": [row(fleet, plan) for plan in chosen(fleet, state)],
    }


def chosen(fleet: Fleet, state: GangState | None) -> Iterator[GangPlan]:
    """The records of gangs in `state` (None: in any), by the keys that they are kept under."""
    for _, plan in sorted(fleet.plans.items()):
        if state is None or plan.state is state:
            yield plan


def leader(fleet: Fleet, policy: Policy) -> dict[str, Any]:
    """Whether a controller leads, and when it was heard last."""
    heard_s = fleet.leader_s
    return {
        "live": leads(fleet, policy),
        "age_s": None if heard_s is None else _age_s(fleet, heard_s),
    }


def find(fleet: Fleet, key: GangKey, convention: Convention | None) -> GangPlan | None:
    """The record of one gang. Where conventions share its name and none is told, that of the first
    in the detector's order.
    """
    conventions = Convention if convention is None else (convention,)
    return next((plan for each in conventions if (plan := plan_of(fleet.plans, key, each))), None)


def row(fleet: Fleet, plan: GangPlan) -> dict[str, Any]:
    """One gang in short."""
    count = tally(plan.seats)
    return {
        "key": plan.gang,
        "convention": plan.convention.value,
        "hold": plan.hold.value,
        "state": plan.state.value,
        "bound": count.bound,
        "seated": count.seated,
        "existing": count.existing,
        "min": plan.min,
        "size": plan.size,
        "domain": plan.domain or None,
        "summary": telling.sentence(plan),
        "age_s": _age_s(fleet, plan.since_s),
    }


def whole(fleet: Fleet, policy: Policy, plan: GangPlan) -> dict[str, Any]:
    """One gang with all that its record says, members by name."""
    members = sorted(plan.seats.items(), key=lambda each: (each[1].pod, each[0]))
    return {
        "generation": fleet.generation,
        "leader": leader(fleet, policy),
        **row(fleet, plan),
        "uid": plan.uid or None,
        "term": plan.term,
        "lack": str(plan.lack) or None,
        "counts": {str(word): count for word, count in plan.counts.items()},
        "nearest": plan.nearest or None,
        "unblock": list(plan.unblock),
        "members": [
            {"pod": seat.pod, "uid": uid, "node": seat.node, "bound": seat.bound}
            for uid, seat in members
        ],
    }


def _age_s(fleet: Fleet, at_s: float) -> float:
    return round(max(0.0, fleet.now_s - at_s), 3)
