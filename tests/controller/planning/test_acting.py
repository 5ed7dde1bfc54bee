"""Writes to pods: one at a time to each, none repeated in vain, and each for itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cluster_objects
import pytest
from clocks import Clock
from kubes import ApiServer, Call, refuses
from servers import eventually
from unsound import unanswered

from extender.controller.cluster.pods import PodReader
from extender.controller.cluster.shapes import POD
from extender.controller.cluster.values import GatedPod
from extender.controller.planning.acting import (
    FORGET_S,
    LAST_PAUSE_S,
    LET_GO_S,
    REFUSED_S,
    THREADS,
    Actor,
    Ending,
)
from extender.kube.fence import Fence
from extender.kube.writing import Writer
from scoring.gangs.rules import GATE, GangRules
from scoring.gangs.steps import Step, Verb
from scoring.gangs.values import GangPod
from scoring.model import NodeName
from scoring.policy import DEFAULT

N0 = NodeName("n0")


class Desk:
    """An actor, with what is behind it."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.api = api
        self.fence = Fence(1)
        self.clock = Clock()
        self.answers: list[bytes] = []
        self.trips = False
        self._writer = Writer(api.settings(folder), self.fence)
        self.actor = Actor(self._writer, self._done, clock=self.clock, unix=self.clock)

    def _done(self, answer: bytes) -> None:
        self.answers.append(answer)
        if self.trips:
            raise RuntimeError("a mistake of whoever listens")

    def put(self, name: str, **more: Any) -> None:
        """A member of a gang, at our gate."""
        body = cluster_objects.pod(name, 8, node=None, phase="Pending", **more)
        body["metadata"]["labels"] = {GATE: "train", f"{GATE}-size": "2"}
        body["spec"].setdefault("schedulingGates", [{"name": GATE}])
        self.api.set("pods", body)

    def seen(self, name: str) -> GangPod:
        """It as a watch would show it now."""
        body = self.api.get("pods", f"lab/{name}")
        found = PodReader(DEFAULT, GangRules()).read(POD.decode(cluster_objects.raw(body or {})[1]))
        assert found is not None
        assert found.member is not None
        return found.member

    def nominate(self, *pods: GangPod) -> None:
        """Act on a step for each."""
        self.actor.act(Step(verb=Verb.NOMINATE, pod=pod, node=N0) for pod in pods)

    def ended(self, verb: Verb, ending: Ending, count: int = 1) -> None:
        """Wait until so many writes ended like this."""
        eventually(lambda: self.actor.endings[verb, ending] >= count, f"{count} {verb} {ending}")
        assert self.actor.endings[verb, ending] == count

    def tried(self, count: int) -> None:
        """Wait until so many writes ended, however they did."""
        eventually(lambda: self.actor.endings.total() == count, "a try")

    def close(self) -> None:
        """End it."""
        self.actor.close()
        self._writer.close()


@pytest.fixture
def desk(api: ApiServer, tmp_path: Path) -> Iterator[Desk]:
    """An actor whose clock a test moves."""
    made = Desk(api, tmp_path)
    yield made
    made.close()


def test_a_step_is_done_and_its_answer_handed_on(desk: Desk) -> None:
    """As the server has the pod then."""
    desk.put("a")
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.DONE)
    assert desk.seen("a").member.nominated == N0
    assert len(desk.answers) == 1


def test_the_end_of_the_last_write_is_told(desk: Desk) -> None:
    """Not that of one before it: who waits for it has something to do then."""
    release = threading.Event()
    for name in ("a", "b"):
        desk.put(name)

    def hold(call: Call) -> None:
        if "/b/" in call.path:
            release.wait(60)

    desk.api.heeding = hold
    desk.nominate(desk.seen("a"), desk.seen("b"))
    desk.ended(Verb.NOMINATE, Ending.DONE)
    assert not desk.actor.finished.is_set()
    release.set()
    assert desk.actor.finished.wait(60)


def test_a_pod_has_one_write_on_its_way(desk: Desk) -> None:
    """What else is to be written waits for the next round."""
    desk.put("a")
    release = threading.Event()

    def hold(_: Call) -> None:
        release.wait(60)

    desk.api.heeding = hold
    seen = desk.seen("a")
    desk.nominate(seen, seen)
    desk.actor.act([Step(verb=Verb.LIFT, pod=seen)])
    release.set()
    desk.ended(Verb.NOMINATE, Ending.DONE)
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.DONE, 2)
    assert desk.actor.endings.total() == 2


