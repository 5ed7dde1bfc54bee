"""Everything an answer rests on, made once for each change of the fleet.

A `Picture` is a value: (generation, seen, now) fixes it, and with it every answer, on every replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scoring import ranking
from scoring.candidate import Candidate, candidate
from scoring.health.staleness import Freshness
from scoring.model import Fleet, GangKey, Need, NodeName
from scoring.policy import Policy
from scoring.ranking import Ranking


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A fleet, its nodes made ready, and where each gang's members are bound."""

    fleet: Fleet
    policy: Policy
    candidates: Mapping[NodeName, Candidate]
    bound: Mapping[GangKey, frozenset[NodeName]]
    """The nodes on which members of each gang hold GPUs; gangs without one are absent."""


def picture(fleet: Fleet, policy: Policy) -> Picture:
    """The picture of a fleet, from scratch."""
    empty = Fleet(
        generation=-1, now_s=fleet.now_s, nodes={}, seen_s={}, allocations={},
        gangs={}, overrides={}, breakers={},
    )  # fmt: skip
    blank = Picture(fleet=empty, policy=policy, candidates={}, bound={})
    return advanced(blank, fleet, fleet.nodes.keys() | fleet.allocations.keys())


def advanced(old: Picture, fleet: Fleet, names: Iterable[NodeName]) -> Picture:
    """The picture of `fleet`, which differs from the old one in the nodes `names` at most: in their
    documents, allocations, overrides or breakers. See `due` for those that time changes.
    """
    candidates = dict(old.candidates)
    names = list(names)
    for name in names:
        node = fleet.nodes.get(name)
        if node is None:
            candidates.pop(name, None)
        else:
            candidates[name] = candidate(fleet, node, old.policy)
    return Picture(
        fleet=fleet,
        policy=old.policy,
        candidates=candidates,
        bound=_bound(old, fleet, names),
    )


def due(old: Picture, fleet: Fleet) -> list[NodeName]:
    """The nodes that the passing of time changes between `old` and `fleet`: telemetry that grew too
    old or came back, overrides and breakers that ran out.
    """
    before_s, after_s, now_s = old.fleet.seen_s, fleet.seen_s, fleet.now_s
    return [
        name
        for name, each in old.candidates.items()
        if each.changes_at_s <= now_s
        or (each.freshness is not Freshness.FRESH and before_s.get(name) != after_s.get(name))
    ]


def _bound(
    old: Picture, fleet: Fleet, names: Iterable[NodeName]
) -> Mapping[GangKey, frozenset[NodeName]]:
    """`old.bound` with the allocations of `names` read anew; the old mapping where none moved."""
    moved: dict[GangKey, set[NodeName]] = {}
    for name in names:
        before = {held.gang for held in old.fleet.allocations.get(name, ()) if held.gang}
        after = {held.gang for held in fleet.allocations.get(name, ()) if held.gang}
        for gang in before ^ after:
            nodes = moved.setdefault(gang, set(old.bound.get(gang, ())))
            (nodes.add if gang in after else nodes.discard)(name)
    if not moved:
        return old.bound
    bound = {**old.bound, **{gang: frozenset(nodes) for gang, nodes in moved.items()}}
    return {gang: nodes for gang, nodes in bound.items() if nodes}


def ranking_of(found: Picture, need: Need) -> Ranking:
    """The ranking of the picture's nodes for `need`, from scratch."""
    return ranking.ranking(found.candidates, need, found.policy)
