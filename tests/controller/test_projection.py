"""Pods and nodes in the words of the cache."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cluster_objects import container, node, pod
from hypothesis import given
from hypothesis import strategies as st

from extender.controller import objects, projection
from extender.controller.objects import BoundPod
from extender.controller.projection import ProjectionError
from extender.store import documents, render
from extender.store.values import Value
from extender.wire import asks
from extender.wire.errors import WireError
from scoring.model import Allocation, ClusterNode, Taint
from scoring.policy import DEFAULT


def bound(body: dict[str, Any]) -> BoundPod:
    """A pod as it is decoded."""
    return objects.POD.decode(msgspec.json.encode(body))


def held(body: dict[str, Any]) -> dict[str, int]:
    """What it holds, by resource."""
    found = projection.allocations(bound(body))
    return {each.resource: each.count for each in found}


def told(body: dict[str, Any]) -> ClusterNode:
    """A node in the cache's words."""
    return projection.cluster_node(objects.NODE.decode(msgspec.json.encode(body)))


def test_a_bound_pod_holds_what_it_asked_for() -> None:
    """Who, where, how many of what, and in which gang; not which ones."""
    body = pod("rank-0", 4, node="gpu-17")
    body["metadata"]["labels"] = {"surefoot.dev/gang": "train", "surefoot.dev/gang-size": "2"}
    (found,) = projection.allocations(bound(body))
    assert found == Allocation(
        node=found.node,
        uid=found.uid,
        namespace="lab",
        pod="rank-0",
        resource="nvidia.com/gpu",
        count=4,
        gang=found.gang,
        gpus=None,
    )
    assert (found.node, found.uid, found.gang) == ("gpu-17", "uid-rank-0", "lab/train")


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", None])
def test_a_pod_that_is_bound_holds(phase: str | None) -> None:
    """From the moment of its binding, whatever its kubelet says since."""
    body = pod("a")
    body["status"] = {"phase": phase} if phase else None
    assert projection.holds(bound(body))
    body["metadata"]["deletionTimestamp"] = "2026-11-29T10:00:00Z"
    assert projection.holds(bound(body)), "until it is gone, it may still compute"


@pytest.mark.parametrize(
    "body",
    [
        pod("a", node=None),
        pod("a", node=""),
        pod("a", phase="Succeeded"),
        pod("a", phase="Failed"),
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a"}, "spec": None, "status": None},
    ],
    ids=["not bound", "empty", "succeeded", "failed", "no spec", "null"],
)
def test_a_pod_that_waits_or_has_finished_holds_nothing(body: dict[str, Any]) -> None:
    """Only what a kubelet may have handed out counts."""
    assert not projection.holds(bound(body))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container(1), container(2)]}, {"nvidia.com/gpu": 3}),
        ({"initContainers": [container(8)]}, {"nvidia.com/gpu": 8}),
        ({"initContainers": [container(1, restartPolicy="Always")]}, {"nvidia.com/gpu": 2}),
        (
            {"containers": [container(1), container(2, "nvidia.com/mig-1g.10gb")]},
            {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 2},
        ),
        ({"containers": [container(4, "cpu")]}, {}),
        ({"containers": [container(0)]}, {}),
        ({"containers": []}, {}),
    ],
    ids=["sum", "init", "sidecar", "two resources", "no gpu", "zero", "none"],
)
def test_gpus_are_counted_as_for_filter(spec: dict[str, Any], expected: dict[str, int]) -> None:
    """Init containers, sidecars and several resources: the peak of each."""
    assert held(
        {**pod("a"), "spec": {"nodeName": "gpu-0", "containers": [container()], **spec}}
    ) == (expected)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 8)), max_size=6))
