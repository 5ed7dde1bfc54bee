"""Which sets NVIDIA's best-effort policy may hand out, over every order of the free GPUs.

The policy (NVIDIA/go-gpuallocator, `besteffort_policy.go`, 876e7b7) parts all free GPUs into sets of
size k, the last one filled up with nil devices. It takes the partition with the most points, and of
that the set with the most points; what it meets first wins ties, and it walks partitions in the order
in which kubelet lists the GPUs, which is random (a Go map). The set with the nil devices takes part:
when it wins, the plugin fails the pod (upstream PR 80).

Instead of trying orders, ties are analysed. Kubelet may list the GPUs set by set as they stand in
any partition, the filled-up set last; the policy meets that partition first, and in it whichever
full set the list began with. So:

- a set may come if and only if it is a full set with the most points within some best partition;
- the filled-up set may win if and only if, in some best partition, no full set has more points, and
  the GPUs of it and of the full sets with as many points cannot be parted as well with it inside a
  full set (which would come before it in every list).

With 13 GPUs and more, asks for two and more that need 7 sets meet a fault of the policy (slices that
overwrite each other), which is not modelled: they have over 100,000 partitions, beyond the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import factorial, prod
from typing import Final

from scoring.allocator.answer import NOTHING, UNKNOWN, Possible
from scoring.allocator.pairs import PairScores
from scoring.rings import positions

MAX_PARTITIONS: Final = 20_000
"""Partitions analysed at most: all asks of up to 12 GPUs fit. Above, the answer is unknown."""

_NONE: Final = -1
"""Points of a partition that does not exist."""


@lru_cache(maxsize=8192)
def possible(scores: PairScores, available: int, k: int, *, must: int = 0) -> Possible:
    """The sets of `k` of the `available` GPUs that may come, all with those of `must`.

    Kubelet asks for `must` when a container takes over the GPUs of an init container.
    """
    if not max(1, must.bit_count()) <= k <= available.bit_count() or must & ~available:
        return NOTHING
    if partition_count(available.bit_count(), k) > MAX_PARTITIONS:
        return UNKNOWN
    search = _Search(scores, k)
    if must:
        # One set of each partition holds `must`, a full one, so there is nothing to choose within.
        _, sets = search.best_around(available, must)
        return Possible(sets=frozenset(sets), may_fail=False, exact=True)
    return search.answer(available)


def partition_count(gpus: int, k: int) -> int:
    """In how many ways GPUs are parted into sets of `k` and one of those left over."""
    sets, left = divmod(gpus, k)
    same = prod([factorial(k)] * sets) * factorial(sets) * factorial(left)
    return factorial(gpus) // same


class _Search:
    """The best partitions of sets of GPUs, for one machine and one size of set."""

    def __init__(self, scores: PairScores, k: int) -> None:
        self._peers = scores.peers
        self._k = k
        self._score_of: dict[int, int] = {}
        self._best_of: dict[int, tuple[int, list[tuple[int, ...]]]] = {0: (0, [()])}

    def answer(self, available: int) -> Possible:
        """What may come when nothing is required."""
        sets: set[int] = set()
        left_over: set[tuple[int, int]] = set()
        for partition in self._best(available)[1]:
            most = max(map(self._score, partition))
            tied = [each for each in partition if self._score(each) == most]
            for each in tied:
                if each.bit_count() == self._k:
                    sets.add(each)
                else:
                    left_over.add((each, sum(tied)))
        may_fail = any(self._may_win(each, among) for each, among in left_over)
        return Possible(sets=frozenset(sets), may_fail=may_fail, exact=True)

    def best_around(self, mask: int, core: int) -> tuple[int, list[int]]:
        """The most points of partitions of `mask` in which a full set holds `core`, and these sets."""
        totals = {
            each: self._score(each) + self._best(mask ^ each)[0]
            for each in _supersets(core, mask, self._k)
        }
        most = max(totals.values(), default=_NONE)
        return most, [each for each, total in totals.items() if total == most]

    def _may_win(self, left_over: int, tied: int) -> bool:
        """Whether some list of the GPUs makes `left_over` win; `tied` are the GPUs of it and of the
        full sets with as many points, of a best partition in which no set has more.
        """
        return self.best_around(tied, left_over)[0] < self._best(tied)[0]

    def _best(self, mask: int) -> tuple[int, list[tuple[int, ...]]]:
        """The most points that a partition of `mask` has, and the partitions that have them."""
        found = self._best_of.get(mask)
        if found is None:
            sets, left = divmod(mask.bit_count(), self._k)
            sizes = [self._k] * (sets > 0) + [left] * (left > 0)
            first = mask & -mask
            most, blocks = _NONE, []
            for size in sizes:
                for each in _supersets(first, mask, size):
                    total = self._score(each) + self._best(mask ^ each)[0]
                    if total > most:
                        most, blocks = total, [each]
                    elif total == most:
                        blocks.append(each)
            ways = [(each, *rest) for each in blocks for rest in self._best(mask ^ each)[1]]
            found = self._best_of[mask] = most, ways
        return found

    def _score(self, mask: int) -> int:
        """The points of a set: the sum over its pairs."""
        found = self._score_of.get(mask)
        if found is None:
            twice = sum(
                points * (peers & mask).bit_count()
                for position in positions(mask)
                for points, peers in self._peers[position]
            )
            found = self._score_of[mask] = twice // 2
        return found


def _supersets(core: int, mask: int, size: int) -> Iterator[int]:
    """The sets of `size` GPUs of `mask` that hold `core`."""
    count = size - core.bit_count()
    if count < 0:
        return
    for others in combinations([1 << i for i in positions(mask & ~core)], count):
        yield core + sum(others)
