"""The command, and a real cache for those subcommands that need one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from commands import Surefoot
from kubes import api
from servers import cache, client, store, valkey

from extender.store.connect import StoreSettings
from extender.store.writer import Writer

__all__ = ["api", "cache", "client", "store", "valkey"]


@pytest.fixture
def surefoot(store: StoreSettings) -> Surefoot:
    """The command on the worker's cache, which is empty."""
    return Surefoot(store.url)


@pytest.fixture
def offline() -> Surefoot:
    """The command with a cache that nobody runs."""
    return Surefoot("redis://127.0.0.1:1/0")


@pytest.fixture
def writer(store: StoreSettings) -> Iterator[Writer]:
    """A writer into the worker's cache."""
    made = Writer(store)
    yield made
    made.close()
