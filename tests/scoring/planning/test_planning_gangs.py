"""Whole gangs on nodes: how near, on which GPUs, in which order, and what stays where it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from machines import dgx_h100, nvl72_tray
from sites import (
    BLOCK,
    GPU,
    RACK,
    SUSPECT_TOO,
    ZONE,
    Cluster,
    cluster,
    gang,
    holding,
    nodes_of,
    racked,
    shape,
)

from scoring.model import (
    AllocationMode,
    Cause,
    GangKey,
    Health,
    Need,
    NodeName,
    PodUid,
    ResourceKind,
    WorkClass,
)
from scoring.planning.obstacles import Obstacle
from scoring.planning.outcome import Lack, Plan, Shortfall
from scoring.planning.values import Claim, Exclusion, Site, Topology
from scoring.topology import Level

SUSPECT = (Cause(id="ecc.sbe_rate", state=Health.SUSPECT),)


def test_a_gang_goes_into_the_one_rack_that_holds_it() -> None:
    """Three of the four nodes of rack r0 are free, and all of r1."""
    found = cluster(*racked(8, per_rack=4), held={"n0": 8}).plan(gang(*[shape()] * 4))
    assert nodes_of(found) == ["n4", "n5", "n6", "n7"]
    assert found.domain is not None
    assert found.domain.level is Level.RACK
    assert (found.objective.racks, found.objective.nodes) == (1, 4)


def test_where_no_rack_holds_it_a_gang_takes_the_fewest() -> None:
    """Racks of 1, 2 and 2 free nodes: four members need two racks, not three."""
    busy = {"n0": 8, "n3": 8, "n6": 8, "n1": 8}
    found = cluster(*racked(9, per_rack=3), held=busy).plan(gang(*[shape()] * 4))
    assert found.objective.racks == 2


def test_members_share_a_node_where_they_fit() -> None:
    """Eight members of one GPU are nearest on one node."""
    found = cluster(*racked(4, per_rack=2)).plan(gang(*[shape(1)] * 8))
    assert len(set(nodes_of(found))) == 1


def test_suspect_gpus_come_after_topology_and_before_stranding() -> None:
    """Of two racks alike the one without SUSPECT GPUs is taken, and a lone rack is taken with them."""
    nodes = racked(4, per_rack=2)
    nodes[0] = dgx_h100(name="n0", labels=nodes[0].labels, causes={3: SUSPECT})
    both = cluster(*nodes, policy=SUSPECT_TOO)
    assert nodes_of(both.plan(gang(shape(), shape()))) == ["n2", "n3"]
    one = cluster(*nodes, held={"n3": 8}, policy=SUSPECT_TOO).plan(gang(shape(), shape()))
    assert nodes_of(one) == ["n0", "n1"]
    assert one.objective.suspect_gpus == 1


def test_a_part_node_ask_leaves_whole_nodes_whole() -> None:
    """Four GPUs are taken from the node of which four are in use, not from an idle one."""
    found = cluster(*racked(4, per_rack=4), held={"n2": 4}).plan(gang(shape(4), least=1))
    assert nodes_of(found) == ["n2"]
    assert found.objective.stranded_gpus == 0


def test_a_small_gang_leaves_whole_cliques_whole() -> None:
    """Two trays are taken from the clique that is broken already, though its name comes last."""
    trays = [
        nvl72_tray(name=f"t{number}", labels={"nvidia.com/gpu.clique": f"c.{number // 4}"})
        for number in range(8)
    ]
    broken = cluster(*trays, held={"t7": 4})
    assert nodes_of(broken.plan(gang(shape(4), shape(4)))) == ["t4", "t5"]


def test_consecutive_members_are_neighbours() -> None:
    """Members 0-2 share a rack, members 3-5 the other, and numbers in names count as numbers."""
    nodes = [
        dgx_h100(name=f"n{number}", labels={RACK: f"r{number // 3 % 2}", ZONE: "z"})
        for number in (8, 9, 10, 11, 0, 1)
    ]
    found = nodes_of(cluster(*nodes).plan(gang(*[shape()] * 6)))
    racks = {str(node.name): node.labels[RACK] for node in nodes}
    assert [racks[name] for name in found] == ["r0"] * 3 + ["r1"] * 3
    assert found.index("n9") < found.index("n10") < found.index("n11")


def test_members_may_ask_for_different_numbers_of_gpus() -> None:
    """A leader of 2 GPUs and two workers of 8 and one of 6 find the two-rack fleet's best rack."""
    found = cluster(*racked(6, per_rack=3)).plan(gang(shape(2), shape(8), shape(8), shape(6)))
    names = nodes_of(found)
    assert names[0] == names[3]
    assert found.objective.nodes == 3
    assert found.objective.racks == 1


