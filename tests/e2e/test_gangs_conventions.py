"""Gangs of every convention become whole on planned nodes; with too little room none of them starts."""

from __future__ import annotations

import json
from typing import Final

import pytest
from asking import Json
from examples import SIZE, GangExample, gang_examples, multiplied

from e2e.caches import Cache
from e2e.conventions import (
    KUEUE_GATE,
    coscheduling_group,
    coscheduling_members,
    jobs_of,
    jobset,
    kueue_members,
    kueue_workload,
    worker_set,
    workers_of,
)
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import Led, MakesLed
from e2e.gating import gated
from e2e.history import History
from e2e.laws import assert_planned
from e2e.nodes import Nodes
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from scoring.model import Convention
from scoring.planning.outcome import Lack

ELSEWHERE: Final = {
    Convention.NATIVE: "test_gangs_native.py",
    Convention.WORKLOAD: "only Kubernetes 1.35 serves it",
    Convention.RAY: "nobody says how large it is",
}
EXAMPLES: Final = [each for each in gang_examples() if each.convention not in ELSEWHERE]
RAY: Final = next(each for each in gang_examples() if each.convention is Convention.RAY)


def _plan(**holds: str) -> Json:
    """The section `gangs` of a site that plans other conventions than Surefoot's own."""
    return {"plan": holds}


def _applied(pods: Pods, example: GangExample) -> None:
    """The YAML of the docs in the namespace of the test, with all four members: their names tell in
    front which example they are of, and nothing else is another.
    """
    text = json.dumps([each for pod in example.pods for each in multiplied(pod)])
    for body in example.beside:
        stored = pods.beside(_placed(pods, body))
        if uid := body["metadata"].get("uid"):
            text = text.replace(uid, stored["metadata"]["uid"])
    for each in json.loads(text):
        each["metadata"]["name"] = f"{example.name}-{each['metadata']['name']}"
        pods.create(_placed(pods, each))


def _placed(pods: Pods, body: Json) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": pods.namespace}}


def _told(surefoot: Led) -> Json:
    """What Surefoot says of the only gang."""
    (told,) = eventually(surefoot.served.gangs, "the gang is known")
    return told


def _waits(surefoot: Led, lack: Lack) -> Json:
    """Wait until the only gang is said to wait for this."""
    eventually(
        lambda: _told(surefoot)["lack"] == lack, lambda: f"{lack} is told: {_told(surefoot)}"
    )
    told = _told(surefoot)
    assert told["state"] == "waiting"
    assert told["summary"]
    return told


def _runs(surefoot: Led, pods: Pods) -> dict[str, str]:
    """Wait until all pods run, and Surefoot says so; the node of each."""
    ran = pods.running(*pods.all())
    eventually(lambda: _told(surefoot)["state"] == "running", "it is said to run")
    assert {each["pod"]: each["node"] for each in _told(surefoot)["members"]} == ran
    return ran


@pytest.mark.usefixtures("gang_kinds")
def test_the_examples_of_the_docs_run_whole_or_not_at_all(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, led: MakesLed, scheduler: MakesScheduler
) -> None:
    """All of them side by side, though most have the same name. Three nodes are too few for four
    members: none starts, and Surefoot says why. With four nodes for each all of them run, each member
    where it was planned.
    """
    holds = {each.convention.value: "require" for each in EXAMPLES}
    surefoot = led(SIZE - 1, gangs=_plan(**holds))
    scheduler(configuration(extender(surefoot.url)), verbosity=0)
    for example in EXAMPLES:
        _applied(pods, example)
    expected = sorted((each.convention.value, SIZE) for each in EXAMPLES)

    def told(state: str) -> list[tuple[str, int]]:
        found = [each for each in surefoot.served.gangs() if each["state"] == state]
        return sorted((each["convention"], each["min"]) for each in found)

    eventually(lambda: told("waiting") == expected, lambda: f"all wait: {told('waiting')}")
    eventually(
        lambda: {each["lack"] for each in surefoot.served.gangs()} == {Lack.NO_ROOM},
        lambda: f"it is told why: {surefoot.served.gangs()}",
    )
    throughout(lambda: not any(pods.nodes().values()), "nobody is bound", for_s=2)
    gpu_nodes(SIZE * len(EXAMPLES) - (SIZE - 1))
    gpu_nodes.report(cache.settings)
    ran = pods.running(*pods.all())
    assert len(set(ran.values())) == len(ran) == SIZE * len(EXAMPLES)
    eventually(lambda: told("running") == expected, lambda: f"all run: {told('running')}")
    gangs = surefoot.served.gangs()
    assert {each["pod"]: each["node"] for gang in gangs for each in gang["members"]} == ran


