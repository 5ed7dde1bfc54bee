"""Selectors, affinity, taints and ports as kube-scheduler reads them."""

from __future__ import annotations

import pytest
from sites import ROOMY, cluster, gang, nodes_of, racked, shape

from scoring.model import ClusterNode, NodeName, Taint
from scoring.planning.obstacles import Obstacle
from scoring.planning.outcome import Lack
from scoring.planning.selection import (
    NAME_FIELD,
    Operator,
    Requirement,
    Selection,
    Term,
    Toleration,
)
from scoring.planning.values import Amounts, HostPort, Room

NODE = ClusterNode(name=NodeName("n0"), labels={"disk": "ssd", "cores": "64", "empty": ""})


def _met(operator: Operator, key: str, *values: str) -> bool:
    return Requirement(key=key, operator=operator, values=values).met_by(NODE.labels)


@pytest.mark.parametrize(
    ("operator", "key", "values", "met"),
    [
        (Operator.IN, "disk", ("hdd", "ssd"), True),
        (Operator.IN, "disk", ("hdd",), False),
        (Operator.IN, "absent", ("ssd",), False),
        (Operator.NOT_IN, "disk", ("ssd",), False),
        (Operator.NOT_IN, "absent", ("ssd",), True),
        (Operator.EXISTS, "empty", (), True),
        (Operator.EXISTS, "absent", (), False),
        (Operator.DOES_NOT_EXIST, "absent", (), True),
        (Operator.DOES_NOT_EXIST, "disk", (), False),
        (Operator.GT, "cores", ("63",), True),
        (Operator.GT, "cores", ("64",), False),
        (Operator.LT, "cores", ("65",), True),
        (Operator.LT, "absent", ("65",), False),
        (Operator.GT, "disk", ("1",), False),
        (Operator.GT, "cores", ("many",), False),
        (Operator.GT, "cores", ("1", "2"), False),
    ],
)
def test_every_operator_of_affinity(
    operator: Operator, key: str, values: tuple[str, ...], met: bool
) -> None:
    """An absent label is in no set, and neither above nor below a number."""
    assert _met(operator, key, *values) is met


def test_terms_are_alternatives_and_their_requirements_are_not() -> None:
    """One term must be met whole; a term without requirements, or no term at all, is met by none."""
    ssd = Requirement(key="disk", operator=Operator.IN, values=("ssd",))
    hdd = Requirement(key="disk", operator=Operator.IN, values=("hdd",))
    name = Requirement(key=NAME_FIELD, operator=Operator.IN, values=("n0",))
    fits = Selection(affinity=(Term(labels=(hdd,)), Term(labels=(ssd,), fields=(name,))))
    assert fits.obstacle(NODE) is None
    for terms in ((Term(labels=(ssd, hdd)),), (Term(),), ()):
        assert Selection(affinity=terms).obstacle(NODE) is Obstacle.NOT_SELECTED


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(key="dedicated", value="ml"), True),
        (Toleration(key="dedicated", value="web"), False),
        (Toleration(key="dedicated", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="dedicated", operator="Lt", value="9"), False),
    ],
)
def test_taints_keep_out_who_does_not_tolerate_them(
    toleration: Toleration, tolerates: bool
) -> None:
    """By key, value and effect; an operator that is not known tolerates nothing."""
    node = ClusterNode(
        name=NodeName("n0"), taints=(Taint(key="dedicated", value="ml", effect="NoSchedule"),)
    )
    assert Selection().obstacle(node) is Obstacle.TAINTED
    found = Selection(tolerations=(toleration,)).obstacle(node)
    assert (found is None) is tolerates


def test_a_preference_of_a_taint_keeps_nobody_out() -> None:
    """PreferNoSchedule is kube-scheduler's to weigh."""
    node = ClusterNode(name=NodeName("n0"), taints=(Taint(key="k", effect="PreferNoSchedule"),))
    assert Selection().obstacle(node) is None


def test_a_cordon_is_tolerated_like_its_taint() -> None:
    """The taint that comes with it is not told twice."""
    taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    node = ClusterNode(name=NodeName("n0"), unschedulable=True, taints=(taint,))
    assert Selection().obstacle(node) is Obstacle.CORDONED
    tolerant = Selection(tolerations=(Toleration(key=taint.key, operator="Exists"),))
    assert tolerant.obstacle(node) is None


def test_a_node_selector_asks_for_all_of_its_labels() -> None:
    """One label that differs is enough."""
    assert Selection(selector=frozenset({("disk", "ssd")})).obstacle(NODE) is None
    both = frozenset({("disk", "ssd"), ("cores", "65")})
    assert Selection(selector=both).obstacle(NODE) is Obstacle.NOT_SELECTED


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, "TCP", "10.0.0.1"), HostPort(80, "TCP", "10.0.0.2"), False),
        (HostPort(80, "TCP", "10.0.0.1"), HostPort(80, "TCP", "0.0.0.0"), True),
    ],
)
def test_host_ports_clash_by_port_protocol_and_address(
    one: HostPort, other: HostPort, clash: bool
) -> None:
    """Every address clashes with each."""
    assert one.clashes(other) is other.clashes(one) is clash


def test_members_with_a_host_port_take_a_node_each() -> None:
    """Two members of one GPU that listen on the same port are apart."""
    port = shape(1, ports=frozenset({HostPort(29500)}))
    assert sorted(nodes_of(cluster(*racked(2, per_rack=2)).plan(gang(port, port)))) == ["n0", "n1"]
    taken = Room(allocatable=ROOMY.allocatable, pods=9, ports=frozenset({HostPort(29500)}))
    found = cluster(*racked(2, per_rack=2)).room("n0", taken).shortfall(gang(port, port))
    assert found.counts == {Obstacle.PORT_TAKEN: 1}


@pytest.mark.parametrize(
    ("asked", "obstacle"),
    [
        (Amounts(cpu_m=2_000), Obstacle.CPU_SHORT),
        (Amounts(memory_bytes=2_000), Obstacle.MEMORY_SHORT),
        (Amounts(storage_bytes=2_000), Obstacle.STORAGE_SHORT),
        (Amounts(), Obstacle.PODS_SHORT),
    ],
)
def test_what_pods_hold_beside_gpus_is_not_planned_again(
    asked: Amounts, obstacle: Obstacle
) -> None:
    """A node that is full of one thing takes no member that asks for it."""
    full = Room(
        allocatable=Amounts(3_000, 3_000, 3_000),
        held=Amounts(1_001, 1_001, 1_001),
        pods=10,
        held_pods=10 if obstacle is Obstacle.PODS_SHORT else 0,
    )
    made = cluster(*racked(1, per_rack=1)).room("n0", full)
    found = made.shortfall(gang(shape(1, amounts=asked), least=1))
    assert found.lack is Lack.NO_ROOM
    assert found.counts == {obstacle: 1}
