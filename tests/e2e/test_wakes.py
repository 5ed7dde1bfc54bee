"""A GPU that recovers is no news to kube-scheduler: Surefoot wakes the pods that it helps, and no others."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise

from papers import paper

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.conventions import members
from e2e.fixtures import MakesController, MakesScheduler, MakesSurefoot
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates
from e2e.nodes import Machine, Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import Scheduler, configuration, extender
from e2e.signs import condition, status, touched, touches
from e2e.surefoots import Controller
from e2e.waiting import eventually, throughout
from extender.store.writer import Writer
from scoring.reasons import Reason

HALF = Machine(product="NVIDIA-H100-80GB-HBM3", gpus=4)
RESET = {0: "RESET_REQUIRED"}
WORKS = {0: "DEGRADED"}
"""Enough for a single pod; and what the node's condition says stays as it was, status and reason."""
PROMISED_S = 2.0
"""From the change to the pod that runs."""
PAUSE_S = 10.0
"""Between two touches of one pod."""


def _idle(running: Scheduler, led: Controller, cluster: Cluster, *nodes: str) -> None:
    """Wait until everybody has said what there is to say; then nobody tries anything."""
    eventually(led.leads, "it leads")
    eventually(lambda: all(status(cluster.api, each) for each in nodes), "the nodes are marked")
    eventually(lambda: led.values().get("surefoot_wakes_pending") == 0, "nobody is called")

    def quiet() -> bool:
        # A node's new condition has kube-scheduler try all pods again, which it counts later.
        before = running.attempts("unschedulable")
        time.sleep(1.0)
        return running.attempts("unschedulable") == before

    eventually(quiet, "what was tried again is over")
    tried = running.attempts("unschedulable")
    throughout(lambda: running.attempts("unschedulable") == tried, "nobody is tried again")


def _bind_s(pods: Pods, name: str) -> float:
    """Wait until a pod has a node; how long that took."""
    begun_s = time.monotonic()
    eventually(lambda: pods.nodes()[name], f"{name} is bound", pause_s=0.01)
    return time.monotonic() - begun_s


def test_a_gpu_that_recovers_reaches_the_pod_that_it_helps_and_no_other(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    gates: Gates,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
    controller: MakesController,
) -> None:
    """It runs within two seconds of the agent's write, though nothing in the cluster changed. Not
    touched: a pod that is too large for the node, one that must go elsewhere, one that no node is
    good enough for by its own words, one that another scheduler has, one that is gated.
    """
    gpu_nodes.named("half", machine=HALF)
    gpu_nodes.named("full")
    gpu_nodes.report(cache.settings, sick={"half": RESET, "full": RESET})
    served, led = surefoot(nodes=2), controller()
    running = scheduler(configuration(extender(served.url)))
    scheduler(configuration(names=("other",)), name="other")
    pods.create(
        pod("helped", gpus=4),
        pod("large", gpus=8),
        pod("elsewhere", nodeSelector={"kubernetes.io/hostname": "full"}),
        pod("nowhere", nodeSelector={"kubernetes.io/hostname": "none"}),
        pod("theirs", gpus=16, scheduler="other"),
        *(gates(each) for each in members("gang", 2)),
    )
    for name in ("helped", "elsewhere"):
        assert Reason.RESET_REQUIRED.text in pods.refused(name)
    for name in ("large", "nowhere", "theirs"):
        pods.refused(name)
    _idle(running, led, cluster, "half", "full")
    before = condition(cluster.api, "half")
    gpu_nodes.report(cache.settings, sick={"half": WORKS}, only={"half"})
    took_s = _bind_s(pods, "helped")
    assert pods.running("helped") == {"helped": "half"}
    assert condition(cluster.api, "half") == before
    throughout(lambda: touched(pods) == {"helped"}, "nobody else is touched")
    assert took_s < PROMISED_S


