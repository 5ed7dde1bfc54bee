"""Waiting for a cluster, which is asked over HTTPS: seldom enough to leave it time to work."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""Long enough for two busy cores; nothing that works takes a tenth of it."""
PAUSE_S: Final = 0.05


def eventually(
    found: Callable[[], T],
    description: str | Callable[[], str],
    *,
    within_s: float = PATIENCE_S,
    pause_s: float = PAUSE_S,
) -> T:
    """What `found` returns once it is true; fails with `description` after `within_s`."""
    __tracebackhide__ = True
    deadline_s = time.monotonic() + within_s
    while True:
        result = found()
        if result:
            return result
        if time.monotonic() > deadline_s:
            told = description if isinstance(description, str) else description()
            pytest.fail(f"not within {within_s:g} s: {told} (last: {result!r})")
        time.sleep(pause_s)


def throughout(holds: Callable[[], object], description: str, *, for_s: float = 3.0) -> None:
    """Fails with `description` as soon as `holds` is not true; returns after `for_s`."""
    __tracebackhide__ = True
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        if not holds():
            pytest.fail(f"not any more: {description}")
        time.sleep(PAUSE_S)
