"""`surefoot serve` under gunicorn, on real sockets: bodies in pieces, stalls, crowds, and the end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from asking import by_names, pod, refused
from papers import node_paper
from redis import Redis
from servers import Cache, eventually
from serving import PATIENT, SICK, TEN, Serve, ask, dial

from extender.store import keys
from extender.store.writer import Writer
from extender.version import VERSION

GANG_8 = pod(8, gang="sweep")
ALL = (*TEN, SICK)
BODY = json.dumps(by_names(GANG_8, ALL)).encode()
HEAD = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


def test_a_gang_is_kept_off_the_sick_node(served: Serve) -> None:
    """The main job, over HTTP, from a real cache."""
    assert served.post("filter", by_names(GANG_8, ALL))["NodeNames"] == sorted(TEN)
    alone = served.post("filter", by_names(GANG_8, [SICK]))
    assert alone["FailedAndUnresolvableNodes"] == {SICK: "a GPU that the pod may get needs a reset"}


def test_the_pages_are_served(served: Serve) -> None:
    """What probes and Prometheus ask for, HEAD included; and what does not exist."""
    for path in ("/livez", "/healthz", "/readyz", "/readyz?verbose", "/metrics", "/version"):
        assert served.ask("GET", path).status == 200
    head = served.ask("HEAD", "/livez")
    assert (head.status, head.body) == (200, b"")
    assert served.ask("GET", "/version").json == {"version": VERSION}
    assert served.ask("GET", "/").status == 404
    assert served.ask("PUT", "/filter", b"{}").status == 405


def test_every_metric_is_there(served: Serve) -> None:
    """With the values of this cache."""
    served.post("filter", by_names(GANG_8, [SICK]))
    found = served.values()
    assert found["surefoot_snapshot_nodes"] == 11
    assert found["surefoot_snapshot_generation"] == 11
    assert 0 <= found["surefoot_snapshot_age_seconds"] < 3
    assert found["surefoot_store_connected"] == 1
    assert found["surefoot_quarantined"] == 0
    assert found["surefoot_store_reloads_total"] >= 1
    assert found["surefoot_decisions_dropped_total"] == 0
    sample = 'surefoot_decisions_total{reason="ResetRequired",verb="filter",verdict="veto"}'
    assert found[sample] >= 1


def test_a_decision_can_be_followed_from_the_log_to_the_cache(
    served: Serve, own_cache: Cache
) -> None:
    """One JSON line in the log; a record with the same id in the stream."""
    asker = pod(8, gang="followed")
    served.post("filter", by_names(asker, ALL))
    (line,) = eventually(
        lambda: [each for each in served.events("decision") if each["gang"] == "lab/followed"],
        "the log line",
    )
    assert (line["verb"], line["verdict"], line["names"], line["level"]) == (
        "filter", "pass", 11, "info",
    )  # fmt: skip
    with Redis(port=own_cache.port) as client:

        def stored() -> list[Any]:
            entries: Any = client.xrange(keys.DECISIONS.name)
            every = [json.loads(fields[b"record"]) for _, fields in entries]
            return [each for each in every if each["id"] == line["id"]]

        (record,) = eventually(stored, "the record")
    assert record["ask"]["gang"]["key"] == "lab/followed"
    assert record["counts"] == {"ResetRequired": 1}
    assert record["best"]["node"] == TEN[0]


def test_a_body_in_chunks_is_read(served: Serve) -> None:
    """As Go sends a body whose length it does not know."""
    pieces = iter([BODY[:7], BODY[7:200], BODY[200:]])
    connection = served.connect()
    connection.request(
        "POST", "/filter", pieces, {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    got = connection.getresponse()
    assert (got.status, json.loads(got.read())["NodeNames"]) == (200, sorted(TEN))
    connection.close()


def test_after_a_refusal_the_connection_serves_on(served: Serve) -> None:
    """kube-scheduler keeps its connections: a bad pod must not cost one."""
    connection = served.connect()
    for body, status in ((BODY, 200), (b"junk", 400), (BODY, 200), (b"", 400), (BODY, 200)):
        assert ask(connection, "POST", "/filter", body).status == status
    connection.close()


def test_many_connections_that_are_kept_alive_are_all_served(served: Serve) -> None:
    """Far more than there are threads, each with several calls, none waits for another's idleness."""
    connections = [served.connect() for _ in range(64)]
    for _ in range(2):
        for each in connections:
            assert ask(each, "POST", "/filter", BODY).status == 200
    for each in connections:
        each.close()


def test_callers_in_parallel_get_the_same_answer(served: Serve) -> None:
    """Sixteen at once, as in parallel binding cycles."""
    answers: list[bytes] = []

    def call() -> None:
        connection = served.connect()
        answers.extend(ask(connection, "POST", "/filter", BODY).body for _ in range(5))
        connection.close()

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 80
    assert len(set(answers)) == 1


