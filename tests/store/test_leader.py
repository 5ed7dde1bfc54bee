"""The sign of a leader: how readers see whether there is one, and since when not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from redis import Redis
from servers import Cache, eventually
from watching import Watch, node

from extender.store import fleets, keys
from extender.store.connect import StoreSettings
from extender.store.timeline import Timeline
from extender.store.writer import Writer

Begin = Callable[..., Watch]


def led(seconds: float, term: int = 1) -> bytes:
    """A stamp as it stands in the cache."""
    return f"{round(seconds * 1000)} {term}".encode()


def age_s(seen: Watch) -> float:
    """How long ago a leader gave a sign, in the last Fleet."""
    fleet = seen.fleet
    return float("inf") if fleet.leader_s is None else fleet.now_s - fleet.leader_s


def test_a_sign_of_a_leader_reaches_readers(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """Those that follow and those that begin, without a change of the fleet."""
    writer.put([node()])
    seen = watch(store)
    assert seen.fleet.leader_s is None
    writer.lead(term=4)
    eventually(lambda: age_s(seen) < 1, "the sign")
    look, _ = fleets.look(store)
    assert look.leader_s is not None
    assert look.now_s - look.leader_s == pytest.approx(0, abs=2)
    stamp = client.get(keys.LEADER.name)
    assert isinstance(stamp, bytes)
    assert stamp.endswith(b" 4")
    assert seen.fleet.generation == look.generation == 1


def test_a_leader_that_ended_grows_old(writer: Writer, watch: Begin, store: StoreSettings) -> None:
    """Its last sign stays where it was on the time line."""
    writer.lead(term=4)
    seen = watch(store)
    first = seen.fleet.leader_s
    assert first is not None
    eventually(lambda: age_s(seen) > 0.5, "an older sign")
    assert seen.fleet.leader_s == first
    writer.lead(term=5)
    eventually(lambda: age_s(seen) < 0.4, "the sign of the next one")


def test_a_sign_names_the_data(writer: Writer, client: Redis) -> None:
    """Whoever writes first into an empty cache does."""
    writer.lead(term=1)
    assert client.get(keys.INSTANCE.name)


def test_a_flushed_cache_does_not_take_the_sign_back(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis
) -> None:
    """A leader was there, whatever the cache knows: its sign grows old, as any does."""
    writer.lead(term=4)
    seen = watch(store, max_snapshot_age_s=0.2)
    first = seen.fleet.leader_s
    client.flushall()
    writer.put([node("new")])
    eventually(lambda: seen.shows("new"), "the new data")
    assert seen.fleet.leader_s == first
    writer.lead(term=4)
    eventually(lambda: (seen.fleet.leader_s or 0.0) > (first or 0.0), "the next sign")


def test_a_leader_is_seen_after_a_failover(cache: Cache, watch: Begin) -> None:
    """While the cache is away, nothing grows old; the one that comes is followed."""
    writer = Writer(cache.settings)
    writer.lead(term=4)
    seen = watch(cache.settings, max_snapshot_age_s=0.2)
    first = seen.fleet
    cache.kill()
    eventually(lambda: not seen.status.connected, "cut off")
    assert seen.fleet.now_s - first.now_s < 5
    cache.start()
    writer.lead(term=5)
    eventually(lambda: (seen.fleet.leader_s or 0.0) > (first.leader_s or 0.0), "the new leader")
    writer.close()


@pytest.mark.parametrize("spoil", ["set", "rpush"])
def test_a_sign_that_is_none_is_named_and_costs_nothing_else(
    writer: Writer, watch: Begin, store: StoreSettings, client: Redis, spoil: str
) -> None:
    """Junk, or a key of another type: told in quarantine until the next leader's sign."""
    writer.put([node()])
    getattr(client, spoil)(keys.LEADER.name, "soon")
    seen = watch(store)
    assert (set(seen.fleet.nodes), seen.fleet.leader_s) == ({"gpu-17"}, None)
    assert set(seen.fleet.quarantined) == {"Leader"}
    assert set(fleets.look(store)[0].quarantined) == {"Leader"}
    writer.lead(term=1)
    eventually(lambda: not seen.fleet.quarantined, "an empty quarantine")
    assert age_s(seen) < 5


@pytest.mark.parametrize("jump_s", [3600.0, -500.0])
def test_a_clock_that_departs_leaves_the_sign_as_old_as_it_was(jump_s: float) -> None:
    """Until the next one; a server that knows only an older one makes it no older."""
    line = Timeline(1000.0)
    line.take_leader(led(990))
    line.advance(1001.0 + jump_s, 1.0)
    line.take_leader(led(990))
    assert line.leader_s == 990.0
    line.take_leader(led(900 + jump_s))
    assert line.leader_s == 990.0
    line.take_leader(led(1000.5 + jump_s, 2))
    assert line.leader_s == pytest.approx(1000.5)


def test_a_sign_of_the_future_is_now() -> None:
    """Nothing keeps gangs waiting for a leader for longer than its limit."""
    line = Timeline(1000.0)
    line.take_leader(led(5000))
    assert line.leader_s == 1000.0
