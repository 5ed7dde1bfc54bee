"""Ten thousand random pods on random fleets: kube-scheduler finds no fault with any answer."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Final

import pytest
from asking import Json, by_names

from e2e import versions
from e2e.api import Api
from e2e.caches import Cache
from e2e.chance import RESOURCES, SHAPE, Chance, Place
from e2e.cluster import Cluster
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import NODES
from e2e.pods import Pods
from e2e.schedulers import configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually
from extender.store.writer import Writer

FLEET: Final = 80
"""Nodes at a time."""
SHAPES: Final = 50
ALIKE: Final = 10
"""Pods of each shape."""
ELSEWHERE: Final = 4
"""Rounds on versions other than the default one: what they ask is much the same, and takes minutes."""
THREADS: Final = 6
PATIENCE_S: Final = 120.0
FITS: Final = "fits"
GONE: Final = re.compile(r"pods? \S+ (not found|is being deleted)")
"""What kube-scheduler says of a pod that the test has deleted under its hands."""
MANAGED: Final = [{"name": name, "ignoredByScheduler": False} for name in RESOURCES]


class Fleet:
    """Random nodes, in the API server and in the cache; each call of `renew` replaces them all."""

    def __init__(self, api: Api, writer: Writer, chance: Chance) -> None:
        self._api = api
        self._writer = writer
        self._chance = chance
        self._numbers = count()
        self._places: list[Place] = []

    def renew(self, served: Surefoot) -> None:
        """Return once pods can go there, and Surefoot knows all that the cache knows."""
        self.remove()
        self._places = [self._chance.place(f"n{next(self._numbers)}") for _ in range(FLEET)]
        for place in self._places:
            self._api.create(NODES, place.node)
            if place.document is not None:
                self._writer.put([place.document], sampled_s_ago=place.seen_s_ago)
            self._writer.put(place.others)
        generation = self._writer.pulse().generation
        eventually(
            lambda: served.values()["surefoot_snapshot_generation"] == generation,
            "Surefoot knows the fleet",
        )
        eventually(self._is_open, "the API server lets pods go to each node")

    def remove(self) -> None:
        """Delete all of it."""
        for place in self._places:
            self._api.delete(f"{NODES}/{place.node['metadata']['name']}")
            for document in (place.document, *place.others):
                if document is not None:
                    self._writer.delete(document.kind, document.id)

    def _is_open(self) -> bool:
        taints = (each["spec"].get("taints", ()) for each in self._api.items(NODES))
        return not any(
            taint["key"] == "node.kubernetes.io/not-ready" for each in taints for taint in each
        )


@pytest.fixture
def chance() -> Chance:
    """What is random in one test; its seed is printed, and follows from that of the whole run."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it with a failure
    return Chance(seed)


@pytest.fixture
def fleet(cluster: Cluster, cache: Cache, chance: Chance) -> Iterator[Fleet]:
    """The nodes of one test."""
    writer = Writer(cache.settings)
    made = Fleet(cluster.api, writer, chance)
    yield made
    made.remove()
    writer.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("rounds", "by_name"), [(16, True), (4, False)], ids=["names", "nodes"])
def test_no_answer_is_an_error(
    request: pytest.FixtureRequest,
    rounds: int,
    by_name: bool,
    cluster: Cluster,
    chance: Chance,
    fleet: Fleet,
    pods: Pods,
    scheduler: MakesScheduler,
    surefoot: MakesSurefoot,
) -> None:
    """No error of an extender, no request that Surefoot cannot answer, no pod on a node that it vetoes;
    `names`: nodes come by name; `nodes`: whole (`nodeCacheCapable: false`).
    """
    served = surefoot()
    lines = extender(served.url, nodeCacheCapable=by_name, managedResources=MANAGED)
    running = scheduler({**configuration(lines), "podInitialBackoffSeconds": 5})
    tally: Counter[str] = Counter()
    if request.config.getoption("kubernetes") != versions.DEFAULT:
        rounds = min(rounds, ELSEWHERE)
    for number in range(rounds):
        fleet.renew(served)
        shapes = [chance.pod(f"r{number}-s{shape}") for shape in range(SHAPES)]
        create(cluster.api, pods, shapes)
        eventually(lambda: settled(cluster.api, pods), "each pod was tried", within_s=PATIENCE_S)
        tally += verdicts(served, cluster.api.items(pods.path))
        delete(cluster.api, pods)
    assert tally.keys() == {FITS}
    assert tally[FITS] > rounds * SHAPES
    assert [error for error in running.extender_errors() if not GONE.search(error)] == []
    assert answered_otherwise(served) == {}
    assert all(served.calls(verb) for verb in ("filter", "prioritize", "preempt"))


def create(api: Api, pods: Pods, shapes: Iterable[Json]) -> None:
    """`ALIKE` pods of each shape, in any order."""
    bodies = [
        {
            **shape,
            "metadata": {**shape["metadata"], "name": f"{shape['metadata']['name']}-{number}"},
        }
        for number in range(ALIKE)
        for shape in shapes
    ]
    with ThreadPoolExecutor(THREADS) as threads:
        for _ in threads.map(lambda body: api.create(pods.path, body), bodies):
            pass


def delete(api: Api, pods: Pods) -> None:
    """All of them; those that wait go first, as each end of another is news to kube-scheduler."""
    for some in ({"fieldSelector": "spec.nodeName="}, dict[str, str]()):
        api.delete(pods.path, gracePeriodSeconds="0", **some)
    eventually(lambda: not api.items(pods.path, limit="20"), "the pods are gone")


def settled(api: Api, pods: Pods) -> bool:
    """Whether every pod is bound, or was refused."""
    some, everybody = {"limit": "20"}, dict[str, str]()
    return all(
        each["status"].get("conditions")
        for few in (some, everybody)  # a poll costs little while there is much to do
        for each in api.items(pods.path, fieldSelector="spec.nodeName=", **few)
    )


def verdicts(served: Surefoot, found: Iterable[Json]) -> Counter[str]:
    """How many bound pods have a node that is fit for them, and how many one that is not, by reason.

    Surefoot knows no more and no less than when they were bound: its fleet stood still.
    """
    alike: dict[str, list[Json]] = defaultdict(list)
    for each in found:
        if "nodeName" in each["spec"]:
            alike[each["metadata"]["labels"][SHAPE]].append(each)
    tally: Counter[str] = Counter()
    for members in alike.values():
        nodes = [each["spec"]["nodeName"] for each in members]
        asker = {**members[0], "spec": {**members[0]["spec"], "nodeName": None}}
        told = served.explain(by_names(asker, set(nodes)))["nodes"]
        for node in nodes:
            tally[told[node]["reason"] or FITS] += 1
    return tally


def answered_otherwise(served: Surefoot) -> dict[str, float]:
    """How many requests were answered with something else than 200."""
    return {
        sample: value
        for sample, value in served.values().items()
        if sample.startswith("surefoot_request_duration_seconds_count")
        and 'code="200"' not in sample
    }
