"""Which gangs there are: pods, and what objects say of their groups, put together.

What pods say of themselves counts first, then the object of their group, then, for a gang of
Surefoot's own, how many pods their owner runs. No number is ever read as 1. Members are told apart
by uid alone, so a pod that was created anew joins as soon as it is there, and the one whose place
it takes counts no more once it is finished or being deleted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

from scoring.gang import qualified
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import GangPod, Gathered, Group
from scoring.model import Convention, GangKey
from scoring.planning.values import NO_TOPOLOGY, Member, PendingGang, Topology

T = TypeVar("T")

_NUMBERED: Final = re.compile(r"(.*-)(0|[1-9][0-9]{0,8})", re.ASCII)
"""`worker-3`."""


class GangId(NamedTuple):
    """A gang as its pods name it."""

    key: GangKey
    convention: Convention


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """How many pods an owner (a Job) runs."""

    uid: str
    parallelism: int
    """At one time."""
    completions: int | None = None
    """Altogether; None: no such number."""
    succeeded: int = 0

    def wanted(self, succeeded: int) -> int | None:
        """Pods that it still runs at one time when at least `succeeded` are done; None: none."""
        total = self.parallelism if self.completions is None else self.completions
        left = total - max(self.succeeded, succeeded)
        return max(0, min(self.parallelism, left)) or None


def gather(
    pods: Iterable[GangPod],
    groups: Mapping[GangId, Group],
    crews: Mapping[str, Crew],
    rules: GangRules,
) -> tuple[Gathered, ...]:
    """The gangs that `rules` plan, by key. `crews`: by the owner's uid."""
    found: dict[GangId, list[GangPod]] = defaultdict(list)
    for pod in pods:
        found[gang_of(pod)].append(pod)
    return named(
        gang
        for id_, here in found.items()
        if (gang := gathered(here, group_of(id_, groups), crews, rules)) is not None
    )


def gang_of(pod: GangPod) -> GangId:
    """The gang that a pod names."""
    return GangId(pod.gang.key, pod.gang.convention)


def group_of(id_: GangId, groups: Mapping[GangId, Group]) -> Group | None:
    """The object of a gang. Replicas of a Workload's group share what it says of the group."""
    found = groups.get(id_)
    if found is None and id_.convention is Convention.WORKLOAD:
        return groups.get(id_._replace(key=GangKey(id_.key.rpartition("/")[0])))
    return found


def gathered(
    pods: Iterable[GangPod], group: Group | None, crews: Mapping[str, Crew], rules: GangRules
) -> Gathered | None:
    """The gang that these pods of one `GangId` make, one at least; None: it is not planned.

    Those that succeeded and belong to the same generation count as present: a gang of 8 of which 3
    are done needs the other 5, not 3 new ones.
    """
    everyone = tuple(sorted(pods, key=lambda pod: pod.member.uid))
    members = [pod for pod in everyone if pod.counts]
    speakers = sorted(members or everyone, key=lambda pod: (-pod.created_s, pod.member.uid))
    ref = speakers[0].gang
    hold = rules.hold(ref.convention)
    if hold is Hold.OFF:
        return None
    owner, done = _shared_owner(members), _done(everyone, members)
    numbers = _stated(speakers, group, present=len(members), done=len(done))
    if (crew := crews.get(owner)) is not None:
        numbers = _crewed(numbers, ref.convention, crew.wanted(len(done)))
    if group is not None and not group.gang:
        hold = Hold.OFF
    stated = _first(speakers, lambda pod: pod.gang.uid) or (group.uid if group else "")
    found = Gathered(
        key=ref.key,
        uid=stated or owner,
        convention=ref.convention,
        hold=hold,
        on_shortfall=_first(speakers, lambda pod: pod.on_shortfall) or rules.on_shortfall,
        min=numbers.min,
        size=numbers.size,
        pods=everyone,
        pending=None,
    )
    if hold is Hold.OFF or all(pod.member.bound is not None for pod in members):
        return found
    return replace(found, pending=_pending(found, members, _topology(members, group), done))


def named(gangs: Iterable[Gathered]) -> tuple[Gathered, ...]:
    """The same, by key, each with a key of its own: where two conventions use one name, the later
    one in the detector's order has its convention behind it. One that has no members gives way.
    """
    ordered = sorted(gangs, key=_precedence)
    taken = {gang.key: gang for gang in reversed(ordered)}
    for gang in [each for each in ordered if taken[each.key] is not each]:
        key = gang.key
        while key in taken:
            key = qualified(key, gang.convention)
        pending = gang.pending and replace(gang.pending, key=key)
        taken[key] = replace(gang, key=key, pending=pending)
    return tuple(taken[key] for key in sorted(taken))


