"""No running pod is evicted in vain: free nodes are unfit, and two full ones have victims.

`a` and `b` are full of pods of low priority; `b` is the cheaper victim, with one pod instead of two.
`free` has room and a degraded GPU. So a gang's pod of high priority needs somebody to go.
"""

from __future__ import annotations

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout

ON_A = ("on-a-0", "on-a-1")
ON_B = ("on-b",)
DEGRADED = {0: "DEGRADED"}


def _full(gpu_nodes: Nodes, pods: Pods) -> None:
    """Two nodes full of pods that came before anybody saw the faults."""
    gpu_nodes.named("a", "b", "free")
    pods.create(
        *(_victim(name, "a", gpus=4) for name in ON_A),
        *(_victim(name, "b", gpus=8) for name in ON_B),
    )


def _victim(name: str, node: str, *, gpus: int) -> dict[str, object]:
    where = {"kubernetes.io/hostname": node}
    return pod(name, gpus=gpus, priority="low", nodeSelector=where)


def test_a_gang_evicts_only_where_it_may_run(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """The healthy node's victims go, all of them; the degraded one's stay, though cheaper."""
    _full(gpu_nodes, pods)
    gpu_nodes.report(cache.settings, sick={"b": DEGRADED, "free": DEGRADED})
    running = scheduler(configuration(extender(surefoot(nodes=3).url)))
    pods.running(*ON_A, *ON_B)
    pods.create(pod("rank-0", gpus=8, gang="train", priority="high"))
    assert pods.running("rank-0") == {"rank-0": "a"}
    assert pods.nodes() == {"rank-0": "a", "on-b": "b"}
    assert running.extender_errors() == []


def test_nobody_goes_where_evicting_would_not_help(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """With every node degraded the gang's pod waits, and all others run on."""
    _full(gpu_nodes, pods)
    gpu_nodes.report(cache.settings, sick=dict.fromkeys(("a", "b", "free"), DEGRADED))
    served = surefoot(nodes=3)
    scheduler(configuration(extender(served.url)))
    before = pods.running(*ON_A, *ON_B)
    pods.create(pod("rank-0", gpus=8, gang="train", priority="high"))
    pods.refused("rank-0")
    eventually(lambda: served.calls("preempt"), "kube-scheduler asks about victims")
    throughout(lambda: pods.nodes() == {**before, "rank-0": None}, "all others run on")


def test_without_the_preempt_verb_pods_go_in_vain(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """What the verb is for: kube-scheduler clears a node that /filter refuses right after."""
    _full(gpu_nodes, pods)
    gpu_nodes.report(cache.settings, sick={"b": DEGRADED, "free": DEGRADED})
    scheduler(configuration(extender(surefoot(nodes=3).url, preemptVerb=None)))
    pods.running(*ON_A, *ON_B)
    pods.create(pod("rank-0", gpus=8, gang="train", priority="high"))
    eventually(lambda: "on-b" not in pods.nodes(), "the pod of the degraded node is evicted")
    assert pods.nodes()["rank-0"] != "b"