def test_a_member_without_gpus_stays_near() -> None:
    """A launcher asks for no GPU and lands on a node of its gang."""
    launcher = replace(
        shape(), need=Need(work=WorkClass.GANG, count=0, resource="", kind=ResourceKind.NONE)
    )
    found = nodes_of(cluster(*racked(4, per_rack=2)).plan(gang(launcher, shape(), shape())))
    assert found[0] in found[1:]


def test_the_required_level_may_be_any_label() -> None:
    """Rows of two nodes each: a gang of three that must share a row has no plan."""
    nodes = [
        dgx_h100(name=f"n{number}", labels={"example.com/row": f"w{number // 2}"})
        for number in range(4)
    ]
    row = Topology(required="example.com/row")
    assert len(set(nodes_of(cluster(*nodes).plan(gang(*[shape()] * 2, topology=row))))) == 2
    assert cluster(*nodes).shortfall(gang(*[shape()] * 3, topology=row)).lack is (
        Lack.DOMAIN_TOO_SMALL
    )


def test_the_preferred_level_gives_way() -> None:
    """Three members prefer one row of two nodes each, and get nodes all the same."""
    nodes = [
        dgx_h100(name=f"n{number}", labels={"example.com/row": f"w{number % 2}", RACK: "r"})
        for number in range(4)
    ]
    row = Topology(preferred="example.com/row")
    assert nodes_of(cluster(*nodes).plan(gang(shape(), shape(), topology=row))) == ["n0", "n2"]
    assert len(nodes_of(cluster(*nodes).plan(gang(*[shape()] * 3, topology=row)))) == 3


def test_a_required_island_is_one_node() -> None:
    """Two members of four GPUs share the NVLink of one node."""
    island = Topology(required=Level.ISLAND)
    found = nodes_of(
        cluster(*racked(2, per_rack=2)).plan(gang(shape(4), shape(4), topology=island))
    )
    assert found[0] == found[1]


def test_a_sick_gpu_keeps_a_second_member_off_the_node() -> None:
    """A plugin that honours Surefoot's choice gives six healthy GPUs to three members; where any GPU
    may come, none.
    """
    sick = {0: (Cause(id="remap.pending", state=Health.DEGRADED),)}
    planned = dgx_h100(name="n0", causes=sick, mode=AllocationMode.PLANNED)
    unknown = dgx_h100(name="n0", causes=sick, mode=AllocationMode.UNKNOWN)
    assert nodes_of(cluster(planned).plan(gang(*[shape(2)] * 3))) == ["n0"] * 3
    assert cluster(unknown).shortfall(gang(shape(2), shape(2))).lack is Lack.NO_ROOM


# --- what stands already ---------------------------------------------------------------------------


def _running(count: int = 8, per_rack: int = 4) -> Cluster:
    """Members 0 and 1 of `ml/train` run on n4 and n5."""
    nodes = racked(count, per_rack=per_rack)
    key = GangKey("ml/train")
    made = cluster(*nodes)
    held = {
        NodeName(name): (holding(nodes[int(name[1:])], range(8), key),) for name in ("n4", "n5")
    }
    return replace(made, fleet=replace(made.fleet, allocations=held))


def test_a_replacement_is_planned_near_the_members_that_run() -> None:
    """Rack r0 is all free and comes first by name; the gang runs in r1."""
    found = _running().plan(gang(*[shape()] * 3, bound={0: "n4", 1: "n5"}))
    assert nodes_of(found)[2] in ("n6", "n7")
    assert found.kept == {"train-0", "train-1"}


