"""Everything an answer rests on, made once for each change of the fleet.

A `Picture` is a value: (generation, seen, now) fixes it, and with it every answer, on every replica.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from scoring import ranking
from scoring.candidate import QUARANTINED_NODE, Candidate, candidate, stranger
from scoring.health.staleness import Freshness
from scoring.model import Fleet, GangKey, Need, NodeName
from scoring.policy import Policy
from scoring.ranking import Ranking
from scoring.topology import Domain

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A fleet, its nodes made ready, and where each gang's members are bound."""

    fleet: Fleet
    policy: Policy
    candidates: Mapping[NodeName, Candidate]
    names: frozenset[NodeName]
    """Of the candidates; the same object as long as no node comes or goes."""
    bound: Mapping[GangKey, frozenset[NodeName]]
    """The nodes on which members of each gang hold GPUs; gangs without one are absent."""
    domains: Mapping[Domain, frozenset[NodeName]]
    """The nodes of each domain that is wider than a node."""
    calendar: Mapping[int, frozenset[NodeName]]
    """The nodes that time alone makes out of date, by the second of `now_s` in which it does."""
    unfresh: frozenset[NodeName]
    """The nodes whose telemetry is stale, silent or was never there."""


def picture(fleet: Fleet, policy: Policy) -> Picture:
    """The picture of a fleet, from scratch."""
    empty = Fleet(
        generation=-1, now_s=fleet.now_s, nodes={}, seen_s={}, allocations={},
        gangs={}, overrides={}, breakers={},
    )  # fmt: skip
    blank = Picture(
        fleet=empty, policy=policy, candidates={}, names=frozenset(), bound={}, domains={}, calendar={},
        unfresh=frozenset(),
    )  # fmt: skip
    broken = _after(QUARANTINED_NODE, fleet.quarantined)
    told = _after("node/", fleet.overrides)
    return advanced(blank, fleet, {*fleet.nodes, *fleet.allocations, *broken, *told})


def _after(prefix: str, keys: Iterable[str]) -> Iterator[NodeName]:
    """The node names behind `prefix`."""
    return (NodeName(key.removeprefix(prefix)) for key in keys if key.startswith(prefix))


def advanced(old: Picture, fleet: Fleet, names: Iterable[NodeName]) -> Picture:
    """The picture of `fleet`, which differs from the old one in the nodes `names` at most: in their
    documents, allocations, overrides or breakers. See `due` for those that time changes.
    """
    candidates = dict(old.candidates)
    names = list(names)
    moved = False
    for name in names:
        node = fleet.nodes.get(name)
        found = candidate(fleet, node, old.policy) if node else stranger(fleet, name)
        moved = moved or (found is None) == (name in candidates)
        if found is not None:
            candidates[name] = found
        else:
            candidates.pop(name, None)
    return Picture(
        fleet=fleet,
        policy=old.policy,
        candidates=candidates,
        names=frozenset(candidates) if moved else old.names,
        bound=_regrouped(
            old.bound,
            ((name, _gangs_on(old.fleet, name), _gangs_on(fleet, name)) for name in names),
        ),
        domains=_regrouped(
            old.domains,
            ((name, _around(old.candidates, name), _around(candidates, name)) for name in names),
        ),
        calendar=_regrouped(
            old.calendar,
            ((name, _second(old.candidates, name), _second(candidates, name)) for name in names),
        ),
        unfresh=old.unfresh.difference(names).union(
            name
            for name in names
            if name in candidates and candidates[name].freshness is not Freshness.FRESH
        ),
    )


def due(old: Picture, fleet: Fleet) -> set[NodeName]:
    """The nodes that the passing of time changes between `old` and `fleet`: telemetry that grew too
    old, came back or was taken back, overrides and breakers that ran out.
    """
    before_s, after_s, now_s = old.fleet.seen_s, fleet.seen_s, fleet.now_s
    out = (
        name
        for second, names in old.calendar.items()
        if second <= now_s
        for name in names
        if old.candidates[name].changes_at_s <= now_s
    )
    back = (name for name in old.unfresh if before_s.get(name) != after_s.get(name))
    if before_s is after_s:
        return {*out, *back}
    fell = (name for name, seen_s in before_s.items() if after_s.get(name, -math.inf) < seen_s - 1)
    return {*out, *back, *fell}


def _gangs_on(fleet: Fleet, name: NodeName) -> frozenset[GangKey]:
    """The gangs of which members hold GPUs of a node."""
    return frozenset(held.gang for held in fleet.allocations.get(name, ()) if held.gang)


def _around(candidates: Mapping[NodeName, Candidate], name: NodeName) -> tuple[Domain, ...]:
    """The domains that reach beyond a node; a level that no label names has the node's own name."""
    found = candidates.get(name)
    return tuple(each for each in found.domains if each.name != name) if found else ()


def _second(candidates: Mapping[NodeName, Candidate], name: NodeName) -> tuple[int, ...]:
    found = candidates.get(name)
    return (math.floor(found.changes_at_s),) if found and found.changes_at_s < math.inf else ()


def _regrouped(
    old: Mapping[K, frozenset[NodeName]],
    moves: Iterable[tuple[NodeName, Iterable[K], Iterable[K]]],
) -> Mapping[K, frozenset[NodeName]]:
    """`old` with each node taken from the groups it was in and put into those it is in; the old
    mapping where none moved. Empty groups are absent.
    """
    moved: dict[K, set[NodeName]] = {}
    for name, before, after in moves:
        if before == after:
            continue
        into = frozenset(after)
        for group in into.symmetric_difference(before):
            nodes = moved.setdefault(group, set(old.get(group, ())))
            (nodes.add if group in into else nodes.discard)(name)
    if not moved:
        return old
    regrouped = {**old, **{group: frozenset(nodes) for group, nodes in moved.items()}}
    return {group: nodes for group, nodes in regrouped.items() if nodes}


def ranking_of(found: Picture, need: Need) -> Ranking:
    """The ranking of the picture's nodes for `need`, from scratch."""
    return ranking.ranking(found.candidates, need, found.policy)
