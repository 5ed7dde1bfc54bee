"""How old a node's telemetry may be: no data is not health (invariant 2)."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

from scoring.model import Breaker, BreakerState, Fleet, Node, NodeName
from scoring.policy import Policy

FREEZE_MAX_S: Final = 600.0
"""The longest that a pool may stay frozen."""


class Freshness(StrEnum):
    """FRESH: full samples arrive. STALE: the last state stands, no gangs. SILENT: UNKNOWN."""

    FRESH = "fresh"
    STALE = "stale"
    SILENT = "silent"


def freshness(fleet: Fleet, name: NodeName, policy: Policy) -> tuple[Freshness, float]:
    """The freshness of a node now, and the time on the fleet's line at which it will be worse
    unless a sample arrives (infinity: never).
    """
    seen_s = fleet.seen_s.get(name)
    if seen_s is None:
        return Freshness.SILENT, math.inf
    node = fleet.nodes.get(name)
    frozen_until_s = _frozen_until_s(node, seen_s, fleet, policy) if node else -math.inf
    stale_at_s = max(seen_s + policy.stale_after_s, frozen_until_s)
    silent_at_s = max(seen_s + policy.unknown_after_s, frozen_until_s)
    if fleet.now_s < stale_at_s:
        return Freshness.FRESH, stale_at_s
    if fleet.now_s < silent_at_s:
        return Freshness.STALE, silent_at_s
    return Freshness.SILENT, math.inf


def breaker_of(node: Node, fleet: Fleet, policy: Policy) -> Breaker | None:
    """The breaker of the node's pool, unless it has run out."""
    breaker = fleet.breakers.get(node.labels.get(policy.pool_label, ""))
    if breaker is None or (breaker.until_s is not None and breaker.until_s <= fleet.now_s):
        return None
    return breaker


def _frozen_until_s(node: Node, seen_s: float, fleet: Fleet, policy: Policy) -> float:
    """Until when a frozen pool keeps this node fresh; minus infinity where it does not.

    Only a node that was fresh when the freeze began is kept: a freeze must not revive one that had
    been silent before.
    """
    breaker = breaker_of(node, fleet, policy)
    if breaker is None or breaker.state is not BreakerState.FROZEN or breaker.until_s is None:
        return -math.inf
    began_s = breaker.until_s - FREEZE_MAX_S
    return breaker.until_s if seen_s + policy.stale_after_s > began_s else -math.inf
