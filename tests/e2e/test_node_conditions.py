"""The condition GpuHealthDegraded: what drainers, dashboards and people see of a node's GPUs."""

from __future__ import annotations

import pytest
from asking import Json

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.fixtures import MakesController
from e2e.nodes import NODES, Nodes
from e2e.signs import condition, others, status, told_of_node
from e2e.waiting import eventually, throughout
from extender.store.writer import Writer
from scoring.model import NodeName

BAD = {3: "RESET_REQUIRED"}
SILENT_S = 5000.0
"""Longer than the controllers of these tests wait for agents to call a node stale."""


def _shows(cluster: Cluster, node: str, wanted: str) -> Json:
    """Wait until the condition is this; the condition."""
    eventually(
        lambda: status(cluster.api, node) == wanted,
        lambda: f"{node} shows {wanted}: {condition(cluster.api, node)}",
    )
    found = condition(cluster.api, node)
    assert found is not None
    return found


def test_a_node_shows_what_is_known_of_its_gpus(
    cache: Cache, cluster: Cluster, gpu_nodes: Nodes, controller: MakesController
) -> None:
    """Bad with the evidence, unknown when its agent falls silent, well again; what others say of the
    node stays, and each turn is an event on it.
    """
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={"gpu-0": BAD})
    before = others(cluster.api, "gpu-0")
    controller()
    bad = _shows(cluster, "gpu-0", "True")
    assert bad["reason"] == "Xid48"
    assert bad["message"] == "GPU 3: RESET_REQUIRED by xid.48 (double-bit error)"
    assert _shows(cluster, "gpu-1", "False")["reason"] == "GpusHealthy"
    gpu_nodes.report(cache.settings)
    well = _shows(cluster, "gpu-0", "False")
    writer = Writer(cache.settings)
    writer.stamp([NodeName("gpu-0")], sampled_s_ago=SILENT_S)
    writer.close()
    silent = _shows(cluster, "gpu-0", "Unknown")
    assert silent["reason"] == "TelemetryStale"
    assert others(cluster.api, "gpu-0") == before
    assert bad["lastTransitionTime"] <= well["lastTransitionTime"] <= silent["lastTransitionTime"]
    eventually(
        lambda: (
            [each["reason"] for each in told_of_node(cluster.api, "gpu-0")]
            == ["Xid48", "GpusHealthy", "TelemetryStale"]
        ),
        "an event for each turn",
    )
    assert told_of_node(cluster.api, "gpu-1") == []
    described = cluster.kubectl("describe", "node", "gpu-0")
    assert described.count(bad["message"]) == 1, "the event; the condition says what is now"


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_the_next_leader_repeats_nothing(
    cache: Cache, cluster: Cluster, gpu_nodes: Nodes, controller: MakesController, ends: str
) -> None:
    """What the nodes show stands: no condition is written, and no event."""
    gpu_nodes(3)
    gpu_nodes.report(cache.settings, sick={"gpu-1": BAD})
    first = controller(name="first")
    for name, wanted in (("gpu-0", "False"), ("gpu-1", "True"), ("gpu-2", "False")):
        _shows(cluster, name, wanted)
    eventually(lambda: told_of_node(cluster.api, "gpu-1"), "an event")
    getattr(first, ends)()
    events = told_of_node(cluster.api, "gpu-1")
    versions = _versions(cluster)
    following = controller(name="following")
    eventually(following.leads, "it leads")
    eventually(
        lambda: following.values().get('surefoot_node_conditions{status="True"}') == 1,
        "it has looked at all nodes",
    )
    throughout(lambda: _versions(cluster) == versions, "no node is written", for_s=5)
    assert told_of_node(cluster.api, "gpu-1") == events


def _versions(cluster: Cluster) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"]
        for each in cluster.api.items(NODES)
    }
