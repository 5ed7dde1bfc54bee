"""Kubernetes' own gangs with a plan: kube-scheduler makes them atomic, and the plan says where they go."""

from __future__ import annotations

from typing import Final

import pytest
from asking import Json
from examples import SIZE, gang_examples, multiplied

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.fixtures import MakesScheduler
from e2e.gang_fixtures import Led, MakesLed
from e2e.groups import NATIVE, api_of, member_of, pod_group
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.waiting import eventually, throughout
from scoring.model import Convention
from scoring.planning.outcome import Lack

pytestmark = [
    pytest.mark.since("1.36", "PodGroup"),
    pytest.mark.parametrize("cluster", [NATIVE], indirect=True, ids=["native"]),
]

HOLDS: Final = pytest.mark.parametrize(
    "hold",
    [
        pytest.param("prefer", marks=pytest.mark.since("1.37", "GenericWorkload with gangs")),
        "require",
    ],
)
"""In 1.36 kube-scheduler makes gangs atomic only with a second feature gate, which 1.37 does not know."""
(EXAMPLE,) = (each for each in gang_examples() if each.convention is Convention.NATIVE)


def _plan(hold: str) -> Json:
    return {"plan": {"native": hold}}


def _create(cluster: Cluster, pods: Pods, size: int) -> list[str]:
    """A gang of whole nodes; its pods."""
    pods.beside(pod_group("train", size=size, api=api_of(cluster)))
    names = [f"rank-{number}" for number in range(size)]
    return pods.create(*(pod(name, gpus=8, **member_of("train")) for name in names))


def _state(surefoot: Led, pods: Pods) -> tuple[str, str | None]:
    """What Surefoot says of the gang: its state, and what it lacks."""
    told = surefoot.served.gang(pods.namespace, "train")
    return (told["state"], told["lack"]) if told else ("unknown", None)


@HOLDS
def test_it_runs_where_it_is_planned(
    cluster: Cluster, pods: Pods, led: MakesLed, scheduler: MakesScheduler, hold: str
) -> None:
    """The gang is nominated to four of six nodes before kube-scheduler looks; it binds them there."""
    surefoot = led(6, gangs=_plan(hold))
    names = _create(cluster, pods, 4)
    eventually(lambda: all(pods.nominations().values()), "all are nominated")
    planned = pods.nominations()
    running = scheduler(configuration(extender(surefoot.url)))
    assert pods.running(*names) == planned
    eventually(lambda: _state(surefoot, pods) == ("running", None), "it is said to run")
    assert running.extender_errors() == []


@HOLDS
def test_with_too_little_room_none_of_it_runs(
    cluster: Cluster,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
    hold: str,
) -> None:
    """The docs' example in the version that is served, on three nodes: kube-scheduler and Surefoot both say no. With the
    fourth node all of them run.
    """
    surefoot = led(SIZE - 1, gangs=_plan(hold))
    scheduler(configuration(extender(surefoot.url)))
    for body in (*EXAMPLE.beside, *(each for one in EXAMPLE.pods for each in multiplied(one))):
        here = {**body, "metadata": {**body["metadata"], "namespace": pods.namespace}}
        if body["kind"] == "Pod":
            pods.create(here)
        else:
            pods.beside({**here, "apiVersion": api_of(cluster)})
    eventually(
        lambda: (
            _state(surefoot, pods) == ("waiting", Lack.DOMAIN_TOO_SMALL)
            or _state(surefoot, pods) == ("waiting", Lack.NO_ROOM)
        ),
        lambda: f"it is told why: {_state(surefoot, pods)}",
    )
    throughout(lambda: not any(pods.nodes().values()), "nobody is bound", for_s=1)
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    pods.running(*pods.all())
    eventually(lambda: _state(surefoot, pods) == ("running", None), "it is said to run")


def test_a_group_that_is_made_anew_is_another_gang(
    cluster: Cluster,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    led: MakesLed,
    scheduler: MakesScheduler,
) -> None:
    """A gang of two ran; one of three under the same name waits for its third node, and then runs."""
    surefoot = led(2, gangs=_plan("require"))
    scheduler(configuration(extender(surefoot.url)))
    pods.running(*_create(cluster, pods, 2))
    pods.delete(*pods.all())
    pods.remove(pod_group("train", size=2, api=api_of(cluster)))
    names = _create(cluster, pods, 3)
    eventually(
        lambda: _state(surefoot, pods) == ("waiting", Lack.NO_ROOM),
        lambda: f"three do not fit: {_state(surefoot, pods)}",
    )
    throughout(lambda: not any(pods.nodes().values()), "nobody is bound", for_s=1)
    gpu_nodes(1)
    gpu_nodes.report(cache.settings)
    assert len(set(pods.running(*names).values())) == 3
