"""The signs with everything real around them: reflectors, the cluster's view, the cache and its reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import cluster_objects
import pytest
from kubes import ApiServer
from papers import paper
from redis import Redis
from servers import eventually
from signing import HOME
from waiters import RESET

from extender.config.model import Mode, UnknownNodes
from extender.controller.cluster.handlers import NodeHandler, PodHandler
from extender.controller.cluster.view import ClusterView
from extender.controller.mirrors import NodeMirror, PodMirror
from extender.controller.publisher import Publisher
from extender.controller.signs.breakers import RuledBreakers
from extender.controller.signs.signs import Signs
from extender.controller.source import Source
from extender.controller.wanted import Wanted
from extender.kube.client import Client
from extender.kube.fence import Fence
from extender.kube.reflector import Reflector
from extender.kube.writing import Writer as KubeWriter
from extender.store import documents
from extender.store.connect import StoreSettings
from extender.store.reader import Reader
from extender.store.writer import Writer
from scoring import picture
from scoring.gangs.rules import GangRules
from scoring.model import BreakerState, Fleet, NodeName
from scoring.picture import Picture
from scoring.policy import DEFAULT

TERM = 7
POOL = "B300"


class Leader:
    """A leader's process without its plans."""

    def __init__(self, api: ApiServer, store: StoreSettings, folder: Path) -> None:
        kube, self.cache, wanted = api.settings(folder), Writer(store), Wanted()
        self.outranked: list[int] = []
        self.cluster = ClusterView(DEFAULT, GangRules())
        pods = PodHandler(PodMirror(wanted, self.cache.ids), self.cluster)
        nodes = NodeHandler(NodeMirror(wanted, self.cache.ids), self.cluster)
        self.reflectors: tuple[Reflector[Any], ...] = (
            Reflector(Client(kube), "/api/v1/pods", pods),
            Reflector(Client(kube), "/api/v1/nodes", nodes),
        )
        sources = [
            Source(self.reflectors[0], pods.mirror),
            Source(self.reflectors[1], nodes.mirror),
        ]
        self.publisher = Publisher(
            self.cache,
            wanted,
            sources,
            term=lambda: TERM,
            outranked=self.outranked.append,
            tick_s=0.1,
        )
        self.kube = KubeWriter(kube, Fence(TERM))
        self.signs = Signs(
            view=self.cluster,
            kube=self.kube,
            cache=self.cache,
            sink=RuledBreakers(wanted),
            home=HOME,
            mode=Mode.ENFORCE,
            unknown_nodes=UnknownNodes.VETO,
            taint=False,
            planned=frozenset,
        )
        self.picture: Picture | None = None
        self._reader = Reader(store, self.publish, tick_s=0.05, seen_every_s=0.1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick)
        self.parts = (*self.reflectors, self._reader, self.publisher, self.signs)
        self.signs.lead(TERM)

    @property
    def fleet(self) -> Fleet:
        """As the reader has it."""
        eventually(lambda: self.picture, "a first picture")
        return cast("Picture", self.picture).fleet

    def publish(self, fleet: Fleet, changed: frozenset[NodeName] | None) -> None:
        """What the planning loop does with a Fleet."""
        old = self.picture
        if old is None or changed is None:
            self.picture = picture.picture(fleet, DEFAULT)
            self.signs.on_fleet(old, self.picture, None)
            return
        names = {*changed, *picture.due(old, fleet)}
        self.picture = picture.advanced(old, fleet, names)
        self.signs.on_fleet(old, self.picture, names)

    def _tick(self) -> None:
        while not self._stop.wait(0.05):
            self.signs.tick()

    def start(self) -> None:
        """Start all of it."""
        for part in self.parts:
            part.start()
        self._thread.start()

    def close(self) -> None:
        """Stop all of it."""
        self._stop.set()
        self._thread.join()
        for part in self.parts:
            part.close()
        self.kube.close()


@contextmanager
def running(leader: Leader) -> Iterator[Leader]:
    """From start to end."""
    leader.start()
    try:
        yield leader
    finally:
        leader.close()


@pytest.fixture
def leader(api: ApiServer, store: StoreSettings, tmp_path: Path) -> Iterator[Leader]:
    """A leader over an empty cluster and an empty cache."""
    with running(Leader(api, store, tmp_path)) as found:
        yield found


def put(leader: Leader, name: str, state: str | None, *, ago_s: float = 0.0) -> None:
    """An agent's word on a node of two GPUs."""
    causes = [{"id": "xid.48", "state": state}] if state else []
    body = {
        "apiVersion": "surefoot.dev/v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": POOL}},
        "gpus": [
            {"uuid": f"GPU-{name}-{index}", "index": index, "causes": causes if index == 0 else []}
            for index in (0, 1)
        ],
    }
    leader.cache.put([documents.check(body)], sampled_s_ago=ago_s)


def refused(name: str, gpus: int = 2, message: str = RESET) -> dict[str, Any]:
    """A pod of a gang of nobody's planning, that kube-scheduler found no node for."""
    body = cluster_objects.pod(name, gpus, node=None, phase="Pending")
    body["metadata"]["labels"] = {"leaderworkerset.sigs.k8s.io/group-key": name}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    body["status"]["conditions"] = [{**condition, "message": message}]
    return body


