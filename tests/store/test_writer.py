"""What is written, and in what order, on a real server."""

from __future__ import annotations

import json
import time

import pytest
from redis import Redis
from servers import Cache, free_port
from watching import allocation, body, node, other, override

from extender.store import documents, fleets, keys
from extender.store.connect import StoreSettings
from extender.store.errors import StoreError
from extender.store.schema import Kind
from extender.store.writer import Writer
from scoring.model import NodeName

GPU17 = NodeName("gpu-17")
PLAN = {
    "gang": "a/b",
    "convention": "lws",
    "hold": "prefer",
    "state": "waiting",
    "since": "2026-11-29T10:00:00Z",
}


def order(client: Redis) -> tuple[int, int]:
    """The epoch and seq of the stored document."""
    raw = client.hget(keys.NODES.name, "gpu-17")
    assert isinstance(raw, bytes)
    document = json.loads(raw)
    return document["epoch"], document["seq"]


def test_a_document_without_order_goes_one_after_the_stored_one(
    writer: Writer, client: Redis
) -> None:
    """`put` by hand needs no numbers, whatever an agent wrote before."""
    assert writer.put([node()])[0].stored.changed
    assert order(client) == (0, 1)
    writer.put([node(epoch=4, seq=118)])
    writer.put([node()])
    assert order(client) == (4, 119)
    writer.put([node(epoch=5)])
    assert order(client) == (5, 1)


@pytest.mark.parametrize("late", [(4, 118), (4, 117), (3, 999)])
def test_a_late_document_changes_nothing(
    writer: Writer, client: Redis, late: tuple[int, int]
) -> None:
    """Writes of one node that arrive out of order leave the newest, by epoch, then seq."""
    writer.put([node(epoch=4, seq=118)])
    (result,) = writer.put([node(epoch=late[0], seq=late[1], expected=1)])
    assert (result.outcome, result.stored.epoch, result.stored.seq) == ("not newer", 4, 118)
    assert (order(client), result.stored.generation) == ((4, 118), 1)


def test_a_document_follows_junk(writer: Writer, client: Redis) -> None:
    """Junk in the place of a document has no order: the next document replaces it."""
    client.hset(keys.NODES.name, "gpu-17", '{"epoch":9e9')
    writer.put([node(epoch=1, seq=1)])
    assert order(client) == (1, 1)


def test_every_change_is_one_generation_and_one_entry(writer: Writer, client: Redis) -> None:
    """The generation never falls and never skips; an equal document is no change."""
    writer.put([node(), allocation("gpu-17"), override("node/gpu-17")])
    writer.put([allocation("gpu-17"), override("node/gpu-17")])
    assert writer.delete(Kind.ALLOCATION, "pod-1/nvidia.com/gpu")
    assert not writer.delete(Kind.ALLOCATION, "pod-1/nvidia.com/gpu")
    entries = client.xrange(keys.CHANGES.name)
    assert isinstance(entries, list)
    assert [entry[0] for entry in entries] == [b"1-1", b"2-1", b"3-1", b"4-1"]
    assert client.get(keys.GENERATION.name) == b"4"


def test_a_deleted_counter_heals_itself(writer: Writer, client: Redis) -> None:
    """Where somebody deletes the generation, the stream begins anew with it."""
    writer.put([node(), node()])
    client.delete(keys.GENERATION.name)
    writer.put([node()])
    assert client.xlen(keys.CHANGES.name) == 1


def test_put_stamps_what_it_stores(writer: Writer, client: Redis, store: StoreSettings) -> None:
    """A stored node is seen, as long ago as was said; a refused one is not seen again."""
    writer.put([node(epoch=1, seq=1)], sampled_s_ago=90)
    fleet, _ = fleets.look(store)
    assert fleet.now_s - fleet.seen_s[GPU17] == pytest.approx(90, abs=1)
    writer.put([node(epoch=1, seq=1)])
    assert fleets.look(store)[0].seen_s == fleet.seen_s
    writer.put([node("gpu-18")], sampled_s_ago=None)
    assert set(fleets.look(store)[0].seen_s) == {GPU17}


def test_a_stamp_is_no_change(writer: Writer, client: Redis, store: StoreSettings) -> None:
    """Polls of a healthy fleet cost no generation and no stream entry."""
    writer.put([node()], sampled_s_ago=90)
    writer.stamp([GPU17])
    fleet, _ = fleets.look(store)
    assert (fleet.generation, client.xlen(keys.CHANGES.name)) == (1, 1)
    assert fleet.now_s - fleet.seen_s[GPU17] < 1


