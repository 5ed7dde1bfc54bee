"""How many members of a gang there must be, which ones they are, and which ones are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from scoring.planning.seats import in_order
from scoring.planning.values import Member, PendingGang

MOST_NAMED = 3
"""Missing members that a sentence names."""


def quorum(gang: PendingGang) -> list[Member]:
    """The members that must have a node for the gang to start: those that have one, then in order."""
    members = in_order(gang.members)
    members.sort(key=lambda member: (member.bound is None, member.nominated is None))
    bound = sum(1 for member in members if member.bound is not None)
    return in_order(members[: max(bound, gang.min or 0)])


def absent(gang: PendingGang) -> str:
    """Who is missing, in one sentence, where fewer members exist than the gang needs. A size that
    nobody can mean (a label says it) costs no more than another.
    """
    have, need = len(gang.members), gang.min or 0
    told = f"{have} of {need} pods exist"
    indices = {member.index for member in gang.members if member.index is not None}
    if not indices:
        return told
    first = min(0, *indices) if len(indices) > 1 else 0
    size = max(gang.size or 0, need)
    places = range(first, first + size)
    missing = min(need - have, size - sum(index in places for index in indices))
    unfilled = (index for index in places if index not in indices)
    shown = ", ".join(_names(gang.members, islice(unfilled, min(missing, MOST_NAMED))))
    more = f" and {missing - MOST_NAMED} more" if missing > MOST_NAMED else ""
    return f"{told}; {shown}{more} {'is' if missing == 1 else 'are'} missing" if missing else told


def _names(members: Sequence[Member], indices: Iterable[int]) -> list[str]:
    """What members of these indices are called, as far as the names of the others tell."""
    stems = {_stem(member) for member in members if member.index is not None}
    stem = stems.pop() if len(stems) == 1 else None
    return [f"member {index}" if stem is None else f"{stem}{index}" for index in indices]


def _stem(member: Member) -> str | None:
    """What comes before the index in a member's name: `worker-2`, or `train-2-x7k2p` of a Job."""
    match = re.fullmatch(rf"(.*-){member.index}(-[a-z0-9]{{5}})?", member.name)
    return match[1] if match else None