def test_a_node_that_failed_the_gang_is_left_alone_until_it_reports_anew() -> None:
    """The exclusion ends with a later document of the node, and concerns this gang alone."""
    made = _running()
    node = made.fleet.nodes[NodeName("n6")]
    fail = Exclusion(node=node.name, owner=GangKey("ml/train"), epoch=node.epoch, seq=node.seq)
    spoiled = replace(made, site=replace(made.site, exclusions=frozenset({fail})))
    half = gang(*[shape()] * 3, bound={0: "n4", 1: "n5"})
    assert nodes_of(made.plan(half))[2] == "n6"
    assert nodes_of(spoiled.plan(half))[2] == "n7"
    fresh = {**made.fleet.nodes, node.name: replace(node, seq=node.seq + 1)}
    again = replace(spoiled, fleet=replace(made.fleet, nodes=fresh))
    assert nodes_of(again.plan(half))[2] == "n6"
    assert nodes_of(spoiled.plan(gang(shape(), name="other", topology=Topology()))) == ["n0"]


def test_a_half_placed_gang_comes_before_a_new_one_of_higher_priority() -> None:
    """One node is left; the gang that lacks one member gets it."""
    made = _running(count=7, per_rack=7)
    made = replace(
        made,
        fleet=replace(
            made.fleet,
            allocations={
                **made.fleet.allocations,
                **{
                    NodeName(f"n{number}"): (
                        holding(made.fleet.nodes[NodeName(f"n{number}")], range(8)),
                    )
                    for number in range(4)
                },
            },
        ),
    )
    half = gang(*[shape()] * 3, bound={0: "n4", 1: "n5"})
    first, second = made.planned(gang(shape(), name="vip", priority=9), half)
    assert isinstance(first, Plan)
    assert first.gang == "ml/train"
    assert isinstance(second, Shortfall)


def test_nominated_members_keep_their_nodes() -> None:
    """A gang that was nominated to n2 and n3 stays there, although n0 and n1 come first by name."""
    found = cluster(*racked(4, per_rack=4)).plan(
        gang(shape(), shape(), nominated={0: "n3", 1: "n2"})
    )
    assert nodes_of(found) == ["n3", "n2"]
    assert found.kept == {"train-0", "train-1"}


def test_a_nominated_member_moves_when_its_node_turns_bad() -> None:
    """n3 needs a reset: its member is planned anew, the other one stays."""
    nodes = racked(4, per_rack=4)
    bad = {0: (Cause(id="xid.48", state=Health.RESET_REQUIRED),)}
    nodes[3] = dgx_h100(name="n3", labels=nodes[3].labels, causes=bad)
    found = cluster(*nodes).plan(gang(shape(), shape(), nominated={0: "n3", 1: "n2"}))
    assert nodes_of(found) == ["n0", "n2"]


@pytest.mark.parametrize(("priority", "takes"), [(0, False), (1, True)])
def test_nominated_room_yields_to_strictly_higher_priority_alone(
    priority: int, takes: bool
) -> None:
    """Both nodes are nominated to a gang of priority 0; a rival of the same one, older, gets none."""
    standing = gang(shape(), shape(), name="a", nominated={0: "n0", 1: "n1"})
    rival = gang(shape(), shape(), name="b", priority=priority, age_s=500.0)
    outcomes = {
        each.gang: each for each in cluster(*racked(2, per_rack=2)).planned(standing, rival)
    }
    assert isinstance(outcomes[GangKey("ml/b")], Plan) is takes
    assert isinstance(outcomes[GangKey("ml/a")], Plan) is not takes


def test_nominations_give_way_where_the_gang_cannot_be_whole_with_them() -> None:
    """One member is nominated in a rack that cannot take the other; both must share a rack."""
    made = cluster(*racked(4, per_rack=2), held={"n1": 8})
    found = made.plan(
        gang(shape(), shape(), nominated={0: "n0"}, topology=Topology(required=Level.RACK))
    )
    assert nodes_of(found) == ["n2", "n3"]


def test_a_claim_holds_its_room() -> None:
    """A nominated single pod keeps n0 from the gang."""
    made = cluster(*racked(3, per_rack=3))
    claim = Claim(uid=PodUid("single"), node=NodeName("n0"), shape=shape())
    claimed = replace(made, site=Site(rooms=made.site.rooms, claims=(claim,)))
    assert nodes_of(claimed.plan(gang(shape(), shape()))) == ["n1", "n2"]


# --- a minimum below the size ----------------------------------------------------------------------


def test_a_gang_with_a_minimum_is_planned_whole_where_it_fits() -> None:
    """Four members of which two suffice take four nodes, over two racks."""
    found = cluster(*racked(4, per_rack=2)).plan(gang(*[shape()] * 4, least=2))
    assert len(found.places) == 4
    assert not found.waiting


