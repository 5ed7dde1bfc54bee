"""The reader's working copy of the cache: documents in, immutable Fleets out.

What cannot be read is quarantined under `Kind/id` with the reason. The good document that a broken
one replaced is not kept: its node counts as unknown, because no data is not health.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from extender.store import documents, values
from extender.store.errors import LONGEST, DocumentError
from extender.store.keys import text_of
from extender.store.load import Contents
from extender.store.schema import Kind
from extender.store.scripts import Change
from extender.store.timeline import Timeline
from extender.store.values import Value
from scoring.gangs.record import GangPlan
from scoring.model import (
    Allocation,
    Breaker,
    ClusterNode,
    Fleet,
    Gang,
    GangKey,
    GpuUuid,
    Node,
    NodeName,
    Override,
    Rejection,
)
from scoring.policy import REJECTION_KEPT_S

Ending = TypeVar("Ending", Override, Breaker)
Changed = frozenset[NodeName] | None
"""The nodes whose verdicts may differ; None: the cache was read anew, and any may."""

_TIMED: Final = frozenset({Kind.OVERRIDE, Kind.BREAKER, Kind.REJECTION})
"""Kinds whose documents end by time alone."""
_PLACED: Final = _TIMED | {Kind.PLAN}
"""Kinds that hold times which Fleets have on the reader's time line."""
_OF_NODES: Final = frozenset({Kind.NODE, Kind.CLUSTER_NODE})
"""Kinds whose documents each describe one node, and have its name."""


