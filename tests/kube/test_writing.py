"""Writes: one after another, each once, and none after the fence."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from following import pod
from kubes import ApiServer, refuses
from servers import eventually
from unsound import hangs, slow, unanswered

from extender.kube.errors import FencedError, KubeError, RefusedError, SilentError, UnreachableError
from extender.kube.fence import Fence
from extender.kube.writing import PatchKind, Writer

POD = "/api/v1/namespaces/lab/pods/a"
Begin = Callable[..., Writer]


@pytest.fixture
def begin(api: ApiServer, tmp_path: Path) -> Iterator[Begin]:
    """Make writers for the API server; all are closed after the test."""
    made: list[Writer] = []

    def start(fence: Fence | None = None, **more: Any) -> Writer:
        made.append(Writer(api.settings(tmp_path), fence, **more))
        return made[-1]

    yield start
    for one in made:
        one.close()


def label(value: str, **tests: str) -> bytes:
    """A JSON patch that sets a label, after these tests of the metadata."""
    operations = [
        {"op": "test", "path": f"/metadata/{key}", "value": each} for key, each in tests.items()
    ]
    labels = {"op": "add", "path": "/metadata/labels", "value": {"is": value}}
    return json.dumps([*operations, labels]).encode()


class TestKinds:
    """What an object comes to is what the API server answers."""

    def test_each_kind_of_patch_is_told_as_such(self, api: ApiServer, begin: Begin) -> None:
        """Operations, fields, and lists that are merged by key."""
        gates = [{"name": "a.dev/x"}, {"name": "surefoot.dev/gang"}]
        api.set("pods", pod("a", spec={"schedulingGates": gates, "priority": 1}))
        writer = begin()
        assert json.loads(writer.patch(POD, label("x")))["metadata"]["labels"] == {"is": "x"}
        merged = writer.patch(POD, b'{"spec":{"priority":null}}', kind=PatchKind.MERGE)
        assert json.loads(merged)["spec"] == {"schedulingGates": gates}
        gone = b'{"spec":{"schedulingGates":[{"$patch":"delete","name":"surefoot.dev/gang"}]}}'
        freed = json.loads(writer.patch(POD, gone, kind=PatchKind.STRATEGIC))
        assert freed["spec"]["schedulingGates"] == [{"name": "a.dev/x"}]
        assert api.get("pods", "lab/a") == freed

    def test_objects_are_created_and_replaced(self, api: ApiServer, begin: Begin) -> None:
        """A replacement names the version that it replaces."""
        writer = begin()
        made = json.loads(
            writer.create("/api/v1/namespaces/lab/pods", json.dumps(pod("a")).encode())
        )
        with pytest.raises(RefusedError, match="answered 409: lab/a already exists"):
            writer.create("/api/v1/namespaces/lab/pods", json.dumps(pod("a")).encode())
        again = json.loads(writer.replace(POD, json.dumps({**made, "spec": {}}).encode()))
        assert again["spec"] == {}
        with pytest.raises(RefusedError, match="answered 409"):
            writer.replace(POD, json.dumps({**made, "spec": {"old": 1}}).encode())

    def test_a_pod_that_changed_meanwhile_is_left_alone(self, api: ApiServer, begin: Begin) -> None:
        """A test of the version that fails is a 422."""
        api.set("pods", pod("a"))
        version = "101"
        writer = begin()
        writer.patch(POD, label("first", uid="uid-a", resourceVersion=version))
        with pytest.raises(RefusedError) as caught:
            writer.patch(POD, label("second", uid="uid-a", resourceVersion=version))
        assert caught.value.status == 422
        found = api.get("pods", "lab/a")
        assert found is not None
        assert found["metadata"]["labels"] == {"is": "first"}


class TestErrors:
    """The same family as of reads."""

    def test_a_refusal_is_told_with_the_pause_it_asks(self, api: ApiServer, begin: Begin) -> None:
        """429 with Retry-After; and what is not there is a 404."""
        writer = begin()
        api.faults["write"].append(refuses(429, "slow down", Retry_After="3"))
        with pytest.raises(RefusedError, match="429: slow down") as caught:
            writer.patch(POD, label("x"))
        assert (caught.value.status, caught.value.retry_after_s) == (429, 3.0)
        with pytest.raises(RefusedError, match=r"404: pods 'a' not found"):
            writer.patch(POD, label("x"))
        assert api.connections == 1

    def test_a_server_that_hangs_is_given_up(
        self, api: ApiServer, begin: Begin, release: threading.Event
    ) -> None:
        """After the time that the writer allows; its connection is not used again."""
        api.set("pods", pod("a"))
        writer = begin(timeout_s=0.2)
        api.faults["write"].append(hangs(release))
        with pytest.raises(SilentError, match=r"does not answer for 0\.2 s"):
            writer.patch(POD, label("x"))
        writer.patch(POD, label("y"))
        assert api.connections == 2

    def test_a_write_whose_answer_is_lost_is_not_sent_again(
        self, api: ApiServer, begin: Begin
    ) -> None:
        """It was heeded, as it happens; who asked for it looks again."""
        api.set("pods", pod("a"))
        api.faults["write"].append(unanswered)
        with pytest.raises(UnreachableError):
            begin().patch(POD, label("x"))
        assert len(api.writes) == 1

    def test_a_connection_that_the_server_closed_is_replaced(
        self, api: ApiServer, begin: Begin
    ) -> None:
        """A restart costs no write, where nothing was under way."""
        api.set("pods", pod("a"))
        writer = begin()
        writer.patch(POD, label("x"))
        api.faults["write"].append(closes)
        writer.patch(POD, label("y"))
        eventually(lambda: api.ended == 1, "it is closed")
        writer.patch(POD, label("z"))
        assert (len(api.writes), api.connections) == (3, 2)

    def test_a_refused_token_is_read_again(
        self, api: ApiServer, begin: Begin, tmp_path: Path
    ) -> None:
        """By the next write."""
        api.set("pods", pod("a"))
        writer = begin()
        api.settings(tmp_path, token="a-new-token")
        api.faults["write"].append(refuses(401, "Unauthorized"))
        with pytest.raises(RefusedError, match="401"):
            writer.patch(POD, label("x"))
        writer.patch(POD, label("y"))
        assert api.tokens[-1] == "Bearer a-new-token"


class TestThreads:
    """Several at a time, on as many connections."""

    def test_answers_are_waited_for_side_by_side(
        self, api: ApiServer, begin: Begin, release: threading.Event
    ) -> None:
        """Eight slow writes are all under way before one is answered; a ninth waits its turn."""
        gate = Fence(1)
        api.faults["write"].extend([slow(release)] * 8)
        for number in range(9):
            api.set("pods", pod(f"p{number}"))
        writer = begin(gate)
        with ThreadPoolExecutor(9) as pool:
            paths = [f"/api/v1/namespaces/lab/pods/p{number}" for number in range(9)]
            sent = [pool.submit(writer.patch, path, label("x")) for path in paths]
            eventually(lambda: not api.faults["write"], "all eight are under way")
            assert api.writes == []
            release.set()
            assert len([each.result() for each in sent]) == 9
        assert api.connections == 8


class TestFence:
    """Who does not lead any more writes nothing."""

    def test_nothing_is_sent_once_it_ended(self, api: ApiServer, begin: Begin) -> None:
        """Not even a connection is made."""
        api.set("pods", pod("a"))
        fence = Fence(7)
        writer = begin(fence)
        fence.end()
        with pytest.raises(FencedError, match="no longer the leader of term 7"):
            writer.patch(POD, label("x"))
        assert (api.writes, api.connections) == ([], 0)

    def test_it_ends_by_itself(self) -> None:
        """At its moment; a renewal moves that, unless it ended for good."""
        now_s = [0.0]
        fence = Fence(1, until_s=10.0, clock=lambda: now_s[0])
        assert fence.holds()
        now_s[0] = 10.0
        assert not fence.holds()
        fence.extend(20.0)
        assert fence.holds()
        fence.end()
        fence.extend(30.0)
        assert not fence.holds()

    def test_a_process_that_stops_past_its_check_sends_that_one_request(
        self, api: ApiServer, begin: Begin
    ) -> None:
        """However many threads, and writers, wait behind it."""
        for number in range(8):
            api.set("pods", pod(f"p{number}"))
        fence = Stopping(1)
        writers = [begin(fence), begin(fence)]
        for each in writers:
            each.patch("/api/v1/namespaces/lab/pods/p0", label("before"))
        fence.stops.set()
        with ThreadPoolExecutor(8) as pool:
            sent = [
                pool.submit(
                    writers[number % 2].patch, f"/api/v1/namespaces/lab/pods/p{number}", label("x")
                )
                for number in range(8)
            ]
            eventually(fence.stopped.is_set, "one is past its check")
            fence.stops.clear()
            fence.over = True
            fence.goes_on.set()
            errors = [each.exception() for each in sent]
        assert [type(error) for error in errors if error] == [FencedError] * 7
        assert len(api.writes) == 3

    def test_when_it_ended_nothing_more_is_on_its_way(self, api: ApiServer, begin: Begin) -> None:
        """Ending waits for the request that is just being sent."""
        api.set("pods", pod("a"))
        fence = Stopping(1)
        writer = begin(fence)
        fence.stops.set()
        with ThreadPoolExecutor(2) as pool:
            sent = pool.submit(writer.patch, POD, label("x"))
            eventually(fence.stopped.is_set, "it is past its check")
            ended = pool.submit(fence.end)
            threading.Event().wait(0.1)
            assert not ended.done()
            fence.goes_on.set()
            ended.result()
            sent.result()


class Stopping(Fence):
    """A fence that stops the process right after a check that passed."""

    def __init__(self, term: int) -> None:
        super().__init__(term)
        self.stops = threading.Event()
        self.stopped = threading.Event()
        self.goes_on = threading.Event()
        self.over = False

    def holds(self) -> bool:
        """The check; it stops the one who is to send, not the one who looks first."""
        held = super().holds() and not self.over
        if held and self.stops.is_set() and self._sending.locked():
            self.stopped.set()
            self.goes_on.wait(10)
        return held


def closes(call: Any) -> None:
    """A write that is answered, after which the server closes the connection without a word."""
    call.server.owner.write(call)
    call.close_connection = True


def test_no_error_is_of_several_lines(api: ApiServer, begin: Begin) -> None:
    """Whatever a server says, logs take a line of it."""
    api.stop()
    with pytest.raises(KubeError) as caught:
        begin().patch(POD, label("x"))
    assert "\n" not in str(caught.value)
    api.start()
