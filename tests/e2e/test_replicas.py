"""Two replicas of Surefoot behind one address, as behind a Service: either may go at any time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import proxy

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually

FLEET: Final = 24
SICK: Final = frozenset(f"gpu-{number}" for number in range(6))
LOAD: Final = 60
"""Pods of one gang, of one GPU each; the healthy nodes have room for both gangs."""


def test_a_replica_killed_under_load_costs_no_pod(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """The one that serves is killed; its pods are tried again with the other. Once it is back, and the
    other is killed in its turn, it serves again.
    """
    gpu_nodes(FLEET)
    gpu_nodes.report(cache.settings, sick={name: {0: "DEGRADED"} for name in SICK})
    replicas = [surefoot(name=name, nodes=FLEET) for name in ("one", "two")]
    with proxy.before(*replicas) as service, ThreadPoolExecutor() as threads:
        scheduler(configuration(extender(f"http://127.0.0.1:{service.port}")))
        for gang in ("first", "second"):
            before = [each.calls("filter") for each in replicas]
            bodies = [pod(f"{gang}-{i}", gang=gang, size=LOAD) for i in range(LOAD)]
            creating = threads.submit(pods.create, *bodies)
            serving, *_ = eventually(lambda: _busy(replicas, before), "one serves")  # noqa: B023
            serving.kill()
            assert None in pods.nodes().values() or not creating.done(), "it was killed too late"
            nodes = pods.running(*creating.result())
            assert len(nodes) == LOAD
            assert not SICK & set(nodes.values())
            (other,) = (each for each in replicas if each is not serving)
            assert other.calls("filter") > before[replicas.index(other)]
            serving.start(nodes=FLEET)


def _busy(replicas: Sequence[Surefoot], before: Sequence[int]) -> list[Surefoot]:
    """The replica that has taken some of the load, if one has: kube-scheduler keeps its connection."""
    return [
        replica
        for replica, calls in zip(replicas, before, strict=True)
        if replica.calls("filter") > calls + LOAD // 6
    ]
