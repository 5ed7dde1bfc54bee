"""What is wanted comes into the cache, whatever happens to the cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from redis import Redis
from servers import Cache, eventually

from extender.controller.publisher import BATCH, Publisher
from extender.controller.wanted import Wanted
from extender.store import fleets, keys, render
from extender.store.connect import StoreSettings
from extender.store.schema import Kind
from extender.store.writer import Writer
from scoring.model import ClusterNode, NodeName

Begin = Callable[..., Publisher]


class Nodes:
    """Where the nodes of a test come from."""

    kind = Kind.CLUSTER_NODE

    def __init__(self) -> None:
        self.fresh = True
        self.losses = 0

    def lost(self) -> None:
        """Counted."""
        self.losses += 1

    def answered(self) -> None:
        """Nothing is owed."""


def paper(name: str, zone: str = "z1") -> dict[str, bytes]:
    """A wanted ClusterNode."""
    document = render.document(ClusterNode(name=NodeName(name), labels={"zone": zone}))
    return {document.id: document.encoded}


@pytest.fixture
def nodes() -> Nodes:
    """The origin of what is wanted."""
    return Nodes()


@pytest.fixture
def begin(wanted: Wanted, nodes: Nodes) -> Iterator[Begin]:
    """Start publishers of what is wanted; all are closed after the test."""
    started: list[Publisher] = []

    def start(settings: StoreSettings, resync_s: float = 600.0) -> Publisher:
        publisher = Publisher(
            Writer(settings),
            wanted,
            [nodes],
            term=lambda: 1,
            outranked=lambda _: None,
            tick_s=0.05,
            resync_s=resync_s,
        )
        started.append(publisher)
        publisher.start()
        return publisher

    yield start
    for one in started:
        one.close()


def held(client: Redis) -> set[bytes]:
    """The nodes that the cache holds."""
    found = client.hkeys(keys.CLUSTER.name)
    assert isinstance(found, list)
    return {name for name in found if isinstance(name, bytes)}


def test_what_is_wanted_is_written(
    wanted: Wanted, begin: Begin, store: StoreSettings, client: Redis
) -> None:
    """And what no longer is, goes."""
    publisher = begin(store)
    wanted.replace(Kind.CLUSTER_NODE, {**paper("a"), **paper("b")}, ())
    eventually(lambda: held(client) == {b"a", b"b"}, "both")
    wanted.change(Kind.CLUSTER_NODE, ["a"], {})
    eventually(lambda: held(client) == {b"b"}, "one")
    eventually(lambda: (publisher.status.written, publisher.status.removed) == (2, 1), "counted")


def test_a_change_arrives_within_a_moment(
    wanted: Wanted, begin: Begin, store: StoreSettings
) -> None:
    """Long before the next tick: a label must not wait."""
    begin(store)
    wanted.replace(Kind.CLUSTER_NODE, paper("a"), ())
    eventually(lambda: fleets.look(store)[0].cluster, "the node")
    wanted.change(Kind.CLUSTER_NODE, ["a"], paper("a", "z2"))
    eventually(
        lambda: fleets.look(store)[0].cluster[NodeName("a")].labels == {"zone": "z2"}, "the label"
    )


def test_nothing_to_say_is_nothing_written(
    wanted: Wanted, begin: Begin, store: StoreSettings, client: Redis
) -> None:
    """An idle controller looks, and compares now and then, and bumps no generation."""
    publisher = begin(store, resync_s=0.1)
    wanted.replace(Kind.CLUSTER_NODE, paper("a"), ())
    eventually(lambda: client.get(keys.GENERATION.name) == b"1", "the node")
    before = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
    eventually(
        lambda: client.info("commandstats")["cmdstat_evalsha"]["calls"] >= before + 3, "comparisons"
    )
    assert client.get(keys.GENERATION.name) == b"1"
    assert client.xlen(keys.CHANGES.name) == 1
    assert publisher.status.written == 1


def test_a_large_fleet_goes_in_batches(
    wanted: Wanted, begin: Begin, store: StoreSettings, client: Redis
) -> None:
    """No script holds the server for long."""
    many = {id_: raw for number in range(4 * BATCH + 1) for id_, raw in paper(f"n{number}").items()}
    wanted.replace(Kind.CLUSTER_NODE, many, ())
    begin(store)
    eventually(lambda: client.hlen(keys.CLUSTER.name) == len(many), "all")
    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] >= 5


def test_a_cache_that_forgot_is_told_again(
    wanted: Wanted, begin: Begin, nodes: Nodes, store: StoreSettings, client: Redis
) -> None:
    """FLUSHALL: another instance, and everything is written anew."""
    publisher = begin(store)
    wanted.replace(Kind.CLUSTER_NODE, {**paper("a"), **paper("b")}, ())
    eventually(lambda: held(client) == {b"a", b"b"}, "both")
    before = client.get(keys.INSTANCE.name)
    client.flushall()
    eventually(lambda: held(client) == {b"a", b"b"}, "both again")
    assert client.get(keys.INSTANCE.name) not in (before, None)
    eventually(lambda: publisher.status.losses == 1, "one loss")
    assert nodes.losses == 1, "it may have lost removals as well"


def test_a_cache_that_lost_its_last_writes_is_told_again(
    wanted: Wanted, begin: Begin, store: StoreSettings, client: Redis
) -> None:
    """A failover to a replica that lagged: the same instance, an older generation."""
    begin(store)
    wanted.replace(Kind.CLUSTER_NODE, {**paper("a"), **paper("b")}, ())
    eventually(lambda: held(client) == {b"a", b"b"}, "both")
    eventually(lambda: wanted.pending() == 0, "written")
    pipe = client.pipeline(transaction=True)
    pipe.hdel(keys.CLUSTER.name, "b")
    pipe.set(keys.GENERATION.name, 1)
    pipe.xtrim(keys.CHANGES.name, maxlen=0)
    pipe.execute()
    eventually(lambda: held(client) == {b"a", b"b"}, "both again")


def test_a_cache_that_was_away_gets_what_is_wanted_then(
    wanted: Wanted, begin: Begin, nodes: Nodes, cache: Cache
) -> None:
    """Not each change of the time between, and with no more in memory than there is to say."""
    publisher = begin(cache.settings)
    wanted.replace(Kind.CLUSTER_NODE, {**paper("a"), **paper("b")}, ())
    eventually(lambda: publisher.status.written == 2, "both")
    cache.kill()
    eventually(lambda: publisher.status.problem, "a problem")
    assert not publisher.status.connected
    for number in range(100):
        wanted.change(Kind.CLUSTER_NODE, ["a"], paper("a", f"z{number}"))
    wanted.change(Kind.CLUSTER_NODE, ["b"], {})
    assert wanted.pending() <= 2
    cache.start()
    eventually(lambda: wanted.pending() == 0 and publisher.status.connected, "written")
    found = fleets.look(cache.settings)[0].cluster
    assert {name: dict(each.labels) for name, each in found.items()} == {"a": {"zone": "z99"}}
    assert publisher.status.problem is None
    assert nodes.losses >= 1, "it may be another server, which missed removals"


def test_a_document_that_somebody_deleted_comes_back(
    wanted: Wanted, begin: Begin, store: StoreSettings, client: Redis
) -> None:
    """With the next comparison."""
    begin(store, resync_s=0.2)
    wanted.replace(Kind.CLUSTER_NODE, paper("a"), ())
    eventually(lambda: held(client) == {b"a"}, "the node")
    with_writer = Writer(store)
    with_writer.delete(Kind.CLUSTER_NODE, "a")
    with_writer.close()
    eventually(lambda: held(client) == {b"a"}, "the node again")


def test_old_news_is_not_repeated(
    wanted: Wanted, begin: Begin, nodes: Nodes, store: StoreSettings, client: Redis
) -> None:
    """Another controller, which still hears the API server, knows better; later it is made up for."""
    publisher = begin(store, resync_s=0.1)
    wanted.replace(Kind.CLUSTER_NODE, paper("a"), ())
    eventually(lambda: held(client) == {b"a"}, "the node")
    nodes.fresh = False
    eventually(lambda: wanted.pending() == 0, "written")
    client.flushall()
    eventually(lambda: publisher.status.losses == 1, "the loss")
    threading.Event().wait(0.5)  # several comparisons
    assert held(client) == set()
    nodes.fresh = True
    eventually(lambda: held(client) == {b"a"}, "the node again")


def test_a_cache_that_refuses_is_no_reason_to_spin(
    wanted: Wanted, begin: Begin, nodes: Nodes, cache: Cache
) -> None:
    """A read-only replica is asked now and then, and everything waits."""
    plain = Redis(port=cache.port, protocol=2)
    plain.replicaof("127.0.0.1", 1)
    publisher = begin(cache.settings)
    wanted.replace(Kind.CLUSTER_NODE, paper("a"), ())
    eventually(lambda: "read-only replica" in str(publisher.status.problem), "the refusal")
    asked = plain.info("commandstats")["cmdstat_evalsha"]["calls"]
    statuses = set()

    def tried_again() -> bool:
        statuses.add((publisher.status.connected, publisher.status.problem is None))
        return bool(plain.info("commandstats")["cmdstat_evalsha"]["calls"] >= asked + 3)

    eventually(tried_again, "more tries")
    assert statuses == {(False, False)}, "that it answers is no sign that it takes anything"
    assert (wanted.pending(), nodes.losses) == (1, 0)
    plain.replicaof("NO", "ONE")
    eventually(lambda: publisher.status.written == 1, "written")
    eventually(lambda: publisher.status.connected, "connected")
    plain.close()
