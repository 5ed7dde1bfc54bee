"""A real cache under a real `surefoot serve` is killed, emptied, paused and filled with junk.

The declared policy holds, no request takes a second, and recovery needs nobody's hand.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from asking import Json, by_names, pod, refused
from papers import node_paper
from redis import Redis
from servers import Cache, eventually
from serving import SICK, TEN, Serve, fill

from extender.store import keys
from extender.store.writer import Writer
from scoring.reasons import Reason

GANG_8 = pod(8, gang="sweep")
ALL = (*TEN, SICK)
ASKED = by_names(GANG_8, ALL)
MAX_AGE_S = 2.0
"""`maxSnapshotAge` of both servers: more than the reader's tick of one second."""


@pytest.fixture(scope="module")
def broken() -> Iterator[Cache]:
    """The cache of this module."""
    found = Cache()
    yield found
    found.resume()
    found.kill()


@pytest.fixture(scope="module")
def servers(
    broken: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Serve, Serve]]:
    """Two replicas on the same cache: one fails open, one closed."""
    fill(broken)
    logs = tmp_path_factory.mktemp("faults")
    age = {"WEBHOOK__MAX_SNAPSHOT_AGE": f"{MAX_AGE_S:g}s"}
    starting = [
        Serve(broken.settings, logs / policy, WEBHOOK__FAILURE_POLICY=policy, **age)
        for policy in ("open", "closed")
    ]
    with starting[0] as opened, starting[1] as closed:
        yield opened, closed


@pytest.fixture
def replicas(broken: Cache, servers: tuple[Serve, Serve]) -> Iterator[tuple[Serve, Serve]]:
    """Both, judging by the whole fleet; afterwards the cache runs again and is as at first."""
    recovered(broken, servers)
    yield servers
    broken.resume()
    if not answers(broken):
        broken.start()


def answers(cache: Cache) -> bool:
    """Whether the cache runs."""
    with Redis(port=cache.port, socket_timeout=1) as client:
        try:
            return bool(client.ping())
        except (OSError, Exception):  # noqa: BLE001 - any failure is a no
            return False


def recovered(cache: Cache, servers: tuple[Serve, ...]) -> None:
    """Fill the cache as agents would, and wait until every replica judges by it."""
    with Redis(port=cache.port) as client:
        client.flushall()
    fill(cache)
    for each in servers:
        eventually(lambda one=each: judges(one), "a recovered replica")  # type: ignore[misc]


def judges(serve: Serve) -> bool:
    """Whether a gang gets the ten healthy nodes and not the sick one."""
    return bool(serve.post("filter", ASKED)["NodeNames"] == sorted(TEN))


def passes_all(serve: Serve) -> bool:
    """Fail open: every name comes back."""
    return bool(serve.post("filter", ASKED)["NodeNames"] == list(ALL))


def refuses_all(serve: Serve) -> bool:
    """Fail closed: no name comes back, and the reason is ours."""
    answer = serve.post("filter", ASKED)
    return answer["NodeNames"] == [] and refused(answer) == dict.fromkeys(
        ALL, Reason.NO_SNAPSHOT.text
    )


@contextmanager
def traffic(*servers: Serve) -> Iterator[Callable[[], list[Json]]]:
    """kube-scheduler's calls, without a pause, while the block runs; each within `REQUEST_S`."""
    stop = threading.Event()
    got: list[Json] = []
    failures: list[BaseException] = []

    def call(serve: Serve) -> None:
        while not stop.is_set():
            try:
                got.append(serve.post("filter", ASKED))
            except BaseException as error:  # noqa: BLE001 - told in the test's own thread
                failures.append(error)
                return

    threads = [threading.Thread(target=call, args=(serve,)) for serve in servers]
    for thread in threads:
        thread.start()
    try:
        yield lambda: list(got)
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert failures == []


def declared_policy_speaks(replicas: tuple[Serve, Serve]) -> None:
    """First the last snapshot serves; past its age one replica passes all, the other none."""
    opened, closed = replicas
    since_s = time.monotonic()
    assert judges(opened)
    assert judges(closed)
    eventually(lambda: passes_all(opened), "fail open")
    eventually(lambda: refuses_all(closed), "fail closed")
    assert time.monotonic() - since_s > MAX_AGE_S - 1.5
    for each in replicas:
        ready = each.ask("GET", "/readyz", timeout_s=1)
        assert (ready.status, "[-]snapshot-age" in ready.text) == (503, True)
        assert each.ask("GET", "/livez", timeout_s=1).status == 200
        assert each.values()["surefoot_snapshot_age_seconds"] > MAX_AGE_S


def test_killed_in_the_middle_of_traffic_and_restarted(
    broken: Cache, replicas: tuple[Serve, Serve]
) -> None:
    """No call fails or waits; the snapshot serves, then the policy, then the new data."""
    with traffic(*replicas) as got:
        eventually(lambda: len(got()) > 20, "some traffic")
        broken.kill()
        declared_policy_speaks(replicas)
        assert all(each.values()["surefoot_store_connected"] == 0 for each in replicas)
        broken.start()
        recovered(broken, replicas)
        seen = len(got())
        eventually(lambda: len(got()) > seen + 20, "traffic after it")
    assert all(each.values()["surefoot_store_connected"] == 1 for each in replicas)
    allowed: tuple[list[str], ...] = (sorted(TEN), list(ALL), [])
    assert all(answer["NodeNames"] in allowed for answer in got())


