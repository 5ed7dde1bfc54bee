"""Kubernetes' own gangs around vetoed nodes: kube-scheduler decides on the whole PodGroup at once,
asks /filter for member after member of it, and takes everything back where one does not fit.
"""

from __future__ import annotations

from typing import Final

import pytest

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.groups import NATIVE, member_of, pod_group
from e2e.nodes import RACK, Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import throughout
from scoring.reasons import Reason

pytestmark = [
    pytest.mark.since("1.37", "PodGroup v1beta1"),
    pytest.mark.parametrize("cluster", [NATIVE], indirect=True, ids=["native"]),
]

RANKS: Final = ("rank-0", "rank-1", "rank-2")
DEGRADED: Final = {3: "DEGRADED"}


def _train(pods: Pods, *, topology: str | None = None) -> None:
    """A gang of three whole nodes."""
    pods.beside(pod_group("train", size=len(RANKS), topology=topology))
    pods.create(*(pod(name, gpus=8, **member_of("train")) for name in RANKS))


def test_a_native_gang_waits_whole_and_runs_whole(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Two healthy nodes for three members bind nobody; once the third recovers all three run, with
    no event to wake them: kube-scheduler retries a native gang by itself.
    """
    gpu_nodes(3)
    gpu_nodes.report(cache.settings, sick={"gpu-1": DEGRADED})
    running = scheduler(configuration(extender(surefoot(nodes=3).url)))
    _train(pods)
    waiting = [pods.refused(name) for name in RANKS]
    assert sum("minCount (3) cannot be satisfied: 2 scheduled" in text for text in waiting) == 2
    assert sum(f"1 {Reason.GPU_DEGRADED.text}" in text for text in waiting) == 1
    throughout(lambda: set(pods.nodes().values()) == {None}, "nobody is bound")
    gpu_nodes.report(cache.settings)
    assert set(pods.running(*RANKS).values()) == {"gpu-0", "gpu-1", "gpu-2"}
    assert running.extender_errors() == []


def test_a_native_gang_lands_in_the_rack_with_enough_healthy_nodes(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """The other rack has more free nodes, and kube-scheduler likes it better: its CPUs are in use,
    and racks are filled up. Yet only two of its nodes are healthy.
    """
    favourite = gpu_nodes(4, prefix="more", rack="r1")
    healthy = gpu_nodes(3, prefix="well", rack="r2")
    gpu_nodes.report(cache.settings, sick={"more-0": DEGRADED, "more-3": DEGRADED})
    running = scheduler(configuration(extender(surefoot(nodes=7).url)))
    busy = [f"busy-{name}" for name in favourite]
    pods.create(*(_busy(f"busy-{name}", name) for name in favourite))
    pods.running(*busy)
    _train(pods, topology=RACK)
    assert set(pods.running(*RANKS).values()) == set(healthy)
    assert running.extender_errors() == []


def _busy(name: str, node: str) -> dict[str, object]:
    """A pod that takes most of a node's CPUs and no GPU."""
    limits = {"cpu": "100", "memory": "800Gi"}
    work = {"name": "main", "image": "work", "resources": {"limits": limits}}
    where = {"kubernetes.io/hostname": node}
    return pod(name, gpus=0, nodeSelector=where, containers=[work])