def test_what_is_held_is_what_was_asked(parts: list[tuple[bool, bool, int]]) -> None:
    """The count of an allocation is that of the ask which /filter judged for the same pod."""
    spec: dict[str, Any] = {"nodeName": "gpu-0", "containers": [], "initContainers": []}
    for init, always, gpus in parts:
        made = container(gpus, **({"restartPolicy": "Always"} if init and always else {}))
        spec["initContainers" if init else "containers"].append(made)
    body = {**pod("a"), "spec": spec}
    need = asks.ask_of(bound(body), DEFAULT).need
    assert held(body) == ({need.resource: need.count} if need.count else {})


def test_static_pods_and_those_of_other_schedulers_hold_too() -> None:
    """Nothing but the binding matters: not who bound it, nor whether anybody did."""
    body = pod("kube-burn-gpu-0", schedulerName="volcano")
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "abc"}
    assert held(body) == {"nvidia.com/gpu": 1}


def test_a_gang_with_a_name_that_is_none_is_told_by_another() -> None:
    """Annotations may hold anything; who holds the GPUs is told all the same."""
    body = pod("a")
    body["metadata"]["annotations"] = {"pod-group-name": "line\nbreak"}
    (found,) = projection.allocations(bound(body))
    assert found.gang is not None
    assert found.gang.startswith("lab/line_break~")
    assert render.document(found).value == found


@pytest.mark.parametrize("gpus", ["many", "-1", "1.5", "1e30", ""])
def test_a_quantity_that_is_none_is_an_error(gpus: str) -> None:
    """It names the path."""
    body = pod("a", node="gpu-0", containers=[container(gpus)])
    with pytest.raises(WireError, match=r"spec\.containers\[0\]\.resources"):
        projection.allocations(bound(body))


def test_a_pod_without_a_uid_is_an_error() -> None:
    """It could not be told from the next one of its name."""
    body = pod("a")
    del body["metadata"]["uid"]
    with pytest.raises(ProjectionError, match=r"metadata\.uid: missing"):
        projection.allocations(bound(body))


def test_a_node_is_its_labels_cordon_taints_and_gpus() -> None:
    """All that kube-scheduler decides by, as far as GPUs go; nothing that changes by itself."""
    body = node("gpu-17", rack="r1", zone="z1")
    body["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "maintenance", "effect": "NoExecute", "timeAdded": "2026-11-29T10:00:00Z"}
        ],
    }
    body["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    found = told(body)
    assert found == ClusterNode(
        name=found.name,
        labels={"rack": "r1", "zone": "z1"},
        unschedulable=True,
        taints=(Taint(key="maintenance", effect="NoExecute"),),
        capacity={"nvidia.com/gpu": 8},
        allocatable={"nvidia.com/gpu": 7},
    )
    body["status"]["conditions"] = [{"type": "Ready", "lastHeartbeatTime": "2026-11-29T10:00:15Z"}]
    assert told(body) == found, "a heartbeat is no change"


def test_a_bare_node_is_one_too() -> None:
    """Null is absent."""
    body = {"metadata": {"name": "a", "labels": None}, "spec": None, "status": None}
    assert told(body) == ClusterNode(name=told(body).name)


def test_the_order_of_keys_does_not_matter() -> None:
    """Equal nodes are equal bytes, or two controllers would take turns."""
    one, other = node("a", x="1", y="2"), node("a", y="2", x="1")
    assert render.document(told(one)).encoded == render.document(told(other)).encoded


@pytest.mark.parametrize("side", ["capacity", "allocatable"])
def test_absurd_units_of_a_node_are_an_error(side: str) -> None:
    """It names the path."""
    body = node("a")
    body["status"][side]["nvidia.com/gpu"] = "lots"
    with pytest.raises(ProjectionError, match=rf"status\.{side}\[nvidia\.com/gpu\]"):
        told(body)


def test_every_projection_is_a_document() -> None:
    """The cache takes it, and gives the same value back."""
    values: list[Value] = [*projection.allocations(bound(pod("a", 2)))]
    for value in (*values, told(node("gpu-0", zone="z"))):
        paper = render.document(value)
        assert documents.decode(paper.kind, paper.id, paper.encoded) == value
