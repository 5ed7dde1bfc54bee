"""The cluster as it would be without pods of lower priority, for gangs that may evict them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scoring import picture
from scoring.model import Allocation, GangKey, NodeName, PodUid
from scoring.picture import Picture
from scoring.planning.outcome import Plan
from scoring.planning.values import Amounts, Claim, PendingGang, Room, Shape, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A bound pod, and what leaves with it."""

    uid: PodUid
    node: NodeName
    priority: int
    shape: Shape


def without_lower(
    scene: Picture, site: Site, tenants: Iterable[Tenant], priority: int
) -> tuple[Picture, Site]:
    """Picture and site with the tenants of a priority below `priority` gone.

    kube-scheduler chooses the victims; it may need fewer of them.
    """
    gone: dict[NodeName, list[Tenant]] = {}
    for each in tenants:
        if each.priority < priority:
            gone.setdefault(each.node, []).append(each)
    if not gone:
        return scene, site
    uids = {each.uid for them in gone.values() for each in them}
    held: dict[NodeName, tuple[Allocation, ...]] = dict(scene.fleet.allocations)
    for name in gone:
        held[name] = tuple(each for each in held.get(name, ()) if each.uid not in uids)
    fleet = replace(scene.fleet, allocations=held)
    rooms = {
        **site.rooms,
        **{name: _freed(site.rooms[name], gone[name]) for name in gone if name in site.rooms},
    }
    return picture.advanced(scene, fleet, gone), replace(site, rooms=rooms)


def _freed(room: Room, gone: Iterable[Tenant]) -> Room:
    held, pods, ports = room.held, room.held_pods, room.ports
    for each in gone:
        freed = each.shape.amounts
        held = Amounts(
            cpu_m=max(0, held.cpu_m - freed.cpu_m),
            memory_bytes=max(0, held.memory_bytes - freed.memory_bytes),
            storage_bytes=max(0, held.storage_bytes - freed.storage_bytes),
        )
        pods = max(0, pods - 1)
        ports = ports - each.shape.ports
    return replace(room, held=held, held_pods=pods, ports=ports)


def claimed(
    plans: Iterable[Plan], gangs: Mapping[GangKey, PendingGang], but: PendingGang
) -> tuple[Claim, ...]:
    """What other gangs were given, and do not hold yet: no plan made after may take it."""
    found = []
    for plan in plans:
        gang = gangs.get(plan.gang)
        if gang is None or gang.key == but.key:
            continue
        found += [
            Claim(uid=member.uid, node=plan.places[member.uid], shape=member.shape)
            for member in gang.members
            if member.bound is None and member.uid in plan.places
        ]
    return tuple(found)
