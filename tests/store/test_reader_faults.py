"""The cache is killed, emptied, paused and spoilt: the old picture serves, and recovery comes."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import pytest
from redis import Redis
from redis.client import Pipeline
from servers import Cache, eventually
from structlog.testing import capture_logs
from watching import Watch, node, override

from extender.store import fleets, keys, load
from extender.store.connect import StoreSettings
from extender.store.errors import StoreError
from extender.store.schema import Kind
from extender.store.scripts import Scripts
from extender.store.writer import Writer
from scoring.model import NodeName

Begin = Callable[..., Watch]
TEN = [f"n{number}" for number in range(10)]


class _Restless(Redis):
    """A client in the midst of whose first pipelines the cache changes."""

    def __init__(self, settings: StoreSettings, changes: int) -> None:
        super().__init__(port=urlsplit(settings.url).port or 0, protocol=2)
        self.looks = 0
        self._changes = changes

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """A pipeline whose look at the time also counts the generation up."""
        self.looks += 1
        pipe: Pipeline = super().pipeline(transaction, shard_hint)
        if self.looks <= self._changes:
            count = f"redis.call('INCR', '{keys.GENERATION.name}') return redis.call('TIME')"
            vars(pipe)["time"] = partial(pipe.eval, count, 0)
        return pipe


@contextmanager
def writing(cache: Cache) -> Iterator[Writer]:
    """A writer into a cache of the test's own."""
    writer = Writer(cache.settings)
    yield writer
    writer.close()


def test_a_killed_cache_leaves_its_last_picture(cache: Cache, watch: Begin) -> None:
    """While cut off, now stands still, the status says since when, and nothing is handed out."""
    with writing(cache) as writer:
        writer.put([node()])
        seen = watch(cache.settings)
        assert seen.shows("gpu-17")
        cache.kill()
        eventually(lambda: not seen.status.connected, "cut off")
        last, count = seen.fleet, len(seen.fleets)
        since_s = seen.status.cut_off_since_s()
        assert since_s is not None
        eventually(lambda: time.monotonic() > since_s + 0.3, "some time")
        assert seen.status.silence_s(time.monotonic()) == pytest.approx(
            time.monotonic() - since_s, abs=0.1
        )
        assert (seen.fleet is last, len(seen.fleets)) == (True, count)
        assert seen.status.problem is not None
        assert str(cache.port) in seen.status.problem


def test_a_cache_that_comes_back_empty_keeps_the_old_picture_until_it_is_filled(
    cache: Cache, watch: Begin
) -> None:
    """Nine of ten nodes must be back, with their stamps, before the new data counts."""
    with writing(cache) as writer:
        writer.put([node(name) for name in TEN])
        seen = watch(cache.settings)
        assert seen.shows(*TEN)
        cache.kill()
        cache.start()
        eventually(lambda: seen.status.recovering_since_s, "a loss that was noticed")
        writer.put([node(name, expected=4) for name in TEN[:8]])
        writer.put([node(TEN[8], expected=4)], sampled_s_ago=None)
        for _ in range(3):
            heard_s = seen.status.heard_s
            eventually(lambda s=heard_s: seen.status.heard_s != s, "a look")  # type: ignore[misc]
        assert seen.shows(*TEN)
        assert all(one.expected is None for one in seen.fleet.nodes.values())
        writer.stamp([NodeName(TEN[8])])
        eventually(lambda: seen.shows(*TEN[:9]), "the refilled cache")
        assert seen.status.recovering_since_s is None
        assert seen.status.cut_off_since_s() is None


def test_a_flushed_cache_is_adopted_when_the_old_picture_is_too_old(
    cache: Cache, watch: Begin
) -> None:
    """After `max_snapshot_age_s` what is there counts, even nothing; then changes are followed."""
    with writing(cache) as writer:
        writer.put([node(name) for name in TEN])
        seen = watch(cache.settings, max_snapshot_age_s=0.5)
        assert seen.shows(*TEN)
        Redis(port=cache.port).flushall()
        eventually(lambda: seen.status.recovering_since_s, "a loss that was noticed")
        assert seen.shows(*TEN)
        eventually(lambda: seen.fleet.nodes == {}, "adoption")
        writer.put([node("new")])
        eventually(lambda: seen.shows("new"), "a new node")


def test_a_picture_that_grew_too_old_in_an_outage_does_not_outlive_it(
    cache: Cache, watch: Begin
) -> None:
    """Nobody serves it then, so that a cache which comes back empty counts at once."""
    with writing(cache) as writer:
        writer.put([node(name) for name in TEN])
    seen = watch(cache.settings, max_snapshot_age_s=0.5)
    assert seen.shows(*TEN)
    with capture_logs() as logs:
        cache.kill()
        eventually(lambda: (seen.status.silence_s(time.monotonic()) or 0) > 0.6, "a long outage")
        cache.start()
        eventually(lambda: seen.fleet.nodes == {}, "adoption")
    events = [each["event"] for each in logs]
    assert events[:1] == ["cache_unreachable"]
    assert "cache_lost_its_data" not in events


