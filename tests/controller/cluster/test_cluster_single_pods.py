"""Pods that the leader looks at one by one: nominated, refused, at our gate, failed."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_objects import Json
from kube_objects import Cluster, indexed_job, kueue_job, native, object_, patched, pending

from extender.controller.cluster import view as module
from scoring.gangs.rules import GangRules, Hold

GATE = "surefoot.dev/gang"
REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.fixture
def cluster() -> Cluster:
    """Nothing yet; gangs of every convention are planned."""
    return Cluster()


def test_claims_are_nominations_outside_planned_gangs(cluster: Cluster) -> None:
    """What planning seats itself is no claim, nor is what another's gate holds."""
    nominated = {"nominatedNodeName": "n1"}
    cluster.pod(
        pending("single", status=nominated),
        pending("small", 0, status=nominated),
        indexed_job(0, status=nominated),
        indexed_job(1, status=nominated, gates=("other",)),
    )
    assert [claim.uid for claim in cluster.view.claims()] == ["uid-single", "uid-small"]


def test_nominated_pods_of_a_gang_that_is_none_are_claims(cluster: Cluster) -> None:
    """By its group's own word, or since its convention is off."""
    nominated = {"nominatedNodeName": "n1"}
    cluster.pod(native(0, status=nominated))
    assert cluster.view.claims() == ()
    cluster.said(
        "podgroups.scheduling.k8s.io", object_("ranks", {"schedulingPolicy": {"basic": {}}})
    )
    assert [claim.uid for claim in cluster.view.claims()] == ["uid-ranks-0"]
    assert [gang.hold for gang in cluster.view.gangs()] == [Hold.OFF]
    off = Cluster(GangRules())
    off.pod(native(0, status=nominated))
    assert (off.view.gangs(), len(off.view.claims())) == ((), 1)


def test_refused_pods_are_known_until_they_are_bound(cluster: Cluster) -> None:
    """Those of gangs too."""
    cluster.pod(pending("a", status=REFUSED), kueue_job(status=REFUSED))
    assert [pod.name for pod in cluster.view.refused()] == ["a", "tune-0-q8z5w"]
    cluster.pod(pending("a", node="n1", status=REFUSED))
    assert [pod.name for pod in cluster.view.refused()] == ["tune-0-q8z5w"]


def test_a_wake_up_is_folded_too(cluster: Cluster) -> None:
    """So that the next one tests the right version."""
    cluster.pod(pending("a", status=REFUSED))
    woken = pending("a", status=REFUSED, annotations={"surefoot.dev/wake": "now"})
    cluster.view.fold(patched(woken, 12))
    (found,) = cluster.view.refused()
    assert (found.version, found.woken_at) == ("12", "now")


def test_pods_at_our_gate_that_nobody_will_lift(cluster: Cluster) -> None:
    """They are of no gang."""
    cluster.pod(pending("p", gates=(GATE,)), indexed_job(gates=(GATE,)))
    assert [pod.name for pod in cluster.view.strays()] == ["p"]
    cluster.pod(pending("p"))
    assert cluster.view.strays() == ()


def failing(name: str, **more: Any) -> Json:
    """A pod that n1 failed for its devices."""
    status = {"reason": "UnexpectedAdmissionError", **more}
    return pending(name, node="n1", phase="Failed", status=status)


def test_a_failed_pod_is_told_once(cluster: Cluster) -> None:
    """However often it is seen; its successor of the same name is told too."""
    cluster.list_pods(failing("a"))
    assert [pod.uid for pod in cluster.view.take_failed()] == ["uid-a"]
    cluster.list_pods(failing("a", startTime="2026-11-29T12:00:00Z"))
    assert cluster.view.take_failed() == ()
    again = failing("a")
    again["metadata"]["uid"] = "another"
    cluster.pod(again)
    assert [pod.uid for pod in cluster.view.take_failed()] == ["another"]


def test_failed_pods_do_not_pile_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten when nobody takes them."""
    monkeypatch.setattr(module, "MOST_FAILED", 2)
    cluster = Cluster()
    cluster.pod(*(failing(f"p{number}") for number in range(3)))
    assert [pod.name for pod in cluster.view.take_failed()] == ["p1", "p2"]
