"""Which member gets which place: consecutive members are neighbours."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from scoring.planning.search import Assignment
from scoring.planning.tree import Path
from scoring.planning.values import Member, Shape

_DIGITS = re.compile(r"([0-9]+)")


def in_order(members: Iterable[Member]) -> list[Member]:
    """By index, those without one after those with one, then by name: `worker-9`, `worker-10`."""
    return sorted(members, key=lambda each: (_index(each), natural(each.name), each.uid))


def _index(member: Member) -> float:
    return math.inf if member.index is None else member.index


@lru_cache(maxsize=1 << 15)
def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Names in the order of people: numbers in them count as numbers."""
    return tuple(
        (0, int(part), part) if part.isdecimal() and part.isascii() else (1, 0, part)
        for part in _DIGITS.split(name)
    )


def seated(
    members: Sequence[Member],
    shapes: Sequence[Shape],
    places: Assignment,
    paths: Sequence[Path],
    standing: Mapping[int, int],
) -> dict[Member, int]:
    """A host for each of `members`, of which `places` has as many as there are.

    Hosts are gone through domain by domain, the members in their order. Domains in which the gang
    stands already come in the order of its members there: `standing` has the rank of the first one
    of each host.
    """
    ranks: dict[tuple[object, ...], int] = {}
    for position, rank in standing.items():
        for depth in range(1, len(paths[position]) + 1):
            prefix = paths[position][:depth]
            ranks[prefix] = min(rank, ranks.get(prefix, rank))

    def place(position: int) -> list[tuple[float, tuple[tuple[int, int, str], ...]]]:
        path = paths[position]
        return [
            (ranks.get(path[: depth + 1], math.inf), natural(domain.name))
            for depth, domain in enumerate(path)
        ]

    queues = {shape: [each for each in members if each.shape == shape] for shape in shapes}
    found: dict[Member, int] = {}
    for position in sorted(places, key=place):
        for shape, count in zip(shapes, places[position], strict=True):
            here, queues[shape] = queues[shape][:count], queues[shape][count:]
            found |= dict.fromkeys(here, position)
    return found
