"""The controller beside a real API server: what happens in the cluster stands in the cache."""

from __future__ import annotations

import pytest
from asking import Json
from asking import pod as asker
from papers import node_paper
from redis import Redis

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.control_plane import ClusterSettings
from e2e.fixtures import MakesController, MakesScheduler, MakesSurefoot
from e2e.nodes import GB200, Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration
from e2e.surefoots import Surefoot
from e2e.waiting import eventually, throughout
from extender.store import fleets
from extender.store.writer import Writer
from scoring.model import Fleet, GangKey, NodeName

GPU0 = NodeName("gpu-0")
OF_ITS_OWN = ClusterSettings(feature_gates=("AllAlpha=false",))
"""As by default, and yet a control plane of its own: no other test loses its API server."""


def fleet(cache: Cache) -> Fleet:
    """What the cache says now."""
    return fleets.look(cache.settings)[0]


def holds(cache: Cache) -> dict[str, int]:
    """How many GPUs each pod holds."""
    return {held.pod: held.count for them in fleet(cache).allocations.values() for held in them}


def evidence(served: Surefoot, node: str) -> set[tuple[str, str]]:
    """Cause and value of all that `explain` says of a node."""
    told: Json = served.explain({"Pod": asker(1)})
    return {(each["cause"], each["value"]) for each in told["nodes"][node]["evidence"]}


def test_pods_of_every_scheduler_hold_gpus(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    scheduler: MakesScheduler,
    controller: MakesController,
) -> None:
    """Two schedulers and nobody at all bind pods: all are counted, until they are gone."""
    controller()
    gpu_nodes(2)
    scheduler(configuration(), name="one")
    scheduler(configuration(names=("other",)), name="two")
    pods.create(
        pod("ours", gpus=4, gang="train"),
        pod("theirs", gpus=2, scheduler="other"),
        pod("static", gpus=1, nodeName="gpu-1"),
        pod("idle", gpus=0),
    )
    where = pods.running("ours", "theirs", "static", "idle")
    eventually(lambda: holds(cache) == {"ours": 4, "theirs": 2, "static": 1}, "all are counted")
    for name, held in fleet(cache).allocations.items():
        assert {each.pod: name for each in held}.items() <= where.items()
        assert all(each.namespace == pods.namespace for each in held)
    assert fleet(cache).bound_nodes(GangKey(f"{pods.namespace}/train")) == {where["ours"]}
    pods.delete("theirs")
    eventually(lambda: holds(cache) == {"ours": 4, "static": 1}, "its GPUs are free again")


def test_a_pod_that_finished_holds_nothing(
    cache: Cache, cluster: Cluster, gpu_nodes: Nodes, pods: Pods, controller: MakesController
) -> None:
    """Though it is still there for people to look at."""
    controller()
    gpu_nodes(1)
    pods.create(pod("done", gpus=8, nodeName="gpu-0"))
    eventually(lambda: holds(cache) == {"done": 8}, "it holds")
    cluster.api.merge(f"{pods.path}/done/status", {"status": {"phase": "Succeeded"}})
    eventually(lambda: holds(cache) == {}, "it no longer holds")


def test_labels_and_cordons_reach_explain(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    surefoot: MakesSurefoot,
    controller: MakesController,
) -> None:
    """Documents name no labels: domains come from the API server, and so does what speaks against a
    node there.
    """
    writer = Writer(cache.settings)
    writer.put([node_paper(name, gpus=4, metadata={"name": name}) for name in gpu_nodes(2, GB200)])
    writer.close()
    served = surefoot(nodes=2)
    controller()
    eventually(lambda: set(fleet(cache).cluster) == {"gpu-0", "gpu-1"}, "both nodes")
    assert evidence(served, "gpu-0") == set()
    cluster.kubectl("cordon", "gpu-0")
    cluster.kubectl("label", "node", "gpu-0", "topology.kubernetes.io/zone=z7")
    cluster.kubectl("taint", "node", "gpu-1", "maintenance=soon:PreferNoSchedule")
    less = {"status": {"allocatable": {"nvidia.com/gpu": "3"}}}
    cluster.api.merge("/api/v1/nodes/gpu-1/status", less)
    eventually(lambda: evidence(served, "gpu-0") == {("cordoned", "takes no new pods")}, "a cordon")
    goal = {
        ("taint", "maintenance=soon:PreferNoSchedule"),
        ("allocatable", "3 nvidia.com/gpu of 4 GPUs"),
    }
    eventually(lambda: evidence(served, "gpu-1") == goal, "a taint, and a GPU that was taken back")
    assert fleet(cache).nodes[GPU0].labels["topology.kubernetes.io/zone"] == "z7"
    cluster.kubectl("uncordon", "gpu-0")
    eventually(lambda: evidence(served, "gpu-0") == set(), "the end of the cordon")


