"""A real `surefoot serve` whose way to the cache is slow, cut, silent or stormy.

No request may feel it: answers come from the last snapshot, and the replica says how it stands.
"""

from __future__ import annotations

import itertools
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from asking import by_names, pod
from papers import node_paper
from proxy import Proxy, before
from redis import Redis
from servers import Cache, eventually
from serving import PATIENT, SICK, TEN, Serve, ask, fill

from extender.store.connect import READER_TIMEOUT_S
from extender.store.writer import Writer

ASKED = json.dumps(by_names(pod(8, gang="sweep"), (*TEN, SICK))).encode()
SLOWEST_S = 0.5
"""Of one request, on a busy machine. A request that waited for the cache would take longer."""

MOST_THREADS = 16
"""Eight that answer, which gunicorn starts as they are needed, and the few that feed them."""


@pytest.fixture(scope="module")
def wire() -> Iterator[Cache]:
    """The cache of this module, full."""
    found = Cache()
    fill(found)
    yield found
    found.kill()


@pytest.fixture(scope="module")
def road(wire: Cache) -> Iterator[Proxy]:
    """The way of the server to its cache."""
    with before(wire) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def server(road: Proxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """The server, which knows the whole fleet."""
    with Serve(road.settings, tmp_path_factory.mktemp("network") / "log", **PATIENT) as running:
        eventually(lambda: running.shows(11), "the fleet")
        yield running


@pytest.fixture
def serve(server: Serve, road: Proxy) -> Iterator[Serve]:
    """The same, connected before and after each test."""
    eventually(lambda: connected(server), "connected")
    yield server
    road.heal()
    eventually(lambda: connected(server), "connected again")


def connected(serve: Serve) -> bool:
    """Whether the server says that it hears the cache."""
    return serve.values()["surefoot_store_connected"] == 1


def passes(serve: Serve, name: str) -> bool:
    """Whether the gang may go to this node."""
    answer = serve.post("filter", by_names(pod(8, gang="sweep"), [name]))
    return bool(answer["NodeNames"] == [name])


def turn(wire: Cache, name: str, *, sick: bool) -> None:
    """Publish that a GPU of the node failed, or is well again."""
    writer = Writer(wire.settings)
    writer.put([node_paper(name, sick={0: "FAILED"} if sick else {})])
    writer.close()


def held(serve: Serve) -> tuple[int, int]:
    """Threads and open files of the server's processes."""
    pids = [serve.process.pid, *_children(serve.process.pid)]
    threads = sum(_entries(f"/proc/{pid}/task") for pid in pids)
    return threads, sum(_entries(f"/proc/{pid}/fd") for pid in pids)


def _entries(directory: str) -> int:
    return sum(1 for _ in Path(directory).iterdir())


def holds_little(serve: Serve, open_before: int) -> bool:
    """Whether there are no more threads than ever, nor more open files than before, but for two
    connections in the making.
    """
    threads, files = held(serve)
    return threads <= MOST_THREADS and files <= open_before + 2


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def traffic(serve: Serve) -> Iterator[list[float]]:
    """A caller without a pause; the list grows by the seconds of each answer, all of them right."""
    stop, took_s, wrong = threading.Event(), list[float](), list[str]()

    def call() -> None:
        connection = serve.connect(timeout_s=5)
        try:
            while not stop.is_set():
                began_s = time.monotonic()
                answer = ask(connection, "POST", "/filter", ASKED)
                took_s.append(time.monotonic() - began_s)
                if answer.status != 200 or not set(answer.json["NodeNames"]) <= set(TEN):
                    wrong.append(answer.text)
        except OSError as error:
            wrong.append(repr(error))
        finally:
            connection.close()

    caller = threading.Thread(target=call)
    caller.start()
    try:
        yield took_s
    finally:
        stop.set()
        caller.join(10)
    assert wrong == []
    assert len(took_s) > 20
    assert max(took_s) < SLOWEST_S


def test_a_slow_cache_slows_no_request_and_is_kept_up_with(
    serve: Serve, road: Proxy, wire: Cache
) -> None:
    """Every answer of the cache takes 0.3 s longer: news come later, answers as before."""
    with traffic(serve) as fast_s:
        eventually(lambda: len(fast_s) > 50, "some traffic")
    road.latency_s = 0.3
    with traffic(serve) as slow_s:
        for name, sick in ((TEN[0], True), (TEN[0], False)):
            turn(wire, name, sick=sick)
            eventually(lambda n=name, s=sick: passes(serve, n) is not s, "the news", within_s=4)  # type: ignore[misc]
            assert connected(serve)
    assert statistics.median(slow_s) < 0.1 + statistics.median(fast_s)


def test_a_cache_slower_than_the_readers_patience_is_called_unreachable(
    serve: Serve, road: Proxy
) -> None:
    """Beyond the reader's timeout the replica says so, in a metric and a log line, and serves on."""
    road.latency_s = READER_TIMEOUT_S + 0.5
    told = len(serve.events("cache_unreachable"))
    with traffic(serve):
        eventually(lambda: not connected(serve), "said so", within_s=2 * READER_TIMEOUT_S)
        assert len(serve.events("cache_unreachable")) == told + 1
        assert serve.ask("GET", "/readyz").status == 200
    road.heal()
    eventually(lambda: connected(serve), "back", within_s=5)


def test_a_half_open_connection_is_noticed(serve: Serve, road: Proxy, wire: Cache) -> None:
    """Connections stay, new ones are accepted, no byte passes: it is an outage, and ends as one."""
    with traffic(serve):
        road.stall()
        eventually(lambda: not connected(serve), "noticed", within_s=2 * READER_TIMEOUT_S)
        turn(wire, TEN[1], sick=True)
        assert passes(serve, TEN[1])
        road.heal()
        eventually(lambda: not passes(serve, TEN[1]), "the news of the outage")
    turn(wire, TEN[1], sick=False)
    eventually(lambda: passes(serve, TEN[1]), "well again")


def test_a_flapping_connection_neither_stops_nor_spins_the_replica(
    serve: Serve, road: Proxy, wire: Cache
) -> None:
    """Cut twenty times a second: answers go on, reconnects back off, and nothing is left open."""
    open_before, accepted, ends_s = held(serve)[1], road.accepted, time.monotonic() + 1.5
    with traffic(serve) as took_s:
        for number in itertools.count(1):
            if time.monotonic() > ends_s:
                break
            road.cut()
            seen = len(took_s)
            eventually(lambda s=seen: len(took_s) > s, "traffic between two cuts")  # type: ignore[misc]
            turn(wire, TEN[2], sick=number % 2 == 1)
        assert road.accepted - accepted < 60
        road.refuse()
        eventually(lambda: not connected(serve), "refused")
        road.heal()
        turn(wire, TEN[2], sick=True)
        eventually(lambda: not passes(serve, TEN[2]), "the last word")
    turn(wire, TEN[2], sick=False)
    eventually(lambda: passes(serve, TEN[2]), "well again")
    eventually(lambda: holds_little(serve, open_before), "threads and files as before")


def test_a_storm_of_client_kills_is_survived(serve: Serve, wire: Cache) -> None:
    """CLIENT KILL over and over for a second: no answer is late, and the next change is seen."""
    open_before, ends_s = held(serve)[1], time.monotonic() + 1.0
    with traffic(serve), Redis(port=wire.port) as killer:
        killed = 0
        while time.monotonic() < ends_s:
            killed += int(killer.client_kill_filter(_type="normal", skipme=True))
        turn(wire, TEN[3], sick=True)
        eventually(lambda: not passes(serve, TEN[3]), "the change after the storm")
    assert 2 < killed < 60
    turn(wire, TEN[3], sick=False)
    eventually(lambda: passes(serve, TEN[3]), "well again")
    eventually(lambda: holds_little(serve, open_before), "threads and files as before")