def test_a_pod_is_woken_at_most_once_in_ten_seconds(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
) -> None:
    """A GPU comes and goes five times a second, on a node that is full: every time might help."""
    surefoot = led(2, sick={"gpu-1": RESET})
    running = scheduler(configuration(extender(surefoot.url)))
    pods.create(pod("holder", gpus=8))
    assert pods.running("holder") == {"holder": "gpu-0"}
    pods.create(pod("waits", gpus=8))
    assert Reason.RESET_REQUIRED.text in pods.refused("waits")
    _idle(running, surefoot.controller, cluster, "gpu-0", "gpu-1")
    since = cluster.api.get(pods.path)["metadata"]["resourceVersion"]
    sick: list[Mapping[int, str]] = [RESET, WORKS]

    def flaps() -> bool:
        sick.reverse()
        gpu_nodes.report(cache.settings, sick={"gpu-0": sick[0], "gpu-1": RESET}, only={"gpu-0"})
        time.sleep(0.2)
        return True

    throughout(flaps, "it flaps", for_s=2.5 * PAUSE_S)
    woken = touches(cluster.api, pods, "waits", since)
    assert len(woken) >= 2
    moments = [datetime.fromisoformat(each).timestamp() for each in woken]
    assert all(later - sooner >= PAUSE_S - 1 for sooner, later in pairwise(moments))
    assert touched(pods) == {"waits"}


def test_an_operators_word_wakes(
    cache: Cache, cluster: Cluster, pods: Pods, led: MakesLed, scheduler: MakesScheduler
) -> None:
    """An override that allows a GPU is as good as its recovery. Another GPU keeps the node's condition
    as it is, so that the touch is all that kube-scheduler hears.
    """
    surefoot = led(1, sick={"gpu-0": RESET | {1: "DEGRADED"}})
    running = scheduler(configuration(extender(surefoot.url)))
    pods.create(pod("waits", gpus=8))
    pods.refused("waits")
    _idle(running, surefoot.controller, cluster, "gpu-0")
    writer = Writer(cache.settings)
    writer.put(
        [
            paper(
                "Override",
                target="gpu/GPU-gpu-0-0",
                verdict="allow",
                who="operator",
                why="reset by hand",
            )
        ]
    )
    writer.close()
    assert pods.running("waits") == {"waits": "gpu-0"}
    assert touched(pods) == {"waits"}


def test_what_changed_while_nobody_led_wakes_under_the_next_leader(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
    controller: MakesController,
) -> None:
    """It saw no change, and finds that a node would take the pod."""
    surefoot = led(2, sick={"gpu-0": RESET, "gpu-1": RESET})
    running = scheduler(configuration(extender(surefoot.url)))
    elsewhere = {"kubernetes.io/hostname": "gpu-1"}
    pods.create(pod("helped", gpus=8), pod("waits", gpus=8, nodeSelector=elsewhere))
    pods.refused("helped")
    pods.refused("waits")
    _idle(running, surefoot.controller, cluster, "gpu-0", "gpu-1")
    surefoot.controller.kill()
    gpu_nodes.report(cache.settings, sick={"gpu-0": WORKS}, only={"gpu-0"})
    throughout(lambda: pods.nodes()["helped"] is None, "nobody tells kube-scheduler")
    controller(name="next")
    assert pods.running("helped") == {"helped": "gpu-0"}
    throughout(lambda: touched(pods) == {"helped"}, "nobody else is touched")


def test_members_that_nobody_plans_are_woken(
    cache: Cache,
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
) -> None:
    """Where a site plans no gangs, their pods wait for health as single ones do."""
    surefoot = led(2, sick={"gpu-1": RESET}, gangs={"plan": {"surefoot": "off"}})
    running = scheduler(configuration(extender(surefoot.url)))
    pods.create(*members("train", 2, annotations={"surefoot.dev/allow": "DEGRADED"}))
    eventually(lambda: sum(map(bool, pods.nodes().values())) == 1, "one finds a node")
    (late,) = (name for name, node in pods.nodes().items() if node is None)
    pods.refused(late)
    _idle(running, surefoot.controller, cluster, "gpu-0", "gpu-1")
    gpu_nodes.report(cache.settings, sick={"gpu-1": WORKS}, only={"gpu-1"})
    assert pods.running(late) == {late: "gpu-1"}
    assert touched(pods) == {late}
