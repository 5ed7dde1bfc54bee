"""The JSON of /explain and of `surefoot explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from extender.webhook.records import ask_fields
from scoring import explain
from scoring.gangs.rules import GangRules
from scoring.model import Ask, NodeName
from scoring.picture import Picture
from scoring.reasons import Reason

LIMIT = 100
"""How many nodes are told in full unless the caller says otherwise."""


def explanation(
    picture: Picture,
    ask: Ask,
    names: Sequence[NodeName] | None,
    unreported: Reason | None,
    gangs: GangRules,
    *,
    decision: str,
    limit: int = LIMIT,
) -> dict[str, Any]:
    """Why each of `names` (None: all that the cache knows) fits or not."""
    offered = sorted(picture.candidates) if names is None else names
    found = explain.account(picture, ask, offered, unreported, limit, gangs)
    return {
        "decision": decision,
        "generation": picture.fleet.generation,
        "ask": ask_fields(ask),
        "summary": found.summary,
        "counts": {reason.value: count for reason, count in found.counts.items()},
        "nodes": {each.name: _node(each) for each in found.nodes},
        "nearest": list(found.nearest),
    }


def _node(told: explain.NodeAccount) -> dict[str, Any]:
    reason, parts = told.reason, told.parts
    return {
        "verdict": "pass" if reason is None else "veto",
        "reason": None if reason is None else reason.value,
        "text": None if reason is None else reason.text,
        "advice": None if reason is None else reason.advice,
        "unresolvable": None if reason is None else reason.unresolvable,
        "rank": None if told.rank is None else round(told.rank, 6),
        "parts": None
        if parts is None
        else {
            "health": round(parts.health, 6),
            "links": round(parts.links, 6),
            "fragmentation": round(parts.fragmentation, 6),
            "room": round(parts.room, 6),
            "domain": round(parts.domain, 6),
            "trust": round(parts.trust, 6),
        },
        "set": list(told.set),
        "evidence": [
            {
                "gpu": each.gpu,
                "cause": each.cause,
                "value": each.value,
                "age_s": None if each.age_s is None else round(each.age_s, 3),
            }
            for each in told.evidence
        ],
    }
