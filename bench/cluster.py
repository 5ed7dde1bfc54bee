"""How many GPU pods a second a real kube-scheduler binds at 5,000 nodes: alone, and with Surefoot.

A control plane of its own, without kubelets; each variant in its turn, several rounds, medians.
Prints one line of JSON, and below it, on standard error, how that compares with the goals.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import traffic
from client import Client
from cluster_burst import Burst, Bursts, in_parallel
from cluster_variants import GOALS, VARIANTS
from e2e import binaries, versions
from e2e.api import Api
from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.control_plane import ClusterSettings, ControlPlane
from e2e.go import BuildError
from e2e.nodes import H100, NODES, node_body
from e2e.processes import Process, free_port
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
ECHO: Final = Path(__file__).with_name("echo.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    nodes: int
    pods: int
    rounds: int


FULL: Final = Sizes(nodes=5000, pods=400, rounds=3)
QUICK: Final = Sizes(nodes=500, pods=80, rounds=1)


@contextmanager
def control_plane(directory: Path) -> Iterator[Cluster]:
    """etcd, kube-apiserver and kube-controller-manager, until the block ends."""
    plane = ControlPlane(SETTINGS, binaries.built(SETTINGS.version), directory)
    try:
        cluster = Cluster(plane.start())
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        eventually(lambda: cluster.api.find(account), "the namespace can have pods")
        yield cluster
    finally:
        plane.kill()


def register(api: Api, made: Fleet) -> None:
    """Make the nodes of the fleet, ready for pods."""

    def one(name: NodeName) -> None:
        labels = made.node(name).body["metadata"]["labels"]
        api.create(NODES, node_body(name, H100, labels))
        # Every new node gets the taint not-ready.
        api.merge(f"{NODES}/{name}", {"spec": {"taints": None}})

    in_parallel(one, made.names)


@contextmanager
def surefoot(made: Fleet, directory: Path) -> Iterator[str]:
    """The URL of a Surefoot that knows the fleet and enforces, beside an echo in the same server."""
    with ExitStack() as stack:
        cache = Cache(directory / "valkey.log")
        stack.callback(cache.kill)
        cache.start()
        writer = Writer(cache.settings)
        writer.put([made.node(name) for name in made.names])
        writer.close()
        stack.enter_context(traffic.stamping(cache.settings.url, made.names))
        bind = f"127.0.0.1:{(port := free_port())}"
        server = Process(
            [sys.executable, ECHO, cache.settings.url, bind], directory / "surefoot.log"
        )
        stack.callback(server.kill)
        server.start().wait_until(lambda: _ready(port))
        yield f"http://{bind}"


def _ready(port: int) -> bool:
    try:
        with Client(port) as client:
            return client.get("/readyz").status == 200
    except OSError:
        return False


def run(sizes: Sizes, directory: Path) -> dict[str, list[Burst]]:
    """The bursts of each variant."""
    made = fleet(sizes.nodes)
    healthy = tuple(name for name in made.names if name not in made.causes)
    if sizes.pods > len(healthy):
        sys.exit(f"{sizes.pods} pods: no more than {len(healthy)} nodes are healthy")
    found: dict[str, list[Burst]] = {variant.name: [] for variant in VARIANTS}
    with control_plane(directory) as cluster, surefoot(made, directory) as url:
        register(cluster.api, made)
        tell(f"{sizes.nodes} nodes are there")
        bursts = Bursts(cluster, directory)
        for number in range(sizes.rounds):
            for variant in VARIANTS:
                name = f"{variant.name.replace('_', '-')}-{number}"
                nominations = healthy[: sizes.pods] if variant.nominated else None
                burst = bursts.run(name, variant.config(url), sizes.pods, nominations)
                found[variant.name].append(burst)
                sick = len(made.causes.keys() & set(burst.nodes))
                if sick and variant.judged:
                    raise RuntimeError(f"{name}: {sick} pods are on nodes that Surefoot refuses")
                if nominations is not None and burst.nodes != nominations:
                    raise RuntimeError(f"{name}: not every pod is where it was nominated")
                tell(
                    f"{name}: {burst.pods_per_s:.1f} pods/s, algorithm {burst.algorithm_ms:.2f} ms,"
                    f" {sick} pods on nodes with a sick GPU"
                )
    return found


def line(sizes: Sizes, found: Mapping[str, Sequence[Burst]]) -> dict[str, Any]:
    """Medians over the rounds."""
    return {
        "bench": "cluster",
        "nodes": sizes.nodes,
        "pods": sizes.pods,
        "pods_per_s": {
            name: round(statistics.median(burst.pods_per_s for burst in bursts), 1)
            for name, bursts in found.items()
        },
        "algorithm_ms": {
            name: round(statistics.median(burst.algorithm_ms for burst in bursts), 2)
            for name, bursts in found.items()
        },
    }


def tell(text: str) -> None:
    """Say it at once, beside the line of JSON."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Run, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, help=f"default {FULL.nodes}")
    parser.add_argument("--pods", type=int, help=f"default {FULL.pods}")
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")
    parser.add_argument("--quick", action="store_true", help="smaller, for CI")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    base = QUICK if options.quick else FULL
    sizes = Sizes(
        nodes=options.nodes or base.nodes,
        pods=options.pods or base.pods,
        rounds=options.rounds or base.rounds,
    )
    with tempfile.TemporaryDirectory(prefix="surefoot-bench-") as directory:
        try:
            found = run(sizes, Path(directory))
        except (BuildError, pytest.fail.Exception) as error:
            sys.exit(str(error))
    result = line(sizes, found)
    print(json.dumps(result), flush=True)
    for goal in GOALS:
        ratio = result["pods_per_s"][goal.variant] / result["pods_per_s"][goal.other]
        verdict = "met" if ratio >= goal.ratio else "missed"
        tell(f"{goal.variant} / {goal.other} = {ratio:.2f} (goal {goal.ratio:g}: {verdict})")


if __name__ == "__main__":
    main()
