"""Plans of gangs as documents, both ways."""

from __future__ import annotations

from datetime import UTC, datetime
from sys import intern
from types import MappingProxyType
from typing import Any

from extender.store import schema
from extender.store.checks import choice
from extender.store.errors import DocumentError
from scoring.gangs.record import NO_COUNTS, GangPlan, GangState, Seat
from scoring.gangs.rules import Hold
from scoring.model import Convention, GangKey, NodeName, PodUid


def plan(doc: schema.PlanDoc) -> GangPlan:
    """The plan that `doc` describes; its times are Unix time here.

    Raises:
        DocumentError: its convention, hold or state is none, or a member is bound to nowhere.
    """
    return GangPlan(
        gang=GangKey(intern(doc.gang)),
        convention=choice(Convention, doc.convention, "convention"),
        uid=doc.uid or "",
        term=doc.term,
        hold=choice(Hold, doc.hold, "hold"),
        state=choice(GangState, doc.state, "state"),
        min=doc.min,
        size=doc.size,
        seats=MappingProxyType({PodUid(uid): _seat(uid, seat) for uid, seat in doc.seats.items()}),
        since_s=doc.since.timestamp(),
        partial_s=doc.partial_since.timestamp() if doc.partial_since else None,
        domain=doc.domain or "",
        lack=doc.lack or "",
        summary=doc.summary,
        counts=MappingProxyType(doc.counts) if doc.counts else NO_COUNTS,
        nearest=doc.nearest,
        unblock=tuple(doc.unblock),
    )


def _seat(uid: str, doc: schema.SeatDoc) -> Seat:
    if doc.bound and doc.node is None:
        raise DocumentError("missing, a bound member has one", path=f"seats.{uid}.node")
    node = None if doc.node is None else NodeName(intern(doc.node))
    return Seat(pod=doc.pod, node=node, bound=doc.bound)


def fields(plan: GangPlan) -> dict[str, Any]:
    """What the document of a plan says, in one order: equal plans are equal bytes."""
    return {
        "gang": plan.gang,
        "convention": plan.convention.value,
        "uid": plan.uid or None,
        "term": plan.term,
        "hold": plan.hold.value,
        "state": plan.state.value,
        "since": _moment(plan.since_s),
        "partialSince": None if plan.partial_s is None else _moment(plan.partial_s),
        "min": plan.min or None,  # 0: all of it is done
        "size": plan.size or None,
        "seats": {uid: _told(seat) for uid, seat in sorted(plan.seats.items())} or None,
        "domain": plan.domain or None,
        "lack": plan.lack or None,
        "summary": plan.summary or None,
        "counts": dict(sorted(plan.counts.items())) or None,
        "nearest": plan.nearest or None,
        "unblock": list(plan.unblock) or None,
    }


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat()


def _told(seat: Seat) -> dict[str, Any]:
    told: dict[str, Any] = {"pod": seat.pod}
    if seat.node is not None:
        told["node"] = seat.node
    if seat.bound:
        told["bound"] = True
    return told
