"""Whether nodes that are planned for changed in anything but that members took their seats there.

A plan that proceeds as planned changes its nodes all the time: each member that is bound holds GPUs
from then on, and the cache says so a moment later. None of that makes another plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from scoring.candidate import Candidate
from scoring.model import NodeName, PodUid
from scoring.picture import Picture


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
