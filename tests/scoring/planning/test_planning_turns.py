"""Several members on one node: each as the webhook will judge it, on what those before it leave."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machines import a100_pcie_pairs, dgx_h100, pcie_l40s4
from sites import GPU, ROOMY, SUSPECT_TOO, cluster, gang, holding, nodes_of, shape

from scoring.links import links_of
from scoring.model import (
    AllocationMode,
    Cause,
    ClusterNode,
    GangKey,
    Gpu,
    GpuUuid,
    Health,
    Need,
    Node,
    NodeName,
    ResourceKind,
    WorkClass,
)
from scoring.planning import turns
from scoring.planning.outcome import Lack
from scoring.planning.values import Site
from scoring.reasons import Reason

DEGRADED = {0: (Cause(id="remap.pending", state=Health.DEGRADED),)}
MIG = "nvidia.com/mig-1g.10gb"


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_the_stock_plugin_fills_a_healthy_node(gpus: int) -> None:
    """Whatever divides the GPUs of a node is planned until it is full, and no further."""
    node = dgx_h100(name="n0", mode=AllocationMode.NVIDIA)
    full = gang(*[shape(gpus)] * (8 // gpus))
    assert nodes_of(cluster(node).plan(full)) == ["n0"] * (8 // gpus)
    more = gang(*[shape(gpus)] * (8 // gpus + 1))
    assert cluster(node).shortfall(more).lack is Lack.NO_ROOM


def _stock(count: int, words: dict[tuple[int, int], str]) -> Node:
    """GPUs of one socket behind one PCIe switch, but for some pairs."""
    alike = {(i, j): "PIX" for j in range(count) for i in range(j)}
    return Node(
        name=NodeName("n0"),
        gpus=tuple(Gpu(uuid=GpuUuid(f"g{i}"), index=i, numa=0) for i in range(count)),
        links=links_of(range(count), alike | words),
        mode=AllocationMode.NVIDIA,
    )


def test_no_member_is_planned_where_the_plugin_may_fail_it() -> None:
    """The first member of two GPUs is answered for certain. Of the three GPUs that it may leave some
    are answered with a device that is none (go-gpuallocator PR 80), so no second one is planned.
    """
    node = _stock(5, {(0, 1): "NV12", (2, 4): "NV12", (0, 4): "NODE"})
    assert nodes_of(cluster(node).plan(gang(shape(2), least=1))) == ["n0"]
    assert cluster(node).shortfall(gang(shape(2), shape(2))).lack is Lack.NO_ROOM


def test_members_that_do_not_divide_a_node_share_it_where_the_plugin_answers_all() -> None:
    """Two members of three GPUs on eight that look alike to the plugin."""
    node = _stock(8, {})
    assert nodes_of(cluster(node).plan(gang(shape(3), shape(3)))) == ["n0", "n0"]


def test_a_chosen_set_leaves_the_sick_gpu_out() -> None:
    """Seven members of one GPU fit where the plugin honours a choice, an eighth does not."""
    node = dgx_h100(name="n0", mode=AllocationMode.PLANNED, causes=DEGRADED)
    assert nodes_of(cluster(node).plan(gang(*[shape(1)] * 7))) == ["n0"] * 7
    assert cluster(node).shortfall(gang(*[shape(1)] * 8)).lack is Lack.NO_ROOM


def test_nominated_members_stay_on_a_chosen_set() -> None:
    """Seven members nominated to a node with one sick GPU keep it."""
    node = dgx_h100(name="n0", mode=AllocationMode.PLANNED, causes=DEGRADED)
    other = dgx_h100(name="m0", mode=AllocationMode.PLANNED)
    standing = gang(*[shape(1)] * 7, nominated=dict.fromkeys(range(7), "n0"))
    found = cluster(node, other).plan(standing)
    assert nodes_of(found) == ["n0"] * 7
    assert len(found.kept) == 7


def test_members_of_different_shapes_share_no_node_with_a_sick_gpu() -> None:
    """Which GPUs the first one gets is not known, so the second must do with any."""
    healthy = pcie_l40s4(name="n0", mode=AllocationMode.PLANNED)
    sick = pcie_l40s4(name="n0", mode=AllocationMode.PLANNED, causes=DEGRADED)
    mixed = gang(shape(2), shape(1))
    assert nodes_of(cluster(healthy).plan(mixed)) == ["n0", "n0"]
    assert cluster(sick).shortfall(mixed).lack is Lack.NO_ROOM


def test_suspect_gpus_are_counted_at_worst() -> None:
    """Two of four free GPUs are SUSPECT: a member of one may get one of them, one of three gets at
    least one; a choice avoids them while it can.
    """
    causes = {i: (Cause(id="ecc.sbe_rate", state=Health.SUSPECT),) for i in (0, 1)}
    for mode, one, three in ((AllocationMode.UNKNOWN, 1, 2), (AllocationMode.PLANNED, 0, 1)):
        made = cluster(a100_pcie_pairs(name="n0", mode=mode, causes=causes), policy=SUSPECT_TOO)
        assert made.plan(gang(shape(1), least=1)).objective.suspect_gpus == one
        assert made.plan(gang(shape(3), least=1)).objective.suspect_gpus == three


def test_gpus_held_by_count_alone_are_not_planned() -> None:
    """A pod holds four GPUs, nobody says which: four are left."""
    node = dgx_h100(name="n0")
    made = cluster(node)
    held = replace(holding(node, range(4), GangKey("ml/other")), gpus=None)
    made = replace(made, fleet=replace(made.fleet, allocations={node.name: (held,)}))
    assert nodes_of(made.plan(gang(shape(4), least=1))) == ["n0"]
    assert made.shortfall(gang(shape(5), least=1)).lack is Lack.NO_ROOM


def test_mig_devices_are_counted_by_the_api_server() -> None:
    """Three of its units are free, whoever holds the GPUs."""
    member = shape(need=Need(work=WorkClass.GANG, count=1, kind=ResourceKind.MIG, resource=MIG))
    made = cluster(dgx_h100(name="n0")).node("n0", allocatable={GPU: 0, MIG: 3})
    assert nodes_of(made.plan(gang(*[member] * 3))) == ["n0"] * 3
    assert made.shortfall(gang(*[member] * 4)).lack is Lack.NO_ROOM


def test_a_node_that_reports_nothing_takes_only_members_without_gpus() -> None:
    """The launcher may go to a node without GPUs; a worker is told why not."""
    launcher = shape(need=Need(work=WorkClass.GANG, count=0, kind=ResourceKind.NONE, resource=""))
    made = cluster()
    plain = ClusterNode(name=NodeName("cpu-0"), allocatable={GPU: 8})
    made = replace(
        made,
        fleet=replace(made.fleet, cluster={plain.name: plain}),
        site=Site(rooms={plain.name: ROOMY}),
    )
    assert nodes_of(made.plan(gang(launcher, launcher))) == ["cpu-0", "cpu-0"]
    found = made.shortfall(gang(shape(8), least=1))
    assert found.lack is Lack.NO_ROOM
    assert found.counts == {Reason.NODE_UNREPORTED: 1}


def test_more_sets_than_can_be_gone_through_end_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the members that are certain are planned, and no more."""
    monkeypatch.setattr(turns, "MOST_WAYS", 1)
    node = dgx_h100(name="n0", mode=AllocationMode.NVIDIA)
    assert nodes_of(cluster(node).plan(gang(shape(3), least=1))) == ["n0"]
    assert cluster(node).shortfall(gang(shape(3), shape(3))).lack is Lack.NO_ROOM