def test_an_idle_controller_writes_nothing(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, controller: MakesController
) -> None:
    """Heartbeats of nodes and leases come all the time, and are no news."""
    running = controller()
    gpu_nodes(3)
    pods.create(pod("a", nodeName="gpu-0"))
    pods.running("a")
    eventually(lambda: holds(cache) == {"a": 1} and len(fleet(cache).cluster) == 3, "all is there")
    eventually(lambda: running.values()["surefoot_mirror_pending"] == 0, "all is written")
    generation = fleet(cache).generation
    throughout(lambda: fleet(cache).generation == generation, "no news", for_s=15)


def test_two_controllers_agree(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, controller: MakesController
) -> None:
    """Each change is one generation, whoever comes first."""
    for name in ("one", "two"):
        controller(name=name)
    gpu_nodes(1)
    pods.create(pod("a", nodeName="gpu-0"))
    pods.running("a")
    eventually(lambda: holds(cache) == {"a": 1}, "it is counted")
    generation = fleet(cache).generation
    throughout(lambda: fleet(cache).generation == generation, "they do not take turns")
    pods.delete("a")
    eventually(lambda: holds(cache) == {}, "it is gone")
    assert fleet(cache).generation == generation + 1


def test_a_cache_that_forgot_is_told_again(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, controller: MakesController
) -> None:
    """Emptied under way, or back after a crash with nothing."""
    controller()
    gpu_nodes(1)
    pods.create(pod("a", nodeName="gpu-0"))
    pods.running("a")
    eventually(lambda: holds(cache) == {"a": 1}, "it is counted")
    with Redis(port=cache.port) as plain:
        plain.flushall()
    eventually(lambda: holds(cache) == {"a": 1} and fleet(cache).cluster, "it is counted again")
    cache.kill()
    pods.create(pod("b", nodeName="gpu-0"))
    pods.running("b")
    cache.start()
    eventually(lambda: holds(cache) == {"a": 1, "b": 1} and fleet(cache).cluster, "both are")


@pytest.mark.parametrize("cluster", [OF_ITS_OWN], indirect=True)
def test_an_api_server_that_restarts_is_followed_again(
    cache: Cache, cluster: Cluster, gpu_nodes: Nodes, pods: Pods, controller: MakesController
) -> None:
    """Killed and started: what changes afterwards is seen, what was known meanwhile stands."""
    running = controller()
    gpu_nodes(1)
    pods.create(pod("a", nodeName="gpu-0"))
    pods.running("a")
    eventually(lambda: holds(cache) == {"a": 1}, "it is counted")
    server = cluster.plane._apiserver
    server.kill()
    broken = 'surefoot_kube_watch_restarts_total{kind="pods",reason="broken"}'
    eventually(lambda: running.values().get(broken), "the loss is noticed")
    assert holds(cache) == {"a": 1}
    server.start().wait_until(cluster.api.ready)
    pods.create(pod("b", nodeName="gpu-0"))
    eventually(lambda: holds(cache) == {"a": 1, "b": 1}, "the next pod is seen")
    pods.delete("a")
    eventually(lambda: holds(cache) == {"b": 1}, "and the end of the first one")
    assert running.values()['surefoot_kube_lists_total{kind="pods"}'] <= 2
    # A server that has just started knows no roles yet, and refuses everybody for a moment.
    cluster.audit.refusals()