class Picture:
    """Decoded documents by kind and id; times of overrides, breakers, rejections and plans are Unix
    time here.

    Mappings that a Fleet was given are never changed: `_refresh` replaces those that differ.
    """

    def __init__(self, contents: Contents) -> None:
        self._nodes: dict[NodeName, Node] = {}
        """As their documents say; `_placed_nodes` has the same with the cluster's labels."""
        self._placed_nodes: dict[NodeName, Node] = {}
        self._cluster: dict[NodeName, ClusterNode] = {}
        self._allocations: dict[str, Allocation] = {}
        self._held: dict[NodeName, tuple[Allocation, ...]] = {}
        self._gangs: dict[GangKey, Gang] = {}
        self._overrides: dict[str, Override] = {}
        self._breakers: dict[str, Breaker] = {}
        self._rejections: dict[str, Rejection] = {}
        self._plans: dict[GangKey, GangPlan] = {}
        """As their documents say; `_placed_plans` has the same on the reader's time line."""
        self._placed_plans: dict[GangKey, GangPlan] = {}
        self._offset_s = 0.0
        self._quarantined: dict[str, str] = dict(contents.broken)
        self._shelves: Mapping[Kind, dict[Any, Any]] = {
            Kind.NODE: self._nodes,
            Kind.ALLOCATION: self._allocations,
            Kind.GANG: self._gangs,
            Kind.OVERRIDE: self._overrides,
            Kind.BREAKER: self._breakers,
            Kind.REJECTION: self._rejections,
            Kind.CLUSTER_NODE: self._cluster,
            Kind.PLAN: self._plans,
        }
        for kind, found in contents.documents.items():
            for key, raw in found.items():
                self._take(kind, text_of(key), raw)
        self._fleet = Fleet(
            generation=contents.generation,
            now_s=contents.redis_s,
            nodes={},
            seen_s={},
            allocations={},
            gangs={},
            overrides={},
            breakers={},
        )
        self._refresh(frozenset(Kind))

    def apply(self, changes: Iterable[Change]) -> frozenset[NodeName]:
        """Take changed documents in, and tell which nodes' verdicts may differ.

        A gang's document or plan changes no node by itself: whoever judges gangs reads them in the
        Fleet.
        """
        nodes: set[NodeName] = set()
        targets: set[str] = set()
        touched: set[Kind] = set()
        for change in changes:
            key = text_of(change.id)
            before = self._shelves[change.kind].get(key)
            after = self._take(change.kind, key, change.raw)
            touched.add(change.kind)
            if change.kind in _OF_NODES:
                nodes.add(NodeName(key))
            elif change.kind in (Kind.ALLOCATION, Kind.REJECTION):
                nodes.update(one.node for one in (before, after) if one)
            elif change.kind is Kind.OVERRIDE:
                targets.add(key)
        self._refresh(touched)
        if Kind.BREAKER in touched:
            # Which pool a node belongs to is the policy's word: a breaker may concern any that is known.
            nodes.update(self._nodes)
        return frozenset(nodes | self._aimed_at(targets))

    def expire(self, unix_s: float) -> frozenset[NodeName]:
        """Drop overrides, breakers and rejections that are over, and tell which nodes' verdicts may
        differ.
        """
        over = [
            Change(kind=kind, id=key.encode(), raw=None)
            for kind in _TIMED
            for key, value in self._shelves[kind].items()
            if _end_s(value) <= unix_s
        ]
        return self.apply(over) if over else frozenset()

    def node_names(self) -> frozenset[NodeName]:
        """The nodes that have a document which can be read."""
        return frozenset(self._nodes)

    def fleet(self, generation: int, timeline: Timeline) -> Fleet:
        """The picture as a value, at the time line's now."""
        if timeline.offset_s != self._offset_s:
            self._offset_s = timeline.offset_s
            for key in self._plans:
                self._place_plan(key)
            self._refresh(_PLACED)
        junk = {f"Seen/{name}": problem for name, problem in timeline.junk.items()}
        if timeline.leader_junk:
            junk["Leader"] = timeline.leader_junk
        return replace(
            self._fleet,
            generation=generation,
            now_s=timeline.now_s,
            seen_s=timeline.seen_s,
            leader_s=timeline.leader_s,
            ahead_s=timeline.offset_s,
            quarantined={**self._fleet.quarantined, **junk} if junk else self._fleet.quarantined,
        )

    def _take(self, kind: Kind, key: str, raw: bytes | None) -> Any:
        """Decode one document into its shelf; a broken one into quarantine. None: not there."""
        self._quarantined.pop(f"{kind}/{key[:253]}", None)
        before = self._shelves[kind].pop(key, None)
        if isinstance(before, Allocation):
            self._release(before)
        value = None if raw is None else self._decoded(kind, key, raw)
        if value is not None:
            self._shelves[kind][key] = value
        if isinstance(value, Allocation):
            self._hold(value)
        if kind in _OF_NODES:
            self._place(NodeName(key))
        elif kind is Kind.PLAN:
            self._place_plan(GangKey(key))
        return value

    def _decoded(self, kind: Kind, key: str, raw: bytes) -> Value | None:
        try:
            return documents.decode(kind, key, raw)
        except DocumentError as error:
            self._quarantined[f"{kind}/{key[:253]}"] = str(error)
        except Exception as error:  # noqa: BLE001 - one document must never stop all the others
            problem = f"cannot be read: {type(error).__name__}: {error}"
            self._quarantined[f"{kind}/{key[:253]}"] = problem[:LONGEST]
        return None

    def _place(self, name: NodeName) -> None:
        """Put the node as its document says it where the cluster says that it is."""
        node = self._nodes.get(name)
        if node is None:
            self._placed_nodes.pop(name, None)
        else:
            self._placed_nodes[name] = values.placed(node, self._cluster.get(name))

    def _place_plan(self, key: GangKey) -> None:
        """Put the plan on the reader's time line. One at a time: there are many, and they are large."""
        plan = self._plans.get(key)
        if plan is None:
            self._placed_plans.pop(key, None)
        elif self._offset_s:
            self._placed_plans[key] = plan.moved(self._offset_s)
        else:
            self._placed_plans[key] = plan

    def _hold(self, one: Allocation) -> None:
        # Sorted, so that every replica has the same order, whatever the hash's was.
        them = (*self._held.get(one.node, ()), one)
        self._held[one.node] = tuple(sorted(them, key=lambda held: (held.uid, held.resource)))

    def _release(self, one: Allocation) -> None:
        rest = tuple(held for held in self._held[one.node] if held is not one)
        if rest:
            self._held[one.node] = rest
        else:
            del self._held[one.node]

    def _refresh(self, touched: frozenset[Kind] | set[Kind]) -> None:
        """Give the next Fleet new mappings of the kinds that were touched."""
        news: dict[str, Any] = {}
        if not _OF_NODES.isdisjoint(touched):
            news["nodes"] = dict(self._placed_nodes)
        if Kind.CLUSTER_NODE in touched:
            news["cluster"] = dict(self._cluster)
        if Kind.ALLOCATION in touched:
            news["allocations"] = dict(self._held)
        if Kind.GANG in touched:
            news["gangs"] = dict(self._gangs)
        if Kind.OVERRIDE in touched:
            news["overrides"] = {key: self._placed(one) for key, one in self._overrides.items()}
        if Kind.BREAKER in touched:
            news["breakers"] = {key: self._placed(one) for key, one in self._breakers.items()}
        if Kind.REJECTION in touched:
            news["rejections"] = self._rejected()
        if Kind.PLAN in touched:
            news["plans"] = dict(self._placed_plans)
        if self._quarantined != self._fleet.quarantined:
            news["quarantined"] = dict(self._quarantined)
        if news:
            self._fleet = replace(self._fleet, **news)

    def _placed(self, value: Ending) -> Ending:
        """An override or breaker with its end on the reader's time line."""
        if value.until_s is None:
            return value
        return replace(value, until_s=value.until_s + self._offset_s)

    def _rejected(self) -> dict[NodeName, tuple[Rejection, ...]]:
        """The rejections of each node, with their times on the reader's time line."""
        found: dict[NodeName, list[Rejection]] = {}
        # Sorted, so that every replica has the same order, whatever the hash's was.
        for _, one in sorted(self._rejections.items()):
            placed = replace(one, at_s=one.at_s + self._offset_s) if self._offset_s else one
            found.setdefault(one.node, []).append(placed)
        return {name: tuple(them) for name, them in found.items()}

    def _aimed_at(self, targets: set[str]) -> set[NodeName]:
        """The nodes that overrides of `targets` concern."""
        if not targets:
            return set()
        gpus = {GpuUuid(key.removeprefix("gpu/")) for key in targets if key.startswith("gpu/")}
        named = {NodeName(key.removeprefix("node/")) for key in targets if key.startswith("node/")}
        return named | {
            name
            for name, node in self._nodes.items()
            if gpus and any(gpu.uuid in gpus for gpu in node.gpus)
        }


def _end_s(value: Override | Breaker | Rejection) -> float:
    """When a document of a timed kind is over, in Unix time; infinity: never."""
    if isinstance(value, Rejection):
        return value.at_s + REJECTION_KEPT_S
    return math.inf if value.until_s is None else value.until_s
