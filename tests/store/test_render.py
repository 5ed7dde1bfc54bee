"""Values become documents that read back as the same values."""

from __future__ import annotations

from dataclasses import replace

import pytest
import strategies as own
from hypothesis import given

from extender.store import documents, render
from extender.store.values import Value
from scoring.model import (
    Allocation,
    Breaker,
    BreakerState,
    ClusterNode,
    Convention,
    Fabric,
    Gang,
    GangKey,
    GpuUuid,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    PodUid,
    Rejection,
    Taint,
)

OTHERS = (
    Allocation(
        node=NodeName("gpu-17"),
        uid=PodUid("u"),
        namespace="team",
        pod="p",
        resource="nvidia.com/gpu",
        count=2,
        gang=GangKey("team/train"),
        gpus=frozenset({GpuUuid("GPU-b"), GpuUuid("GPU-a")}),
    ),
    Gang(key=GangKey("team/train"), convention=Convention.LWS, min=2, members=(PodUid("u"),)),
    Override(
        target="node/gpu-17",
        verdict=OverrideVerdict.ALLOW,
        who="me",
        why="mended",
        until_s=1_795_946_400.25,
    ),
    Breaker(pool="h100", state=BreakerState.FROZEN, until_s=None),
    Rejection(
        node=NodeName("gpu-17"),
        owner="team/Job/train",
        reason="UnexpectedAdmissionError",
        at_s=1_795_946_400.25,
        name="train-0",
    ),
    Rejection(node=NodeName("gpu-17"), owner="team/train", reason="OutOfcpu", at_s=1_795_946_400.0),
    ClusterNode(name=NodeName("gpu-17")),
    ClusterNode(
        name=NodeName("gpu-17"),
        labels={"zone": "z1", "empty": ""},
        unschedulable=True,
        taints=(Taint(key="a", effect="NoExecute"), Taint(key="b", effect="NoSchedule", value="c")),
        capacity={"nvidia.com/gpu": 8},
        allocatable={"nvidia.com/gpu": 7},
    ),
)


def read_back(value: Value) -> Value:
    """What a reader of the cache gets."""
    document = render.document(value)
    return documents.decode(document.kind, document.id, document.encoded)


@given(own.nodes())
def test_a_node_reads_back(node: Node) -> None:
    """Everything that a Node says, down to its links and causes, survives the cache."""
    document = render.document(node)
    assert isinstance(document.value, Node)
    assert document.value.links.words == node.links.words
    assert replace(document.value, links=node.links) == node
    assert (document.epoch or 0, document.seq or 0) == (node.epoch, node.seq)


def test_a_fabric_reads_back() -> None:
    """The fabric's fields keep their names on the way."""
    document = documents.check(
        {
            "apiVersion": "surefoot.dev/v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "gpus": [],
            "fabric": {"state": "completed", "cliqueId": 0, "healthSummary": "limited"},
        }
    )
    assert isinstance(document.value, Node)
    assert document.value.fabric == Fabric(state="completed", clique_id=0, health_summary="limited")
    assert read_back(document.value) == document.value


@pytest.mark.parametrize("value", OTHERS, ids=lambda value: type(value).__name__)
def test_another_kind_reads_back(value: Value) -> None:
    """So do allocations, gangs, overrides, breakers, rejections and nodes of the cluster."""
    assert read_back(value) == value
