"""NVIDIA's best-effort policy told again, step by step, for one list of the free GPUs.

It does what the policy's description says, in its order and without any shortcut, so that what
Surefoot derives can be compared with it over every list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

NIL = None
Points = Sequence[Sequence[int]]
_Set = tuple[int | None, ...]


def every_outcome(
    points: Points, free: Sequence[int], k: int, must: frozenset[int] = frozenset()
) -> tuple[set[frozenset[int]], bool]:
    """The sets that come over all lists of `free`, and whether some list yields a nil device."""
    sets: set[frozenset[int]] = set()
    fails = False
    for listed in permutations(free):
        chosen = outcome(points, listed, k, must)
        if NIL in chosen:
            fails = True
        elif chosen:
            sets.add(frozenset(gpu for gpu in chosen if gpu is not NIL))
    return sets, fails


def outcome(points: Points, listed: Sequence[int], k: int, must: frozenset[int]) -> _Set:
    """The set for one list; empty when there is none, with nil devices when the policy errs."""
    if k < 1 or len(listed) < k or len(must) > k:
        return ()
    best: tuple[_Set, ...] | None = None
    for partition in partitions(listed, k):
        if not any(must <= set(each) and NIL not in each for each in partition):
            continue
        if best is None or _total(points, partition) > _total(points, best):
            best = partition
    chosen: _Set = ()
    for each in best or ():
        if must <= set(each) and (not chosen or _score(points, each) > _score(points, chosen)):
            chosen = each
    return chosen


def partitions(listed: Sequence[int], k: int) -> Iterator[tuple[_Set, ...]]:
    """Partitions in the policy's order; of an ask for one GPU, each GPU on its own."""
    if k == 1:
        for gpu in listed:
            yield ((gpu,),)
        return
    padding = -len(listed) % k
    yield from _parted([*listed, *[NIL] * padding], k, padding)


def _parted(left: Sequence[int | None], k: int, padding: int) -> Iterator[tuple[_Set, ...]]:
    """The first GPU left with every choice of companions, then the rest likewise."""
    if len(left) == k:
        yield (tuple(left),)
        return
    for companions in combinations(left[1:], k - 1):
        chosen = (left[0], *companions)
        if chosen.count(NIL) in (0, padding):
            rest = [gpu for gpu in left if gpu not in chosen]
            for others in _parted(rest, k, padding):
                yield (chosen, *others)


def _score(points: Points, each: _Set) -> int:
    return sum(points[i][j] for i, j in combinations(each, 2) if i is not NIL and j is not NIL)


def _total(points: Points, partition: tuple[_Set, ...]) -> int:
    return sum(_score(points, each) for each in partition)