@pytest.mark.parametrize(
    "sent",
    [
        TLS_HELLO,
        b"\r\n\r\n\r\n",
        b"POST /filter HTTP/9.9\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 5, 6\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        HEAD + b"Content-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    ],
    ids=["tls", "blank", "version", "minus", "two-lengths", "bad-chunk", "smuggle", "long-path",
         "long-header"],
)  # fmt: skip
def test_what_is_no_http_is_turned_away(served: Serve, sent: bytes) -> None:
    """A 4xx or a closed connection, never a 500, and the next caller is served."""
    with dial(served, 5.0) as caller:
        try:
            caller.sendall(sent)
            caller.shutdown(socket.SHUT_WR)
            answer = received(caller)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
    assert served.post("filter", by_names(GANG_8, ALL))["NodeNames"] == sorted(TEN)


def received(caller: socket.socket) -> bytes:
    """Everything until the other side closes."""
    found = b""
    while piece := caller.recv(65536):
        found += piece
    return found


def test_a_client_that_never_closes_delays_nobody(served: Serve) -> None:
    """It asks for `Connection: close`, reads its answer, and keeps its end open."""
    lingering = [dial(served) for _ in range(3)]
    for each in lingering:
        each.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert each.recv(1000).startswith(b"HTTP/1.1 200")
    began_s = time.monotonic()
    assert served.ask("GET", "/livez").status == 200
    assert time.monotonic() - began_s < 1.8, "closing lingers for 2 s"
    for each in lingering:
        each.close()


SHORT = """
from extender.webhook import app, connections
connections.HEAD_S = 0.5
connections.STALL_S = 0.5
connections.REQUEST_S = 1.5
connections.SLOWEST_BPS = 1e4
app.LARGEST_BODY = 1 << 16"""


@pytest.fixture(scope="module")
def strict(own_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """A server with small bounds, on the same cache."""
    log = tmp_path_factory.mktemp("strict") / "log"
    with Serve(own_cache.settings, log, before=SHORT, **PATIENT) as serve:
        yield serve


def test_clients_that_stall_lose_their_threads_and_hurt_nobody(strict: Serve) -> None:
    """Eight in the middle of a body hold all threads: within the bound they are refused, and
    another caller is served; one that is slow but moves is served too.
    """
    stalled = [dial(strict) for _ in range(8)]
    for each in stalled:
        each.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
    began_s = time.monotonic()
    assert strict.ask("POST", "/filter", BODY).status == 200
    assert time.monotonic() - began_s < 3
    for each in stalled:
        answer = http.client.HTTPResponse(each)
        answer.begin()
        assert (answer.status, b"paused for too long" in answer.read()) == (400, True)
    for _ in range(5):  # none of the eight has closed its end
        began_s = time.monotonic()
        assert strict.ask("POST", "/filter", BODY).status == 200
        assert time.monotonic() - began_s < 3
    for each in stalled:
        each.close()
    with closing(strict.connect()) as slow:
        slow.request("POST", "/filter", trickled(BODY), {"Content-Length": str(len(BODY))})
        assert slow.getresponse().status == 200


@pytest.mark.parametrize("count", [8, 60])
@pytest.mark.parametrize("sent", [b"P", HEAD, TLS_HELLO], ids=["byte", "head", "tls"])
def test_heads_that_stall_hold_no_thread_and_are_cut(
    strict: Serve, sent: bytes, count: int
) -> None:
    """However many they are, others are served meanwhile, and all are cut within the same bound."""
    stalled = [dial(strict) for _ in range(count)]
    for each in stalled:
        each.sendall(sent)
    began_s = time.monotonic()
    assert strict.ask("GET", "/livez", timeout_s=3.0).status == 200
    assert strict.ask("POST", "/filter", BODY, timeout_s=3.0).status == 200
    assert [ending(each) for each in stalled] == [b""] * count
    assert time.monotonic() - began_s < 0.5 + 6


@pytest.mark.parametrize(
    ("head", "bound_s", "answer"),
    [(b"POST /filter HTTP/1.1\r\nX: ", 0.5, b""), (HEAD + b"Content-Length: 99\r\n\r\n", 1.5, b"400")],
    ids=["heads", "bodies"],
)  # fmt: skip
def test_clients_that_drip_are_cut(
    strict: Serve, head: bytes, bound_s: float, answer: bytes
) -> None:
    """Sixteen never pause for long, and would never end: the bound is on the whole."""
    dripping = [dial(strict) for _ in range(16)]
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.1):
            for each in dripping:
                with suppress(OSError):
                    each.sendall(b" ")

    for each in dripping:
        each.sendall(head)
    dripper = threading.Thread(target=drip)
    dripper.start()
    began_s = time.monotonic()
    try:
        assert strict.ask("GET", "/livez").status == 200
        assert [ending(each)[9:12] for each in dripping] == [answer] * 16
        assert time.monotonic() - began_s < bound_s + 6  # closing lingers, and cores are shared
    finally:
        over.set()
        dripper.join()


