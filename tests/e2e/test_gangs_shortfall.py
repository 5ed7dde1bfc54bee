"""A gang that does not fit: seen by autoscalers, or making room for itself, as its site or its pods say."""

from __future__ import annotations

from collections.abc import Callable

from e2e.caches import Cache
from e2e.conventions import members
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import Led, MakesLed
from e2e.gating import Gates, gates_of
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from scoring.gangs.rules import ON_SHORTFALL

RANKS = ("train-0", "train-1")
AUTOSCALE = {"onShortfall": "autoscale", "autoscaleAfter": "2s"}
PREEMPT = {ON_SHORTFALL: "preempt"}


def _waits(surefoot: Led, pods: Pods) -> Callable[[], bool]:
    """Whether Surefoot has looked for room for the gang in vain."""

    def looked() -> bool:
        told = surefoot.served.gang(pods.namespace, "train")
        return told is not None and told["state"] == "waiting" and bool(told["lack"])

    return looked


def _seen_by_autoscalers(pods: Pods, gates: Gates) -> None:
    """A gang for which a node is missing, as an autoscaler would find it: without gates and without
    nominations every member is Unschedulable, the one that would fit as well.
    """
    pods.create(*(gates(each) for each in members("train", len(RANKS))))
    for name in RANKS:
        assert pods.refused(name)
    assert not any(map(gates_of, pods.all().values()))
    throughout(lambda: not any(pods.nominations().values()), "nobody is nominated")
    assert not any(pods.nodes().values())


def test_autoscalers_see_its_pods_and_it_runs_when_nodes_come(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """kube-scheduler has laid its pods aside: they are woken once the new node is known to be healthy."""
    surefoot = led(1, gangs=AUTOSCALE)
    scheduler(configuration(extender(surefoot.url)))
    _seen_by_autoscalers(pods, gates)
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    assert set(pods.running(*RANKS).values()) == {"gpu-0", "gpu-1"}


def test_its_pods_gain_nominations_when_nodes_come(
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    gates: Gates,
    scheduler: MakesScheduler,
) -> None:
    """As every planned gang. kube-scheduler is away meanwhile, since it may be faster than that."""
    surefoot = led(1, gangs=AUTOSCALE)
    first = scheduler(configuration(extender(surefoot.url)), name="first")
    _seen_by_autoscalers(pods, gates)
    first.kill()
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    eventually(lambda: all(pods.nominations().values()), "all are nominated")
    planned = pods.nominations()
    scheduler(configuration(extender(surefoot.url)), name="second")
    assert pods.running(*RANKS) == planned


def test_a_gang_that_waits_stays_gated(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """By default autoscalers see nothing of it: what they would add may be wanted by nobody."""
    surefoot = led(1, gangs={"autoscaleAfter": "500ms"})
    scheduler(configuration(extender(surefoot.url)))
    pods.create(*(gates(each) for each in members("train", len(RANKS))))
    eventually(_waits(surefoot, pods), "it waits")
    throughout(lambda: all(map(gates_of, pods.all().values())), "its gates stay")


def test_lower_pods_make_room_for_a_whole_gang(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """Every node is full of pods of lower priority: as many go as the gang needs, and no more."""
    surefoot = led(3)
    scheduler(configuration(extender(surefoot.url)))
    victims = pods.create(*(pod(f"low-{i}", gpus=8, priority="low") for i in range(3)))
    pods.running(*victims)
    gang = members("train", len(RANKS), priority="high", annotations=PREEMPT)
    pods.create(*(gates(each) for each in gang))
    pods.running(*RANKS)
    assert len(set(pods.all()) & set(victims)) == 1


def test_nobody_goes_for_a_gang_that_would_not_fit_even_so(
    pods: Pods, led: MakesLed, gates: Gates, scheduler: MakesScheduler
) -> None:
    """One of two nodes has a pod that may not be evicted: the other one's pod runs on."""
    surefoot = led(2)
    scheduler(configuration(extender(surefoot.url)))
    before = pods.running(
        *pods.create(pod("low", gpus=8, priority="low"), pod("high", gpus=8, priority="high"))
    )
    gang = members("train", len(RANKS), priority="high", annotations=PREEMPT)
    pods.create(*(gates(each) for each in gang))
    eventually(_waits(surefoot, pods), "it waits")
    throughout(lambda: pods.nodes() == {**before, **dict.fromkeys(RANKS)}, "both run on", for_s=5)
    assert not any(pods.nominations().values())