def test_what_is_wanted_no_more_is_not_begun(desk: Desk) -> None:
    """It waited for a thread, and the plan changed: then only what is wanted now is written."""
    names = [f"p{number}" for number in range(THREADS + 2)]
    for name in names:
        desk.put(name)
    held, release = threading.Barrier(THREADS + 1), threading.Event()

    def hold(_: Call) -> None:
        if not release.is_set():
            held.wait(30)
            release.wait(30)

    desk.api.heeding = hold
    pods = [desk.seen(name) for name in names]
    desk.nominate(*pods)
    held.wait(30)
    desk.actor.act([Step(verb=Verb.LIFT, pod=pods[-1])])
    release.set()
    desk.ended(Verb.LIFT, Ending.DONE)
    desk.ended(Verb.NOMINATE, Ending.DONE, THREADS)
    assert desk.seen(names[-1]).member.nominated is None
    assert desk.seen(names[-2]) == pods[-2], "nothing was written"
    desk.nominate(pods[-2])
    desk.ended(Verb.NOMINATE, Ending.DONE, THREADS + 1)


def test_one_that_acts_on_an_answer_finds_the_pod_free(desk: Desk) -> None:
    """Else its next write would wait for another round."""
    desk.put("a")
    seen = [desk.seen("a")]
    began = threading.Event()

    def lift() -> None:
        began.set()
        desk.actor.act([Step(verb=Verb.LIFT, pod=desk.seen("a"))])

    thread = threading.Thread(target=lift)

    class Listens:
        """Wakes another thread while the answer is being handed on."""

        def __call__(self, _: bytes) -> None:
            thread.start()
            began.wait(10)

    desk.actor._done = Listens()
    desk.nominate(*seen)
    desk.ended(Verb.NOMINATE, Ending.DONE)
    thread.join(10)
    desk.actor._done = desk.answers.append
    eventually(lambda: desk.seen("a").gates == frozenset(), "it is lifted")


def test_a_pod_that_changed_is_left_alone_until_it_is_seen_anew(desk: Desk) -> None:
    """The same write to the same version would be refused again."""
    desk.put("a")
    old = desk.seen("a")
    desk.api.edit("pods", "lab/a", lambda body: body["metadata"]["labels"].update(new="yes"))
    desk.nominate(old)
    desk.ended(Verb.NOMINATE, Ending.CHANGED)
    desk.nominate(old)
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.DONE)
    assert desk.actor.endings.total() == 2


def test_a_write_that_keeps_failing_is_tried_less_and_less_often(desk: Desk) -> None:
    """Though the pod stays as it is."""
    desk.put("a")
    seen = desk.seen("a")
    desk.api.faults["write"].extend([refuses(500)] * 12)
    for tries in range(1, 11):
        desk.nominate(seen)
        desk.ended(Verb.NOMINATE, Ending.FAILED, tries)
        desk.nominate(seen)
        desk.clock.pass_s(0.19)
        desk.nominate(seen)
        assert desk.actor.endings.total() == tries
        desk.clock.pass_s(LAST_PAUSE_S)


@pytest.mark.parametrize("status", [403, 422])
def test_a_write_that_is_refused_for_long_is_told_for_a_while(desk: Desk, status: int) -> None:
    """In the API server's words; then it is tried again."""
    desk.put("a")
    seen = desk.seen("a")
    desk.api.faults["write"].extend([refuses(status, "no pod of this team may")] * 9)
    desk.nominate(seen)
    desk.ended(Verb.NOMINATE, Ending.FAILED if status == 403 else Ending.CHANGED)
    assert desk.actor.refused() == {}
    desk.clock.pass_s(REFUSED_S)
    desk.nominate(seen)
    eventually(lambda: "no pod of this team may" in str(desk.actor.refused()), "it")
    desk.clock.pass_s(LET_GO_S)
    assert desk.actor.refused() == {}


