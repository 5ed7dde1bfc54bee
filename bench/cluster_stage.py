"""Where `make bench-cluster` plays: a control plane of its own with the nodes of a fleet, no kubelets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e import binaries, versions
from e2e.api import CONNECTIONS, Api
from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.control_plane import ClusterSettings, ControlPlane
from e2e.nodes import H100, NODES, node_body
from e2e.waiting import eventually
from fleet import Fleet, fleet

from extender.store.writer import Writer
from scoring.model import NodeName

SETTINGS: Final = ClusterSettings(
    version=versions.DEFAULT,
    # Without kubelets the first would give up every node; the second annotates each new one, and the
    # variant that is measured first would pay for it.
    controllers=("*", "-node-lifecycle-controller", "-ttl-controller"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cluster whose nodes are those of `fleet`, ready for pods."""

    cluster: Cluster
    fleet: Fleet
    directory: Path
    """For logs."""

    def sick(self, nodes: Iterable[str]) -> int:
        """How many of these have a GPU with a cause."""
        return sum(node in self.fleet.causes for node in nodes)


@contextmanager
def stage(nodes: int, directory: Path) -> Iterator[Stage]:
    """One with so many nodes, until the block ends."""
    made = fleet(nodes)
    with _control_plane(directory) as cluster:
        _register(cluster.api, made)
        tell(f"{nodes} nodes are there")
        yield Stage(cluster=cluster, fleet=made, directory=directory)


@contextmanager
def filled_cache(made: Fleet, log: Path) -> Iterator[Cache]:
    """A cache with what the agents of the fleet say, until the block ends."""
    cache = Cache(log)
    try:
        cache.start()
        writer = Writer(cache.settings)
        writer.put([made.node(name) for name in made.names])
        writer.close()
        yield cache
    finally:
        cache.kill()


def in_parallel(call: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """What `call` returns for each, over as many connections as the client keeps."""
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        return list(pool.map(call, *args))


def tell(text: str) -> None:
    """Say it at once, beside the lines of JSON."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def _control_plane(directory: Path) -> Iterator[Cluster]:
    plane = ControlPlane(SETTINGS, binaries.built(SETTINGS.version), directory)
    try:
        cluster = Cluster(plane.start())
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        eventually(lambda: cluster.api.find(account), "the namespace can have pods")
        yield cluster
    finally:
        plane.kill()


def _register(api: Api, made: Fleet) -> None:
    def one(name: NodeName) -> None:
        labels = made.node(name).body["metadata"]["labels"]
        api.create(NODES, node_body(name, H100, labels))
        # Every new node gets the taint not-ready.
        api.merge(f"{NODES}/{name}", {"spec": {"taints": None}})

    in_parallel(one, made.names)
