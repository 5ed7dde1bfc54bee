"""The whole of Surefoot beside a cluster: cache, webhook that enforces, and a controller that leads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import traffic
from cluster_stage import Stage, filled_cache
from cluster_writes import Writes
from e2e.cluster import Cluster
from e2e.surefoots import Daemon, Surefoot
from e2e.waiting import eventually

DEPLOYED: Final = Path(__file__).parents[1] / "deploy" / "kustomize" / "base"
NAMESPACE: Final = "surefoot-system"
ACCOUNT: Final = "surefoot-controller"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/surefoot-controller"
LEADS_S: Final = 60.0
SETTLES_S: Final = 600.0
"""The first controller sets the conditions of all nodes with sick GPUs, 20 a second."""
SETTLED_S: Final = 2.0
"""How long a controller that has just begun to lead writes nothing before it counts as settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A Surefoot that is at work."""

    url: str
    """Where kube-scheduler asks."""
    controller: Daemon
    writes: Writes
    """What the controller writes to the API server, from its start on."""

    def figures(self) -> Mapping[str, float]:
        """What the controller itself counts of gangs."""
        values = self.controller.values()
        return {name: each for name, each in values.items() if name.startswith("surefoot_gang")}

    def settle(self) -> None:
        """Return once the controller has nothing more to write."""
        last, since_s = self.writes.count(), time.monotonic()

        def quiet() -> bool:
            nonlocal last, since_s
            now = self.writes.count()
            if now != last:
                last, since_s = now, time.monotonic()
            return time.monotonic() - since_s >= SETTLED_S

        eventually(quiet, "the controller has written what it had to", within_s=SETTLES_S)


@contextmanager
def surefoot(stage: Stage, name: str) -> Iterator[Running]:
    """One that knows the fleet, with the rights that deploy/ gives it; `name` is of its logs."""
    cluster, directory = stage.cluster, stage.directory
    for manifest in ("namespace.yaml", "rbac.yaml"):
        cluster.apply(DEPLOYED / manifest)
    with ExitStack() as stack:
        cache = stack.enter_context(filled_cache(stage.fleet, directory / f"{name}-valkey.log"))
        url = cache.settings.url
        stack.enter_context(traffic.stamping(url, stage.fleet.names))
        webhook = Surefoot(cache.settings, directory / f"{name}-webhook.log")
        stack.callback(webhook.kill)
        webhook.start(nodes=len(stage.fleet.names))
        controller = Daemon(
            "controller",
            {"store": {"url": url}, "controller": {"lease": {"namespace": NAMESPACE}}},
            directory / f"{name}-controller.log",
            f"--kubeconfig={cluster.service_account(NAMESPACE, ACCOUNT)}",
        )
        writes = Writes(cluster.audit.log, f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}")
        before = _holder(cluster)
        # It gives its Lease back, so that the next one need not wait until this one is taken for dead.
        stack.callback(controller.stop)
        controller.process.start().wait_until(controller.ready)
        eventually(
            lambda: _holder(cluster) not in (None, "", before),
            lambda: f"the controller leads; {controller.process.log} tells why not",
            within_s=LEADS_S,
        )
        running = Running(url=webhook.url, controller=controller, writes=writes)
        running.settle()
        yield running


def _holder(cluster: Cluster) -> str | None:
    lease = cluster.api.find(LEASE)
    return None if lease is None else lease["spec"].get("holderIdentity")
