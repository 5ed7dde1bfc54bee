"""What the tests of the API server's side share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from following import Follow
from kubes import ApiServer, api

from extender.kube.discovery import Place
from extender.kube.status import Timing

__all__ = ["api", "follow", "release"]


@pytest.fixture
def follow(api: ApiServer, tmp_path: Path) -> Iterator[Callable[..., Follow]]:
    """Start reflectors of the API server; all are closed after the test."""
    started: list[Follow] = []

    def begin(timing: Timing | None = None, place: str | Place = "/api/v1/pods") -> Follow:
        started.append(Follow(api.settings(tmp_path), timing, place))
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What lets a hanging server go on, at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()