def _precedence(gang: Gathered) -> tuple[GangKey, bool, int]:
    counts = any(pod.counts for pod in gang.pods)
    return gang.key, not counts, _ORDER[gang.convention]


_ORDER: Final = {convention: place for place, convention in enumerate(Convention)}


def _pending(
    gang: Gathered, members: Sequence[GangPod], topology: Topology, done: Sequence[GangPod]
) -> PendingGang:
    return PendingGang(
        key=gang.key,
        uid=gang.uid,
        # Whoever outranks one member may take its room: a gang is as strong as its weakest.
        priority=min(pod.priority for pod in members),
        since_s=min(pod.created_s for pod in members),
        min=gang.min,
        size=gang.size,
        topology=topology,
        members=_indexed([pod.member for pod in members], whole=not done),
    )


def _indexed(members: Sequence[Member], *, whole: bool) -> tuple[Member, ...]:
    """The members with indices that tell who is missing: their own, else those in their names.

    Without any where these do not tell: where they repeat (tasks of several kinds, several Jobs) or
    members are done. Then their names order them.
    """
    if whole and all(member.index is None for member in members):
        return _numbered(members)
    uses = Counter(member.index for member in members if member.index is not None)
    if whole and all(count == 1 for count in uses.values()):
        return tuple(members)
    return tuple(replace(member, index=None) for member in members)


def _numbered(members: Sequence[Member]) -> tuple[Member, ...]:
    """By the numbers at the end of their names, where nothing else tells the names apart and one is 0:
    who counts from 1 is not to be told that its first is missing.
    """
    parts = [_NUMBERED.fullmatch(member.name) for member in members]
    stems = {part and part[1] for part in parts}
    numbers = [int(part[2]) for part in parts if part]
    if len(stems) != 1 or None in stems or 0 not in numbers or len(set(numbers)) < len(numbers):
        return tuple(members)
    return tuple(
        replace(member, index=number) for member, number in zip(members, numbers, strict=True)
    )


def _first(pods: Iterable[GangPod], read: Callable[[GangPod], T | None]) -> T | None:
    return next((found for pod in pods if (found := read(pod)) is not None), None)


def _shared_owner(members: Sequence[GangPod]) -> str:
    """The uid of the owner of all members; empty: they have none, or several."""
    owners = {pod.owner.uid if pod.owner else "" for pod in members}
    return owners.pop() if len(owners) == 1 else ""


def _done(pods: Sequence[GangPod], members: Sequence[GangPod]) -> list[GangPod]:
    """Those that succeeded, but for those of an earlier owner of the same name."""
    now = {(pod.owner.kind, pod.owner.name): pod.owner.uid for pod in members if pod.owner}
    return [
        pod
        for pod in pods
        if pod.succeeded
        and not pod.leaving
        and (
            pod.owner is None or now.get((pod.owner.kind, pod.owner.name)) in (None, pod.owner.uid)
        )
    ]


class _Numbers(NamedTuple):
    min: int | None
    size: int | None


def _stated(
    speakers: Iterable[GangPod], group: Group | None, *, present: int, done: int
) -> _Numbers:
    """What is said of the whole gang, less what is done of it and not there anew."""

    def still(number: int | None) -> int | None:
        if number is None or not done:
            return number
        return max(number - done, min(number, present)) or None  # None: all of it is done

    least = _first(speakers, lambda pod: pod.gang.min) or (group.min if group else None)
    size = _first(speakers, lambda pod: pod.gang.size) or (group.size if group else None)
    if least is not None and size is not None:
        size = max(least, size)
    return _Numbers(still(least), still(size))


def _crewed(stated: _Numbers, convention: Convention, wanted: int | None) -> _Numbers:
    """The numbers, where they are not stated, from how many pods the owner still runs."""
    if convention is Convention.SUREFOOT and stated.min is None:
        return _Numbers(wanted, wanted)
    if convention is Convention.NATIVE and stated.size is None:
        return stated._replace(size=wanted)
    return stated


def _topology(members: Sequence[GangPod], group: Group | None) -> Topology:
    """What members ask; where none asks, what the group's object asks.

    Members that ask nothing go along. Where others differ, nothing can be asked of the whole gang.
    """
    asked = {pod.topology for pod in members} - {NO_TOPOLOGY}
    if not asked:
        return group.topology if group else NO_TOPOLOGY
    required = {each.required for each in asked}
    preferred = {each.preferred for each in asked}
    return Topology(
        required=required.pop() if len(required) == 1 else None,
        preferred=preferred.pop() if len(preferred) == 1 else None,
    )
