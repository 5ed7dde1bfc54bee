"""The cluster as it would be without pods of lower priority, for gangs that may evict them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scoring import picture
from scoring.model import Allocation, GangKey, NodeName
from scoring.picture import Picture
from scoring.planning import planner
from scoring.planning.outcome import Outcome, Plan
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


def planned(
    scene: Picture,
    site: Site,
    gang: PendingGang,
    taken: Iterable[Claim],
    later: Sequence[PendingGang],
) -> Plan | None:
    """The plan of a gang in what `left_with` leaves, beside what is `taken`; None: there is none.

    Where members of `later` gangs are nominated is left to them; only if there is no other room are
    those of a lower priority passed over.
    """
    standing = (*site.claims, *taken)
    stronger = [each for each in later if each.priority >= gang.priority]
    for spared in dict.fromkeys((_nominated(later), _nominated(stronger))):
        claims = (*standing, *spared)
        (found,) = planner.plan(scene, replace(site, claims=claims), (gang,))
        if isinstance(found, Plan):
            return found
    return None


def taken(outcomes: Iterable[Outcome], gangs: Mapping[GangKey, PendingGang]) -> tuple[Claim, ...]:
    """What gangs were given, or hold because they starve: no plan made after may take it."""
    found = []
    for outcome in outcomes:
        places = outcome.places if isinstance(outcome, Plan) else outcome.held
        found += [
            Claim(uid=member.uid, node=places[member.uid], shape=member.shape)
            for member in gangs[outcome.gang].members
            if member.bound is None and member.uid in places
        ]
    return tuple(found)


def _nominated(gangs: Iterable[PendingGang]) -> tuple[Claim, ...]:
    return tuple(
        Claim(uid=member.uid, node=member.nominated, shape=member.shape)
        for gang in gangs
        for member in gang.members
        if member.bound is None and member.nominated is not None
    )
