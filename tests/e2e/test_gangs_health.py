"""A planned node turns bad between the plan and the bind: no member goes there, and the gang goes on."""

from __future__ import annotations

from e2e.caches import Cache
from e2e.conventions import members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates, gates_of
from e2e.history import History
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually
from scoring.reasons import Reason

DEGRADED = {3: "DEGRADED"}
RANKS = ("train-0", "train-1", "train-2")


def _planned(pods: Pods, gates: Gates) -> dict[str, str]:
    """A gang of three whole nodes, nominated and without gates; no kube-scheduler has seen it."""
    pods.create(*(gates(each) for each in members("train", len(RANKS))))
    eventually(lambda: all(pods.nominations().values()), "all are nominated")
    eventually(lambda: not any(map(gates_of, pods.all().values())), "the gates are lifted")
    return {name: node for name, node in pods.nominations().items() if node}


def test_the_gang_is_planned_anew(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
) -> None:
    """The member of the bad node moves to the spare one, before kube-scheduler has asked at all."""
    surefoot = led(4)
    before = _planned(pods, gates)
    bad = before["train-1"]
    (spare,) = {f"gpu-{i}" for i in range(4)} - set(before.values())
    gpu_nodes.report(cache.settings, sick={bad: DEGRADED})
    eventually(
        lambda: set(pods.nominations().values()) == {*before.values(), spare} - {bad},
        lambda: f"the spare node stands in for {bad}: {pods.nominations()}",
    )
    after = pods.nominations()
    scheduler(configuration(extender(surefoot.url)))
    assert pods.running(*RANKS) == after
    assert bad not in {state.node for scene in history.scenes() for state in scene.values()}


def test_a_veto_stands_though_nobody_plans(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
    history: History,
) -> None:
    """While the controller hangs, /filter alone keeps the member off its nominated node; then the
    gang becomes whole elsewhere.
    """
    surefoot = led(4)
    before = _planned(pods, gates)
    bad = before["train-1"]
    surefoot.controller.pause()
    gpu_nodes.report(cache.settings, sick={bad: DEGRADED})
    running = scheduler(configuration(extender(surefoot.url)))
    assert f"1 {Reason.GPU_DEGRADED.text}" in pods.refused("train-1")
    surefoot.controller.resume()
    assert bad not in pods.running(*RANKS).values()
    assert bad not in {state.node for scene in history.scenes() for state in scene.values()}
    assert running.extender_errors() == []
