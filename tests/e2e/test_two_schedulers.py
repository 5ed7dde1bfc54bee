"""Pods of two schedulers on the same nodes: `surefoot` is judged, `default-scheduler` goes its way.

Both may be profiles of one kube-scheduler, which then shares its extenders among them, or
kube-schedulers of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from asking import Json, by_names

from e2e.caches import Cache
from e2e.fixtures import MakesController, MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually
from scoring.reasons import Reason

THEIRS: Final = "default-scheduler"
OURS: Final = "surefoot"

Start = Callable[[Surefoot], None]


@pytest.fixture(params=["two-profiles", "two-schedulers"])
def start(request: pytest.FixtureRequest, scheduler: MakesScheduler) -> Start:
    """Starts both in front of Surefoot."""

    def with_profiles(served: Surefoot) -> None:
        scheduler(configuration(extender(served.url), names=(THEIRS, OURS)))

    def apart(served: Surefoot) -> None:
        scheduler(configuration(names=(THEIRS,)), name=THEIRS)
        scheduler(configuration(extender(served.url), names=(OURS,)), name=OURS)

    return {"two-profiles": with_profiles, "two-schedulers": apart}[request.param]


def theirs(name: str, **options: object) -> Json:
    """A pod of the default scheduler."""
    return pod(name, scheduler=THEIRS, **options)  # type: ignore[arg-type]


def ours(name: str, **options: object) -> Json:
    """A pod of the scheduler that is named after Surefoot."""
    return pod(name, scheduler=OURS, **options)  # type: ignore[arg-type]


def test_pods_of_each_go_their_way(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, surefoot: MakesSurefoot, start: Start
) -> None:
    """The gang of the default scheduler runs on a degraded node, ours waits for a healthy one."""
    gpu_nodes(1)
    gpu_nodes.report(cache.settings, sick={"gpu-0": {0: "DEGRADED"}})
    served = surefoot(nodes=1, schedulerNames=[OURS])
    start(served)
    pods.create(ours("ours", gpus=4, gang="ours"), theirs("theirs", gpus=4, gang="theirs"))
    assert pods.running("theirs") == {"theirs": "gpu-0"}
    assert f"1 {Reason.GPU_DEGRADED.text}" in pods.refused("ours")
    healthy = gpu_nodes(1)
    gpu_nodes.report(cache.settings, only=healthy)
    eventually(lambda: served.shows(2), "Surefoot knows the new node")
    pods.create(ours("ours-too", gpus=4, gang="ours"))
    assert pods.running("ours-too") == {"ours-too": "gpu-1"}


def test_gpus_that_either_uses_are_counted_by_both(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    surefoot: MakesSurefoot,
    controller: MakesController,
    start: Start,
) -> None:
    """Ours joins theirs on the node that is in use already, to keep the others whole; and what ours
    hold is not given to theirs. Ranks that are so near give equal points, between which kube-scheduler
    draws; here it is offered the best node alone.
    """
    nodes = gpu_nodes(3)
    gpu_nodes.report(cache.settings)
    controller()
    served = surefoot(nodes=len(nodes), schedulerNames=[OURS], narrow=1)
    start(served)
    pods.create(theirs("theirs", gpus=4))
    used = pods.running("theirs")["theirs"]
    eventually(lambda: _best(served, nodes) == used, "Surefoot counts the GPUs of the pod")
    pods.create(ours("ours", gpus=2))
    assert pods.running("ours") == {"ours": used}
    pods.create(ours("ours-too", gpus=2))
    assert pods.running("ours-too") == {"ours-too": used}
    there = {"kubernetes.io/hostname": used}
    pods.create(theirs("late", gpus=1, nodeSelector=there))
    assert "1 Insufficient nvidia.com/gpu" in pods.refused("late")


def _best(served: Surefoot, nodes: list[str]) -> str | None:
    """The node that is best for a pod of ours, if there is one."""
    asker = pod("asker", gpus=2, scheduler=OURS)
    told = served.explain(by_names(asker, nodes))["nodes"]
    first, second, *_ = sorted(nodes, key=lambda name: told[name]["rank"], reverse=True)
    return first if told[first]["rank"] > told[second]["rank"] else None
