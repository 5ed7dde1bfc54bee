"""Another extender after Surefoot refuses whom it likes; Surefoot's narrow answers leave it a choice.

All nodes are alike, so Surefoot's best are the first by name, and the other one refuses just those.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from asking import Json

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.extenders import Refuser, served
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import NODES, Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually

FLEET: Final = 40
NARROW: Final = 32
"""As `webhook.narrow` is unless told otherwise."""


@pytest.fixture
def nodes(cache: Cache, gpu_nodes: Nodes) -> frozenset[str]:
    """The fleet, all of it healthy."""
    names = gpu_nodes(FLEET)
    gpu_nodes.report(cache.settings)
    return frozenset(names)


@pytest.fixture
def refuser(nodes: frozenset[str]) -> Refuser:
    """The other extender."""
    return Refuser(sorted(nodes)[:NARROW])


@pytest.fixture
def other(refuser: Refuser) -> Iterator[Json]:
    """How kube-scheduler is told of it: asked for all pods, as no two may manage one resource."""
    with served(refuser) as url:
        yield extender(url, prioritizeVerb=None, preemptVerb=None, managedResources=None)


@pytest.mark.parametrize("gang", [None, "train"])
def test_a_pod_whose_best_nodes_are_refused_gets_another(
    gang: str | None,
    cluster: Cluster,
    nodes: frozenset[str],
    refuser: Refuser,
    other: Json,
    pods: Pods,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
) -> None:
    """The first answer is narrow; a pod that it did not help is shown every node that fits."""
    running = scheduler(configuration(extender(surefoot(nodes=FLEET).url), other))
    pods.create(pod("rank-0", gpus=8, gang=gang))
    eventually(lambda: running.attempts("unschedulable"), "all that it was shown are refused")
    _something_happens(cluster)
    assert pods.running("rank-0")["rank-0"] in nodes - refuser.refused
    assert refuser.offered[0] == refuser.refused
    assert refuser.offered[-1] == nodes
    assert running.extender_errors() == []


def test_without_narrowing_the_first_cycle_does(
    nodes: frozenset[str],
    refuser: Refuser,
    other: Json,
    pods: Pods,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
) -> None:
    """`narrow: 0` is for those who have another extender: no pod has to fail first."""
    running = scheduler(configuration(extender(surefoot(nodes=FLEET, narrow=0).url), other))
    pods.create(pod("rank-0", gpus=8, gang="train"))
    assert pods.running("rank-0")["rank-0"] in nodes - refuser.refused
    assert refuser.offered == [nodes]
    assert running.attempts("unschedulable") == 0
    assert running.extender_errors() == []


def _something_happens(cluster: Cluster) -> None:
    """As it does all the time where there is work: any change of a node has kube-scheduler try those
    again whom an extender has refused.
    """
    change = {"metadata": {"annotations": {"surefoot.dev/e2e": "changed"}}}
    cluster.api.merge(f"{NODES}/gpu-0", change)