@pytest.mark.parametrize("status", [404, 409, 429, 500, 503])
def test_what_passes_by_itself_is_no_refusal(desk: Desk, status: int) -> None:
    """However long it lasts: a pod that changed, a server that is busy or in trouble."""
    desk.put("a")
    seen = desk.seen("a")
    desk.api.faults["write"].extend([refuses(status)] * 3)
    for tries in range(1, 4):
        desk.nominate(seen)
        desk.tried(tries)
        desk.clock.pass_s(REFUSED_S)
    assert desk.actor.refused() == {}


def test_an_answer_that_was_lost_is_a_failure(desk: Desk) -> None:
    """Whatever became of the write: the next look tells."""
    desk.put("a")
    desk.api.faults["write"].append(unanswered)
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.FAILED)
    assert desk.seen("a").member.nominated == N0


def test_troubles_are_forgotten_in_time(desk: Desk) -> None:
    """Pods that are gone are asked for by nobody."""
    for name in ("a", "b"):
        desk.put(name)
    pods = [desk.seen("a"), desk.seen("b")]
    desk.api.delete("pods", "lab/a")
    desk.nominate(pods[0])
    desk.ended(Verb.NOMINATE, Ending.CHANGED)
    desk.clock.pass_s(2 * FORGET_S)
    desk.api.delete("pods", "lab/b")
    desk.nominate(pods[1])
    desk.ended(Verb.NOMINATE, Ending.CHANGED, 2)
    eventually(lambda: set(desk.actor._written) == {"uid-b"}, "a is forgotten")


def test_nothing_is_sent_by_who_leads_no_more(desk: Desk) -> None:
    """And that is told apart."""
    desk.put("a")
    desk.fence.end()
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.FENCED)
    assert desk.api.writes == []


def test_one_pod_that_fails_stops_no_other(desk: Desk) -> None:
    """Whatever goes wrong with it."""
    for name in ("a", "b", "c"):
        desk.put(name)

    def fails(call: Call) -> None:
        if call.route.name == "b":
            raise OSError("the connection is cut")

    desk.api.heeding = fails
    desk.nominate(*map(desk.seen, "abc"))
    desk.ended(Verb.NOMINATE, Ending.DONE, 2)
    desk.ended(Verb.NOMINATE, Ending.FAILED)


def test_a_mistake_of_who_takes_answers_costs_no_pod_its_turn(desk: Desk) -> None:
    """The write is done all the same."""
    desk.put("a")
    desk.trips = True
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.DONE)
    desk.trips = False
    desk.actor.act([Step(verb=Verb.LIFT, pod=desk.seen("a"))])
    desk.ended(Verb.LIFT, Ending.DONE)


def test_a_surprise_is_a_failure(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this pod alone."""

    def stumbles(*_: object, **__: object) -> bytes:
        raise ValueError("a mistake")

    desk.put("a")
    with monkeypatch.context() as patch:
        patch.setattr(desk._writer, "patch", stumbles)
        desk.nominate(desk.seen("a"))
        desk.ended(Verb.NOMINATE, Ending.FAILED)
    desk.clock.pass_s(1.0)
    desk.nominate(desk.seen("a"))
    desk.ended(Verb.NOMINATE, Ending.DONE)


def test_an_evicted_pod_is_not_evicted_again_before_it_is_seen_to_go(desk: Desk) -> None:
    """No answer shows it: a watch does, or time."""
    desk.put("a", nodeName="n0")
    step = Step(verb=Verb.EVICT, pod=desk.seen("a"))
    desk.api.faults["write"].extend([refuses(201, "created")] * 2)
    desk.actor.act([step])
    desk.ended(Verb.EVICT, Ending.DONE)
    desk.actor.act([step])
    assert desk.actor.endings.total() == 1
    desk.clock.pass_s(LAST_PAUSE_S)
    desk.actor.act([step])
    desk.ended(Verb.EVICT, Ending.DONE, 2)
    assert desk.answers == []


def test_strays_lose_our_gate_alone(desk: Desk) -> None:
    """By a patch that names it."""
    desk.put("a", schedulingGates=[{"name": "team.dev/x"}, {"name": GATE}])
    seen = desk.seen("a")
    stray = GatedPod(namespace="lab", name="a", uid=seen.member.uid, version=seen.version)
    desk.actor.act([], [stray])
    desk.ended(Verb.LIFT, Ending.DONE)
    assert desk.seen("a").gates == frozenset({"team.dev/x"})