def test_an_agent_starts_above_all_earlier_ones(writer: Writer, client: Redis) -> None:
    """Epochs count up, and stay above a stored document when the counter was lost."""
    assert [writer.next_epoch(GPU17) for _ in range(2)] == [1, 2]
    writer.put([node(epoch=7, seq=1)])
    client.delete(keys.EPOCH.of("gpu-17"))
    assert [writer.next_epoch(GPU17) for _ in range(2)] == [8, 9]


def test_the_instance_is_made_once(writer: Writer, store: StoreSettings, client: Redis) -> None:
    """Whoever writes first names the data; nobody renames it."""
    writer.stamp([GPU17])
    first = client.get(keys.INSTANCE.name)
    second = Writer(store)
    second.put([node()])
    second.close()
    assert first == client.get(keys.INSTANCE.name) is not None


def test_ended_overrides_are_swept(writer: Writer, client: Redis) -> None:
    """The next write of an override removes those whose time is over."""
    writer.put([override("node/a", until="2020-01-01T00:00:00Z"), override("node/b")])
    writer.put([override("node/c", until="2099-01-01T00:00:00Z")])
    assert set(client.hkeys(keys.OVERRIDES.name)) == {b"node/b", b"node/c"}
    writer.delete(Kind.OVERRIDE, "node/c")
    assert client.zcard(keys.OVERRIDE_ENDS.name) == 0


def test_the_table_of_keys_is_whole(writer: Writer, client: Redis) -> None:
    """Every key that is written stands in the table with its type, under one hash tag."""
    breaker = other("Breaker", pool="h100", state="open")
    gang = other("Gang", key="a/b", convention="lws")
    ends = override("node/a", until="2099-01-01T00:00:00Z")
    rejection = other("Rejection", node="gpu-17", owner="a/b", reason="OutOfcpu")
    there = other("ClusterNode", metadata={"name": "gpu-17"})
    plan = other("Plan", **PLAN)
    writer.put([node(), allocation("gpu-17"), ends, breaker, gang, rejection, there, plan])
    writer.next_epoch(GPU17)
    writer.lead(term=1)
    types = {key.name: key.type for key in keys.TABLE}
    for name in client.scan_iter():
        assert isinstance(name, bytes)
        family = name.decode().removesuffix(":gpu-17")
        assert client.type(name) == types.pop(family).encode()
    assert set(types) == {keys.DECISIONS.name}
    assert all(key.name.startswith("{surefoot:v1}:") for key in keys.TABLE)


def test_what_was_put_is_what_is_kept(writer: Writer, store: StoreSettings) -> None:
    """The cache gives a document back as it came, with its order in front."""
    written = body(novelty=[1, {"a": None}])
    writer.put([documents.check(written)])
    _, contents = fleets.look(store)
    kept = json.loads(contents.documents[Kind.NODE][b"gpu-17"])
    assert kept == {"epoch": 0, "seq": 1, **written}
    assert list(kept)[:2] == ["epoch", "seq"]


def test_a_large_put_goes_in_batches(writer: Writer, store: StoreSettings) -> None:
    """More documents than fit one round trip arrive, in order, with one result each."""
    many = [node(f"n{number}") for number in range(1203)]
    results = writer.put(many)
    assert [result.stored.generation for result in results] == list(range(1, 1204))
    assert len(fleets.look(store)[0].nodes) == 1203


def test_a_cache_that_is_away_is_named(cache: Cache) -> None:
    """Writers get one sentence with the server's address, at once."""
    absent = Writer(StoreSettings(url=f"redis://me:secret@127.0.0.1:{free_port()}/0"))
    with pytest.raises(
        StoreError, match=r"^the cache at redis://127\.0\.0\.1:\d+/0 failed: "
    ) as no:
        absent.put([node()])
    assert "secret" not in str(no.value)
    absent.close()


def test_a_writer_outlives_a_restart(cache: Cache) -> None:
    """After the server came back empty, scripts are loaded again by themselves."""
    writer = Writer(cache.settings)
    writer.put([node()])
    cache.kill()
    began_s = time.monotonic()
    with pytest.raises(StoreError):
        writer.put([node()])
    assert time.monotonic() - began_s < 3
    cache.start()
    writer.ping()
    assert writer.put([node()])[0].stored.generation == 1
    writer.stamp([GPU17])
    writer.close()


def test_a_spoilt_key_is_an_error_for_the_writer(writer: Writer, client: Redis) -> None:
    """A key of the wrong type is reported with the server's words."""
    client.set(keys.NODES.name, "junk")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        writer.put([node()])
