"""What the API server says against a node is told, and changes no verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import dgx_h100
from strategies import fleet

from scoring import explain, picture, verdict
from scoring.explain import NodeAccount
from scoring.gangs.rules import GangRules
from scoring.model import (
    Ask,
    ClusterNode,
    Need,
    Node,
    NodeName,
    PodUid,
    ResourceKind,
    Taint,
    WorkClass,
)
from scoring.policy import DEFAULT

NAME = NodeName("node-0")
NEED = Need(work=WorkClass.SINGLE, count=1)
GPUS = {"nvidia.com/gpu": 8}
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def told(there: ClusterNode, node: Node | None = None, need: Need = NEED) -> NodeAccount:
    """The account of one node of which the API server says `there`."""
    ask = Ask(namespace="lab", name="p", uid=PodUid("u"), need=need)
    shown = fleet(node) if node else fleet()
    found = picture.picture(replace(shown, cluster={NAME: there}), DEFAULT)
    (account,) = explain.account(found, ask, (NAME,), None, 1, GangRules()).nodes
    return account


def facts(there: ClusterNode, node: Node | None = None, need: Need = NEED) -> list[tuple[str, str]]:
    """Cause and value of all evidence."""
    return [(each.cause, each.value) for each in told(there, node, need).evidence]


def test_a_cordon_is_told_once() -> None:
    """Not again as the taint that comes with it."""
    there = ClusterNode(name=NAME, unschedulable=True, taints=(CORDON,))
    assert facts(there, dgx_h100()) == [("cordoned", "takes no new pods")]
    assert facts(there) == [("cordoned", "takes no new pods")], "without a document too"


@pytest.mark.parametrize(
    ("taint", "value"),
    [
        (Taint(key="a", effect="NoExecute"), "a:NoExecute"),
        (Taint(key="a", value="b", effect="NoSchedule"), "a=b:NoSchedule"),
    ],
)
def test_taints_are_told_as_kubectl_writes_them(taint: Taint, value: str) -> None:
    """Whether the pod tolerates them is kube-scheduler's to know."""
    assert facts(ClusterNode(name=NAME, taints=(taint,)), dgx_h100()) == [("taint", value)]


@pytest.mark.parametrize(("allocatable", "said"), [(8, False), (7, True), (0, True), (9, False)])
def test_gpus_that_were_taken_back_are_told(allocatable: int, said: bool) -> None:
    """Fewer than the document has."""
    units = {"nvidia.com/gpu": allocatable} if allocatable else {}
    there = ClusterNode(name=NAME, capacity=GPUS, allocatable=units)
    value = f"{allocatable} nvidia.com/gpu of 8 GPUs"
    assert facts(there, dgx_h100()) == ([("allocatable", value)] if said else [])


@pytest.mark.parametrize(
    ("there", "need"),
    [
        (ClusterNode(name=NAME), NEED),
        (ClusterNode(name=NAME, capacity=GPUS), replace(NEED, kind=ResourceKind.MIG)),
        (ClusterNode(name=NAME, capacity=GPUS), replace(NEED, resource="amd.com/gpu")),
    ],
    ids=["no plugin", "another kind", "another resource"],
)
def test_what_does_not_concern_the_ask_is_not_told(there: ClusterNode, need: Need) -> None:
    """A node whose GPUs no device plugin hands out (DRA), or other units than the pod asks for."""
    assert facts(there, dgx_h100(), need) == []


@given(
    st.builds(
        ClusterNode,
        name=st.just(NAME),
        unschedulable=st.booleans(),
        taints=st.lists(st.just(Taint(key="a", effect="NoExecute")), max_size=2).map(tuple),
        capacity=st.just(GPUS),
        allocatable=st.dictionaries(st.just("nvidia.com/gpu"), st.integers(0, 8)),
    )
)
def test_no_verdict_rests_on_it(there: ClusterNode) -> None:
    """kube-scheduler owns counts, cordons and taints."""
    node = dgx_h100()
    plain = picture.picture(fleet(node), DEFAULT)
    judged = verdict.judge(plain.candidates[NAME], NEED, DEFAULT)
    account = told(there, node)
    assert (account.reason, account.rank is None) == (judged.reason, judged.reason is not None)
