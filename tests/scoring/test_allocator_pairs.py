"""What NVIDIA's stock plugin sees of a machine: PCIe classes, and NVLinks from GPU to GPU."""

from __future__ import annotations

import machines
import pytest

from scoring.allocator.pairs import machines_of, pair_points, pair_scores
from scoring.model import Fabric, Node


def _between(node: Node, i: int, j: int) -> set[int]:
    """The points of a pair on each machine that `node` may be."""
    return {machine.points[i][j] for machine in machines_of(node)}


def test_a_pair_earns_for_its_class_and_each_nvlink() -> None:
    """10 for SYS to 50 for PIX, 100 for each NVLink up to 18."""
    assert [pair_points(word, 0) for word in ("SYS", "NODE", "PHB", "PXB", "PIX")] == [
        10, 20, 30, 40, 50,
    ]  # fmt: skip
    assert pair_points("NODE", 4) == 420
    assert pair_points("SYS", 18) == pair_points("SYS", 36) == 1810


def test_a_word_that_is_no_class_is_an_error() -> None:
    """An unknown class is never worth a guess."""
    with pytest.raises(KeyError):
        pair_points("NV4", 0)


@pytest.mark.parametrize(
    "points",
    [((0, 10),), ((0, 10), (20, 0)), ((0, -10), (-10, 0))],
    ids=["not square", "not symmetric", "negative"],
)
def test_only_sound_matrices_are_machines(points: tuple[tuple[int, ...], ...]) -> None:
    """A matrix that the policy would panic on, or that nobody can measure, is refused."""
    with pytest.raises(ValueError, match="points"):
        pair_scores(points)


def test_equal_machines_are_one() -> None:
    """So that an answer is computed once for a fleet of them."""
    assert machines_of(machines.dgx_h100(name="a")) == machines_of(machines.dgx_h100(name="b"))
    assert pair_scores(((0, 10), (10, 0))) is pair_scores(((0, 10), (10, 0)))


@pytest.mark.parametrize(
    "node",
    [
        machines.dgx_h100(),
        machines.hgx_a100(),
        machines.nvl72_tray(),
        machines.nvl72_tray(fabric=None),
        machines.machine("Tesla-V100-SXM3-32GB", 16, lambda _i, _j: "NV6"),
        machines.machine("NVIDIA-A100-SXM4-40GB", 4, lambda _i, _j: "NV12"),
        machines.b200_with_gpu_off_fabric(),
    ],
    ids=["H100", "A100", "GB200", "GB200, silent", "DGX-2", "half an A100 node", "one GPU off"],
)
def test_nvlinks_to_a_switch_are_not_seen(node: Node) -> None:
    """Behind an NVSwitch every pair is worth its PCIe class alone."""
    last = len(node.gpus) - 1
    assert max(max(row) for machine in machines_of(node) for row in machine.points) <= 50
    assert _between(node, 0, last) <= {10, 20}


@pytest.mark.parametrize(
    ("node", "pair", "links"),
    [
        (machines.dgx1v(), (0, 3), 2),
        (machines.machine("NVIDIA-A100-SXM4-40GB", 4, lambda _i, _j: "NV4"), (0, 2), 4),
        (machines.machine("NVIDIA-H100-80GB-HBM3", 4, lambda _i, _j: "NV6"), (0, 2), 6),
        (machines.a100_pcie_pairs(), (0, 2), 12),
    ],
    ids=["cube mesh", "A100 board", "H100 board", "bridges"],
)
def test_nvlinks_from_gpu_to_gpu_are_counted(node: Node, pair: tuple[int, int], links: int) -> None:
    """Meshes and bridges have NVLinks that end at a GPU."""
    assert {points // 100 for points in _between(node, *pair)} == {links}


def test_a_fabric_tells_a_switch_where_numbers_do_not() -> None:
    """A few links a pair may be a mesh or a board with faults; only behind a switch is a fabric."""
    silent = machines.machine("NVIDIA-H200", 3, lambda _i, _j: "NV6")
    fabric = Fabric(state="completed")
    behind = machines.machine("NVIDIA-H200", 3, lambda _i, _j: "NV6", fabric=fabric)
    without = machines.machine(
        "NVIDIA-H200", 3, lambda _i, _j: "NV6", fabric=Fabric(state="not_supported")
    )
    assert all(points > 600 for points in _between(silent, 0, 1))
    assert all(points < 100 for points in _between(behind, 0, 1))
    assert machines_of(without) == machines_of(silent)


def test_known_classes_leave_one_machine() -> None:
    """Without NVLink words nothing is hidden."""
    node = machines.pcie_l40s4()
    assert len(machines_of(node)) == 1
    assert [_between(node, 0, j) for j in (1, 2, 3)] == [{20}, {10}, {10}]


def test_hidden_classes_are_reckoned_with() -> None:
    """Of one NUMA node: apart or on one switch, and neighbours share it; of two nodes: SYS."""
    node = machines.dgx_h100()
    assert _between(node, 0, 1) == {20, 40, 50}
    assert _between(node, 1, 2) == {20, 40, 50}
    assert {(m.points[0][1], m.points[1][2]) for m in machines_of(node)} == {
        (20, 20), (40, 20), (50, 20), (40, 40), (50, 50),
    }  # fmt: skip
    assert _between(node, 3, 4) == {10}


def test_a_class_that_shows_in_a_numa_node_stands_for_the_hidden_ones() -> None:
    """Where one pair of a NUMA node is PHB, no hidden pair of one is taken for worse."""
    node = machines.machine(
        "Tesla-V100-SXM2-16GB", 4, lambda i, j: "NV1" if i // 2 == j // 2 else "PHB"
    )
    one_numa = machines.machine(
        "Tesla-V100-SXM2-16GB", 8, lambda i, j: "PHB" if (i, j) == (0, 3) else "NV1"
    )
    assert _between(node, 0, 2) == {30}
    assert _between(one_numa, 1, 3) == {130, 140, 150}
