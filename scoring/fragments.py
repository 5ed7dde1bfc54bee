"""What a pod would break: GPUs of whole islands, and of a whole node, that it leaves over.

A unit is whole while all of it is free. Health plays no part: a unit that is broken by a sick GPU
would else attract pods by its sickness.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations

from scoring.links import Links
from scoring.rings import full_mask, islands


@lru_cache(maxsize=8192)
def broken_by(links: Links, free: int, sets: frozenset[int]) -> int:
    """The most GPUs that lose their whole unit and stay free, when one of `sets` is taken."""
    whole = [island for island in islands(links) if not island & ~free]
    everything = full_mask(links)
    of_node = 0 if everything & ~free else everything
    return max((_lost(whole, of_node, taken) for taken in sets), default=0)


def _lost(whole: list[int], node: int, taken: int) -> int:
    of_islands = sum((island & ~taken).bit_count() for island in whole if island & taken)
    return max(of_islands, (node & ~taken).bit_count())


@lru_cache(maxsize=8192)
def broken(links: Links, free: int, reach: int, count: int, *, chosen: bool) -> int:
    """GPUs that lose their whole unit and stay free, when `count` GPUs of `reach` are taken.

    Where the set is chosen it is the least that is possible, else the most that may happen.
    Masks are over the positions of `links`.
    """
    whole = [island for island in islands(links) if not island & ~free and island.bit_count() > 1]
    of_islands = (_least if chosen else _most)(whole, reach, count)
    everything = full_mask(links)
    of_node = everything.bit_count() - count if not everything & ~free else 0
    return max(of_islands, of_node, 0)


def _most(whole: list[int], reach: int, count: int) -> int:
    """As many whole islands as there are GPUs to take, the largest first, and as little of each as
    the GPUs beside them allow.
    """
    touched = sorted((island.bit_count() for island in whole if island & reach), reverse=True)
    touched = touched[:count]
    beside = (reach & ~sum(whole)).bit_count()
    return sum(touched) - max(len(touched), count - beside)


def _least(whole: list[int], reach: int, count: int) -> int:
    """Over every choice of whole islands to take from, with the GPUs beside them for the rest."""
    beside = (reach & ~sum(whole)).bit_count()  # islands are disjoint
    costs = [0] if beside >= count else []
    for some in range(1, len(whole) + 1):
        for chosen in map(sum, combinations(whole, some)):
            taken = min((chosen & reach).bit_count(), count)
            if taken + beside >= count:
                costs.append(chosen.bit_count() - taken)
    return min(costs, default=0)
