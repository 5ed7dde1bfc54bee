"""What comes when kubelet's Topology Manager filters the free GPUs by NUMA node.

With a policy other than `none`, kubelet offers the plugin only the GPUs of the NUMA nodes that it
chose for the container (cm/devicemanager `devicesToAllocate`): the fewest nodes that have enough
free ones. Which of several fit depends on CPUs and memory too, so each of them is reckoned with.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from scoring.allocator.answer import Possible, either
from scoring.allocator.best_effort import possible
from scoring.allocator.pairs import PairScores


def aligned(
    scores: PairScores, available: int, k: int, numa_nodes: Iterable[int], *, must: int = 0
) -> Possible:
    """The sets of `k` that may come; `numa_nodes` are the GPUs of each NUMA node, as disjoint sets.

    GPUs of no NUMA node are offered only where no choice of NUMA nodes suffices.
    """
    offers = [mask & available | must for mask in _narrowest(available, k, tuple(numa_nodes), must)]
    if not offers:
        return possible(scores, available, k, must=must)
    return either((_offered(scores, offer, k, must) for offer in offers), exact=True)


def _offered(scores: PairScores, offer: int, k: int, must: int) -> Possible:
    """Kubelet does not ask the plugin when it has just enough."""
    if offer.bit_count() == k:
        return Possible(sets=frozenset({offer}), may_fail=False, exact=True)
    return possible(scores, offer, k, must=must)


def _narrowest(available: int, k: int, numa_nodes: tuple[int, ...], must: int) -> list[int]:
    """The unions of the fewest NUMA nodes with `k` of the available GPUs."""
    if k < 1:
        return []
    for count in range(1, len(numa_nodes) + 1):
        unions = [sum(chosen) for chosen in combinations(numa_nodes, count)]
        wide = [mask for mask in unions if (mask & available | must).bit_count() >= k]
        if wide:
            return wide
    return []
