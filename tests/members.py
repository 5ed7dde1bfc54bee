"""Gangs with their pods, as the API server has them, for the tests of records and steps."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

from scoring.gangs.record import GangPlan, GangState, Seat
from scoring.gangs.rules import GATE, Hold, OnShortfall
from scoring.gangs.values import GangPod, Gathered
from scoring.model import (
    Convention,
    GangKey,
    GangRef,
    Need,
    NodeName,
    PodUid,
    WorkClass,
)
from scoring.planning.values import Member, PendingGang, Shape

KEY = GangKey("ml/train")
SHAPE = Shape(need=Need(work=WorkClass.GANG, count=8))
NOW_S = 1_000.0


def pod(index: int, *, gated: bool = True, **changes: Any) -> GangPod:
    """Member number `index`; `bound` and `nominated` are names of nodes."""
    nodes = {key: changes.pop(key, None) for key in ("bound", "nominated")}
    member = Member(
        uid=PodUid(f"uid-{index}"), name=f"train-{index}", shape=SHAPE, index=index, **nodes
    )
    made = GangPod(
        namespace="ml",
        version="1",
        gang=GangRef(key=KEY, convention=Convention.SUREFOOT, min=None, size=None),
        member=member,
        created_s=0.0,
        gates=frozenset({GATE}) if gated and not member.bound else frozenset(),
    )
    return replace(made, **changes)


def gang(*pods: GangPod, **changes: Any) -> Gathered:
    """A gang of these pods that needs all that count."""
    counting = tuple(each.member for each in pods if each.counts)
    least = changes.pop("min", len(counting))
    waits = any(member.bound is None for member in counting)
    made = Gathered(
        key=KEY,
        uid="",
        convention=Convention.SUREFOOT,
        hold=Hold.REQUIRE,
        on_shortfall=OnShortfall.WAIT,
        min=least,
        size=None,
        pods=pods,
        pending=PendingGang(key=KEY, since_s=0.0, min=least, members=counting) if waits else None,
    )
    return replace(made, **changes)


def record(of: Gathered, state: GangState, *nodes: str | None, **changes: Any) -> GangPlan:
    """A record with these seats for the members of a gang, in their order."""
    found = zip(of.members, (*nodes, *[None] * len(of.members)), strict=False)
    seats = {
        each.member.uid: Seat(
            pod=each.member.name,
            node=each.member.bound or (NodeName(node) if node else None),
            bound=each.member.bound is not None,
        )
        for each, node in found
    }
    made = GangPlan(
        gang=of.key,
        convention=of.convention,
        term=1,
        hold=of.hold,
        state=state,
        seats=MappingProxyType(seats),
        since_s=NOW_S,
    )
    return replace(made, **changes)
