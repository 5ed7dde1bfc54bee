"""Gangs wait behind their gates while Surefoot restarts and the cache loses all: nothing is forgotten for
good, since everything is derived from what the API server holds.
"""

from __future__ import annotations

from typing import Final

import pytest

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.conventions import members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import Led, MakesLed
from e2e.gating import Gates, gates_of, gates_stay
from e2e.history import History
from e2e.laws import assert_never_half, nominations_are_kept, of_gang
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from extender.store.keys import PLANS
from scoring.gangs.rules import GATE

SIZE: Final = 4


def _states(surefoot: Led, pods: Pods) -> dict[str, str]:
    """What is on record of each gang."""
    told = {gang: surefoot.served.gang(pods.namespace, gang) for gang in ("first", "second")}
    return {gang: found["state"] for gang, found in told.items() if found}


def _recorded(cache: Cache, pods: Pods) -> set[str]:
    """Of which gangs the cache itself has a plan; replicas remember longer."""
    prefix = f"{pods.namespace}/"
    return {key.decode().removeprefix(prefix) for key in cache.holds(PLANS)}


def _gated(pods: Pods, gang: str) -> bool:
    return all(gates_of(each) == [GATE] for each in pods.gang(gang).values())


@pytest.mark.parametrize("restarts", [False, True], ids=["flushed", "flushed-and-restarted"])
def test_a_gang_that_waits_has_its_turn(
    cluster: Cluster,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
    restarts: bool,
) -> None:
    """Both gangs are on record again, the one that runs and the one that waits; this one runs, whole,
    when the other has ended.
    """
    surefoot = led(SIZE)
    scheduler(configuration(extender(surefoot.url)))
    history.restart()
    pods.create(*(gates(each) for each in members("first", SIZE)))
    pods.whole("first", SIZE)
    pods.create(*(gates(each) for each in members("second", SIZE)))
    known = {"first": "running", "second": "waiting"}
    eventually(lambda: _states(surefoot, pods) == known, "both are on record")
    if restarts:
        surefoot.controller.kill()
    cache.flush()
    gpu_nodes.report(cache.settings)
    if restarts:
        throughout(lambda: _gated(pods, "second"), "nobody lifts a gate", for_s=1)
        surefoot.served.kill()
        surefoot.controller.start()
        surefoot.served.start(nodes=SIZE)
    eventually(
        lambda: _recorded(cache, pods) == known.keys() and _states(surefoot, pods) == known,
        lambda: f"both are on record again: {_states(surefoot, pods)}",
    )
    assert _gated(pods, "second")
    pods.complete(*pods.gang("first"))
    pods.whole("second", SIZE)
    scenes = list(history.scenes())
    if nominations_are_kept(cluster):
        assert_never_half(scenes)
    assert not any(
        state.holds
        for scene in scenes
        if of_gang(scene, "first")
        for state in of_gang(scene, "second").values()
    ), "it held nothing while the other ran"


def test_a_gang_that_is_nominated_keeps_its_nodes(
    cluster: Cluster,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
) -> None:
    """There is no record of its plan any more; the nominations tell it."""
    surefoot = led(2 * SIZE)
    with gates_stay(cluster, pods):
        history.restart()
        pods.create(*(gates(each) for each in members("first", SIZE)))
        eventually(lambda: all(pods.nominations().values()), "all are nominated")
        planned = pods.nominations()
        surefoot.controller.kill()
        cache.flush()
        gpu_nodes.report(cache.settings)
        surefoot.controller.start()
        eventually(lambda: _recorded(cache, pods) == {"first"}, "it is planned again")
        assert pods.nominations() == planned
        scheduler(configuration(extender(surefoot.url)))
    assert pods.whole("first", SIZE) == planned
    assert {
        (name, state.holds)
        for scene in history.scenes()
        for name, state in scene.items()
        if state.holds
    } == set(planned.items())


def test_a_cache_that_hangs_costs_a_gang_none_of_its_nodes(
    cache: Cache, pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """Replicas would refuse it meanwhile, by the last word that they heard: that it does not fit. So no
    gate is lifted before they can know the plan, and then the gang is whole at once.
    """
    surefoot = led(SIZE)
    scheduler(configuration(extender(surefoot.url)))
    pods.create(*(gates(each) for each in members("first", SIZE)))
    pods.whole("first", SIZE)
    pods.create(*(gates(each) for each in members("second", SIZE)))
    known = {"first": "running", "second": "waiting"}
    eventually(lambda: _states(surefoot, pods) == known, "both are on record")
    cache.process.pause()
    pods.complete(*pods.gang("first"))
    throughout(lambda: _gated(pods, "second"), "nobody lifts a gate")
    cache.process.resume()
    pods.whole("second", SIZE)
