"""Nodes that take no member although little is wrong with them, and what that is."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from scoring import explain, verdict
from scoring.planning.ground import Ground
from scoring.planning.obstacles import Bar, Obstacle
from scoring.planning.seats import natural
from scoring.planning.tree import Branch
from scoring.planning.values import Shape
from scoring.reasons import Reason

MOST = 3
"""Nodes that are named."""
_PLAIN_CURES = {
    Reason.NODE_STALE: "it reported its health again",
    Reason.NODE_SILENT: "it reported its health again",
    Reason.NODE_UNREPORTED: "it reported its health",
    Reason.OVERRIDE_DENIED: "an operator allowed it",
}


def hosts_in(branch: Branch) -> set[int]:
    """The hosts of a branch."""
    return set(_hosts(branch))


def _hosts(branch: Branch) -> Iterator[int]:
    if branch.host >= 0:
        yield branch.host
    for child in branch.children:
        yield from _hosts(child)


def cures(ground: Ground, branch: Branch, shape: Shape, banned: Collection[int]) -> tuple[str, ...]:
    """The hosts of `branch` without room for a member that lack the least, sick GPUs first: `n17 would
    do if GPU 3 were reset`.
    """
    survey = ground.survey(shape)
    room, first, bars = survey.room, survey.first, survey.bars
    known: dict[int, int | None] = {}  # nodes that look alike lack as much
    found = []
    for at in hosts_in(branch):
        if at in banned:
            lacks: int | None = _LAST
        elif room[at]:
            continue
        elif first[at]:
            lacks = _LAST + 1
        elif (bar := bars[at]) in _HARD:
            lacks = _HARD[bar]  # at once: of a cluster that is full it is every node
        elif (look := ground.look(at)) in known:
            lacks = known[look]
        else:
            miss = _cure(ground, at, shape)
            lacks = known[look] = None if miss is None else miss[0]
        if lacks is not None:
            found.append((lacks, natural(ground.hosts[at].name), at))
    told = []
    for _, _, at in heapq.nsmallest(MOST, found):
        miss = (_LAST, Obstacle.FAILED_BEFORE.cure) if at in banned else _cure(ground, at, shape)
        if miss is not None:
            told.append(f"{ground.hosts[at].name} would do if {miss[1]}")
    return tuple(told)


_LAST = 1 << 10
_HARD: Final[Mapping[Bar | None, int | None]] = {
    each: _LAST if each.cure else None for each in Obstacle
}
"""How much a node lacks that an obstacle bars."""


def _cure(ground: Ground, at: int, shape: Shape) -> tuple[int, str] | None:
    """How much a host lacks, and what would cure it; None: nothing short would."""
    survey = ground.survey(shape)
    bar, candidate = survey.bars[at], ground.hosts[at].candidate
    if survey.first[at]:
        return _LAST + 1, Obstacle.PLANNED.cure
    if isinstance(bar, Obstacle):
        return (_LAST, bar.cure) if bar.cure else None
    if bar is None or candidate is None:
        return None
    judged = verdict.judge(candidate, shape.need, ground.policy)
    culprits = judged.bad & (judged.reach or judged.bad)
    if bar in _PLAIN_CURES:
        return _LAST, _PLAIN_CURES[bar]
    if not culprits:
        return None
    return culprits.bit_count(), explain.cures(candidate, shape.need, culprits, "were allowed")
