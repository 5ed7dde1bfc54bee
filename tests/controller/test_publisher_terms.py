"""Who writes: the leader alone, under its term, until the cache knows a later one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from redis import Redis
from servers import eventually

from extender.controller.publisher import Publisher
from extender.controller.wanted import RULED, Wanted
from extender.store import fleets, keys, render
from extender.store.connect import StoreSettings
from extender.store.schema import Kind
from extender.store.writer import Writer
from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import Hold
from scoring.model import ClusterNode, Convention, GangKey, NodeName

Begin = Callable[..., "Leading"]


class Nodes:
    """Where the nodes of a test come from."""

    kind = Kind.CLUSTER_NODE
    fresh = True

    def __init__(self) -> None:
        self.losses = 0

    def lost(self) -> None:
        """Counted."""
        self.losses += 1

    def answered(self) -> None:
        """Nothing is owed."""


class Leading:
    """A publisher, with what it wants and where that comes from; `term` is its Lease."""

    def __init__(self, store: StoreSettings, term: int | None, prune_s: float) -> None:
        self.term = term
        self.asked = 0
        self.higher: list[int] = []
        self.wanted, self.nodes = Wanted(), Nodes()
        self.publisher = Publisher(
            Writer(store),
            self.wanted,
            [self.nodes],
            term=self._term,
            outranked=self.higher.append,
            tick_s=0.05,
            prune_s=prune_s,
        )
        self.publisher.start()

    def _term(self) -> int | None:
        self.asked += 1
        return self.term

    def lists(self, *names: str) -> None:
        """The API server has these nodes."""
        self.wanted.replace(Kind.CLUSTER_NODE, papers(*names), ())

    def plans(self, *names: str, term: int) -> bool:
        """The planner has these gangs."""
        return self.wanted.rule(Kind.PLAN, plans(*names, term=term), term)


def papers(*names: str) -> dict[str, bytes]:
    """ClusterNode documents."""
    made = [render.document(ClusterNode(name=NodeName(name))) for name in names]
    return {each.id: each.encoded for each in made}


def plans(*names: str, term: int = 1) -> dict[str, bytes]:
    """Plan documents of gangs without members."""
    made = [
        render.document(
            GangPlan(
                gang=GangKey(f"lab/{name}"),
                convention=Convention.SUREFOOT,
                term=term,
                hold=Hold.REQUIRE,
                state=GangState.WAITING,
                seats={},
                since_s=1_795_946_400.0,
            )
        )
        for name in names
    ]
    return {each.id: each.encoded for each in made}


@pytest.fixture
def begin(store: StoreSettings) -> Iterator[Begin]:
    """Start publishers; all are closed after the test."""
    started: list[Leading] = []

    def start(term: int | None = None, prune_s: float = 600.0) -> Leading:
        started.append(Leading(store, term, prune_s))
        return started[-1]

    yield start
    for one in started:
        one.publisher.close()


def held(client: Redis, key: keys.Key = keys.CLUSTER) -> set[str]:
    """The documents of a hash."""
    found = client.hkeys(key.name)
    assert isinstance(found, list)
    return {name.decode() for name in found if isinstance(name, bytes)}


def a_moment() -> None:
    """Several rounds of a publisher, in which it might do what it must not."""
    threading.Event().wait(0.4)


def test_one_that_stands_by_keeps_what_is_wanted_and_writes_nothing(
    begin: Begin, client: Redis
) -> None:
    """It is connected, lags behind nothing, and does not spin."""
    one = begin()
    one.lists("a", "b")
    eventually(lambda: one.publisher.status.connected, "a look")
    before = one.asked
    a_moment()
    assert (held(client), client.exists(keys.TERM.name)) == (set(), 0)
    status = one.publisher.status
    assert (status.term, one.publisher.pending(), one.publisher.lag_s()) == (None, 0, 0.0)
    assert one.wanted.pending() == 2
    assert one.asked - before < 20


def test_one_that_begins_to_lead_writes_everything(begin: Begin, client: Redis) -> None:
    """Under its term, and at once."""
    one = begin()
    one.lists("a", "b")
    one.term = 4
    eventually(lambda: held(client) == {"a", "b"}, "both")
    assert client.get(keys.TERM.name) == b"4"
    eventually(lambda: one.publisher.status.term == 4, "the term")
    eventually(lambda: (one.publisher.status.written, one.publisher.pending()) == (2, 0), "counted")


def test_a_takeover_of_equal_documents_costs_no_change(begin: Begin, client: Redis) -> None:
    """The next leader wants what stands: no generation is spent, and nothing is listed again."""
    first, second = begin(1), begin()
    for one in (first, second):
        one.lists("a", "b")
    eventually(lambda: held(client) == {"a", "b"}, "both")
    first.term, second.term = None, 2
    eventually(lambda: client.get(keys.TERM.name) == b"2", "the second leads")
    eventually(lambda: second.publisher.pending() == 0, "compared")
    assert client.get(keys.GENERATION.name) == b"2"
    assert (second.publisher.status.written, second.nodes.losses) == (0, 0)


def test_one_that_no_longer_leads_writes_nothing(begin: Begin, client: Redis) -> None:
    """What changes then is written when it leads again."""
    one = begin(1)
    one.lists("a")
    eventually(lambda: held(client) == {"a"}, "the node")
    one.term = None
    eventually(lambda: one.publisher.status.term is None, "stands by")
    one.lists("a", "b")
    a_moment()
    assert held(client) == {"a"}
    one.term = 3
    eventually(lambda: held(client) == {"a", "b"}, "both")


def test_a_change_that_comes_with_the_loss_of_the_lease_is_not_written(
    begin: Begin, client: Redis
) -> None:
    """Whether it leads is asked again after each wait for a change."""
    one = begin(1)
    one.lists("a")
    eventually(lambda: held(client) == {"a"}, "the node")
    eventually(lambda: one.wanted.pending() == 0, "it waits")
    one.term = None
    one.lists("a", "b")
    a_moment()
    assert held(client) == {"a"}


def test_a_leader_that_was_followed_is_fenced_off(begin: Begin, client: Redis) -> None:
    """It tells which term is higher, once, writes nothing more, and loses nothing it wanted."""
    one = begin(4)
    one.lists("a")
    eventually(lambda: held(client) == {"a"}, "the node")
    client.set(keys.TERM.name, 9)
    one.lists("a", "b")
    eventually(lambda: one.higher == [9], "the higher term")
    a_moment()
    status = one.publisher.status
    assert (held(client), one.higher) == ({"a"}, [9])
    assert (status.fenced, status.term, status.connected) == (1, None, True)
    one.term = 10
    eventually(lambda: held(client) == {"a", "b"}, "both, in a higher term")
    assert (one.higher, client.get(keys.TERM.name)) == ([9], b"10")


def test_a_term_that_was_refused_stays_refused(begin: Begin, client: Redis) -> None:
    """A Lease that lapses for a moment and holds again does not make it pass."""
    client.set(keys.TERM.name, 9)
    one = begin(4)
    one.lists("a")
    eventually(lambda: one.higher == [9], "refused")
    one.term = None
    a_moment()
    one.term = 4
    a_moment()
    assert (one.higher, one.publisher.status.fenced) == ([9], 1)


def test_a_flushed_cache_is_filled_and_fenced_again(begin: Begin, client: Redis) -> None:
    """By the leader alone; the one that stands by counts the loss."""
    leader, other = begin(4), begin()
    for one in (leader, other):
        one.lists("a")
    eventually(lambda: held(client) == {"a"}, "the node")
    leader.plans("g", term=4)
    eventually(lambda: held(client, keys.PLANS) == {"lab/g"}, "the plan")
    eventually(lambda: other.publisher.status.connected, "a look of the other")
    client.flushall()
    eventually(lambda: held(client) == {"a"}, "the node again")
    eventually(lambda: held(client, keys.PLANS) == {"lab/g"}, "the plan again")
    assert client.get(keys.TERM.name) == b"4"
    assert leader.publisher.status.losses == 1
    assert other.publisher.status.written == 0


# --- the leader's own word -------------------------------------------------------------------------


def test_the_word_of_a_leader_is_written_first(begin: Begin, client: Redis) -> None:
    """Plans are waited for; what the API server says of thousands of nodes comes after them."""
    one = begin()
    one.lists(*(f"n{number}" for number in range(1000)))
    one.plans("g", term=1)
    one.term = 1
    eventually(lambda: client.hlen(keys.CLUSTER.name) == 1000, "everything")
    entries = client.xrange(keys.CHANGES.name, count=1)
    assert isinstance(entries, list)
    assert [fields for _, fields in entries] == [{b"kind": b"Plan", b"id": b"lab/g"}]


def test_a_new_leader_removes_what_it_does_not_want(
    begin: Begin, client: Redis, store: StoreSettings
) -> None:
    """Of each kind once it has said what it wants of it, and no sooner."""
    first, second = begin(1), begin()
    first.plans("old", "both", term=1)
    eventually(lambda: len(held(client, keys.PLANS)) == 2, "the first leader's plans")
    first.term, second.term = None, 2
    eventually(lambda: second.publisher.status.term == 2, "the second leads")
    a_moment()
    assert held(client, keys.PLANS) == {"lab/old", "lab/both"}, "nobody has planned yet"
    second.plans("both", "new", term=2)
    eventually(lambda: held(client, keys.PLANS) == {"lab/both", "lab/new"}, "its own plans")
    found = fleets.look(store)[0].plans
    eventually(lambda: second.publisher.status.removed == 1, "counted")
    assert found[GangKey("lab/both")].term == 2


@pytest.mark.parametrize("kind", RULED)
def test_strangers_of_every_ruled_kind_go(begin: Begin, client: Redis, kind: Kind) -> None:
    """Also where the leader wants nothing at all of a kind."""
    of_kind = {Kind.GANG: keys.GANGS, Kind.PLAN: keys.PLANS, Kind.BREAKER: keys.BREAKERS}[kind]
    client.hset(of_kind.name, "x/y", b"junk")
    one = begin(1)
    one.wanted.rule(kind, {}, 1)
    eventually(lambda: not held(client, of_kind), "the sweep")


def test_a_removal_that_a_failover_lost_is_repeated(begin: Begin, client: Redis) -> None:
    """An older generation: the plan of a gang that is gone stands again, and goes again."""
    one = begin(1)
    one.plans("a", term=1)
    eventually(lambda: held(client, keys.PLANS) == {"lab/a"}, "the plan")
    one.plans(term=1)
    eventually(lambda: not held(client, keys.PLANS), "removed")
    eventually(lambda: one.publisher.pending() == 0, "told")
    with client.pipeline(transaction=True) as pipe:
        pipe.hset(keys.PLANS.name, mapping=dict(plans("a").items()))
        pipe.set(keys.GENERATION.name, 1)
        pipe.xtrim(keys.CHANGES.name, maxlen=0)
        pipe.execute()
    eventually(lambda: not held(client, keys.PLANS), "removed again")


def test_what_was_planned_in_an_earlier_term_is_void(begin: Begin, client: Redis) -> None:
    """A leader that leads again must not repeat its old plans over those of the one between."""
    one = begin(1)
    one.plans("mine", term=1)
    eventually(lambda: held(client, keys.PLANS) == {"lab/mine"}, "the plan")
    one.term = None
    eventually(lambda: one.publisher.status.term is None, "stands by")
    with_writer = Writer(StoreSettings(url=f"redis://127.0.0.1:{port_of(client)}/0"))
    with_writer.delete(Kind.PLAN, "lab/mine")
    with_writer.close()
    one.term = 3
    eventually(lambda: one.publisher.status.term == 3, "leads again")
    assert not one.plans("mine", term=1), "a planner that has not noticed yet"
    a_moment()
    assert held(client, keys.PLANS) == set()


def test_a_document_of_a_ruled_kind_that_went_is_removed(begin: Begin, client: Redis) -> None:
    """A gang that is gone takes its plan along."""
    one = begin(1)
    one.plans("a", "b", term=1)
    eventually(lambda: held(client, keys.PLANS) == {"lab/a", "lab/b"}, "both")
    one.plans("b", term=1)
    eventually(lambda: held(client, keys.PLANS) == {"lab/b"}, "one")


# --- what was removed while nobody here wrote ------------------------------------------------------


def test_strays_of_a_reflected_kind_cost_a_list(begin: Begin, client: Redis) -> None:
    """Only the API server tells whose they are; what is known to go needs none."""
    client.hset(keys.CLUSTER.name, "stray", b"junk")
    one = begin()
    one.lists("a", "b")
    one.wanted.change(Kind.CLUSTER_NODE, ["b"], {})
    one.term = 1
    eventually(lambda: one.nodes.losses == 1, "a list is owed")
    eventually(lambda: held(client) == {"a", "stray"}, "the others")


def test_before_the_first_list_nothing_is_a_stray(begin: Begin, client: Redis) -> None:
    """That list sweeps by itself."""
    client.hset(keys.CLUSTER.name, "a", b"junk")
    one = begin(1)
    eventually(lambda: one.publisher.status.term == 1, "leads")
    assert one.nodes.losses == 0


def test_one_that_stands_by_for_long_does_not_grow(begin: Begin, client: Redis) -> None:
    """Pods come and go by the thousand: what another leader removed is forgotten."""
    client.hset(keys.CLUSTER.name, "n0", b"junk")
    one = begin(prune_s=0.05)
    one.lists(*(f"n{number}" for number in range(1000)))
    one.wanted.change(Kind.CLUSTER_NODE, [f"n{number}" for number in range(1000)], {})
    eventually(lambda: one.wanted.pending() == 1, "all but the one that stands")
    one.term = 1
    eventually(lambda: not held(client), "and that goes")
    assert one.nodes.losses == 0


def port_of(client: Redis) -> int:
    """Where the worker's Valkey listens."""
    port = client.connection_pool.connection_kwargs["port"]
    assert isinstance(port, int)
    return port
