"""Which gang is planned first."""

from __future__ import annotations

from collections.abc import Iterable

from scoring.model import GangKey
from scoring.planning.values import PendingGang


def ordered(gangs: Iterable[PendingGang]) -> list[PendingGang]:
    """Half-placed gangs first, the fewest missing first; then by priority, age and key.

    Half-placed: some members run, and fewer than the minimum. What they hold is idle until the rest
    comes, and two of them that wait for each other's nodes would wait for ever.
    """
    return sorted(gangs, key=_turn)


def missing(gang: PendingGang) -> int:
    """Members that a half-placed gang lacks to its minimum; 0 where it is not half-placed."""
    bound = sum(1 for member in gang.members if member.bound is not None)
    if not bound or gang.min is None:
        return 0
    return max(0, gang.min - bound)


def _turn(gang: PendingGang) -> tuple[bool, int, int, float, GangKey, str]:
    lacks = missing(gang)
    return not lacks, lacks, -gang.priority, gang.since_s, gang.key, gang.uid
