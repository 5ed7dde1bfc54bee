"""Why a gang has no plan: one sentence, the nearest miss, what would help."""

from __future__ import annotations

from dataclasses import replace

from machines import dgx_h100
from sites import SICK, TAINT, cluster, gang, holding, racked, shape

from scoring.model import Cause, GangKey, NodeName
from scoring.planning.obstacles import Obstacle
from scoring.planning.outcome import Lack, Plan, Shortfall
from scoring.planning.values import Exclusion, Topology
from scoring.reasons import Reason
from scoring.topology import Level

RESET = (Cause(id="xid.48", state=SICK),)


def test_the_silent_quorum_is_told() -> None:
    """Three of four pods exist: the missing one is named after the others."""
    three = gang(*[shape()] * 4, name="worker", least=4)
    three = replace(three, members=tuple(each for each in three.members if each.index != 2))
    found = cluster(*racked(4, per_rack=4)).shortfall(three)
    assert found.lack is Lack.MEMBERS_MISSING
    assert found.constraint == "3 of 4 pods exist; worker-2 is missing"
    assert found.unblock


def test_missing_members_of_a_job_are_named_by_index() -> None:
    """A Job's pods have a suffix after their index; many missing ones are counted."""
    few = gang(shape(), name="train", least=6)
    few = replace(few, members=(replace(few.members[0], name="train-0-x7k2p"),))
    found = cluster(*racked(1, per_rack=1)).shortfall(few)
    assert found.constraint == (
        "1 of 6 pods exist; train-1, train-2, train-3 and 2 more are missing"
    )


def test_an_absurd_size_costs_nothing_to_tell() -> None:
    """Names are made for those that are told alone: a label may ask for a thousand million pods."""
    one = replace(gang(shape(), name="train", least=999_999_999), size=999_999_999)
    found = cluster(*racked(1, per_rack=1)).shortfall(one)
    assert found.constraint == (
        "1 of 999999999 pods exist; train-1, train-2, train-3 and 999999995 more are missing"
    )


def test_a_gang_of_unknown_size_is_not_planned() -> None:
    """No number is never read as one."""
    found = cluster(*racked(2, per_rack=2)).shortfall(gang(shape(), least=None))
    assert found.lack is Lack.SIZE_UNKNOWN


def test_a_member_larger_than_every_node_is_told() -> None:
    """No waiting will help it."""
    found = cluster(*racked(2, per_rack=2)).shortfall(gang(shape(16)))
    assert found.lack is Lack.TOO_LARGE
    assert found.constraint == "a member asks 16 nvidia.com/gpu, the largest node has 8"


def test_the_nearest_miss_names_the_node_and_its_cure() -> None:
    """Five members need one rack; four nodes of r1 would do, and n9 has a GPU to reset."""
    nodes = racked(10, per_rack=5)
    nodes[9] = dgx_h100(name="n9", labels=nodes[9].labels, causes={3: RESET})
    made = cluster(*nodes, held={"n0": 8, "n1": 8})
    found = made.shortfall(gang(*[shape()] * 5, topology=Topology(required=Level.RACK)))
    assert found.lack is Lack.DOMAIN_TOO_SMALL
    assert found.nearest is not None
    assert (found.nearest.domain, found.nearest.placed, found.nearest.needed) == ("rack r1", 4, 5)
    assert found.summary == (
        "5 members need a node within one rack, and none has room for them all."
        " Nearest: 4 of 5 members fit in rack r1; n9 would do if GPU 3 were reset."
    )
    assert found.counts == {Obstacle.GPUS_HELD: 2, Reason.RESET_REQUIRED: 1}
    assert Reason.RESET_REQUIRED.advice in found.unblock


def test_without_a_level_the_cluster_is_what_is_too_small() -> None:
    """Two of three members would fit, and the third node is cordoned."""
    made = cluster(*racked(3, per_rack=3)).node("n1", unschedulable=True)
    found = made.shortfall(gang(*[shape()] * 3))
    assert found.lack is Lack.NO_ROOM
    assert found.constraint == "3 members need a node, and the cluster has room for 2"
    assert found.nearest is not None
    assert found.nearest.cures == ("n1 would do if it were uncordoned",)


def test_room_that_gangs_before_took_is_told_apart() -> None:
    """The second of two gangs would fit if it were alone."""
    first, second = gang(shape(), name="a", age_s=9.0), gang(shape(), shape(), name="b")
    _, found = cluster(*racked(2, per_rack=2)).planned(first, second)
    assert found is not None
    assert getattr(found, "lack", None) is Lack.BEHIND_OTHERS


def test_members_that_run_apart_are_told() -> None:
    """Both racks have a member, and all must share one."""
    nodes = racked(4, per_rack=2)
    made = cluster(*nodes)
    key = GangKey("ml/train")
    held = {
        NodeName(name): (holding(nodes[at], range(8), key),) for name, at in (("n0", 0), ("n2", 2))
    }
    made = replace(made, fleet=replace(made.fleet, allocations=held))
    found = made.shortfall(
        gang(*[shape()] * 3, bound={0: "n0", 1: "n2"}, topology=Topology(required=Level.RACK))
    )
    assert found.lack is Lack.MEMBERS_APART


def test_a_level_that_no_node_has_is_told() -> None:
    """The label of the required level is nowhere."""
    found = cluster(*racked(2, per_rack=2)).shortfall(
        gang(shape(), shape(), topology=Topology(required="example.com/row"))
    )
    assert found.lack is Lack.DOMAIN_TOO_SMALL
    assert found.counts == {Obstacle.OUTSIDE: 2}


def test_obstacles_beside_health_are_counted() -> None:
    """A taint, an exclusion, and a node that the cluster does not have."""
    made = cluster(*racked(4, per_rack=4)).node("n0", taints=(TAINT,))
    fail = Exclusion(node=NodeName("n1"), owner=GangKey("ml/train"), epoch=0, seq=0)
    gone = {name: node for name, node in made.fleet.cluster.items() if name != "n2"}
    made = replace(
        made,
        fleet=replace(made.fleet, cluster=gone),
        site=replace(made.site, exclusions=frozenset({fail})),
    )
    found = made.shortfall(gang(shape(), shape()))
    assert found.counts == {
        Obstacle.FAILED_BEFORE: 1,
        Obstacle.TAINTED: 1,
        Obstacle.UNREPORTED_TO_CLUSTER: 1,
    }


def test_members_without_an_index_are_only_counted() -> None:
    """Nothing tells which of them is missing."""
    one = gang(shape(), least=2)
    one = replace(one, members=(replace(one.members[0], index=None),))
    assert cluster(*racked(1, per_rack=1)).shortfall(one).constraint == "1 of 2 pods exist"


def test_every_obstacle_has_its_words() -> None:
    """For events and for explain."""
    assert all(obstacle.text for obstacle in Obstacle)
    assert Obstacle.CORDONED.cure == "it were uncordoned"


def test_shapes_that_fit_alone_but_not_together_are_counted_together() -> None:
    """One node of eight takes the leader of six or the worker of four, not both; nothing is held."""
    made = cluster(*racked(1, per_rack=1))
    large, small = gang(shape(6), shape(4), age_s=9.0), gang(shape(8), name="b")
    found, after = made.planned(large, small)
    assert isinstance(found, Shortfall)
    assert found.nearest is not None
    assert (found.nearest.placed, found.nearest.needed) == (1, 2)
    assert isinstance(after, Plan)
