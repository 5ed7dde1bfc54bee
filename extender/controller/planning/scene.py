"""What plans rest on: the health of nodes as the cache has it, and who holds which GPUs as the API
server has it, which is newer than what the cache was told of it.

What the cache does not know of the API server's nodes, or not any more, is filled in: a leader that
begins with a cache that lost its data plans before it has told it all again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from extender.store import values
from scoring import picture
from scoring.model import Allocation, ClusterNode, Fleet, NodeName
from scoring.picture import Picture
from scoring.policy import Policy

Held = Mapping[NodeName, tuple[Allocation, ...]]
Absent: TypeAlias = Callable[[Collection[NodeName]], Mapping[NodeName, ClusterNode]]
"""What the API server says of its nodes, apart from those that are given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The picture now, and the one before."""

    picture: Picture
    before: Picture | None
    """None: there was none."""
    changed: frozenset[NodeName]
    """The nodes that may differ between them."""
    anew: bool
    """Whether the cache was read anew, so that any node may differ."""


class Scene:
    """Hears of fleets on the reader's thread, and is looked at by another."""

    def __init__(self, policy: Policy, absent: Absent) -> None:
        self._policy = policy
        self._absent = absent
        self._lock = threading.Lock()
        self._fleet: Fleet | None = None
        self._changed: set[NodeName] = set()
        self._all = True
        """Whether any node may have changed."""
        self._last: Picture | None = None
        self._held: Held = {}
        self._filled: Mapping[NodeName, ClusterNode] = {}
        """What the last fleet lacked."""

    def hear(self, fleet: Fleet, changed: Collection[NodeName] | None) -> None:
        """The cache says this now; `changed` as `store.reader.Publish` has it."""
        with self._lock:
            self._fleet = fleet
            if changed is None:
                self._all = True
            else:
                self._changed.update(changed)

    @property
    def fleet(self) -> Fleet | None:
        """What the cache said last."""
        return self._fleet

    def look(self, held: Held) -> Look | None:
        """The picture with these allocations; None: the cache said nothing yet."""
        with self._lock:
            fleet, changed, everything = self._fleet, self._changed, self._all
            self._changed, self._all = set(), False
        if fleet is None:
            return None
        before, last = self._last, self._held
        moved = {name for name in last.keys() | held.keys() if last.get(name) is not held.get(name)}
        merged = {
            name: _named(fleet.allocations.get(name, ()), found) for name, found in held.items()
        }
        filled, before_filled = self._absent(fleet.cluster.keys()), self._filled
        moved |= {
            name
            for name in before_filled.keys() | filled.keys()
            if before_filled.get(name) != filled.get(name)
        }
        fleet = _filled(replace(fleet, allocations=merged), filled)
        if before is None or everything:
            self._last = found = picture.picture(fleet, self._policy)
            names = found.names | (before.names if before else frozenset())
        else:
            names = frozenset(changed | moved | picture.due(before, fleet))
            self._last = found = picture.advanced(before, fleet, names)
        self._held, self._filled = held, filled
        return Look(picture=found, before=before, changed=names, anew=everything or before is None)


def _filled(fleet: Fleet, nodes: Mapping[NodeName, ClusterNode]) -> Fleet:
    """The fleet with these nodes of the API server's, as if the cache had told of them."""
    if not nodes:
        return fleet
    placed = {
        name: values.placed(fleet.nodes[name], node)
        for name, node in nodes.items()
        if name in fleet.nodes
    }
    return replace(fleet, cluster={**fleet.cluster, **nodes}, nodes={**fleet.nodes, **placed})


def _named(known: tuple[Allocation, ...], held: tuple[Allocation, ...]) -> tuple[Allocation, ...]:
    """What is held, with the GPUs where the cache knows which: agents tell it, the API server does
    not.
    """
    if known == held:
        return known
    named = {(each.uid, each.resource): each for each in known if each.gpus is not None}
    if not named:
        return held
    return tuple(
        each if other is None or (other.node, other.count) != (each.node, each.count) else other
        for each in held
        for other in (named.get((each.uid, each.resource)),)
    )
