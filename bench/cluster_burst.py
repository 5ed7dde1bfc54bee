"""One burst of gang pods through one kube-scheduler of its own, and how long that took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from asking import Json
from cluster_binding import GATE, PODS, Binding
from cluster_stage import in_parallel
from e2e.cluster import Cluster
from e2e.pods import pod
from e2e.schedulers import Scheduler
from fleet import GPUS

MEMBERS: Final = 8
"""Pods of a gang."""
WARM_UP: Final = 20
ALGORITHM: Final = "scheduler_scheduling_algorithm_duration_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one kube-scheduler did with the pods."""

    pods_per_s: float
    algorithm_ms: float
    """Mean time of its algorithm for one pod, extenders in it, by its own metric."""
    nodes: tuple[str, ...]
    """Where each pod is bound, in the order of their creation."""


class Bursts:
    """Runs them one after the other in one cluster, and leaves it without pods."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        """`directory`: for the logs of the schedulers."""
        self._cluster = cluster
        self._api = cluster.api
        self._binding = Binding(cluster.api)
        self._directory = directory

    def run(
        self, name: str, config: Json, count: int, nominations: Sequence[str] | None = None
    ) -> Burst:
        """Let a fresh kube-scheduler bind `count` pods; with `nominations` each has its node before.

        The pods wait behind a gate, and kube-scheduler is halted while the gates are lifted: all
        pods are there at once, and creating them takes none of its time.
        """
        scheduler = Scheduler(self._cluster, config, self._directory / f"{name}.log", verbosity=0)
        try:
            scheduler.start()
            self._binding.create(self._gangs(f"{name}-warm", WARM_UP))
            self._binding.wait_until_bound(scheduler)
            self._binding.clear()
            bodies = self._gangs(name, count, schedulingGates=[GATE])
            self._binding.create(bodies)
            names = [body["metadata"]["name"] for body in bodies]
            if nominations is not None:
                in_parallel(self._nominate, names, nominations)
            return self._timed(scheduler, names)
        finally:
            scheduler.kill()
            self._binding.clear()

    def _timed(self, scheduler: Scheduler, names: Sequence[str]) -> Burst:
        before_s, before = (scheduler.value(f"{ALGORITHM}_{part}") for part in ("sum", "count"))
        scheduler.process.pause()
        in_parallel(self._lift, names)
        begun_s = time.time()
        scheduler.process.resume()
        self._binding.wait_until_bound(scheduler)
        bound_s = self._binding.bound_s(frozenset(names))
        after_s, after = (scheduler.value(f"{ALGORITHM}_{part}") for part in ("sum", "count"))
        failed = {result: scheduler.attempts(result) for result in ("unschedulable", "error")}
        if any(failed.values()) or after - before != len(names):
            raise RuntimeError(f"not one attempt for each pod: {after - before:g}, {failed}")
        nodes = self._binding.nodes()
        return Burst(
            pods_per_s=len(names) / (bound_s - begun_s),
            algorithm_ms=(after_s - before_s) / len(names) * 1000,
            nodes=tuple(nodes[name] for name in names),
        )

    @staticmethod
    def _gangs(name: str, count: int, **spec: Any) -> list[Json]:
        return [
            pod(
                f"{name}-{number}",
                gpus=GPUS,
                gang=f"{name}-{number // MEMBERS}",
                size=MEMBERS,
                **spec,
            )
            for number in range(count)
        ]

    def _nominate(self, name: str, node: str) -> None:
        self._api.merge(f"{PODS}/{name}/status", {"status": {"nominatedNodeName": node}})

    def _lift(self, name: str) -> None:
        self._api.merge(f"{PODS}/{name}", {"spec": {"schedulingGates": []}})
