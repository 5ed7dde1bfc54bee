"""Surefoot names few nodes, and only where that can cost nothing: not for a pod whose wishes other
plugins have to weigh, and not for one that its first cycle did not help.

Two nodes are named here, as many as there are in the zone that Surefoot likes best.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from e2e.caches import Cache
from e2e.extenders import Recorder, served
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration, extender
from e2e.storage import Storage

ZONE: Final = "topology.kubernetes.io/zone"
NARROW: Final = 2
ZONES: Final = [f"zone-{number}" for number in range(8)]
SLOWER: Final = {f"GPU{i}-GPU{j}": "NV12" for i in range(8) for j in range(i + 1, 8)}
"""Links of all zones but the first: a worse rank, by less than one of kube-scheduler's points."""
SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "search"}},
}


def preferring(zone: str) -> dict[str, Any]:
    """Soft node affinity."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    preferred = [{"weight": 100, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


@pytest.fixture
def zones(cache: Cache, gpu_nodes: Nodes) -> dict[str, str]:
    """The zone of each node: two nodes in the first one, which Surefoot likes best, one elsewhere."""
    where: dict[str, str] = {}
    for zone in ZONES[1:]:
        where |= dict.fromkeys(gpu_nodes(1, prefix=zone, labels={ZONE: zone}), zone)
    gpu_nodes.report(cache.settings, links=SLOWER)
    best = gpu_nodes(NARROW, prefix=ZONES[0], labels={ZONE: ZONES[0]})
    gpu_nodes.report(cache.settings, only=best)
    return where | dict.fromkeys(best, ZONES[0])


def test_pods_without_wishes_go_to_the_best_zone(
    zones: dict[str, str], pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """What the wishes of the tests below stand up against."""
    scheduler(configuration(extender(surefoot(nodes=len(zones), narrow=NARROW).url)))
    names = pods.create(*(pod(f"{zone}-pod", gpus=1) for zone in ZONES))
    assert {zones[node] for node in pods.running(*names).values()} == {ZONES[0]}


def test_soft_spread_still_spreads(
    zones: dict[str, str], pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Eight pods with `ScheduleAnyway` go to eight zones."""
    scheduler(configuration(extender(surefoot(nodes=len(zones), narrow=NARROW).url)))
    names = pods.create(
        *(
            pod(f"{zone}-pod", gpus=1, labels={"app": "search"}, topologySpreadConstraints=[SPREAD])
            for zone in ZONES
        )
    )
    assert sorted(zones[node] for node in pods.running(*names).values()) == ZONES


def test_preferred_affinity_still_attracts(
    zones: dict[str, str], pods: Pods, scheduler: MakesScheduler, surefoot: MakesSurefoot
) -> None:
    """Each pod goes to the zone that it prefers, and not to that which Surefoot does."""
    scheduler(configuration(extender(surefoot(nodes=len(zones), narrow=NARROW).url)))
    liked = {f"likes-{zone}": zone for zone in ZONES[1:]}
    pods.create(*(pod(name, gpus=8, affinity=preferring(zone)) for name, zone in liked.items()))
    found = pods.running(*liked)
    assert {name: zones[node] for name, node in found.items()} == liked


def test_a_pod_whose_volume_finds_no_room_is_shown_more_nodes(
    storage: Storage,
    zones: dict[str, str],
    pods: Pods,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
) -> None:
    """Its node was chosen and reserved, and then the volume could not be made there: the next cycle
    is not kept to the same few nodes.
    """
    storage.full = {node for node, zone in zones.items() if zone == ZONES[0]}
    recorder = Recorder(surefoot(nodes=len(zones), narrow=NARROW).url)
    with served(recorder) as url:
        running = scheduler({**configuration(extender(url)), "podMaxBackoffSeconds": 1})
        pods.create(pod("trainer", gpus=8, volumes=[storage.claim("scratch")]))
        storage.provide("scratch")
        node = pods.running("trainer")["trainer"]
    recorder.close()
    offers = [frozenset(call.answered["NodeNames"]) for call in recorder.of("filter")]
    assert node not in storage.full
    assert offers[0] == storage.full
    assert offers[-1] == zones.keys()
    assert all("provisioning failed" in error for error in running.extender_errors())