def test_a_gang_of_which_nobody_says_how_large_it_is_waits(
    pods: Pods, led: MakesLed, scheduler: MakesScheduler
) -> None:
    """KubeRay's pods: there is room for all that exist, and yet nobody knows whether these are all."""
    surefoot = led(SIZE, gangs=_plan(ray="require"))
    scheduler(configuration(extender(surefoot.url)))
    _applied(pods, RAY)
    _waits(surefoot, Lack.SIZE_UNKNOWN)
    throughout(lambda: not any(pods.nodes().values()), "nobody is bound", for_s=1)


@pytest.mark.usefixtures("gang_kinds")
def test_a_jobset_is_one_gang_of_all_its_jobs(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
    history: History,
) -> None:
    """The job controller makes the pods of both Jobs behind their gates: there is room for one Job, and
    none of its pods starts before there is room for the other.
    """
    surefoot = led(2, gangs=_plan(jobset="require"))
    scheduler(configuration(extender(surefoot.url)))
    stored = pods.beside(jobset("train", jobs=2, pods_each=2))
    for job in jobs_of(stored):
        pods.beside(gated(job))
    eventually(lambda: len(pods.all()) == SIZE, "both Jobs have their pods")
    assert _waits(surefoot, Lack.NO_ROOM)["min"] == SIZE
    throughout(lambda: not any(pods.nominations().values()), "nobody is nominated", for_s=1)
    gpu_nodes(2)
    gpu_nodes.report(cache.settings)
    ran = _runs(surefoot, pods)
    assert len(set(ran.values())) == SIZE
    assert_planned(history.scenes(), ran)


@pytest.mark.usefixtures("gang_kinds")
def test_each_group_of_a_leaderworkerset_is_a_gang(
    cache: Cache, gpu_nodes: Nodes, pods: Pods, led: MakesLed, scheduler: MakesScheduler
) -> None:
    """Three nodes hold one leader with its worker, and nothing of the other group."""
    surefoot = led(3, gangs=_plan(lws="require"))
    scheduler(configuration(extender(surefoot.url)))
    stored = pods.beside(worker_set("serve", groups=2, size=2))
    pods.create(*map(gated, workers_of(stored)))
    groups = ({"serve-0", "serve-0-1"}, {"serve-1", "serve-1-1"})
    eventually(
        lambda: sorted(each["state"] for each in surefoot.served.gangs()) == ["running", "waiting"],
        lambda: f"one group runs, the other waits: {surefoot.served.gangs()}",
    )
    bound = {name for name, node in pods.nodes().items() if node}
    assert bound in groups
    throughout(
        lambda: {name for name, node in pods.nominations().items() if node} <= bound,
        "the other group holds nothing",
        for_s=1,
    )
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    pods.running(*groups[0], *groups[1])


@pytest.mark.usefixtures("gang_kinds")
def test_a_gang_that_is_atomic_without_surefoot_is_led_to_its_nodes(
    pods: Pods, led: MakesLed, scheduler: MakesScheduler
) -> None:
    """Coscheduling under `prefer`: its pods have no gate, are nominated, and go where they are planned."""
    surefoot = led(6, gangs=_plan(coscheduling="prefer"))
    pods.beside(coscheduling_group("train", SIZE))
    pods.create(*coscheduling_members("train", SIZE))
    eventually(lambda: all(pods.nominations().values()), "all are nominated")
    planned = pods.nominations()
    scheduler(configuration(extender(surefoot.url)))
    assert _runs(surefoot, pods) == planned


@pytest.mark.usefixtures("gang_kinds")
def test_what_kueue_has_not_admitted_holds_nothing(
    pods: Pods, led: MakesLed, scheduler: MakesScheduler
) -> None:
    """Not even a plan. Once Kueue has taken its gates away, all of the group run where they are planned."""
    surefoot = led(SIZE, gangs=_plan(kueue="prefer"))
    pods.beside(kueue_workload("train", SIZE))
    names = pods.create(*kueue_members("train", SIZE, admitted=False))
    eventually(surefoot.served.gangs, "the gang is known")
    throughout(lambda: not any(pods.nominations().values()), "nobody is nominated", for_s=2)
    assert _told(surefoot)["members"] == []
    for name in names:
        pods.ungate(name, KUEUE_GATE["name"])
    eventually(lambda: all(pods.nominations().values()), "all are nominated")
    planned = pods.nominations()
    scheduler(configuration(extender(surefoot.url)))
    assert _runs(surefoot, pods) == planned
