"""kube-scheduler refuses a plan for what the planner leaves to it: the gang waits, and nobody is pestered."""

from __future__ import annotations

from typing import Final

from asking import Json

from e2e.conventions import members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import MakesLed
from e2e.gating import Gates
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.surefoots import Controller
from e2e.waiting import eventually, throughout

BESIDE_NOBODY: Final[Json] = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "is-not-there"}},
            }
        ]
    }
}
"""Affinity to pods is not planned for; no node can satisfy this."""
MOST_WRITES: Final = 40
"""Two members, three nodes to try and to clear, a wake-up in 10 s at most."""


def _writes(controller: Controller) -> float:
    """How many writes to pods the controller has tried."""
    found = controller.values().items()
    return sum(value for name, value in found if name.startswith("surefoot_gang_writes_total"))


def test_a_plan_that_kube_scheduler_refuses_is_not_tried_without_end(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """Each node is tried at most once for each member, and pods are woken every 10 s at most: the API
    server has a handful of writes of it, not thousands.
    """
    surefoot = led(3)
    scheduler(configuration(extender(surefoot.url)))
    gang = members("train", 2, affinity=BESIDE_NOBODY)
    pods.create(*(gates(each) for each in gang))
    eventually(lambda: "pod affinity" in pods.refused("train-0"), "kube-scheduler refuses it")
    throughout(lambda: _writes(surefoot.controller) <= MOST_WRITES, "few writes", for_s=10)
    assert not any(pods.nodes().values())
