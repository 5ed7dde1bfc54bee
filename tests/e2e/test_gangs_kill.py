"""A leader is killed after each of its writes in turn: the next one makes of it what the first would have.

Beside the gang another one runs, which nothing may touch, and a third one waits, for which there is no
room: it may never hold anything.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import proxy
import pytest
from proxy import Proxy

from e2e.caches import Cache
from e2e.candidates import Candidate, MakesCandidate
from e2e.cluster import Cluster
from e2e.conventions import members
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.gating import Gates, gates_of
from e2e.history import History
from e2e.laws import assert_never_half, nominations_are_kept, of_gang
from e2e.nodes import Nodes
from e2e.pods import GPU, Pods
from e2e.relays import Kind, Request
from e2e.schedulers import configuration, extender
from e2e.surefoots import Surefoot
from e2e.waiting import eventually
from extender.store import schema
from extender.store.writer import Writer

SIZE: Final = 4
BESIDE: Final = 2
"""Members of the gang that runs beside it."""
NODES: Final = SIZE + BESIDE
WAITING: Final = SIZE + 1
"""Members of the gang that finds no room."""
WRITES: Final = 2 * SIZE
"""To the pods of one gang: a nomination and a gate each."""


class Stage:
    """Six nodes, a gang of two that runs, one of five that waits; gangs of four come and go."""

    def __init__(
        self, cluster: Cluster, pods: Pods, gates: Gates, served: Surefoot, cache: Cache
    ) -> None:
        self.kept = nominations_are_kept(cluster)
        self._pods = pods
        self._gates = gates
        self._served = served
        self._cache = cache
        self._before: dict[str, tuple[str, str]] = {}

    def create(self, gang: str, size: int = SIZE) -> None:
        """The pods of a gang of whole nodes."""
        self._pods.create(*(self._gates(each) for each in members(gang, size)))

    def set_up(self) -> None:
        """The gang beside, and the one that waits."""
        self.create("beside", BESIDE)
        self._pods.whole("beside", BESIDE)
        self._before = self._beside()
        self.create("waiting", WAITING)

    def end(self, gang: str) -> None:
        """Let its pods be no more."""
        self._pods.delete(*self._pods.gang(gang))

    def _beside(self) -> dict[str, tuple[str, str]]:
        """Of the gang that runs beside: which pods, and where."""
        return {
            name: (each["metadata"]["uid"], each["spec"]["nodeName"])
            for name, each in self._pods.gang("beside").items()
        }

    def assert_whole(self, gang: str, history: History) -> None:
        """It runs on one plan, never was half, nobody else was hurt, and all of it is on record."""
        nodes = self._pods.whole(gang, SIZE)
        assert len(set(nodes.values())) == SIZE
        assert not any(map(gates_of, self._pods.gang(gang).values()))
        scenes = list(history.scenes())
        if self.kept:
            assert_never_half(scenes)
        assert {
            (name, state.holds)
            for scene in scenes
            for name, state in of_gang(scene, gang).items()
            if state.holds
        } == set(nodes.items()), "one plan, from the first nomination on"
        assert not any(
            state.holds or not state.gated
            for scene in scenes
            for state in of_gang(scene, "waiting").values()
        )
        assert self._beside() == self._before
        eventually(lambda: self._recorded(gang) == nodes, "the record tells the truth")
        eventually(lambda: self._allocated() == self._bound(), "so do the allocations")

    def _recorded(self, gang: str) -> dict[str, str]:
        told = self._served.gang(self._pods.namespace, gang)
        if told is None or told["state"] != "running":
            return {}
        return {each["pod"]: each["node"] for each in told["members"] if each["bound"]}

    def _allocated(self) -> frozenset[str]:
        writer = Writer(self._cache.settings)
        try:
            return writer.ids(schema.Kind.ALLOCATION)
        finally:
            writer.close()

    def _bound(self) -> set[str]:
        return {
            f"{each['metadata']['uid']}/{GPU}"
            for each in self._pods.all().values()
            if "nodeName" in each["spec"]
        }


@pytest.fixture
def stage(
    cluster: Cluster,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    gates: Gates,
    surefoot: MakesSurefoot,
    scheduler: MakesScheduler,
) -> Stage:
    """Everything but controllers."""
    gpu_nodes(NODES)
    gpu_nodes.report(cache.settings)
    served = surefoot(nodes=NODES)
    scheduler(configuration(extender(served.url)))
    return Stage(cluster, pods, gates, served, cache)


ANSWERED: Final = pytest.mark.parametrize("answered", [True, False], ids=["answered", "unanswered"])


def _to(gang: str) -> Kind:
    """Writes to the pods of a gang."""
    return lambda request: request.of_pod and f"/pods/{gang}-" in request.target


def _heeded(kind: Kind, *candidates: Candidate) -> int:
    """How many requests of a kind the API server took from these."""
    return sum(
        kind(request) and request.status == HTTPStatus.OK
        for candidate in candidates
        for request in candidate.relay.requests
    )


def _dies(leader: Candidate, last: str) -> None:
    """Once it has come to its last write."""
    eventually(lambda: leader.relay.stopped, last)
    leader.kill()


def _dies_at(wire: Proxy, leader: Candidate, last: str) -> None:
    """Once its last write waits on the wire to the cache, where it is lost."""
    eventually(lambda: wire.stalled, last)
    leader.kill()
    wire.cut()


@ANSWERED
def test_after_any_write_to_a_pod(
    stage: Stage, candidate: MakesCandidate, history: History, answered: bool
) -> None:
    """After each nomination and each gate, whether or not the leader has read the answer."""
    leader = candidate()
    stage.set_up()
    for number in range(1, WRITES + 1):
        gang = f"train-{number}"
        heir = candidate()
        history.restart()
        leader.relay.stop_after(number, _to(gang), answered=answered)
        stage.create(gang)
        _dies(leader, f"write {number} to {gang}")
        stage.assert_whole(gang, history)
        heeded = _heeded(_to(gang), leader, heir)
        assert heeded == WRITES or (heeded > WRITES and not stage.kept), "none is done twice"
        stage.end(gang)
        leader = heir


@ANSWERED
def test_after_any_write_to_its_lease(
    stage: Stage, candidate: MakesCandidate, history: History, answered: bool
) -> None:
    """Right after it came to lead, and after each of its first renewals."""
    first = candidate()
    stage.set_up()
    first.controller.stop()
    for number in range(1, 4):
        gang = f"train-{number}"
        history.restart()
        stage.create(gang)
        leader = candidate(
            prepare=lambda relay, last=number: relay.stop_after(last, _of_lease, answered=answered)
        )
        _dies(leader, f"write {number} to its Lease")
        heir = candidate()
        stage.assert_whole(gang, history)
        stage.end(gang)
        heir.controller.stop()


def test_after_any_write_to_the_cache(
    cache: Cache, pods: Pods, stage: Stage, candidate: MakesCandidate, history: History
) -> None:
    """Before the record of the gang, and before each of the next changes to it."""
    first = candidate()
    stage.set_up()
    first.controller.stop()
    for number in range(1, 4):
        gang = f"train-{number}"
        history.restart()
        with proxy.before(cache) as wire:
            leader = candidate(store=wire.settings)
            leader.await_lead()
            wire.stall_at(number, f"{pods.namespace}/{gang}".encode())
            stage.create(gang)
            _dies_at(wire, leader, f"write {number} of {gang} to the cache")
        heir = candidate()
        stage.assert_whole(gang, history)
        stage.end(gang)
        heir.controller.stop()


def _of_lease(request: Request) -> bool:
    return request.of_lease
