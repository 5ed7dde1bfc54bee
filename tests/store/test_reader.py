"""The reader follows the cache: what it shows, and when."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis
from servers import eventually
from watching import Watch, allocation, body, node, other, override, write_raw

from extender.store import documents, fleets, keys
from extender.store.connect import READER_TIMEOUT_S, StoreSettings
from extender.store.reader import Reader
from extender.store.schema import Kind
from extender.store.values import Value
from extender.store.writer import Writer
from scoring.model import Fleet, GangKey, NodeName

Begin = Callable[..., Watch]
GPU17 = NodeName("gpu-17")


def test_it_loads_what_is_there(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """The first Fleet is whole, and may change anything."""
    gang = other("Gang", key="team/train", convention="lws", min=2)
    breaker = other("Breaker", pool="h100", state="open")
    writer.put([node(), allocation("gpu-17"), gang, breaker, override("node/gpu-17")])
    seen = watch(store)
    fleet = seen.fleet
    assert seen.fleets[0][1] is None
    assert set(fleet.nodes) == set(fleet.seen_s) == {GPU17}
    assert [one.uid for one in fleet.allocations[GPU17]] == ["pod-1"]
    assert fleet.gangs[GangKey("team/train")].min == 2
    assert set(fleet.breakers) == {"h100"}
    assert set(fleet.overrides) == {"node/gpu-17"}
    assert (fleet.generation, seen.status.generation) == (5, 5)
    assert replace(fleets.look(store)[0], now_s=fleet.now_s) == fleet


def test_an_empty_cache_is_a_picture_too(watch: Begin, store: StoreSettings, client: Redis) -> None:
    """Nothing there is loaded as nothing, and the first writer is followed at once."""
    seen = watch(store)
    assert seen.fleet.nodes == {}
    eventually(lambda: seen.status.loaded, "loaded")
    writer = Writer(store)
    writer.put([node()])
    eventually(lambda: seen.shows("gpu-17"), "the first node", within_s=1)
    writer.close()


def test_a_change_names_its_nodes(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """Each new Fleet says whose verdicts may differ: those of its documents' nodes."""
    writer.put([node("a"), node("b"), node("c")])
    seen = watch(store)
    assert seen.fleet.generation == 3

    def changed_by(*documents: object, gone: tuple[Kind, str] | None = None) -> object:
        before = seen.fleet.generation
        if gone:
            writer.delete(*gone)
        else:
            writer.put(documents)  # type: ignore[arg-type]
        goal = before + (1 if gone else len(documents))
        eventually(lambda: seen.fleet.generation == goal, f"generation {goal}")
        named = [changed for fleet, changed in seen.fleets if fleet.generation > before]
        return None if None in named else set().union(*(part for part in named if part))

    assert changed_by(node("a")) == {"a"}
    assert changed_by(allocation("b")) == {"b"}
    assert changed_by(allocation("c")) == {"b", "c"}
    assert changed_by(override("node/c")) == {"c"}
    assert changed_by(override("gpu/GPU-a-1")) == {"a"}
    assert changed_by(other("Gang", key="x/y", convention="lws")) == set()
    assert changed_by(other("Breaker", pool="h100", state="open")) == {"a", "b", "c"}
    assert changed_by(gone=(Kind.BREAKER, "h100")) == {"a", "b", "c"}
    assert changed_by(gone=(Kind.ALLOCATION, "pod-1/nvidia.com/gpu")) == {"c"}
    assert changed_by(gone=(Kind.NODE, "a")) == {"a"}
    assert seen.shows("b", "c")
    assert seen.fleet.allocations == {}


