"""Writes of a leader on a real server: a lower term than the highest so far writes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import PLANS, plan
from redis import Redis
from servers import Cache
from watching import allocation, other

from extender.store import fleets, keys, render
from extender.store.connect import StoreSettings
from extender.store.documents import Document
from extender.store.errors import FencedError, StoreError
from extender.store.schema import MAX_TERM, Kind
from extender.store.scripts import MIRRORED, Wish
from extender.store.writer import Writer
from scoring.gangs.record import GangPlan
from scoring.model import NodeName, Rejection

RESTORED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""For laws whose examples begin by emptying the cache."""
TRAIN = "team/train"


def wish(document: Document) -> Wish:
    """That it stands so."""
    return Wish(kind=document.kind, id=document.id, document=document.encoded)


def refusal(on: str = "gpu-17", **more: Any) -> Rejection:
    """A pod that a node refused just now."""
    at_s = round(time.time()) - 5.0
    whole = {"owner": "lab/Job/train", "reason": "OutOfcpu", "at_s": at_s, "name": "p", **more}
    return Rejection(node=NodeName(on), **whole)


EACH = (
    allocation("gpu-17"),
    other("ClusterNode", metadata={"name": "gpu-17"}),
    other("Gang", key=TRAIN, convention="lws"),
    render.document(plan()),
    other("Breaker", pool="h100", state="open"),
)
"""One document of each kind that a leader mirrors."""

WRITES: tuple[Callable[[Writer, int], object], ...] = (
    lambda writer, term: writer.mirror([wish(each) for each in EACH], term=term),
    lambda writer, term: writer.mirror([Wish(kind=Kind.GANG, id="a/b", document=None)], term=term),
    lambda writer, term: writer.mirror([], term=term),
    lambda writer, term: writer.reject(refusal(), term=term),
    lambda writer, term: writer.lead(term=term),
)
"""Everything that a leader may do to the cache."""


def everything(client: Redis) -> dict[bytes, bytes | None]:
    """All keys of the cache, byte by byte."""
    return {name: client.dump(name) for name in client.scan_iter() if isinstance(name, bytes)}


def test_a_leader_writes_every_kind_of_its_own(writer: Writer, store: StoreSettings) -> None:
    """At one moment, and removes them alike; what stands already is no change."""
    assert {each.kind for each in EACH} == set(MIRRORED)
    done = writer.mirror(map(wish, EACH), term=3)
    assert (done.written, done.generation) == (5, 5)
    fleet, _ = fleets.look(store)
    assert fleet.plans[plan().gang] == plan()
    assert all((fleet.allocations, fleet.cluster, fleet.gangs, fleet.breakers))
    assert writer.mirror(map(wish, EACH), term=3).generation == 5
    gone = [Wish(kind=each.kind, id=each.id, document=None) for each in EACH]
    assert writer.mirror(gone, term=3).removed == 5
    assert all(not writer.ids(kind) for kind in MIRRORED)


@pytest.mark.parametrize("write", WRITES)
def test_a_leader_that_was_followed_writes_nothing(
    writer: Writer, client: Redis, write: Callable[[Writer, int], object]
) -> None:
    """It learns of the higher term, in one sentence."""
    writer.mirror([wish(EACH[2])], term=7)
    before = everything(client)
    with pytest.raises(FencedError, match="of term 6 writes: it has seen term 7") as caught:
        write(writer, 6)
    assert (caught.value.term, caught.value.highest) == (6, 7)
    assert everything(client) == before


@pytest.mark.parametrize("write", WRITES)
def test_every_write_of_a_higher_term_raises_the_fence(
    writer: Writer, client: Redis, write: Callable[[Writer, int], object]
) -> None:
    """Whatever it writes, and be it nothing."""
    writer.lead(term=7)
    write(writer, 8)
    assert client.get(keys.TERM.name) == b"8"
    with pytest.raises(FencedError):
        writer.lead(term=7)


@RESTORED
@given(
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(0, len(WRITES) - 1)), max_size=12),
)
def test_a_lower_term_never_changes_the_cache(
    writer: Writer, client: Redis, steps: list[tuple[int, int]]
) -> None:
    """Under any sequence of terms and writes: refused exactly where a higher one was there before."""
    client.flushall()
    highest = -1
    for term, which in steps:
        before = everything(client)
        if term < highest:
            with pytest.raises(FencedError) as caught:
                WRITES[which](writer, term)
            assert (caught.value.highest, everything(client)) == (highest, before)
        else:
            WRITES[which](writer, term)
            highest = term
        assert client.get(keys.TERM.name) == str(highest).encode()


