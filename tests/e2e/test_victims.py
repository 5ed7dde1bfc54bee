"""Which of several candidates for preemption kube-scheduler takes, after Surefoot has seen them."""

from __future__ import annotations

from typing import Any

import pytest
from asking import Json

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.groups import NATIVE, member_of, pod_group
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender

HIGH = pod("rank-0", gpus=8, gang="train", size=1, priority="high")


def _low(name: str, node: str, *, gpus: int = 8, **options: Any) -> Json:
    """A pod that is on its node from the start."""
    return pod(name, gpus=gpus, priority="low", nodeName=node, **options)


def test_a_disruption_budget_counts_as_without_surefoot(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """One victim is cheaper than two, unless it breaks a budget: the two go."""
    gpu_nodes.named("guarded", "free-to-go")
    gpu_nodes.report(cache.settings)
    pods.beside(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "guard"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
        }
    )
    pods.create(
        _low("guarded", "guarded", labels={"app": "guarded"}),
        _low("left", "free-to-go", gpus=4),
        _low("right", "free-to-go", gpus=4),
    )
    pods.running("guarded", "left", "right")
    served = surefoot(nodes=2)
    running = scheduler(configuration(extender(served.url)))
    pods.create(HIGH)
    assert pods.running("rank-0") == {"rank-0": "free-to-go"}
    assert pods.nodes() == {"rank-0": "free-to-go", "guarded": "guarded"}
    assert served.calls("preempt")
    assert running.extender_errors() == []


@pytest.mark.since("1.37", "PodGroup v1beta1")
@pytest.mark.parametrize("cluster", [NATIVE], indirect=True, ids=["native"])
def test_a_group_that_is_only_evicted_whole_blocks_nobody(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Its nodes are candidates with victims on two nodes, and kube-scheduler reads no such answer:
    struck, they leave the third one, whose pod goes.
    """
    gpu_nodes.named("a", "b", "c")
    gpu_nodes.report(cache.settings)
    pods.beside(pod_group("whole", size=2, priority="low", disruptionMode={"all": {}}))
    pods.create(
        _low("whole-0", "a", **member_of("whole")),
        _low("whole-1", "b", **member_of("whole")),
        _low("on-c", "c"),
    )
    pods.running("whole-0", "whole-1", "on-c")
    pods.report(cache.settings)
    running = scheduler(configuration(extender(surefoot(nodes=3).url)))
    pods.create(HIGH)
    assert pods.running("rank-0") == {"rank-0": "c"}
    assert pods.nodes() == {"rank-0": "c", "whole-0": "a", "whole-1": "b"}
    assert running.extender_errors() == []
