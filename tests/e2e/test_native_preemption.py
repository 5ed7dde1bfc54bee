"""A PodGroup of high priority needs the nodes of others, and Surefoot's view still holds them.

kube-scheduler removes every pod of lower priority in a copy of its own, asks /filter for the whole
gang, and puts back whom it can spare. It never asks /preempt.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.groups import NATIVE, member_of, pod_group
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import Scheduler, configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually, throughout

pytestmark = [
    pytest.mark.since("1.37", "PodGroup v1beta1"),
    pytest.mark.parametrize("cluster", [NATIVE], indirect=True, ids=["native"]),
]

VICTIMS: Final = {"on-a-0": "a", "on-a-1": "a", "on-b": "b"}
SPARED: Final = {"on-sick-0": "sick", "on-sick-1": "sick"}


@pytest.fixture
def served(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, surefoot: MakesSurefoot, scheduler: MakesScheduler
) -> tuple[Surefoot, Scheduler]:
    """Three nodes full of pods of low priority, one of them degraded, and Surefoot that knows."""
    gpu_nodes.named("a", "b", "sick")
    gpu_nodes.report(cache.settings, sick={"sick": {0: "DEGRADED"}})
    full = {**VICTIMS, **SPARED}
    pods.create(
        *(
            pod(name, gpus=8 if name == "on-b" else 4, priority="low", nodeName=node)
            for name, node in full.items()
        )
    )
    pods.running(*full)
    pods.report(cache.settings)
    made = surefoot(nodes=3)
    return made, scheduler(configuration(extender(made.url)))


def _train(pods: Pods, size: int, *, gpus: int = 8) -> list[str]:
    """A gang of `size` members of high priority; their names."""
    names = [f"rank-{number}" for number in range(size)]
    pods.beside(pod_group("train", size=size, priority="high"))
    pods.create(*(pod(name, gpus=gpus, priority="high", **member_of("train")) for name in names))
    return names


def test_a_native_gang_evicts_only_where_it_may_run(
    pods: Pods, served: tuple[Surefoot, Scheduler]
) -> None:
    """Those on healthy nodes go, though our view still holds their GPUs; those beside the degraded
    GPU run on.
    """
    names = _train(pods, 2)
    assert set(pods.running(*names).values()) == {"a", "b"}
    assert {name: node for name, node in pods.nodes().items() if name not in names} == SPARED
    assert served[0].calls("preempt") == 0
    assert served[1].extender_errors() == []


def test_a_native_gang_that_would_not_fit_evicts_nobody(
    pods: Pods, served: tuple[Surefoot, Scheduler]
) -> None:
    """Two healthy nodes are too few for three members, whoever goes."""
    names = _train(pods, 3)
    for name in names:
        pods.refused(name)
    eventually(lambda: served[0].calls("filter"), "it was tried with everybody gone")
    everybody = {**VICTIMS, **SPARED, **dict.fromkeys(names)}
    throughout(lambda: pods.nodes() == everybody, "all others run on")


def test_a_native_gang_takes_free_nodes_before_those_of_others(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, surefoot: MakesSurefoot, scheduler: MakesScheduler
) -> None:
    """A free node has room for two of three members: one pod goes. By itself kube-scheduler, which
    imagines everybody gone, takes any nodes.
    """
    full = gpu_nodes(4, prefix="full")
    gpu_nodes.named("free")
    gpu_nodes.report(cache.settings)
    low = pods.create(
        *(
            pod(f"on-{node}-{half}", gpus=4, priority="low", nodeName=node)
            for node in full
            for half in ("left", "right")
        )
    )
    pods.running(*low)
    pods.report(cache.settings)
    scheduler(configuration(extender(surefoot(nodes=5).url)))
    names = _train(pods, 3, gpus=4)
    assert Counter(pods.running(*names).values())["free"] == 2
    assert len(pods.nodes().keys() & set(low)) == len(low) - 1