def state(leader: Leader) -> BreakerState:
    """The word on the pool, as all readers of the cache have it."""
    word = leader.fleet.breakers.get(POOL)
    return BreakerState.CLOSED if word is None else word.state


def closed_at(leader: Leader, until: datetime) -> datetime | None:
    """When the pool is judged as usual again, of which an earlier leader's word stands `until` then;
    None: that was over before this leader took the word over.
    """

    def known() -> bool:
        return leader.signs.breakers.pools[BreakerState.OPEN] == 1

    eventually(lambda: known() or datetime.now(UTC) >= until, "it is taken over", within_s=60.0)
    if datetime.now(UTC) >= until:
        return None
    eventually(lambda: state(leader) is BreakerState.CLOSED, "it is over", within_s=60.0)
    return datetime.now(UTC)


def wake(api: ApiServer, name: str) -> str | None:
    """The annotation of a pod."""
    body = api.get("pods", f"lab/{name}") or {}
    found: str | None = body["metadata"]["annotations"].get("surefoot.dev/wake")
    return found


def test_a_node_that_recovers_is_shown_and_wakes_who_it_helps(
    api: ApiServer, leader: Leader
) -> None:
    """From the agent's document to the pod: the pod that fits is touched, one that is too large, and
    one that waits for cpu, are not. The condition of the node follows.
    """
    node = cluster_objects.node("n0", 2)
    node["metadata"]["uid"] = "uid-n0"
    api.set("nodes", node)
    put(leader, "n0", "RESET_REQUIRED")
    api.set("pods", refused("fits"))
    api.set("pods", refused("large", 4))
    api.set("pods", refused("cpu", message="0/1 nodes are available: 1 Insufficient cpu."))

    def shows() -> str:
        body = api.get("nodes", "n0") or {}
        return "".join(each["status"] for each in body["status"]["conditions"][1:])

    eventually(lambda: shows() == "True", "the node is shown as bad")
    eventually(lambda: len(leader.cluster.refused()) == 3, "the pods are seen")
    eventually(lambda: "n0" in leader.fleet.cluster, "the node is in the cache")
    put(leader, "n0", None)
    eventually(lambda: wake(api, "fits"), "the pod is touched", within_s=20.0)
    eventually(lambda: shows() == "False", "the node is shown as well", within_s=20.0)
    assert wake(api, "large") is None
    assert wake(api, "cpu") is None
    eventually(lambda: leader.signs.wakes.outbox.pending == 0, "all touches are answered")
    assert leader.signs.wakes.outbox.sent == 1


def test_a_refused_pod_is_learnt_with_its_nodes_document(api: ApiServer, leader: Leader) -> None:
    """The rejection comes back in the Fleet, with the epoch and seq that stood."""
    put(leader, "n0", None)
    eventually(lambda: "n0" in leader.fleet.nodes, "the document is read")
    failed = cluster_objects.pod("rank-0", 2, node="n0", phase="Failed")
    failed["metadata"]["creationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    failed["metadata"]["labels"] = {"surefoot.dev/gang": "ranks", "surefoot.dev/gang-size": "2"}
    failed["status"]["reason"] = "UnexpectedAdmissionError"
    api.set("pods", failed)
    (found,) = eventually(lambda: leader.fleet.rejections.get(NodeName("n0"), ()), "it is learnt")
    node = leader.fleet.nodes[NodeName("n0")]
    assert (found.owner, found.name) == ("lab/ranks", "rank-0")
    assert (found.epoch, found.seq) == (node.epoch, node.seq)


def test_a_pool_that_falls_silent_is_frozen_in_the_cache(leader: Leader, client: Redis) -> None:
    """Every node of it is fresh for all readers of the cache, until all are back."""
    for index in range(4):
        put(leader, f"n{index}", None, ago_s=70.0)
    eventually(lambda: POOL in leader.fleet.breakers, "the pool is frozen")

    def fresh() -> bool:
        found = leader.picture
        return found is not None and not found.unfresh and len(found.names) == 4

    eventually(fresh, "its nodes are fresh")
    leader.cache.stamp([NodeName(f"n{index}") for index in range(4)])
    eventually(lambda: POOL not in leader.fleet.breakers, "the pool is thawed")


def test_a_pool_of_which_much_is_excluded_is_open(leader: Leader) -> None:
    """Four of sixteen GPUs work, and are refused to gangs."""
    for index in range(8):
        put(leader, f"n{index}", "DEGRADED" if index < 4 else None)
    eventually(lambda: state(leader) is BreakerState.OPEN, "the breaker is open")
    assert leader.signs.breakers.trips[BreakerState.OPEN] == 1


def test_what_an_earlier_leader_opened_closes_when_its_calm_is_over(
    api: ApiServer, store: StoreSettings, tmp_path: Path
) -> None:
    """The next one takes over until when; then the word goes from the cache."""
    for lasts_s in (3.0, 12.0, 48.0):
        leader = Leader(api, store, tmp_path)
        for index in range(4):
            put(leader, f"n{index}", None)
        until = datetime.now(UTC) + timedelta(seconds=lasts_s)
        leader.cache.put([paper("Breaker", pool=POOL, state="open", until=until.isoformat())])
        with running(leader):
            closed = closed_at(leader, until)
        if closed is not None:  # else the machine is too busy for a word that short
            break
    assert closed is not None
    assert closed >= until
    assert leader.signs.breakers.trips[BreakerState.OPEN] == 0
