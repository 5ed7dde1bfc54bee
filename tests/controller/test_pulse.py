"""The sign of life, and the ticks of the signs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis
from servers import Cache, eventually
from structlog.testing import CapturingLogger

from extender.controller import pulse
from extender.controller.pulse import Pulse
from extender.store import keys
from extender.store.connect import StoreSettings
from extender.store.writer import Writer


class Ticks:
    """Signs that count their ticks, and stumble when told."""

    def __init__(self) -> None:
        self.count = 0
        self.stumble = False

    def tick(self) -> None:
        """One more."""
        self.count += 1
        if self.stumble:
            raise ArithmeticError("a mistake")


class Heart:
    """A pulse, and what it is told."""

    def __init__(self, store: StoreSettings) -> None:
        self.ticks = Ticks()
        self.term: int | None = None
        self.outranked: list[int] = []
        self.cache = Writer(store)
        self.pulse = Pulse(self.ticks, self.cache, lambda: self.term, self.outranked.append)

    def beats(self, count: int = 3) -> None:
        """Wait for some."""
        seen = self.ticks.count
        eventually(lambda: self.ticks.count >= seen + count, "it beats", within_s=30)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> CapturingLogger:
    """What is logged."""
    made = CapturingLogger()
    monkeypatch.setattr(pulse, "_log", made)
    return made


@pytest.fixture
def heart(store: StoreSettings, log: CapturingLogger) -> Iterator[Heart]:
    """One that beats, and does not lead."""
    assert log.calls == []
    made = Heart(store)
    made.pulse.start()
    yield made
    made.pulse.close()
    made.cache.close()


def test_a_leader_leaves_a_sign_of_life(heart: Heart, client: Redis) -> None:
    """At once when a term begins, and none before or after."""
    heart.beats()
    assert client.get(keys.LEADER.name) is None
    for term in (3, 4):
        heart.term = term
        eventually(lambda: _signed(client) == heart.term, f"the sign of term {term}")
    heart.term = None
    client.delete(keys.LEADER.name)
    heart.beats()
    assert client.get(keys.LEADER.name) is None


def _signed(client: Redis) -> int | None:
    """The term of the sign that stands."""
    found = client.get(keys.LEADER.name)
    return int(found.split()[1]) if found else None


def test_the_sign_is_renewed(heart: Heart, client: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it leads."""
    monkeypatch.setattr(pulse, "LIFE_S", 0.05)
    heart.term = 1
    first = eventually(lambda: client.get(keys.LEADER.name), "the sign")
    eventually(lambda: client.get(keys.LEADER.name) != first, "another")


def test_one_that_is_outranked_is_told(heart: Heart) -> None:
    """The highest term that the cache has seen."""
    heart.cache.lead(term=9)
    heart.term = 5
    eventually(lambda: heart.outranked == [9], "it is told")


def test_a_cache_that_is_away_stops_no_sign_and_is_said_once(
    cache: Cache, log: CapturingLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is back the sign is left."""
    monkeypatch.setattr(pulse, "AGAIN_S", 0.05)
    made = Heart(cache.settings)
    cache.kill()
    made.term = 1
    made.pulse.start()
    made.beats(6)
    (said,) = log.calls
    assert said.method_name == "warning"
    assert made.pulse.alive
    cache.start()
    plain = Redis(port=cache.port, protocol=2)
    eventually(lambda: plain.get(keys.LEADER.name), "the sign", within_s=30)
    plain.close()
    made.pulse.close()
    made.cache.close()
    assert not made.pulse.alive


def test_a_sign_that_fails_stops_neither_beat_nor_life(
    heart: Heart, client: Redis, log: CapturingLogger
) -> None:
    """It is said, with where it came from."""
    heart.ticks.stumble = True
    heart.beats()
    heart.term = 2
    eventually(lambda: client.get(keys.LEADER.name), "the sign of life")
    heart.beats()
    assert {call.method_name for call in log.calls} == {"exception"}
    assert log.calls[0].kwargs == {"problem": "ArithmeticError: a mistake"}


def test_one_that_never_began_can_be_closed(store: StoreSettings) -> None:
    """As when another part could not start."""
    made = Heart(store)
    made.pulse.close()
    made.cache.close()