def test_fleets_that_were_handed_out_never_change(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """A request that holds a Fleet sees one moment, whatever comes later."""
    writer.put([node("a"), allocation("a"), override("node/a")])
    seen = watch(store)
    first = seen.fleet
    before = {name: dict(getattr(first, name)) for name in ("nodes", "allocations", "overrides")}
    writer.put([node("b"), allocation("a", uid="pod-2"), override("node/b")])
    writer.delete(Kind.NODE, "a")
    eventually(lambda: seen.shows("b"), "the change")
    assert before == {name: dict(getattr(first, name)) for name in before}


def test_a_change_is_shown_within_50_ms(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """From the write to the call of `publish`, one at a time and in a burst."""
    seen = watch(store)
    eventually(lambda: seen.status.loaded, "loaded")
    writer.put([node("first")])
    eventually(lambda: seen.shows("first"), "the first node")
    took_s = []
    for seq in range(1, 22):
        began_s = time.monotonic()
        writer.put([node("a", epoch=1, seq=seq)])
        eventually(lambda: NodeName("a") in seen.fleet.nodes, "a")
        eventually(lambda seq=seq: seen.fleet.nodes[NodeName("a")].seq == seq, "the change")  # type: ignore[misc]
        took_s.append(time.monotonic() - began_s)
    assert sorted(took_s)[10] < 0.05


def test_a_burst_is_few_fleets(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """Five hundred changes in one moment do not cost five hundred Fleets."""
    writer.put([node("first")])
    seen = watch(store)
    assert seen.shows("first")
    writer.put([node(f"n{number}") for number in range(500)])
    eventually(lambda: len(seen.fleet.nodes) == 501, "all nodes")
    assert sum(1 for _, changed in seen.fleets if changed) < 50


def test_generations_never_fall_and_never_lie(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """A Fleet holds exactly the changes up to its generation, under any interleaving."""
    seen = watch(store)
    eventually(lambda: seen.status.loaded, "loaded")
    for number in range(1, 151):
        writer.put([node(f"n{number % 7}", epoch=1, seq=number)])
    eventually(lambda: seen.fleet.generation == 150, "everything")
    generations = [fleet.generation for fleet, _ in seen.fleets]
    assert generations == sorted(generations)
    for fleet, _ in seen.fleets:
        newest = max((one.seq for one in fleet.nodes.values()), default=0)
        assert newest == fleet.generation


def test_time_moves_while_the_cache_answers(
    writer: Writer, watch: Begin, store: StoreSettings
) -> None:
    """Each tick hands out the same Fleet, a little later; nothing changed."""
    writer.put([node()])
    seen = watch(store)
    first = seen.fleet
    eventually(lambda: seen.fleet.now_s >= first.now_s + 0.1, "later")
    assert seen.fleets[-1][1] == frozenset()
    assert seen.fleet.nodes is first.nodes
    assert [fleet.now_s for fleet, _ in seen.fleets] == sorted(
        fleet.now_s for fleet, _ in seen.fleets
    )


def test_stamps_arrive_without_a_change(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """`seen` is fetched by itself, and a document brings its own stamp at once."""
    writer.put([node()], sampled_s_ago=90)
    seen = watch(store)
    assert seen.fleet.now_s - seen.fleet.seen_s[GPU17] == pytest.approx(90, abs=1)
    writer.stamp([GPU17])
    eventually(lambda: seen.fleet.now_s - seen.fleet.seen_s[GPU17] < 1, "the stamp")
    assert seen.fleet.generation == 1


def test_a_gap_in_the_stream_is_a_full_load(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A reader that missed entries loads everything, and goes on from there."""
    writer.put([node("a")])
    seen = watch(store)
    assert seen.shows("a")
    with client.pipeline(transaction=True) as pipe:
        pipe.incr(keys.GENERATION.name)
        pipe.hset(keys.NODES.name, "b", json.dumps(body("b")))
        pipe.incr(keys.GENERATION.name)
        pipe.xadd(keys.CHANGES.name, {"kind": "Node", "id": "a"}, id="3-1")
        pipe.execute()
    eventually(lambda: NodeName("b") in seen.fleet.nodes, "what the gap hid")
    assert (seen.status.reloads, seen.fleet.generation) == (2, 3)
    writer.put([node("c")])
    eventually(lambda: NodeName("c") in seen.fleet.nodes, "the next change")


def test_a_broken_document_costs_its_node_and_no_other(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """Junk and newer majors are quarantined by name; the node is unknown, its old data gone."""
    writer.put([node("a"), node("b"), node("c")])
    seen = watch(store)
    assert seen.shows("a", "b", "c")
    write_raw(client, Kind.NODE, "c", b"\xff junk")
    write_raw(client, Kind.NODE, "b", json.dumps(body("b", apiVersion="surefoot.dev/v2")).encode())
    write_raw(client, Kind.ALLOCATION, "x", b"{}")
    client.hset(keys.SEEN.name, "a", "soon")
    eventually(lambda: len(seen.fleet.quarantined) == 4, "four in quarantine")
    assert set(seen.fleet.nodes) == {"a"}
    assert set(seen.fleet.quarantined) == {"Node/b", "Node/c", "Allocation/x", "Seen/a"}
    assert "newer" in seen.fleet.quarantined["Node/b"]
    assert (seen.status.quarantined, seen.status.reloads) == (4, 1)
    writer.put([node("b"), node("c"), node("a")])
    writer.delete(Kind.ALLOCATION, "x")
    eventually(lambda: not seen.fleet.quarantined, "an empty quarantine")
    assert seen.shows("a", "b", "c")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"epoch":1,"seq":"x",',
        b'{"epoch":"x","metadata":{"name":"\xff"}}',
        b'{"epoch":"x","gpus":' + b"[" * 100_000,
        b'{"epoch":1,"seq":2,"apiVersion":3}',
    ],
    ids=["cut off", "no UTF-8", "deep", "wrong header"],
)
def test_what_is_wrong_twice_costs_its_node_and_no_other(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis, raw: bytes
) -> None:
    """A field of the wrong type in front of what is no JSON neither stops a reader nor a look."""
    writer.put([node("a"), node("b")])
    seen = watch(store)
    assert seen.shows("a", "b")
    write_raw(client, Kind.NODE, "b", raw)
    eventually(lambda: set(seen.fleet.quarantined) == {"Node/b"}, "one in quarantine")
    assert (set(seen.fleet.nodes), seen.status.reloads) == ({"a"}, 1)
    assert set(fleets.look(store)[0].quarantined) == {"Node/b"}
    writer.put([node("c")])
    eventually(lambda: NodeName("c") in seen.fleet.nodes, "the next change")


def test_a_document_that_fails_as_nobody_foresaw_stops_no_other(
    writer: Writer, watch: Begin, store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in the decoder itself is told of the document that met it."""

    def decode(kind: Kind, key: str, raw: bytes) -> Value:
        if key == "b":
            raise LookupError("surprise")
        return whole(kind, key, raw)

    whole = documents.decode
    monkeypatch.setattr(documents, "decode", decode)
    writer.put([node("a"), node("b")])
    seen = watch(store)
    assert set(seen.fleet.nodes) == {"a"}
    assert seen.fleet.quarantined == {"Node/b": "cannot be read: LookupError: surprise"}


def test_entries_that_nobody_understands_are_skipped(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A newer writer's kinds in the stream do not stop an older reader."""
    writer.put([node("a")])
    seen = watch(store)
    assert seen.shows("a")
    client.incr(keys.GENERATION.name)
    client.xadd(keys.CHANGES.name, {"kind": "Novelty", "id": "p"}, id="2-1")
    eventually(lambda: seen.fleet.generation == 2, "the entry")
    client.incr(keys.GENERATION.name)
    client.xadd(keys.CHANGES.name, {"kind": "Node"}, id="3-1")
    eventually(lambda: seen.fleet.generation == 3, "the entry without id")
    assert (seen.status.reloads, set(seen.fleet.nodes)) == (1, {"a"})


def test_what_is_over_leaves_by_itself(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """An override ends at its time, without a write, and names its node then."""
    writer.put([node()])
    soon = (datetime.now(UTC) + timedelta(seconds=0.4)).isoformat()
    over = override("node/gone", until="2020-01-01T00:00:00Z")
    writer.put([over, override("node/gpu-17", until=soon)])
    seen = watch(store)
    (left,) = seen.fleet.overrides.values()
    assert left.until_s is not None
    assert 0 < left.until_s - seen.fleet.now_s < 1
    eventually(lambda: not seen.fleet.overrides, "the end")
    assert [changed for _, changed in seen.fleets if changed] == [{GPU17}]


def test_a_receiver_that_fails_does_not_stop_the_reader(
    writer: Writer, store: StoreSettings
) -> None:
    """A surprise in `publish` is told and tried again with a full load."""
    fleets_seen: list[Fleet] = []
    failed = threading.Event()

    def publish(fleet: Fleet, _: object) -> None:
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError
        fleets_seen.append(fleet)

    writer.put([node()])
    reader = Reader(store, publish)
    reader.start()
    eventually(lambda: fleets_seen, "a Fleet after the failure")
    reader.close()
    assert failed.is_set()


def test_close_is_quick_and_may_come_first(store: StoreSettings) -> None:
    """A reader ends within its blocking read; one that never began ends too."""
    Reader(store, lambda *_: None).close()
    reader = Reader(store, lambda *_: None)
    reader.start()
    eventually(lambda: reader.status.connected, "connected")
    began_s = time.monotonic()
    reader.close()
    assert time.monotonic() - began_s < READER_TIMEOUT_S