def test_a_large_body_may_take_longer_when_it_keeps_coming(strict: Serve) -> None:
    """40 kB at 20 kB/s, where 10 kB/s are asked for, and the bound without it would be 1.5 s."""
    body = BODY.ljust(40_000)
    began_s = time.monotonic()
    with closing(strict.connect()) as slow:
        slow.request("POST", "/filter", trickled(body, 10), {"Content-Length": str(len(body))})
        assert slow.getresponse().status == 200
    assert time.monotonic() - began_s > 1.5


def test_a_connection_may_idle_before_and_between_its_requests(strict: Serve) -> None:
    """Longer than any bound on a request: kube-scheduler dials in reserve, and keeps what it has."""
    with closing(strict.connect()) as kept, closing(strict.connect()) as reserve:
        reserve.connect()
        assert ask(kept, "GET", "/livez").status == 200
        before = kept.sock
        pause(2.5)
        for each in (kept, reserve, kept):
            assert ask(each, "POST", "/filter", BODY).status == 200
        assert kept.sock is before, "it was not dialled again"


def test_requests_sent_ahead_are_answered_in_turn(strict: Serve) -> None:
    """Two and a half in one piece, the rest later."""
    one = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
    with dial(strict) as caller:
        caller.sendall(one + one + one[:20])
        pause(0.2)
        caller.sendall(one[20:])
        caller.shutdown(socket.SHUT_WR)
        assert received(caller).count(b"HTTP/1.1 200 OK") == 3


def ending(caller: socket.socket) -> bytes:
    """What a connection gets before the other side closes or resets it."""
    found = b""
    with caller, suppress(ConnectionError):
        while piece := caller.recv(65536):
            found += piece
    return found


@pytest.mark.parametrize("how", ["declared", "chunked"])
def test_a_body_beyond_the_limit_is_a_413(strict: Serve, how: str) -> None:
    """By its declared length before it is read, or as soon as its chunks exceed it."""
    with dial(strict) as caller:
        if how == "declared":
            caller.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n")
        else:
            chunk = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
            caller.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + 3 * chunk)
        answer = http.client.HTTPResponse(caller)
        answer.begin()
        told = json.loads(answer.read())
    assert (answer.status, told["Error"]) == (413, "the body is larger than 0 MiB")
    assert strict.ask("POST", "/filter", BODY).status == 200


def trickled(body: bytes, pieces: int = 4) -> Iterator[bytes]:
    """A body in pieces that come slowly, none slower than the bound."""
    step = len(body) // pieces
    for at in range(0, len(body), step):
        yield body[at : at + step]
        pause(0.2)


def pause(for_s: float) -> None:
    """What a slow client does."""
    resume_s = time.monotonic() + for_s
    eventually(lambda: time.monotonic() > resume_s, "a pause")


def test_sigterm_ends_it_with_every_answer_given_and_every_record_shipped(
    cache: Cache, tmp_path: Path
) -> None:
    """A request is half sent at the signal and gets its answer; an idle connection is closed and a
    new one refused; the exit code is 0, no process is left, and the log is JSON to its last line.
    """
    writer = Writer(cache.settings)
    writer.put([node_paper("a")])
    writer.close()
    body = json.dumps(by_names(GANG_8, ["a"])).encode()
    with Serve(cache.settings, tmp_path / "log") as serve, dial(serve) as caller:
        eventually(lambda: serve.shows(1), "the fleet")
        (worker,) = children(serve.process.pid)
        caller.sendall(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:50])
        with dial(serve) as idle:
            idle.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            eventually(lambda: idle.recv(1000).endswith(b"ok\n"), "an idle connection")
            serve.process.send_signal(signal.SIGTERM)
            assert received(idle) == b"", "the worker is stopping"
        with pytest.raises(ConnectionRefusedError):
            dial(serve)
        caller.sendall(body[50:])
        answer = http.client.HTTPResponse(caller)
        answer.begin()
        told = json.loads(answer.read())
        assert (answer.status, refused(told), told["NodeNames"]) == (200, {}, ["a"])
        caller.close()
        answered_s = time.monotonic()
        assert serve.stop() == 0
        assert time.monotonic() - answered_s < 5
        assert not alive(worker)
        assert [each["mode"] for each in serve.events("listening")] == ["enforce"]
        assert "Traceback" not in serve.log.read_text()
    with Redis(port=cache.port) as client:
        assert client.xlen(keys.DECISIONS.name) == 1


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