def test_nodes_that_came_after_the_load_count_in_a_loss(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A reader that began on an empty cache keeps what it learnt since, as any other does."""
    seen = watch(store)
    eventually(lambda: seen.status.loaded, "loaded")
    writer.put([node(name) for name in TEN[:5]])
    eventually(lambda: seen.shows(*TEN[:5]), "the first nodes")
    writer.put([node(name) for name in TEN[5:]])
    eventually(lambda: seen.shows(*TEN), "all nodes")
    client.flushall()
    writer.put([node(name) for name in TEN[:8]])
    eventually(lambda: seen.status.recovering_since_s, "a loss that was noticed")
    assert seen.shows(*TEN)
    writer.put([node(name) for name in TEN[8:]])
    eventually(lambda: seen.status.recovering_since_s is None, "the refilled cache")
    assert seen.shows(*TEN)


def test_a_generation_that_fell_is_a_loss(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A failover that lost writes keeps the instance; with all nodes there it is adopted at once."""
    writer.put([node(name) for name in TEN])
    seen = watch(store)
    assert seen.shows(*TEN)
    client.set(keys.GENERATION.name, 4)
    client.delete(keys.CHANGES.name)
    eventually(lambda: seen.fleet.generation == 4, "adoption")
    writer.put([node("new")])
    eventually(lambda: seen.shows(*TEN, "new"), "the next change")


def test_a_paused_cache_hangs_nobody(cache: Cache, watch: Begin) -> None:
    """A server that stops answering counts as cut off; ages go on from where they stood."""
    with writing(cache) as writer:
        writer.put([node()], sampled_s_ago=20)
        seen = watch(cache.settings)
        assert seen.shows("gpu-17")
        cache.pause()
        eventually(lambda: not seen.status.connected, "cut off")
        age_s = seen.fleet.now_s - seen.fleet.seen_s[NodeName("gpu-17")]
        paused_s = time.monotonic()
        eventually(lambda: time.monotonic() > paused_s + 3.0, "a pause of over 5 s")
        cache.resume()
        eventually(lambda: seen.status.connected and seen.status.reloads == 2, "connected again")
        again_s = seen.fleet.now_s - seen.fleet.seen_s[NodeName("gpu-17")]
        assert age_s == pytest.approx(20, abs=1)
        assert again_s == pytest.approx(age_s, abs=1)
        writer.put([node("b")])
        eventually(lambda: seen.shows("gpu-17", "b"), "the next change")


@pytest.mark.parametrize("key", [keys.NODES, keys.SEEN, keys.GENERATION], ids=lambda key: key.name)
def test_a_spoilt_key_is_a_cut(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis, key: keys.Key
) -> None:
    """Where what every verdict needs is junk, the old picture serves until it is mended."""
    writer.put([node()])
    seen = watch(store)
    assert seen.shows("gpu-17")
    client.rename(key.name, "aside")
    client.set(key.name, "junk")
    client.client_kill_filter(_type="normal", skipme=True)
    eventually(lambda: seen.status.problem and not seen.status.connected, "a problem")
    assert seen.shows("gpu-17")
    client.rename("aside", key.name)
    writer.put([node("b")])
    eventually(lambda: seen.shows("gpu-17", "b"), "mended")
    assert seen.status.problem is None


def test_a_spoilt_key_of_another_kind_costs_only_that_kind(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """Junk in the place of the gangs is shown, and the nodes are judged on."""
    writer.put([node()])
    client.set(keys.GANGS.name, "junk")
    seen = watch(store)
    assert seen.shows("gpu-17")
    assert "WRONGTYPE" in seen.fleet.quarantined["Gang/*"]


def test_a_spoilt_stream_does_not_make_the_reader_spin(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """With the generation behind its stream each look is a gap: loads slow down, and end."""
    writer.put([node(name) for name in TEN])
    seen = watch(store)
    assert seen.shows(*TEN)
    client.set(keys.GENERATION.name, 4)
    began_s = time.monotonic()
    eventually(lambda: time.monotonic() > began_s + 1.5, "a while")
    assert seen.status.reloads < 12
    writer.put([node("new")])
    eventually(lambda: seen.shows(*TEN, "new"), "the next change")


def test_connections_that_break_are_made_again(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A reader whose connection was cut loads everything again, and misses nothing."""
    writer.put([node("a"), override("node/a")])
    seen = watch(store)
    assert seen.shows("a")
    client.client_kill_filter(_type="normal", skipme=True)
    writer.close()
    Writer(store).put([node("b")])
    eventually(lambda: seen.shows("a", "b"), "both")
    assert set(seen.fleet.overrides) == {"node/a"}


def test_a_reader_may_start_before_its_cache(cache: Cache, watch: Begin) -> None:
    """Nothing is loaded, the status says why, and the cache is found when it comes."""
    cache.kill()
    seen = watch(cache.settings)
    eventually(lambda: seen.status.problem, "a problem")
    assert (seen.status.loaded, seen.status.heard_s, seen.fleets) == (False, None, [])
    assert seen.status.silence_s(time.monotonic()) is None
    cache.start()
    eventually(lambda: seen.status.loaded, "loaded")


def test_traffic_through_a_crash_ends_in_the_truth(cache: Cache, watch: Begin) -> None:
    """Killed in the middle of writes and restarted empty, then written again: all is shown."""
    with writing(cache) as writer:
        writer.put([node(name) for name in TEN])
        seen = watch(cache.settings)
        assert seen.shows(*TEN)
        for round_number in range(2):
            writer.put([node(TEN[0], expected=round_number)])
            cache.kill()
            cache.start()
            eventually(lambda: _answers(writer), "the server is back")
            writer.put([node(name, expected=round_number + 5) for name in TEN])
        writer.delete(Kind.NODE, TEN[9])
        eventually(lambda: seen.shows(*TEN[:9]), "all but the deleted one")
        assert {one.expected for one in seen.fleet.nodes.values()} == {6}


def _answers(writer: Writer) -> bool:
    writer.ping()
    return True


def test_a_flushed_cache_is_noticed_though_the_same_writer_refills_it_at_once(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """The new data has the generation of the old, and still the reader sees that it is other data."""
    names = [f"a{number}" for number in range(5)]
    writer.put([node(name, expected=2) for name in names])
    seen = watch(store)
    assert seen.shows(*names)
    client.flushall()
    writer.put([node(name, expected=4) for name in names])
    eventually(lambda: {one.expected for one in seen.fleet.nodes.values()} == {4}, "the new data")
    assert replace(fleets.look(store)[0], now_s=seen.fleet.now_s) == seen.fleet


def test_a_full_cache_is_read_as_before(cache: Cache, watch: Begin) -> None:
    """At `maxmemory` without eviction only writes are refused: readers go on, and new ones begin."""
    with writing(cache) as writer, closing(Redis(port=cache.port)) as client:
        writer.put([node("a")])
        old = watch(cache.settings)
        assert old.shows("a")
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        client.script_flush()
        with pytest.raises(StoreError, match="is full"):
            writer.put([node("b")])
        full_s = time.monotonic()
        new = watch(cache.settings)
        assert new.shows("a")
        for each in (old, new):
            eventually(lambda one=each: (one.status.heard_s or 0) > full_s + 0.3, "a later answer")  # type: ignore[misc]
            assert each.status.problem is None
        # What changes in a full cache is followed too, by the script as by the full load.
        client.config_set("maxmemory", 0)
        writer.put([node("b")])
        client.config_set("maxmemory", 1)
        eventually(lambda: old.shows("a", "b") and new.shows("a", "b"), "the change")


@pytest.mark.parametrize("generation", [30_000_000, 2**63 - 1])
def test_a_generation_that_jumps_costs_no_memory(
    writer: Writer, store: StoreSettings, client: Redis, generation: int
) -> None:
    """Whatever the counter says, what is missing is told without counting it up."""
    writer.put([node("a")])
    client.set(keys.GENERATION.name, generation)
    scripts = Scripts(client)
    scripts.changed_since(1)
    tracemalloc.start()
    try:
        changes = scripts.changed_since(1)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (changes.complete, changes.generation) == (False, generation)
    assert peak_bytes < 1_000_000


@pytest.mark.parametrize("junk", ["x", "-1", "9" * 30, "9" * 5000])
def test_a_generation_that_is_no_number_is_said_to_be_none(
    store: StoreSettings, client: Redis, junk: str
) -> None:
    """Both ways of reading end in the cache's own error."""
    client.set(keys.GENERATION.name, junk)
    for read in (lambda: fleets.look(store), lambda: Scripts(client).changed_since(0)):
        with pytest.raises(StoreError, match="not a number"):
            read()


@pytest.mark.parametrize(("changes", "taken"), [(0, 1), (3, 4)])
def test_a_look_during_which_the_cache_changed_is_taken_again(
    writer: Writer, store: StoreSettings, changes: int, taken: int
) -> None:
    """No mixture of two moments is handed out."""
    writer.put([node("a")])
    with closing(_Restless(store, changes)) as restless:
        contents = load.contents(restless)
    assert (contents.generation, restless.looks) == (1 + changes, taken)


def test_a_cache_that_never_stands_still_is_not_believed(store: StoreSettings) -> None:
    """A look is given up after some attempts, with the reason."""
    with (
        closing(_Restless(store, load.ATTEMPTS)) as restless,
        pytest.raises(StoreError, match="changed during each of 8 attempts"),
    ):
        load.contents(restless)