def test_beyond_the_minimum_members_join_where_they_spread_the_gang_no_wider() -> None:
    """Three nodes of one rack and one of another are free: three of five members get nodes."""
    made = cluster(*racked(6, per_rack=3), held={"n4": 8, "n5": 8})
    found = made.plan(gang(*[shape()] * 5, least=2))
    assert nodes_of(found) == ["n0", "n1", "n2"]
    assert found.waiting == ("train-3", "train-4")


# --- several gangs ---------------------------------------------------------------------------------


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    """A small gang behind a large one that waits may start."""
    large, small = gang(*[shape()] * 3, name="large", age_s=99.0), gang(shape(), name="small")
    first, second = cluster(*racked(2, per_rack=2)).planned(large, small)
    assert isinstance(first, Shortfall)
    assert not first.held
    assert isinstance(second, Plan)


def test_a_starved_gang_holds_its_best_domain() -> None:
    """After `starvation.after` the large gang holds the rack in which most of its members fit."""
    rack = Topology(required=Level.RACK)
    large = gang(*[shape()] * 3, name="large", age_s=601.0, topology=rack)
    made = cluster(*racked(6, per_rack=3), held={"n0": 8, "n1": 8, "n5": 8})
    first, second, third = made.planned(
        large, gang(shape(), name="b", age_s=3.0), gang(shape(), name="c", age_s=2.0)
    )
    assert isinstance(first, Shortfall)
    assert set(first.held.values()) == {"n3", "n4"}
    assert first.lack is Lack.DOMAIN_TOO_SMALL
    assert first.counts == {Obstacle.GPUS_HELD: 3}
    assert isinstance(second, Plan)
    assert nodes_of(second) == ["n2"]
    assert isinstance(third, Shortfall)
    assert third.lack is Lack.BEHIND_OTHERS


@pytest.mark.parametrize(
    ("topology", "told"),
    [
        (Topology(required=Level.RACK), "even empty, no rack could hold the gang"),
        (Topology(), "even empty, the cluster could not hold the gang"),
    ],
)
def test_a_starved_gang_that_no_domain_could_ever_hold_holds_nothing(
    topology: Topology, told: str
) -> None:
    """It would hold room for ever, and never run. It is told so."""
    never = gang(*[shape()] * 7, name="never", age_s=99_999.0, topology=topology)
    first, second = cluster(*racked(6, per_rack=3)).planned(
        never, gang(*[shape()] * 6, name="small")
    )
    assert isinstance(first, Shortfall)
    assert not first.held
    assert told in first.unblock[0]
    assert isinstance(second, Plan)


def test_a_starved_gang_holds_a_domain_that_could_hold_it() -> None:
    """Not the rack that has most room now, and could never hold all of it."""
    rack = Topology(required=Level.RACK)
    large = gang(*[shape()] * 4, name="large", age_s=601.0, topology=rack)
    small, big = racked(3, per_rack=3), racked(8, per_rack=4)[4:]
    made = cluster(*small, *big, held={"n4": 8, "n5": 8})
    (found,) = made.planned(large)
    assert isinstance(found, Shortfall)
    assert set(found.held.values()) == {"n6", "n7"}


def test_two_gangs_for_one_room_are_served_by_age() -> None:
    """The older one runs whole, the other holds nothing."""
    old, young = gang(shape(), shape(), name="z", age_s=9.0), gang(shape(), shape(), name="a")
    first, second = cluster(*racked(3, per_rack=3)).planned(young, old)
    assert isinstance(first, Plan)
    assert first.gang == "ml/z"
    assert isinstance(second, Shortfall)


def test_what_the_device_plugin_took_back_is_not_planned() -> None:
    """Eight healthy GPUs of which kube-scheduler may give out seven take no member of eight."""
    made = cluster(*racked(2, per_rack=2)).node("n0", allocatable={GPU: 7})
    assert nodes_of(made.plan(gang(shape(), topology=Topology()))) == ["n1"]


def test_zones_and_blocks_count_before_racks() -> None:
    """Two racks of one block beat two racks of two blocks."""
    nodes = [
        dgx_h100(name=f"n{number}", labels={ZONE: "z", BLOCK: block, RACK: f"r{number}"})
        for number, block in enumerate(["b0", "b1", "b1"])
    ]
    assert nodes_of(cluster(*nodes).plan(gang(shape(), shape()))) == ["n1", "n2"]
