"""What each node has, and what its bound pods hold of it, whichever scheduler put them there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from extender.controller.cluster.values import Kept
from scoring.model import Allocation, NodeName
from scoring.planning.values import Amounts, Room

MOST_STALE: Final = 1 << 14
"""Nodes of which sums are put off; nobody may ever ask."""

Rooms = Mapping[NodeName, Room]
Held = Mapping[NodeName, tuple[Allocation, ...]]


class Occupancy:
    """For one thread at a time. Sums are made when they are asked for, of nodes that changed."""

    def __init__(self) -> None:
        self._offers: dict[NodeName, Room] = {}
        self._tenants: dict[NodeName, dict[str, Kept]] = {}
        """Bound pods by node, by their keys."""
        self._stale: set[NodeName] = set()
        self._rooms: Rooms = MappingProxyType({})
        self._held: Held = MappingProxyType({})

    def offer(self, node: NodeName, room: Room | None) -> bool:
        """What a node has, with nothing held; None: it is gone. Whether that is new."""
        if self._offers.get(node) == room:
            return False
        if room is None:
            del self._offers[node]
        else:
            self._offers[node] = room
        self._spoil({node})
        return True

    def nodes(self) -> frozenset[NodeName]:
        """Those that have anything."""
        return frozenset(self._offers)

    def move(self, key: str, before: Kept | None, now: Kept | None) -> frozenset[NodeName]:
        """A pod holds something else now. The nodes on which that changes anything."""
        touched = set()
        if before is not None and before.load is not None:
            touched.add(before.load.node)
            here = self._tenants[before.load.node]
            del here[key]
            if not here:
                del self._tenants[before.load.node]
        if now is not None and now.load is not None:
            touched.add(now.load.node)
            self._tenants.setdefault(now.load.node, {})[key] = now
        if before and now and (before.load, before.gpus) == (now.load, now.gpus):
            return frozenset()
        self._spoil(touched)
        return frozenset(touched)

    def rooms(self, below: int | None = None) -> Rooms:
        """Of every node what it has and what is held; pods of a priority lower than `below` hold
        nothing. The same object as before where nothing changed.
        """
        self._refresh()
        if below is None:
            return self._rooms
        return MappingProxyType(
            {
                node: _room(offer, self._staying(node, below))
                if self._has_lower(node, below)
                else self._rooms[node]
                for node, offer in self._offers.items()
            }
        )

    def held(self, below: int | None = None) -> Held:
        """The GPUs that pods hold, by node; otherwise like `rooms`."""
        self._refresh()
        if below is None:
            return self._held
        found = {
            node: _gpus(self._staying(node, below)) if self._has_lower(node, below) else held
            for node, held in self._held.items()
        }
        return MappingProxyType({node: held for node, held in found.items() if held})

    def _spoil(self, nodes: set[NodeName]) -> None:
        self._stale |= nodes
        if len(self._stale) > MOST_STALE:
            self._refresh()

    def _refresh(self) -> None:
        if not self._stale:
            return
        rooms, held = dict(self._rooms), dict(self._held)
        for node in self._stale:
            rooms.pop(node, None)
            held.pop(node, None)
            tenants = self._tenants.get(node, {}).values()
            if (offer := self._offers.get(node)) is not None:
                rooms[node] = _room(offer, tenants)
            if gpus := _gpus(tenants):
                held[node] = gpus
        self._stale = set()
        self._rooms, self._held = MappingProxyType(rooms), MappingProxyType(held)

    def _has_lower(self, node: NodeName, below: int) -> bool:
        return any(
            pod.load is not None and pod.load.priority < below
            for pod in self._tenants.get(node, {}).values()
        )

    def _staying(self, node: NodeName, below: int) -> list[Kept]:
        return [
            pod
            for pod in self._tenants.get(node, {}).values()
            if pod.load is not None and pod.load.priority >= below
        ]


def _room(offer: Room, tenants: Iterable[Kept]) -> Room:
    loads = [pod.load for pod in tenants if pod.load is not None]
    return replace(
        offer,
        held=Amounts(*map(sum, zip(*(load.amounts for load in loads), strict=True))),
        held_pods=len(loads),
        ports=frozenset().union(*(load.ports for load in loads)),
    )


def _gpus(tenants: Iterable[Kept]) -> tuple[Allocation, ...]:
    found = [each for pod in tenants for each in pod.gpus]
    return tuple(sorted(found, key=lambda each: (each.uid, each.resource)))
