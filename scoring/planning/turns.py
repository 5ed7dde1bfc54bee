"""How many members a node takes one after the other, and what they cost there.

Each member is judged as the webhook will judge it (`scoring.verdict`), on what those before it leave.
Which GPUs those got is not known before they run, so the next one is judged as if it may get any of
the free GPUs: all of them must be usable. Only where a plugin honours Surefoot's own choice
(`planned`) usable ones are chosen for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from scoring import fragments
from scoring.candidate import Candidate
from scoring.model import AllocationMode, Need, ResourceKind
from scoring.planning.hosts import Host
from scoring.planning.values import Shape
from scoring.policy import Policy
from scoring.reasons import Reason
from scoring.rings import positions
from scoring.verdict import judge, unusable

MOST_WAYS: Final = 128
"""Sets of GPUs that may be left on a node, up to which each is judged: all of 8 GPUs (70)."""


def in_turn(host: Host, shape: Shape, most: int, policy: Policy) -> tuple[int, Reason | None]:
    """How many of `most` members with this shape pass one after the other, and why the first one
    does not; `most` fit by count.
    """
    need, found = shape.need, host.candidate
    if need.kind is ResourceKind.NONE or most < 1:
        return most, None
    if found is None:
        return 0, Reason.NODE_UNREPORTED
    before = beside(found, host.unnamed)
    reason = judge(before, need, policy).reason
    if reason is not None or most == 1:
        return (0 if reason else 1), reason
    if need.kind is not ResourceKind.WHOLE:
        return most, None
    if before.node.mode is AllocationMode.PLANNED and not before.nameless:
        usable = before.free & before.of_kind(need.kind) & ~unusable(before, need, policy)
        return min(most, usable.bit_count() // need.count), None
    if not judge(beside(before, need.count), need, policy).fits:
        return 1, None
    return _answered(before, need, most, policy), None


def beside(candidate: Candidate, gpus: int) -> Candidate:
    """The node as it is when pods hold so many more of its GPUs, we know not which."""
    return replace(candidate, nameless=candidate.nameless + gpus) if gpus else candidate


def _answered(candidate: Candidate, need: Need, most: int, policy: Policy) -> int:
    """How many members the stock plugin answers for certain: where the free GPUs do not part evenly
    into sets of the asked size it may fail one (go-gpuallocator PR 80), so every set that the members
    before may have got is gone through.
    """
    free = candidate.free & candidate.of_kind(need.kind)
    if (
        candidate.node.mode is not AllocationMode.NVIDIA
        or candidate.nameless
        or free.bit_count() % need.count == 0
    ):
        return most
    ways = {free}
    for count in range(most):
        judged = [judge(replace(candidate, free=way), need, policy) for way in ways]
        if not all(each.fits for each in judged):
            return count
        if any(each.sets is None for each in judged):
            return count + 1
        ways = {
            way & ~taken
            for way, each in zip(ways, judged, strict=True)
            for taken in each.sets or ()
        }
        if len(ways) > MOST_WAYS:
            return count + 1
    return most


def may_mix(host: Host, shapes: Sequence[Shape], policy: Policy) -> bool:
    """Whether members of different shapes may share the GPUs of a node in any order: each must pass
    beside the others.
    """
    needs = {shape.need for shape in shapes if shape.need.kind is not ResourceKind.NONE}
    if len(needs) < 2:
        return True
    found = host.candidate
    if found is None:
        return False
    return all(
        judge(beside(found, host.unnamed + other.count), need, policy).fits
        for need in needs
        for other in needs - {need}
        if other.kind is ResourceKind.WHOLE
    )


def sick_gpus(host: Host, gpus: int) -> int:
    """How many GPUs that are not HEALTHY pods that take `gpus` free ones here may get at worst; at
    best where Surefoot's own choice is honoured.
    """
    found = host.candidate
    if found is None or not gpus:
        return 0
    free = found.free & found.of_kind(ResourceKind.WHOLE)
    sick = sum(1 for position in positions(free) if found.together[position])
    if not sick:
        return 0
    if found.node.mode is AllocationMode.PLANNED and not found.nameless and not host.unnamed:
        return max(0, gpus - (free.bit_count() - sick))
    return min(gpus, sick)


def stranded_gpus(host: Host, gpus: int) -> int:
    """GPUs left over on a node of which pods take `gpus`: the free ones, and once more those that
    lose the whole island or node they were part of.
    """
    found = host.candidate
    if found is None or not gpus:
        return 0
    left = host.free_gpus() - gpus
    if found.nameless or host.unnamed:
        return left
    free = found.free & found.of_kind(ResourceKind.WHOLE)
    chosen = found.node.mode is AllocationMode.PLANNED
    return left + fragments.broken(found.node.links, found.free, free, gpus, chosen=chosen)
