"""The cluster as it would be without pods of lower priority, for gangs that may evict them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scoring import picture
from scoring.model import Allocation, GangKey, NodeName
from scoring.picture import Picture
from scoring.planning.outcome import Plan
from scoring.planning.values import Claim, PendingGang, Room, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What would be left of bound pods."""

    held: Mapping[NodeName, tuple[Allocation, ...]]
    """Who would hold GPUs."""
    rooms: Mapping[NodeName, Room]
    """What would be held beside GPUs."""


def left_with(scene: Picture, site: Site, rest: Rest) -> tuple[Picture, Site]:
    """Picture and site with nobody but `rest`.

    kube-scheduler chooses the victims; it may need fewer of them.
    """
    held, gone = dict(scene.fleet.allocations), []
    for name, them in scene.fleet.allocations.items():
        staying = {(each.uid, each.resource) for each in rest.held.get(name, ())}
        if all((each.uid, each.resource) in staying for each in them):
            continue
        held[name] = tuple(each for each in them if (each.uid, each.resource) in staying)
        gone.append(name)
    emptied = picture.advanced(scene, replace(scene.fleet, allocations=held), gone)
    return emptied, replace(site, rooms=rest.rooms)


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
