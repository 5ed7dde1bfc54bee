"""A node whose kubelet fails pods comes last for their owner, and after several owners for every gang."""

from __future__ import annotations

from asking import Json

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.conventions import members
from e2e.fixtures import MakesController, MakesScheduler
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.signs import condition, status, told_of_node
from e2e.waiting import eventually, throughout
from extender.store import fleets
from scoring.model import NodeName, Rejection

REASON = "UnexpectedAdmissionError"
FAILED = {
    "phase": "Failed",
    "reason": REASON,
    "message": "Allocate failed due to no healthy devices present",
}
"""As a kubelet says it when the device plugin did not hand out what kube-scheduler counted on."""


def _fail(cluster: Cluster, pods: Pods, *names: str) -> None:
    """What the kubelets of these pods do instead of running them."""
    for name in names:
        cluster.api.merge(f"{pods.path}/{name}/status", {"status": FAILED})


def _learnt(cache: Cache, node: str) -> tuple[Rejection, ...]:
    """What the cache says that a node failed."""
    return fleets.look(cache.settings)[0].rejections.get(NodeName(node), ())


def _owner(cluster: Cluster, pods: Pods, name: str) -> Json:
    """Something that owns pods, as their ownerReference."""
    path = f"/api/v1/namespaces/{pods.namespace}/configmaps"
    made = cluster.api.create(path, {"metadata": {"name": name}})
    uid = made["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}


def _owned(owner: Json, name: str, **options: object) -> Json:
    body = pod(name, **options)  # type: ignore[arg-type]
    body["metadata"]["ownerReferences"] = [owner]
    return body


def test_it_comes_last_for_pods_of_the_same_owner(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
) -> None:
    """Each of two nodes fails a pod of another owner, and the next pods of these change places. The
    lesson says how new the node's document was.
    """
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    one, two = (_owner(cluster, pods, name) for name in ("one", "two"))
    pods.create(_owned(one, "one-0", nodeName="gpu-0"), _owned(two, "two-0", nodeName="gpu-1"))
    pods.running("one-0", "two-0")
    _fail(cluster, pods, "one-0", "two-0")
    (lesson,) = eventually(lambda: _learnt(cache, "gpu-0"), "it is learnt")
    eventually(lambda: _learnt(cache, "gpu-1"), "so is the other")
    node = fleets.look(cache.settings)[0].nodes[NodeName("gpu-0")]
    assert (lesson.owner, lesson.name) == (f"{pods.namespace}/ConfigMap/one", "one-0")
    assert (lesson.reason, lesson.epoch, lesson.seq) == (REASON, node.epoch, node.seq)
    (event,) = eventually(
        lambda: [
            each for each in told_of_node(cluster.api, "gpu-0") if each["reason"] == "PodRejected"
        ],
        "an event on the node",
    )
    assert REASON in event["message"]
    pods.create(_owned(one, "one-1"), _owned(two, "two-1"))
    assert pods.running("one-1", "two-1") == {"one-1": "gpu-1", "two-1": "gpu-0"}


def test_a_node_that_fails_several_owners_is_suspect(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """Its condition says so, and gangs go elsewhere; two pods of one owner alone change nothing."""
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    one, two = (_owner(cluster, pods, name) for name in ("one", "two"))
    names = pods.create(
        *(_owned(one, f"one-{i}", nodeName="gpu-0") for i in range(2)),
        _owned(two, "two-0", nodeName="gpu-0"),
    )
    pods.running(*names)
    _fail(cluster, pods, "one-0", "one-1")
    eventually(lambda: len(_learnt(cache, "gpu-0")) == 2, "both are learnt")
    eventually(lambda: status(cluster.api, "gpu-0"), "its condition is there")
    throughout(lambda: status(cluster.api, "gpu-0") == "False", "it is well")
    _fail(cluster, pods, "two-0")
    eventually(
        lambda: status(cluster.api, "gpu-0") == "True",
        lambda: f"it is suspect: {condition(cluster.api, 'gpu-0')}",
    )
    pods.create(*(gates(each) for each in members("gang", 1, gpus=1)))
    assert pods.running("gang-0") == {"gang-0": "gpu-1"}


def test_a_gang_does_not_go_back_to_the_node_that_failed_it(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """Not before the node has reported anew."""
    surefoot = led(1)
    scheduler(configuration(extender(surefoot.url)))
    (member,) = members("train", 1)
    pods.create(gates(member))
    pods.running("train-0")
    _fail(cluster, pods, "train-0")
    eventually(lambda: _learnt(cache, "gpu-0"), "it is learnt")
    pods.delete("train-0")
    pods.create(gates(member))
    throughout(lambda: not any(pods.nominations().values()), "it waits", for_s=5)
    gpu_nodes.report(cache.settings)
    assert pods.running("train-0") == {"train-0": "gpu-0"}


def test_the_next_leader_learns_nothing_twice(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    controller: MakesController,
) -> None:
    """It hears of all failed pods that are still there."""
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    first = controller(name="first")
    pods.create(pod("failed", nodeName="gpu-0"))
    pods.running("failed")
    _fail(cluster, pods, "failed")
    lessons = eventually(lambda: _learnt(cache, "gpu-0"), "it is learnt")
    first.kill()
    gpu_nodes.report(cache.settings)
    following = controller(name="following")
    eventually(following.leads, "it leads")
    throughout(lambda: _keys(_learnt(cache, "gpu-0")) == _keys(lessons), "one is known", for_s=5)


def _keys(lessons: tuple[Rejection, ...]) -> list[tuple[str, str, int | None]]:
    return [(each.owner, each.name, each.seq) for each in lessons]
