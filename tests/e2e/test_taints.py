"""The taint on nodes that are unfit for every gang: for schedulers that never ask Surefoot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import shipped

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.fixtures import MakesController, MakesScheduler
from e2e.nodes import NODES, Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration
from e2e.signs import status, tainted
from e2e.surefoots import Controller
from e2e.waiting import eventually, throughout

BAD = {0: "RESET_REQUIRED"}
FOREIGN = "site.example/keep"


@pytest.fixture
def may_taint(cluster: Cluster) -> Iterator[None]:
    """The component `taint` of deploy/kustomize."""
    rights = shipped.KUSTOMIZE / "components" / "taint" / "rbac.yaml"
    cluster.apply(rights)
    yield
    cluster.kubectl("delete", "--ignore-not-found", "--filename", rights)


def _counts(led: Controller) -> dict[str, float]:
    """The unfit nodes as the metrics have them: `all`, `chosen`, `withheld`."""
    values = led.values()
    parts = ("all", "chosen", "withheld")
    return {part: values.get(f'surefoot_unfit_nodes{{part="{part}"}}', -1) for part in parts}


@pytest.mark.usefixtures("may_taint")
def test_unfit_nodes_are_tainted_within_the_share_of_their_pool(
    cache: Cache, cluster: Cluster, gpu_nodes: Nodes, controller: MakesController
) -> None:
    """One of five may be. When it is fit again the taint goes, the next one gets it, and taints of
    others stay where they are.
    """
    gpu_nodes(5)
    cluster.kubectl("taint", "node", "gpu-1", f"{FOREIGN}=yes:PreferNoSchedule")
    gpu_nodes.report(cache.settings, sick={"gpu-1": BAD, "gpu-3": BAD, "gpu-4": {0: "SUSPECT"}})
    led = controller(taint=True)
    eventually(lambda: tainted(cluster.api) == {"gpu-1"}, lambda: f"{tainted(cluster.api)}")
    eventually(
        lambda: _counts(led) == {"all": 3, "chosen": 1, "withheld": 2},
        lambda: f"all are counted: {_counts(led)}",
    )
    throughout(lambda: tainted(cluster.api) == {"gpu-1"}, "the others are withheld")
    assert _keys(cluster, "gpu-1") == [FOREIGN, "surefoot.dev/unfit"]
    gpu_nodes.report(cache.settings, sick={"gpu-3": BAD})
    eventually(lambda: tainted(cluster.api) == {"gpu-3"}, lambda: f"{tainted(cluster.api)}")
    assert _keys(cluster, "gpu-1") == [FOREIGN]
    gpu_nodes.report(cache.settings)
    eventually(lambda: not tainted(cluster.api), "all are fit")
    assert _keys(cluster, "gpu-1") == [FOREIGN]


def _keys(cluster: Cluster, node: str) -> list[str]:
    taints = cluster.api.get(f"{NODES}/{node}")["spec"].get("taints", ())
    return [each["key"] for each in taints]


@pytest.mark.usefixtures("may_taint")
def test_it_keeps_out_who_never_asks(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    scheduler: MakesScheduler,
    controller: MakesController,
) -> None:
    """A kube-scheduler without Surefoot puts nothing on the bad node until it is fit again."""
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={"gpu-0": BAD})
    controller(taint=True)
    eventually(lambda: tainted(cluster.api) == {"gpu-0"}, "it is tainted")
    scheduler(configuration())
    pods.create(pod("first", gpus=8))
    assert pods.running("first") == {"first": "gpu-1"}
    pods.create(pod("second", gpus=8))
    assert "untolerated taint" in pods.refused("second")
    gpu_nodes.report(cache.settings)
    assert pods.running("second") == {"second": "gpu-0"}


def test_by_default_it_only_says_what_it_would_do(
    cache: Cache, cluster: Cluster, gpu_nodes: Nodes, controller: MakesController
) -> None:
    """The metrics count the nodes that would be tainted; none is."""
    gpu_nodes(3)
    gpu_nodes.report(cache.settings, sick={"gpu-0": BAD, "gpu-2": BAD})
    led = controller()
    eventually(lambda: status(cluster.api, "gpu-2") == "True", "it is known")
    eventually(
        lambda: _counts(led) == {"all": 2, "chosen": 1, "withheld": 1},
        lambda: f"they are counted: {_counts(led)}",
    )
    throughout(lambda: not tainted(cluster.api), "none is tainted")