def test_restarted_empty_the_old_snapshot_serves_until_agents_are_back(
    tmp_path: Path,
) -> None:
    """A cache that lost its data is not a fleet that lost its nodes, and no step of its return lets
    a gang on the sick node, though this replica fails open.
    """
    cache = Cache()
    fill(cache)
    try:
        with Serve(cache.settings, tmp_path / "log") as serve:
            eventually(lambda: judges(serve), "the fleet")
            cache.kill()
            eventually(lambda: serve.values()["surefoot_store_connected"] == 0, "cut off")
            cache.start()
            eventually(lambda: serve.values()["surefoot_store_connected"] == 1, "back")
            with closing(Writer(cache.settings)) as writer:
                writer.put([node_paper(name) for name in TEN[:9]])
                assert judges(serve)
                assert reason_of(serve) == Reason.RESET_REQUIRED.text
                writer.put([node_paper(TEN[9])])
                eventually(lambda: reason_of(serve) == Reason.NODE_UNREPORTED.text, "ten of eleven")
                assert judges(serve)
                writer.put([node_paper(SICK, sick={0: "FAILED"})])
                eventually(lambda: reason_of(serve) == Reason.GPU_FAILED.text, "new data")
                assert judges(serve)
    finally:
        cache.kill()


def reason_of(serve: Serve) -> str:
    """Why the sick node is refused."""
    return str(refused(serve.post("filter", by_names(GANG_8, [SICK])))[SICK])


def test_an_emptied_cache_is_believed_in_the_end(
    broken: Cache, replicas: tuple[Serve, Serve]
) -> None:
    """When nobody came back within the age of a snapshot the fleet is unknown: no gang passes."""
    with Redis(port=broken.port) as client:
        client.flushall()
    assert all(map(judges, replicas))
    for each in replicas:
        eventually(
            lambda one=each: (
                refused(one.post("filter", ASKED))  # type: ignore[misc]
                == dict.fromkeys(ALL, Reason.NODE_UNREPORTED.text)
            ),
            "an unknown fleet",
        )
        assert each.post("filter", by_names(pod(1), ALL))["NodeNames"] == sorted(ALL)


def test_a_paused_cache_hangs_nobody(broken: Cache, replicas: tuple[Serve, Serve]) -> None:
    """SIGSTOP: connections stay open and nothing answers."""
    with traffic(*replicas) as got:
        broken.pause()
        declared_policy_speaks(replicas)
        seen = len(got())
        broken.resume()
        for each in replicas:
            eventually(lambda one=each: judges(one), "recovery by itself")  # type: ignore[misc]
        eventually(lambda: len(got()) > seen + 20, "traffic after it")


def test_decisions_of_an_outage_are_shipped_after_it(
    broken: Cache, replicas: tuple[Serve, Serve]
) -> None:
    """Records wait in the replica: none is lost by a short outage, none delays an answer."""
    opened, _ = replicas
    broken.pause()
    asker = pod(8, gang="during-the-outage")
    for _ in range(5):
        opened.post("filter", by_names(asker, ALL))
    broken.resume()

    def shipped() -> bool:
        with Redis(port=broken.port) as client:
            entries = client.xrange(keys.DECISIONS.name)
        records = [json.loads(fields[b"record"]) for _, fields in entries]
        ids = {
            each["id"]
            for each in records
            if each["ask"]["gang"] and each["ask"]["gang"]["key"] == "lab/during-the-outage"
        }
        return len(ids) == 5

    eventually(shipped, "five records")
    assert opened.values()["surefoot_decisions_dropped_total"] == 0


def test_junk_beside_good_documents_costs_only_itself(
    broken: Cache, replicas: tuple[Serve, Serve]
) -> None:
    """Every hash gets a junk field, every other key junk of another name: the fleet is judged on."""
    with Redis(port=broken.port) as client:
        for key in (keys.NODES, keys.SEEN, keys.ALLOCATIONS, keys.OVERRIDES, keys.BREAKERS):
            client.hset(key.name, "junk", b"\xff{")
        client.set(keys.PREFIX + "unheard-of", "junk")
        client.client_kill_filter(_type="normal", skipme=True)
    for each in replicas:
        eventually(lambda one=each: one.values()["surefoot_quarantined"] == 5, "quarantine")  # type: ignore[misc]
        assert judges(each)


def test_junk_in_the_place_of_the_nodes_counts_as_an_outage(
    broken: Cache, replicas: tuple[Serve, Serve]
) -> None:
    """The key itself is of another type: the snapshot serves, then the policy; mended, all is well."""
    with Redis(port=broken.port) as client:
        client.set(keys.NODES.name, "junk")
        client.client_kill_filter(_type="normal", skipme=True)
    declared_policy_speaks(replicas)
    recovered(broken, replicas)


def test_a_replica_that_starts_before_its_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It lives, is not ready, speaks its policy, and finds the cache when it comes."""
    cache = Cache()
    cache.kill()
    log = tmp_path_factory.mktemp("early") / "log"
    try:
        with Serve(cache.settings, log, WEBHOOK__FAILURE_POLICY="closed") as serve:
            assert refuses_all(serve)
            assert serve.ask("GET", "/readyz").status == 503
            cache.start()
            fill(cache)
            eventually(lambda: judges(serve), "the cache is found")
            assert serve.ask("GET", "/readyz").status == 200
    finally:
        cache.kill()
