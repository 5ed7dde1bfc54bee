"""Whether the nodes that members wait for are still good for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from scoring.gangs.record import GangPlan
from scoring.gangs.values import Gathered
from scoring.model import NodeName, ResourceKind
from scoring.picture import Picture
from scoring.verdict import judge


def stand(
    gang: Gathered, record: GangPlan, picture: Picture, changed: Collection[NodeName]
) -> bool:
    """Whether each of the `changed` nodes still takes the members that wait for it: fit, and with as
    many free GPUs as they ask for. That a member of the gang itself was bound there changes nothing.
    """
    waiting: dict[NodeName, list[int]] = {}
    gpus: Counter[NodeName] = Counter()
    for at, pod in enumerate(gang.members):
        seat = record.seat(pod.member.uid)
        if seat is not None and pod.member.bound is None and seat in changed:
            waiting.setdefault(seat, []).append(at)
            gpus[seat] += pod.member.shape.gpus
    for node, members in waiting.items():
        candidate = picture.candidates.get(node)
        if candidate is None:
            return False
        needs = {gang.members[at].member.shape.need for at in members}
        if not all(judge(candidate, need, picture.policy).fits for need in needs):
            return False
        free = candidate.free & candidate.of_kind(ResourceKind.WHOLE)
        if free.bit_count() - candidate.nameless < gpus[node]:
            return False
    return True
