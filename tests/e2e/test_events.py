"""Whoever looks at a gang with kubectl reads how it stands with it, in Surefoot's words."""

from __future__ import annotations

from datetime import datetime

from asking import Json

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.conventions import indexed_job
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import Led, MakesLed
from e2e.gating import Gates
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.signs import told
from e2e.waiting import eventually, throughout

QUIET_S = 60.0
"""One event in it, of one gang."""


def _of_job(cluster: Cluster, pods: Pods) -> list[Json]:
    """Events about the Job `train`."""
    return told(cluster.api, "Job", "train", pods.namespace)


def _of_pods(cluster: Cluster, pods: Pods) -> list[Json]:
    """Events about its pods."""
    return [each for name in pods.all() for each in told(cluster.api, "Pod", name, pods.namespace)]


def _summary(surefoot: Led, pods: Pods) -> str:
    """What `/gangs` says of it; empty while nobody knows it."""
    found = surefoot.served.gang(pods.namespace, "train")
    return str(found["summary"]) if found else ""


def _at_s(event: Json) -> float:
    return datetime.fromisoformat(event["firstTimestamp"]).timestamp()


def test_a_gang_without_room_says_so_where_its_owner_looks(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
) -> None:
    """Its gated pod and its Job have one event each, with the reason and the sentence that `/gangs`
    has, and `kubectl describe` shows it. What changes within the minute adds none.
    """
    surefoot = led(1)
    pods.beside(gates(indexed_job("train", 2)))
    eventually(lambda: _of_job(cluster, pods) and _of_pods(cluster, pods), "both have an event")
    (of_job,), (of_pod,) = _of_job(cluster, pods), _of_pods(cluster, pods)
    assert (of_job["type"], of_job["reason"]) == ("Warning", "GangNoRoom")
    assert (of_pod["reason"], of_pod["message"]) == (of_job["reason"], of_job["message"])
    assert of_job["message"] == _summary(surefoot, pods)
    for kind, name in (("job", "train"), ("pod", of_pod["involvedObject"]["name"])):
        described = cluster.kubectl("describe", kind, name, f"--namespace={pods.namespace}")
        assert of_job["message"] in described
        assert "GangNoRoom" in described
    gpu_nodes.report(cache.settings, sick={"gpu-0": {0: "DEGRADED"}})
    eventually(lambda: _summary(surefoot, pods) != of_job["message"], "there is more to say")
    throughout(
        lambda: (_of_job(cluster, pods), _of_pods(cluster, pods)) == ([of_job], [of_pod]),
        "it is not said yet",
        for_s=5,
    )


def test_a_gang_that_runs_says_so(
    cluster: Cluster,
    gpu_nodes: Nodes,
    cache: Cache,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """Planned at once, and not first that pods are missing while its Job makes them; that it runs is
    said when the minute is over, and nothing in between.
    """
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    eventually(surefoot.controller.leads, "it leads")
    pods.beside(gates(indexed_job("train", 2)))
    pods.whole("train", 2)
    (planned,) = eventually(lambda: _of_job(cluster, pods), "an event")
    assert (planned["type"], planned["reason"]) == ("Normal", "GangPlanned")
    eventually(lambda: len(_of_job(cluster, pods)) > 1, "the next event", within_s=2 * QUIET_S)
    first, second = _of_job(cluster, pods)
    assert first == planned
    assert (second["type"], second["reason"]) == ("Normal", "GangRuns")
    assert second["message"] == _summary(surefoot, pods)
    assert _at_s(second) - _at_s(first) >= QUIET_S - 1
