"""The best and the worst k GPUs out of a set, by the links between them.

Sets are compared by the slowest link of their best ring, then by the sum of all their links, both
in GB/s; among equals the one with the lowest positions is taken. Sums alone pick sets with a slower
ring than needed on cube meshes, as the ring is what collectives wait for.

GPUs that see all others alike are interchangeable, so only how many of each kind are taken needs to
be tried: one trial behind a switch, a few dozen in a PCIe tree, all subsets in a cube mesh (70 for 4
of 8). That is exact. Beyond `MAX_TRIALS` the answer is a greedy one and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

from scoring.links import Links
from scoring.rings import positions, ring

MAX_TRIALS: Final = 20_000
"""Sets tried at most: all subsets of 16 GPUs (12,870 of 8) fit. Above, `exact` is False."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """A set of GPUs and what its links are worth."""

    mask: int
    bottleneck_gbps: float
    """The slowest link of its best ring; infinity for one GPU."""
    sum_gbps: float
    """Over all pairs, each once."""
    exact: bool = True
    """False: a better (or worse) set may exist; trust it neither as best nor as worst."""


def best(links: Links, mask: int, k: int, *, must: int = 0) -> Subset | None:
    """The best `k` positions of `mask` that include all of `must`; None: there are no such."""
    return _extreme(links, mask, k, must, max)


def worst(links: Links, mask: int, k: int, *, must: int = 0) -> Subset | None:
    """The worst `k` positions of `mask` that include all of `must`; None: there are no such."""
    return _extreme(links, mask, k, must, min)


_Pick = Callable[[Sequence[float]], float]


@lru_cache(maxsize=65_536)
def _extreme(links: Links, mask: int, k: int, must: int, pick: _Pick) -> Subset | None:
    if k < 1 or must & ~mask or not must.bit_count() <= k <= mask.bit_count():
        return None
    kinds = _kinds(links, mask, must)
    exact = _trials([len(kind) for kind in kinds], k - must.bit_count()) <= MAX_TRIALS
    if exact:
        tried = sorted(_choices(kinds, k - must.bit_count(), must), key=lowest_first)
    else:
        tried = [_greedy(links, mask, k, must, pick)]
    rings = [ring(links, each) for each in tried]
    bottleneck_gbps = pick([found.gbps for found in rings])
    sums = [
        (_sum_gbps(links, each), each)
        for each, found in zip(tried, rings, strict=True)
        if found.gbps == bottleneck_gbps
    ]
    sum_gbps = pick([total for total, _ in sums])
    return Subset(
        mask=next(each for total, each in sums if total == sum_gbps),
        bottleneck_gbps=bottleneck_gbps,
        sum_gbps=sum_gbps,
        exact=exact and all(found.exact for found in rings),
    )


def lowest_first(mask: int) -> tuple[int, ...]:
    """The order among equal sets: positions ascending, compared one by one."""
    return tuple(positions(mask))


def _sum_gbps(links: Links, mask: int) -> float:
    """Over all pairs; rounded once, so that the order of positions does not matter."""
    gbps = links.gbps
    return math.fsum([gbps[i][j] for i, j in combinations(positions(mask), 2)])


def _kinds(links: Links, mask: int, must: int) -> list[list[int]]:
    """The positions of `mask` outside `must`, parted into those that see all of `mask` alike."""
    members = tuple(positions(mask))
    kinds: list[list[int]] = []
    for position in positions(mask & ~must):
        row = links.gbps[position]
        for kind in kinds:
            first = kind[0]
            other = links.gbps[first]
            if all(row[m] == other[m] for m in members if m not in (position, first)):
                kind.append(position)
                break
        else:
            kinds.append([position])
    return kinds


def _trials(sizes: Sequence[int], k: int) -> int:
    """How many ways there are to take `k` in all from kinds of these sizes."""
    ways = [1] + [0] * k
    for size in sizes:
        ways = [sum(ways[max(0, n - size) : n + 1]) for n in range(k + 1)]
    return ways[k]


def _choices(kinds: Sequence[Sequence[int]], k: int, taken: int) -> Iterator[int]:
    """One set for each way to take `k` in all: of every kind the lowest positions."""
    if not kinds:
        if k == 0:
            yield taken
        return
    kind, rest = kinds[0], kinds[1:]
    room = sum(map(len, rest))
    for count in range(min(len(kind), k) + 1):
        if count:
            taken |= 1 << kind[count - 1]
        if k - count <= room:
            yield from _choices(rest, k - count, taken)


def _greedy(links: Links, mask: int, k: int, must: int, pick: _Pick) -> int:
    """A set that grows by the position with the most (or least) GB/s to those that are in it."""
    chosen = must
    while chosen.bit_count() < k:
        gains = [
            (math.fsum([links.gbps[i][j] for j in positions(chosen or mask)]), i)
            for i in positions(mask & ~chosen)
        ]
        gain = pick([total for total, _ in gains])
        chosen |= 1 << next(i for total, i in gains if total == gain)
    return chosen
