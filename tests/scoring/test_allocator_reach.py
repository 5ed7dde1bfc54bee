"""Which sets of GPUs the kubelet may hand out on a node."""

from __future__ import annotations

from dataclasses import replace
from math import comb

import machines
import pytest

from scoring.allocator.aligned import aligned
from scoring.allocator.pairs import machines_of
from scoring.allocator.reach import reachable
from scoring.model import Node, TopologyPolicy
from scoring.rings import positions


def _sets(node: Node, free: int, k: int) -> list[list[int]]:
    found = reachable(node, free, k)
    assert found.sets is not None
    return sorted(list(positions(each)) for each in found.sets)


def test_half_of_a_switched_node_is_one_socket() -> None:
    """NVLink is not seen, so PCIe decides: either socket, by the order of a list."""
    assert _sets(machines.dgx_h100(), 0xFF, 4) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_pair_of_a_switched_node_is_any_pair_of_a_socket() -> None:
    """Nobody knows who shares a PCIe switch there, so the answer covers each layout, not exactly."""
    node = machines.dgx_h100()
    assert len(_sets(node, 0xFF, 2)) == 2 * comb(4, 2)
    assert not reachable(node, 0xFF, 2).exact


@pytest.mark.parametrize(
    "node", [machines.dgx_h100(), machines.dgx1v(), machines.a100_pcie_pairs()]
)
def test_a_whole_node_is_one_set(node: Node) -> None:
    """Whatever the layout, all GPUs are all GPUs: exact."""
    everything = (1 << len(node.gpus)) - 1
    found = reachable(node, everything, len(node.gpus))
    assert found.sets == frozenset({everything})
    assert found.exact


def test_bridged_pairs_come_as_pairs() -> None:
    """Pairs by link, not by index."""
    assert _sets(machines.a100_pcie_pairs(), 0b1111, 2) == [[0, 2], [1, 3]]


def test_half_of_a_cube_mesh_is_a_ring_of_four() -> None:
    """The two halves of the mesh, in every layout."""
    found = reachable(machines.dgx1v(), 0xFF, 4)
    assert found.sets == frozenset({0x0F, 0xF0})
    assert found.exact


def test_many_ways_are_unknown() -> None:
    """16 GPUs in pairs have two million partitions: any set may come, and the answer says so."""
    dgx2 = machines.machine("Tesla-V100-SXM3-32GB", 16, lambda _i, _j: "NV6")
    found = reachable(dgx2, 0xFFFF, 2)
    assert (found.sets, found.may_fail, found.exact) == (None, None, False)


def test_a_pair_left_over_may_fail_the_pod() -> None:
    """3 of the lone bridged pair and three others: the pair wins with a nil device."""
    node = machines.machine(
        "NVIDIA-A100-PCIE-40GB", 5, lambda i, j: "NV12" if (i, j) == (2, 3) else "SYS"
    )
    assert reachable(node, 0b11111, 3).may_fail


def test_topology_manager_keeps_to_a_numa_node() -> None:
    """The link over the sockets is out of reach where kubelet offers one socket only."""
    node = machines.dgx1v()
    free = 0b00110001
    assert _sets(node, free, 2) == [[0, 4]]
    assert _sets(replace(node, topology_policy=TopologyPolicy.RESTRICTED), free, 2) == [[4, 5]]


def test_topology_manager_takes_more_nodes_when_one_has_too_few() -> None:
    """Three of two and two: both sockets are offered, as if there were no filter."""
    node = machines.dgx1v()
    free = 0b00110011
    kept = replace(node, topology_policy=TopologyPolicy.BEST_EFFORT)
    assert _sets(kept, free, 3) == _sets(node, free, 3)


def test_just_enough_gpus_of_a_numa_node_are_taken_unasked() -> None:
    """Either socket has just four, so the plugin is not asked and no nil device comes."""
    (machine,) = machines_of(machines.pcie_l40s4())
    found = aligned(machine, 0b1111, 2, (0b0011, 0b1100))
    assert found.sets == frozenset({0b0011, 0b1100})
    assert not found.may_fail


def test_what_a_container_takes_over_counts_as_offered() -> None:
    """GPUs of an init container stay in the set, whatever NUMA node they are of."""
    (machine,) = machines_of(machines.pcie_l40s4())
    found = aligned(machine, 0b1111, 2, (0b0011, 0b1100), must=0b0001)
    assert found.sets == frozenset({0b0011, 0b0101, 0b1001})


def test_gpus_without_a_numa_node_are_offered_as_they_are() -> None:
    """Where NUMA nodes do not suffice there is nothing to filter by."""
    (machine,) = machines_of(machines.pcie_l40s4())
    assert aligned(machine, 0b1111, 3, (0b0011,)).sets == frozenset(
        {0b0111, 0b1011, 0b1101, 0b1110}
    )
    assert aligned(machine, 0b1111, 0, (0b0011,)).sets == frozenset()
