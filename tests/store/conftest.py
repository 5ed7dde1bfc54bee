"""What the tests of the cache share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from servers import cache, client, redis_server, store, valkey
from watching import Watch

from extender.store.connect import StoreSettings
from extender.store.writer import Writer

__all__ = ["cache", "client", "redis_server", "store", "valkey", "watch", "writer"]


@pytest.fixture
def writer(store: StoreSettings) -> Iterator[Writer]:
    """A writer into the worker's Valkey."""
    made = Writer(store)
    yield made
    made.close()


@pytest.fixture
def watch() -> Iterator[Callable[..., Watch]]:
    """Start readers whose Fleets are kept; all are closed after the test."""
    started: list[Watch] = []

    def begin(settings: StoreSettings, *, max_snapshot_age_s: float = 300.0) -> Watch:
        started.append(Watch(settings, max_snapshot_age_s=max_snapshot_age_s))
        return started[-1]

    yield begin
    for one in started:
        one.close()
