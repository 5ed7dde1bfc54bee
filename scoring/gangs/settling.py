"""Whether nodes that are planned for changed in anything but that members took their seats there.

A plan that proceeds as planned changes its nodes all the time: each member that is bound holds GPUs
from then on, and the cache says so a moment later. None of that makes another plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from scoring.candidate import Candidate
from scoring.gangs.record import GangPlan
from scoring.gangs.rules import OnShortfall
from scoring.gangs.values import GangPod, Gathered
from scoring.model import GangKey, NodeName, PodUid
from scoring.picture import Picture
from scoring.planning.values import Room, Shape


def awaited(gang: Gathered, record: GangPlan | None) -> Iterator[tuple[GangPod, NodeName]]:
    """The members that are still to come to a node, each with the one that is planned for it."""
    if record is None:
        return
    for pod in gang.members:
        seat = record.seat(pod.member.uid)
        if seat is not None and pod.member.bound is None:
            yield pod, seat


def disturbed(
    before: Picture | None, now: Picture, names: Iterable[NodeName], settlers: Collection[PodUid]
) -> bool:
    """Whether any of these nodes is judged otherwise than before, or others than `settlers` took
    or left GPUs there. Without a picture before: yes, if there is any node.
    """
    return any(
        before is None
        or _judged(before, name) != _judged(now, name)
        or _strangers(before, name, settlers) != _strangers(now, name, settlers)
        for name in names
    )


def crowded(
    gangs: Iterable[Gathered], records: Mapping[GangKey, GangPlan], rooms: Mapping[NodeName, Room]
) -> bool:
    """Whether a node is gone, or too full beside its GPUs, for the members that are to come to it.

    Gangs that may evict are planned for room that is not there yet, so that they ask for the node alone.
    """
    coming: defaultdict[NodeName, list[Shape]] = defaultdict(list)
    for gang in gangs:
        evicts = gang.on_shortfall is OnShortfall.PREEMPT
        for pod, seat in awaited(gang, records.get(gang.key)):
            coming[seat].extend(() if evicts else (pod.member.shape,))
    return any(
        node not in rooms or not _takes(rooms[node], shapes) for node, shapes in coming.items()
    )


def _takes(room: Room, shapes: Sequence[Shape]) -> bool:
    """Whether these members find room beside GPUs; who asks nothing of a kind minds no lack of it."""
    asked = map(sum, zip(*(shape.amounts for shape in shapes), strict=True))
    amounts = zip(
        asked, room.allocatable, room.held, strict=False
    )  # nobody comes: nothing is asked
    if any(each and each > have - held for each, have, held in amounts):
        return False
    ports = [room.ports, *(shape.ports for shape in shapes)]
    clash = any(a.clashes(b) for one, other in combinations(ports, 2) for a in one for b in other)
    return not clash and (not shapes or len(shapes) <= room.pods - room.held_pods)


def _judged(picture: Picture, name: NodeName) -> tuple[object, ...]:
    fleet, found = picture.fleet, picture.candidates.get(name)
    return (
        _idle(found) if found else None,
        fleet.cluster.get(name),
        frozenset(fleet.rejections.get(name, ())),
    )


def _idle(found: Candidate) -> Candidate:
    """The node as if nobody held anything of it, whatever the number and age of its document."""
    node = replace(found.node, epoch=0, seq=0)
    return replace(found, node=node, free=0, held=0, nameless=0, shares_used=None, changes_at_s=0.0)


def _strangers(
    picture: Picture, name: NodeName, settlers: Collection[PodUid]
) -> frozenset[tuple[PodUid, str, int]]:
    return frozenset(
        (each.uid, each.resource, each.count)
        for each in picture.fleet.allocations.get(name, ())
        if each.uid not in settlers
    )
