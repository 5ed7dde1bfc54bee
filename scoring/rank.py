"""How good is a node for a pod that may go there? Named parts, each 0..1, weighted into 0..1.

A rank depends on the node, the need and the gang's bound members alone. Worsening a GPU of the set
that may be handed out never raises it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from scoring import fragments, subsets
from scoring.candidate import STALE, Candidate
from scoring.links import Links
from scoring.model import Health, Need, ResourceKind
from scoring.policy import Policy
from scoring.rings import positions
from scoring.verdict import Judgement, worst_of

HEALTH_RATIO: Final[Mapping[Health, float]] = MappingProxyType(
    {
        Health.HEALTHY: 1.0,
        Health.NEW: 0.6,
        Health.SUSPECT: 0.5,
        Health.PROBATION: 0.4,
        Health.UNMONITORED: 0.25,
        Health.DEGRADED: 0.2,
        Health.UNKNOWN: 0.1,
        Health.RESET_REQUIRED: 0.0,
        Health.REBOOT_REQUIRED: 0.0,
        Health.FAILED: 0.0,
    }
)
"""What the worst GPU of the set earns, falling with severity (docs/adr/0005)."""

SHOWN_DIGITS: Final = 6
"""Digits of a rank that people and records see."""

STALE_RATIO: Final = 0.3
"""The most that a set earns whose telemetry is stale."""

HELD_RATIO: Final = 0.5
"""What is left of a node's own parts where others hold GPUs that the pod would take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a rank, each 0..1, 1 best."""

    health: float
    links: float
    fragmentation: float
    room: float = 1.0
    """1 where enough GPUs are free, as we see it. Else `HELD_RATIO`, a factor: kube-scheduler imagines
    the holders gone when a native gang preempts, and those that need not go are to stay."""
    domain: float = 1.0
    """Closeness to the gang's bound members; 1 where none is bound yet."""
    trust: float = 1.0
    """What the owner's rejections there leave of the rank; 1 where there were none."""


def parts(candidate: Candidate, need: Need, judgement: Judgement, policy: Policy) -> Parts:
    """The parts for a pod of no gang, or of a gang without bound members."""
    if need.kind is ResourceKind.NONE:
        return Parts(health=1.0, links=1.0, fragmentation=1.0)
    return _parts(candidate, need, choice(candidate, need, judgement, policy), policy)


def choice(candidate: Candidate, need: Need, judgement: Judgement, policy: Policy) -> Judgement:
    """The judgement narrowed to the GPUs among which a plan chooses: the healthiest that are
    enough, or also worse ones where their links are worth it. Without a plan, as it is.
    """
    if not judgement.chosen:
        return judgement
    ratios = _ratios(candidate, need, judgement.reach)
    options = []
    for least in sorted(set(ratios.values()), reverse=True):
        reach = sum(1 << position for position, ratio in ratios.items() if ratio >= least)
        if reach.bit_count() >= judgement.count:
            options.append(replace(judgement, reach=reach))
    return max(
        options,
        key=lambda option: rank(_parts(candidate, need, option, policy), policy),
        default=judgement,
    )


def _parts(candidate: Candidate, need: Need, judgement: Judgement, policy: Policy) -> Parts:
    return Parts(
        health=_health(candidate, need, judgement),
        links=_links(candidate, need, judgement, policy),
        fragmentation=_fragmentation(candidate, need, judgement),
        room=_room(candidate, need, judgement),
    )


def rank(found: Parts, policy: Policy) -> float:
    """The weighted mean of the parts, those of the node times `room`, times `trust`: 0..1, 1 best."""
    weights = policy.rank
    total = weights.health + weights.links + weights.fragmentation + weights.domain
    of_node = (
        weights.health * found.health
        + weights.links * found.links
        + weights.fragmentation * found.fragmentation
    )
    earned = of_node * found.room + weights.domain
    return (earned / total - domain_penalty(found.domain, policy)) * found.trust


