"""Breakers of pools: where many nodes fall silent, or are excluded, together, the GPUs are not at fault."""

from __future__ import annotations

import pytest

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.conventions import members
from e2e.fixtures import MakesController, MakesScheduler, MakesSurefoot
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates
from e2e.nodes import H100, Nodes
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.signs import status, told
from e2e.surefoots import LEASE
from e2e.waiting import eventually, throughout
from extender.store import fleets
from extender.store.writer import Writer
from scoring.model import BreakerState, NodeName

SILENT_S = 3610.0
"""Ten seconds longer than the Surefoots of these tests wait for agents."""


def _silence(cache: Cache, *nodes: str, ago_s: float = SILENT_S) -> None:
    """Their agents yielded a sample so long ago."""
    writer = Writer(cache.settings)
    writer.stamp([NodeName(each) for each in nodes], sampled_s_ago=ago_s)
    writer.close()


def _state(cache: Cache) -> BreakerState:
    """The word on the pool, as all readers of the cache have it."""
    word = fleets.look(cache.settings)[0].breakers.get(H100.product)
    return BreakerState.CLOSED if word is None else word.state


def _told(cluster: Cluster) -> list[str]:
    """Reasons of all events about Surefoot itself; those of earlier tests too."""
    found = told(cluster.api, "Lease", "surefoot-controller", LEASE["namespace"])
    return [each["reason"] for each in found]


def test_a_pool_that_falls_silent_together_keeps_its_last_verdicts(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """A gang gets the nodes that were well, and not the one that was bad, until the agents are back."""
    surefoot = led(4, sick={"gpu-3": {0: "RESET_REQUIRED"}})
    scheduler(configuration(extender(surefoot.url)))
    eventually(surefoot.controller.leads, "it leads")
    before = len(_told(cluster))
    _silence(cache, "gpu-0", "gpu-1", "gpu-3")
    eventually(lambda: _state(cache) is BreakerState.FROZEN, "the pool is frozen")
    pods.create(*(gates(each) for each in members("train", 3)))
    ran = pods.running(*(f"train-{i}" for i in range(3)))
    assert set(ran.values()) == {"gpu-0", "gpu-1", "gpu-2"}
    _silence(cache, "gpu-0", "gpu-1", "gpu-3", ago_s=0.0)
    eventually(lambda: _state(cache) is BreakerState.CLOSED, "the freeze is over")
    eventually(
        lambda: _told(cluster)[before:] == ["PoolFrozen", "PoolBreakerClosed"],
        lambda: f"both are told: {_told(cluster)[before:]}",
    )


def test_one_node_that_falls_silent_is_only_stale(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """No gang goes there until its agent is back."""
    surefoot = led(3)
    scheduler(configuration(extender(surefoot.url)))
    eventually(surefoot.controller.leads, "it leads")
    _silence(cache, "gpu-0")
    eventually(lambda: status(cluster.api, "gpu-0") == "Unknown", "it is stale")
    pods.create(*(gates(each) for each in members("train", 3)))
    throughout(lambda: not any(pods.nominations().values()), "it waits", for_s=5)
    assert _state(cache) is BreakerState.CLOSED
    _silence(cache, "gpu-0", ago_s=0.0)
    pods.running(*(f"train-{i}" for i in range(3)))


@pytest.mark.parametrize("gangs", ["refuse", "admit"])
def test_a_pool_of_which_much_is_excluded_is_open(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    gates: Gates,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
    controller: MakesController,
    gangs: str,
) -> None:
    """A rule is likelier at fault than so many GPUs: people are told, and where the site says so
    gangs may use what still works.
    """
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={"gpu-0": dict.fromkeys(range(4), "DEGRADED")})
    policy = {"breaker": {"gangs": gangs}}
    before = len(_told(cluster))
    controller(policy=policy)
    scheduler(configuration(extender(surefoot(nodes=2, policy=policy).url)))
    eventually(lambda: _state(cache) is BreakerState.OPEN, "the breaker is open")
    eventually(lambda: _told(cluster)[before:] == ["PoolBreakerOpen"], "it is told")
    pods.create(*(gates(each) for each in members("train", 2)))
    if gangs == "admit":
        assert set(pods.running("train-0", "train-1").values()) == {"gpu-0", "gpu-1"}
    else:
        throughout(lambda: not any(pods.nominations().values()), "it waits", for_s=5)
