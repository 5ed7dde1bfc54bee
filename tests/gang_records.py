"""Gangs as a leading controller tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scoring.gangs.record import GangPlan, GangState, Seat
from scoring.gangs.rules import Hold
from scoring.model import Convention, Fleet, GangKey, NodeName, PodUid

KEY = "lab/sweep"
UID = "uid-rank-0"
"""Of the pod that `asking.pod` asks for."""


def plan(
    seats: Mapping[str, str | None] | None = None,
    state: GangState = GangState.PLANNED,
    hold: Hold = Hold.REQUIRE,
    *,
    key: str = KEY,
    bound: frozenset[str] = frozenset(),
    **fields: Any,
) -> GangPlan:
    """A record of `lab/sweep`: the node of each member by uid, `bound` those that run."""
    return GangPlan(
        **{
            "gang": GangKey(key),
            "convention": Convention.SUREFOOT,
            "term": 1,
            "hold": hold,
            "state": state,
            "min": 2,
            "size": 2,
            "since_s": 0.0,
            "seats": {
                PodUid(uid): Seat(
                    pod=uid.removeprefix("uid-"),
                    node=NodeName(node) if node is not None else None,
                    bound=uid in bound,
                )
                for uid, node in (seats or {}).items()
            },
            **fields,
        }
    )


def led(found: Fleet, *plans: GangPlan, silent_s: float | None = 1.0) -> Fleet:
    """The fleet with these records, of a leader heard `silent_s` ago; None: never."""
    return replace(
        found,
        plans={each.gang: each for each in plans},
        leader_s=None if silent_s is None else found.now_s - silent_s,
    )