def domain_penalty(domain_ratio: float, policy: Policy) -> float:
    """What a rank loses for this closeness: the one part that differs between gangs, kept apart so
    that the rest is computed once for all of them.
    """
    weights = policy.rank
    total = weights.health + weights.links + weights.fragmentation + weights.domain
    return weights.domain * (1.0 - domain_ratio) / total


def points(value: float) -> int:
    """A rank as kube-scheduler's 0..10, of the digits that explain shows: a sum of ratios that is
    a hair below 0.85 is 9 points to both.
    """
    return math.floor(10 * round(value, SHOWN_DIGITS) + 0.5)


def handed_out(candidate: Candidate, judgement: Judgement) -> subsets.Subset | None:
    """The set that the rank rests on: the best where a plan is honoured, else the worst that may
    come. None: no GPU is known.
    """
    if judgement.sets is not None:
        return _worst_of_sets(candidate.node.links, judgement.sets)
    pick = subsets.best if judgement.chosen else subsets.worst
    return pick(candidate.node.links, judgement.reach, judgement.count, must=judgement.must)


def _health(candidate: Candidate, need: Need, judgement: Judgement) -> float:
    """What the worst GPU that may come earns; GPUs beyond those we know are UNKNOWN."""
    unknown = need.kind is ResourceKind.WHOLE and need.count > judgement.count
    earned = _ratios(candidate, need, judgement.reach).values()
    return (
        min(earned, default=1.0)
        if judgement.reach and not unknown
        else HEALTH_RATIO[Health.UNKNOWN]
    )


def _ratios(candidate: Candidate, need: Need, reach: int) -> dict[int, float]:
    """What each GPU of `reach` earns for its health, by position."""
    states = candidate.together if need.talks else candidate.alone
    return {position: _ratio(states[position]) for position in positions(reach)}


@lru_cache(maxsize=4096)
def _ratio(states: int) -> float:
    ratio = HEALTH_RATIO[worst_of(states)]
    return min(ratio, STALE_RATIO) if states & STALE else ratio


@lru_cache(maxsize=8192)
def _worst_of_sets(links: Links, sets: frozenset[int]) -> subsets.Subset | None:
    rated = (subsets.worst(links, taken, taken.bit_count()) for taken in sorted(sets))
    return min(
        (each for each in rated if each is not None),
        key=lambda each: (each.bottleneck_gbps, each.sum_gbps),
        default=None,
    )


def _links(candidate: Candidate, need: Need, judgement: Judgement, policy: Policy) -> float:
    """The slowest link of the set, on a logarithmic scale: from PCIe to NVLink is the step that
    matters, not from one NVLink generation to the next.
    """
    if need.kind is not ResourceKind.WHOLE or need.count == 1:
        return 1.0
    found = handed_out(candidate, judgement)
    if found is None or judgement.count < 2:
        return 0.0
    full = math.log1p(policy.rank.links_full_gbps)
    return min(1.0, math.log1p(found.bottleneck_gbps) / full)


def _fragmentation(candidate: Candidate, need: Need, judgement: Judgement) -> float:
    """1 where the pod breaks no whole island or node and leaves no GPU over (after the
    measure of FGD, ATC 2023, with islands for GPUs).
    """
    total = len(candidate.node.gpus)
    if need.kind is not ResourceKind.WHOLE or total == 0:
        return 1.0
    left = max(0, candidate.free.bit_count() - candidate.nameless - need.count)
    links, free, sets = candidate.node.links, candidate.free, judgement.sets
    if sets is not None:
        lost = fragments.broken_by(links, free, sets)
    else:
        lost = fragments.broken(
            links, free, judgement.reach, judgement.count, chosen=judgement.chosen
        )
    return 1.0 - (left + min(lost, total)) / (2 * total)


def _room(candidate: Candidate, need: Need, judgement: Judgement) -> float:
    free = candidate.free.bit_count() - candidate.nameless
    return 1.0 if need.kind is not ResourceKind.WHOLE or free >= judgement.count else HELD_RATIO
