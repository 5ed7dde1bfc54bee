"""Whether a plan that proceeds is still good, without another plan."""

from __future__ import annotations

from dataclasses import replace

import members
from sites import Cluster, cluster, racked

from scoring import picture
from scoring.gangs import seats
from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.values import Gathered
from scoring.model import Cause, Health, NodeName

N0, N1 = NodeName("n0"), NodeName("n1")


def planned(*bound: str | None) -> tuple[Gathered, GangPlan]:
    """Two members with a node each; some are bound there."""
    pods = [members.pod(at, bound=node) for at, node in enumerate(bound)]
    of = members.gang(*pods)
    return of, members.record(of, GangState.PLANNED, "n0", "n1")


def stand(of: Cluster, *changed: NodeName, bound: tuple[str | None, ...] = (None, None)) -> bool:
    """Whether the seats are still good."""
    gang, record = planned(*bound)
    return seats.stand(gang, record, picture.picture(of.fleet, of.policy), changed)


def sick(of: Cluster, name: NodeName) -> Cluster:
    """The same with a bad GPU on a node."""
    node = of.fleet.nodes[name]
    bad = replace(node.gpus[3], causes=(Cause(id="xid.48", state=Health.RESET_REQUIRED),))
    gpus = (*node.gpus[:3], bad, *node.gpus[4:])
    fleet = replace(of.fleet, nodes={**of.fleet.nodes, name: replace(node, gpus=gpus)})
    return replace(of, fleet=fleet)


WELL = cluster(*racked(3, per_rack=3))


def test_seats_on_nodes_that_are_as_they_were_stand() -> None:
    """Whatever happens elsewhere."""
    assert stand(WELL, NodeName("n2"))
    assert stand(WELL, N0, N1)


def test_a_seat_on_a_node_that_turned_bad_does_not_stand() -> None:
    """The gang is to be planned anew."""
    assert not stand(sick(WELL, N1), N1)


def test_a_bad_node_is_of_no_concern_to_a_member_that_runs_there() -> None:
    """What is bound is never moved."""
    assert stand(sick(WELL, N1), N1, bound=(None, "n1"))


def test_a_seat_whose_gpus_another_pod_took_does_not_stand() -> None:
    """One of another scheduler, or that named its node itself."""
    taken = cluster(*racked(3, per_rack=3), held={"n0": 1})
    assert not stand(taken, N0)


def test_a_node_that_nobody_reports_any_more_does_not_stand() -> None:
    """Nothing is known of it."""
    assert not stand(cluster(*racked(1, per_rack=1)), N1)
