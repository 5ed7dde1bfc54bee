"""What is kept of pods that have no node yet, or that a node failed."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_objects import Json
from kube_objects import (
    CREATED_S,
    indexed_job,
    keep,
    kept,
    kueue_job,
    native,
    pending,
)

from scoring.gangs.rules import GangRules
from scoring.model import ResourceKind, WorkClass
from scoring.planning.values import NOTHING

GATE = "surefoot.dev/gang"
REFUSED = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 GPU unhealthy.",
            "lastTransitionTime": "2026-11-29T10:05:00Z",
        }
    ]
}


def test_a_nominated_pod_is_a_claim_until_it_is_bound() -> None:
    """Of any kind: it keeps room from others."""
    nominated = {"nominatedNodeName": "n1"}
    claim = kept(pending("p", 2, status=nominated)).claim
    assert claim is not None
    assert (claim.node, claim.shape.need.count) == ("n1", 2)
    claim = kept(pending("p", 0, status=nominated)).claim
    assert claim is not None
    assert (claim.shape.need.kind, claim.shape.amounts) == (ResourceKind.NONE, NOTHING)
    assert kept(pending("p", 2, node="n1", status=nominated)).claim is None


def test_a_pod_that_was_refused() -> None:
    """What wakes it later, and whether its verdict would change."""
    body = pending(
        "p",
        2,
        owner=("ReplicaSet", "web"),
        priority=4,
        annotations={"surefoot.dev/wake": "2026-11-29T10:06:00Z"},
        status=REFUSED,
    )
    found = kept(body).refused
    assert found is not None
    assert (found.name, found.version, found.need.count, found.gang) == ("p", "10", 2, None)
    assert found.message == "0/3 nodes are available: 3 GPU unhealthy."
    assert (found.priority, found.created_s) == (4, CREATED_S)
    assert found.woken_at == "2026-11-29T10:06:00Z"
    assert found.owner is not None
    assert (found.owner.kind, found.owner.name) == ("ReplicaSet", "web")
    assert found.need.work is WorkClass.SINGLE
    gang = kept(indexed_job(status=REFUSED)).refused
    assert gang is not None
    assert gang.gang == "ml/train"


@pytest.mark.parametrize(
    "body",
    [
        pending("p", 0, status=REFUSED),
        pending("p", 2, node="n1", status=REFUSED),
        pending("p", 2, status={"conditions": [{"type": "PodScheduled", "status": "True"}]}),
        native(
            gates=(GATE,),
            status={
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ]
            },
        ),
    ],
    ids=["no GPUs", "bound", "scheduled", "gated"],
)
def test_a_pod_that_was_not_refused(body: Json) -> None:
    """No cycle failed, or Surefoot had no say in it."""
    found = keep(body)
    assert found is None or found.refused is None


def test_a_pod_at_our_gate_outside_any_planned_gang() -> None:
    """Somebody must know of it, or it waits for ever."""
    alone = pending("p", labels={"surefoot.dev/gang": "g", "surefoot.dev/gang-size": "1"})
    for body in (alone, kueue_job()):
        body["spec"]["schedulingGates"] = [{"name": "other"}, {"name": GATE}]
        found = kept(body, GangRules()).gated
        assert found is not None
        assert (found.namespace, found.version) == ("ml", "10")
    assert kept(indexed_job(gates=(GATE,))).gated is None


def failing(reason: str, **more: Any) -> Json:
    """A pod that ended so on n1."""
    status = {
        "reason": reason,
        "startTime": "2026-11-29T10:00:30Z",
        "conditions": [{"type": "Ready", "lastTransitionTime": "2026-11-29T10:01:00Z"}],
    }
    return pending("p", 2, node="n1", phase="Failed", status=status, **more)


@pytest.mark.parametrize(
    "reason", ["UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "TopologyAffinityError"]
)
def test_a_node_that_fails_a_pod_for_its_devices(reason: str) -> None:
    """Told with when: by the pod's own words, so that every controller says the same."""
    found = kept(failing(reason)).failed
    assert found is not None
    assert (found.node, found.reason, found.name, found.owner) == ("n1", reason, "p", "ml/p")
    assert found.at_s == CREATED_S + 60
    assert kept(failing(reason, labels={"surefoot.dev/gang": "g"})).failed is not None


@pytest.mark.parametrize(
    "reason",
    ["", "NodeAffinity", "Evicted", "Preempting", "OutOfcpu", "OutOfpods", "SMTAlignmentError"],
)
def test_a_pod_that_failed_for_anything_else_tells_nothing(reason: str) -> None:
    """Of the node's devices."""
    assert keep(failing(reason)) is None


def test_a_pod_without_gpus_tells_nothing_of_devices() -> None:
    """Whatever it failed for."""
    body = failing("UnexpectedAdmissionError", containers=[{"name": "main"}])
    assert keep(body) is None
