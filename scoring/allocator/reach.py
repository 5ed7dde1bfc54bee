"""Which sets of whole GPUs the kubelet may hand out on one node with NVIDIA's stock plugin."""

from __future__ import annotations

from functools import lru_cache

from scoring.allocator.aligned import aligned
from scoring.allocator.answer import Possible, either
from scoring.allocator.best_effort import possible
from scoring.allocator.pairs import PairScores, machines_of
from scoring.model import Node, TopologyPolicy


def reachable(node: Node, free: int, k: int) -> Possible:
    """The sets of `k` of the `free` positions of `node` that a pod may get.

    Where PCIe classes are hidden the answer covers each common layout of the machine; it is exact
    where they agree.
    """
    machines = machines_of(node)
    if node.topology_policy is TopologyPolicy.NONE:
        return _in_any(machines, free, k)
    numa_nodes: dict[int, int] = {}
    for position, gpu in enumerate(node.gpus):
        if gpu.numa is not None:
            numa_nodes[gpu.numa] = numa_nodes.get(gpu.numa, 0) | 1 << position
    return _in_any(machines, free, k, tuple(numa_nodes.values()))


@lru_cache(maxsize=8192)
def _in_any(
    machines: tuple[PairScores, ...], free: int, k: int, numa_nodes: tuple[int, ...] | None = None
) -> Possible:
    if numa_nodes is None:
        answers = [possible(machine, free, k) for machine in machines]
    else:
        answers = [aligned(machine, free, k, numa_nodes) for machine in machines]
    return either(answers, exact=len(set(answers)) == 1)
