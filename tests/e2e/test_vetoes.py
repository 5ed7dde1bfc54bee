"""What Surefoot refuses stays empty, and the owner of a pod can read why."""

from __future__ import annotations

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from scoring.reasons import Reason

DEGRADED = Reason.GPU_DEGRADED.text


def test_a_gang_goes_around_a_degraded_gpu(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Members fill the healthy nodes, and the one that is left waits beside the degraded one."""
    gpu_nodes(3)
    gpu_nodes.report(cache.settings, sick={"gpu-1": {3: "DEGRADED"}})
    running = scheduler(configuration(extender(surefoot(nodes=3).url)))
    pods.create(*(pod(f"rank-{i}", gpus=8, gang="train", size=3) for i in range(2)))
    assert set(pods.running("rank-0", "rank-1").values()) == {"gpu-0", "gpu-2"}
    pods.create(pod("rank-2", gpus=8, gang="train", size=3))
    assert f"1 {DEGRADED}" in pods.refused("rank-2")
    assert pods.nodes()["rank-2"] is None
    assert running.extender_errors() == []


def test_a_single_pod_takes_a_degraded_node_last(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Degraded capacity is not wasted: it goes to a pod that nobody waits for, when all else is taken."""
    gpu_nodes(3)
    gpu_nodes.report(cache.settings, sick={"gpu-0": {0: "DEGRADED"}})
    scheduler(configuration(extender(surefoot(nodes=3).url)))
    for number, healthy in enumerate(({"gpu-1", "gpu-2"}, {"gpu-1", "gpu-2"}, {"gpu-0"})):
        (name,) = pods.create(pod(f"single-{number}", gpus=8))
        assert pods.running(name)[name] in healthy


def test_the_owner_of_a_pod_reads_why_it_waits(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
) -> None:
    """The reason stands in the pod's event and in `kubectl describe pod`, counted over nodes."""
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={name: {5: "DEGRADED"} for name in ("gpu-0", "gpu-1")})
    scheduler(configuration(extender(surefoot(nodes=2).url)))
    pods.create(pod("rank-0", gpus=4, gang="train"))
    told = f"0/2 nodes are available: 2 {DEGRADED}."
    assert pods.failed_scheduling("rank-0").startswith(told)
    described = cluster.kubectl("describe", "pod", "rank-0", f"--namespace={pods.namespace}")
    assert "FailedScheduling" in described
    assert told in described