@RESTORED
@given(values=st.lists(PLANS, max_size=4, unique_by=lambda each: each.gang))
def test_a_mirror_with_equal_documents_changes_nothing(
    writer: Writer, client: Redis, values: list[GangPlan]
) -> None:
    """Whoever leads next finds what it wants, and spends no generation on it."""
    client.flushall()
    wishes = [wish(document) for document in (*map(render.document, values), *EACH)]
    first = writer.mirror(wishes, term=1)
    before = {key: raw for key, raw in everything(client).items() if key != keys.TERM.name.encode()}
    second = writer.mirror(wishes, term=2)
    assert (second.written, second.removed, second.generation) == (0, 0, first.generation)
    after = everything(client)
    assert after.pop(keys.TERM.name.encode())
    assert after == before


def test_people_need_no_term(writer: Writer, store: StoreSettings) -> None:
    """What is put by hand is not fenced, whoever leads."""
    writer.lead(term=7)
    at = "2026-11-29T10:00:00Z"
    by_hand = other("Rejection", node="gpu-17", owner="o", reason="r", at=at)
    assert all(each.stored.changed for each in writer.put([*EACH, by_hand]))
    assert writer.delete(Kind.PLAN, TRAIN)
    assert fleets.look(store)[0].gangs


def test_a_rejection_that_a_leader_learnt_of_is_kept_like_any(
    writer: Writer, store: StoreSettings
) -> None:
    """With the order of its node's document, once, and swept as those that are put."""
    first = refusal(epoch=4, seq=0)
    put = writer.reject(first, term=1)
    assert put.outcome == "stored"
    assert writer.reject(first, term=1).outcome == "unchanged"
    for number in range(keys.OWNER_REJECTIONS_MAX):
        writer.reject(refusal(name=f"p{number}"), term=1)
    found = fleets.look(store)[0].rejections[NodeName("gpu-17")]
    assert len(found) == keys.OWNER_REJECTIONS_MAX
    assert put.document.id not in writer.ids(Kind.REJECTION)
    assert render.document(first).value == first


def test_a_rejection_that_is_yet_to_come_is_now(writer: Writer, store: StoreSettings) -> None:
    """A leader's clock that runs ahead must not keep a node penalised for years."""
    writer.reject(refusal(at_s=time.time() + 1e6), term=1)
    fleet, _ = fleets.look(store)
    (only,) = fleet.rejections[NodeName("gpu-17")]
    assert fleet.now_s - only.at_s == pytest.approx(0, abs=2)


@pytest.mark.parametrize("junk", [b"", b"junk", b"-1", b"inf", b"1e3", b"0x9", b"9" * 40, b"4e9"])
def test_junk_is_no_term(writer: Writer, client: Redis, junk: bytes) -> None:
    """It locks no leader out, and is replaced."""
    client.set(keys.TERM.name, junk)
    writer.mirror([wish(EACH[3])], term=2)
    assert client.get(keys.TERM.name) == b"2"


def test_the_highest_term_that_a_lease_can_have_is_one(writer: Writer, client: Redis) -> None:
    """More cannot come from a Lease, and would lock every leader out."""
    client.set(keys.TERM.name, MAX_TERM + 1)
    writer.lead(term=MAX_TERM)
    with pytest.raises(FencedError):
        writer.lead(term=MAX_TERM - 1)


def test_a_spoilt_fence_lets_nobody_through(writer: Writer, client: Redis) -> None:
    """A key of the wrong type is an error, and nothing is written."""
    client.rpush(keys.TERM.name, "x")
    for write in WRITES:
        with pytest.raises(StoreError, match="WRONGTYPE"):
            write(writer, 1)
    assert client.keys() == [keys.TERM.name.encode()]


def test_a_flushed_cache_is_fenced_again_by_its_leaders_next_write(
    writer: Writer, client: Redis
) -> None:
    """Until then a lower term passes: that window is for the check of the Lease to close."""
    writer.lead(term=7)
    client.flushall()
    writer.mirror([wish(EACH[2])], term=6)
    writer.lead(term=7)
    with pytest.raises(FencedError):
        writer.mirror([], term=6)


def test_a_cache_that_is_away_is_an_error_of_each_write(cache: Cache) -> None:
    """And no `FencedError`: the leader goes on to lead."""
    writer = Writer(cache.settings)
    cache.kill()
    for write in WRITES:
        with pytest.raises(StoreError, match=r"^the cache at redis://") as caught:
            write(writer, 1)
        assert not isinstance(caught.value, FencedError)
    writer.close()
