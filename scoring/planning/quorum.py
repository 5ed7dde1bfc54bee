"""How many members of a gang there must be, which ones they are, and which ones are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    """Who is missing, in one sentence, where fewer members exist than the gang needs."""
    have, need = len(gang.members), gang.min or 0
    lacks = need - have
    absentees = _missing_names(gang.members, max(gang.size or 0, need))
    names = list(islice(absentees, min(lacks, MOST_NAMED)))
    told = ""
    if names:
        more = f" and {lacks - len(names)} more" if lacks > len(names) else ""
        told = f"; {', '.join(names)}{more} {'is' if lacks == 1 else 'are'} missing"
    return f"{have} of {need} pods exist{told}"


def _missing_names(members: Sequence[Member], size: int) -> Iterator[str]:
    """The names of members that do not exist, as far as those of the others tell. There may be more
    than anybody can hold: a label may say 999999999.
    """
    indices = {member.index for member in members if member.index is not None}
    if not indices:
        return
    stems = {_stem(member) for member in members if member.index is not None}
    stem = stems.pop() if len(stems) == 1 else None
    first = min(0, *indices) if len(indices) > 1 else 0
    absent_indices = (index for index in range(first, first + size) if index not in indices)
    for index in absent_indices:
        yield f"member {index}" if stem is None else f"{stem}{index}"


def _stem(member: Member) -> str | None:
    """What comes before the index in a member's name: `worker-2`, or `train-2-x7k2p` of a Job."""
    match = re.fullmatch(rf"(.*-){member.index}(-[a-z0-9]{{5}})?", member.name)
    return match[1] if match else None
