"""How many GPU pods a second kube-scheduler binds: alone, and with Surefoot."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import traffic
from client import Client
from cluster_burst import Burst, Bursts
from cluster_stage import Stage, filled_cache, tell
from cluster_variants import GOALS, VARIANTS
from e2e.processes import Process, free_port

ECHO: Final = Path(__file__).with_name("echo.py")


def measured(stage: Stage, pods: int, rounds: int) -> dict[str, list[Burst]]:
    """The bursts of each variant."""
    made = stage.fleet
    healthy = tuple(name for name in made.names if name not in made.causes)
    if pods > len(healthy):
        sys.exit(f"{pods} pods: no more than {len(healthy)} nodes are healthy")
    found: dict[str, list[Burst]] = {variant.name: [] for variant in VARIANTS}
    bursts = Bursts(stage.cluster, stage.directory)
    with _surefoot(stage) as url:
        for number in range(rounds):
            for variant in VARIANTS:
                name = f"{variant.name.replace('_', '-')}-{number}"
                nominations = healthy[:pods] if variant.nominated else None
                burst = bursts.run(name, variant.config(url), pods, nominations)
                found[variant.name].append(burst)
                sick = stage.sick(burst.nodes)
                if sick and variant.judged:
                    raise RuntimeError(f"{name}: {sick} pods are on nodes that Surefoot refuses")
                if nominations is not None and burst.nodes != nominations:
                    raise RuntimeError(f"{name}: not every pod is where it was nominated")
                tell(
                    f"{name}: {burst.pods_per_s:.1f} pods/s, algorithm {burst.algorithm_ms:.2f} ms,"
                    f" {sick} pods on nodes with a sick GPU"
                )
    return found


def line(nodes: int, pods: int, found: Mapping[str, Sequence[Burst]]) -> dict[str, Any]:
    """Medians over the rounds."""
    return {
        "bench": "cluster",
        "nodes": nodes,
        "pods": pods,
        "pods_per_s": {
            name: round(statistics.median(burst.pods_per_s for burst in bursts), 1)
            for name, bursts in found.items()
        },
        "algorithm_ms": {
            name: round(statistics.median(burst.algorithm_ms for burst in bursts), 2)
            for name, bursts in found.items()
        },
    }


def compare(result: Mapping[str, Any]) -> None:
    """Say how a line compares with the goals."""
    for goal in GOALS:
        ratio = result["pods_per_s"][goal.variant] / result["pods_per_s"][goal.other]
        verdict = "met" if ratio >= goal.ratio else "missed"
        tell(f"{goal.variant} / {goal.other} = {ratio:.2f} (goal {goal.ratio:g}: {verdict})")


@contextmanager
def _surefoot(stage: Stage) -> Iterator[str]:
    """The URL of a Surefoot that knows the fleet and enforces, beside an echo in the same server."""
    with ExitStack() as stack:
        cache = stack.enter_context(filled_cache(stage.fleet, stage.directory / "valkey.log"))
        stack.enter_context(traffic.stamping(cache.settings.url, stage.fleet.names))
        bind = f"127.0.0.1:{(port := free_port())}"
        server = Process(
            [sys.executable, ECHO, cache.settings.url, bind], stage.directory / "surefoot.log"
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
