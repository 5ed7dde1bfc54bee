"""What a test of gangs asks for besides; README.md shows how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest
from asking import Json

from e2e.caches import Cache
from e2e.cluster import MANIFESTS, Cluster
from e2e.fixtures import MakesController, MakesSurefoot
from e2e.gating import Gates, gated, has_policies, policy_for
from e2e.history import History
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.surefoots import Controller, Surefoot
from e2e.waiting import eventually


class Led:
    """Surefoot as a whole, on healthy nodes; kube-schedulers are the test's own."""

    def __init__(self, served: Surefoot, controller: Controller) -> None:
        self.served = served
        self.controller = controller

    @property
    def url(self) -> str:
        """Where kube-scheduler asks."""
        return self.served.url


class MakesLed(Protocol):
    """Makes nodes, and starts a Surefoot that enforces and a controller."""

    def __call__(
        self,
        nodes: int,
        *,
        sick: Mapping[str, Mapping[int, str]] | None = ...,
        gangs: Json | None = ...,
    ) -> Led:
        """`gpu-0` and so on, beside what the test made; `sick` as `gpu_nodes.report` takes it; `gangs`:
        that section of both files.
        """


@pytest.fixture
def led(
    cache: Cache, gpu_nodes: Nodes, surefoot: MakesSurefoot, controller: MakesController
) -> MakesLed:
    """Surefoot as a whole."""

    def make(
        nodes: int,
        *,
        sick: Mapping[str, Mapping[int, str]] | None = None,
        gangs: Json | None = None,
    ) -> Led:
        gpu_nodes(nodes)
        gpu_nodes.report(cache.settings, sick=sick)
        leader = controller(gangs=gangs)
        eventually(leader.leads, "the controller leads")
        served = surefoot(nodes=len(gpu_nodes.names), gangs=gangs)
        # Until it has heard of a leader it would judge members without a gate one by one.
        eventually(served.is_led, "Surefoot has heard of it")
        return Led(served, leader)

    return make


@pytest.fixture
def gates(cluster: Cluster, pods: Pods, tmp_path: Path) -> Iterator[Gates]:
    """The gate of Surefoot's own gangs: by the shipped policy, or by template in older versions."""
    with ExitStack() as stack:
        by_policy = has_policies(cluster)
        if by_policy:
            stack.enter_context(policy_for(cluster, pods, tmp_path / "gate"))

        def made(body: Json) -> Json:
            return body if by_policy else gated(body)

        yield made


@pytest.fixture
def history(cluster: Cluster, pods: Pods) -> History:
    """Every version of the pods of this test."""
    return History(cluster.api, pods)


@pytest.fixture
def gang_kinds(cluster: Cluster) -> Iterator[None]:
    """The API of coscheduling, JobSet, LeaderWorkerSet, Kueue, KAI and Grove, without their operators."""
    manifest = MANIFESTS / "gang-kinds.yaml"
    cluster.apply(manifest)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "--filename", manifest)
    yield
    cluster.kubectl("delete", "--ignore-not-found", "--filename", manifest)
