"""What agents do to the cache meanwhile, from a process of its own."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any, Final

from extender.store import documents
from extender.store.connect import StoreSettings
from extender.store.writer import Writer
from scoring.model import NodeName

LONGEST_S: Final = 600.0
"""No process lives longer, whatever becomes of the one that started it."""
POLL_S: Final = 15.0
"""How often each agent stamps its node."""
RATE_PER_S: Final = 170.0
FIRST_BURST_S: Final = 1.0
BURST_EVERY_S: Final = 5.0

Body = Mapping[str, Any]
"""A document as plain values: checked ones cannot be sent to another process."""

_SPAWN: Final = multiprocessing.get_context("spawn")


@contextmanager
def stamping(url: str, names: Sequence[NodeName]) -> Iterator[None]:
    """Every node polls in its turn, so that none grows stale."""
    done = _SPAWN.Event()
    process = _SPAWN.Process(target=_stamp, args=(url, names, done), daemon=True)
    process.start()
    try:
        yield
    finally:
        done.set()
        process.join()


@contextmanager
def publishing(url: str, steady: Sequence[Body], burst: Sequence[Body]) -> Iterator[None]:
    """`RATE_PER_S` documents a second, in turn, and from time to time all of `burst` at once.

    Raises:
        RuntimeError: at the end, where this machine could not keep that rate.
    """
    done, late_s = _SPAWN.Event(), _SPAWN.Value("d", 0.0)
    process = _SPAWN.Process(target=_publish, args=(url, steady, burst, done, late_s), daemon=True)
    process.start()
    try:
        yield
    finally:
        done.set()
        process.join()
    if late_s.value > 1.0:
        raise RuntimeError(f"the publisher fell {late_s.value:.1f} s behind {RATE_PER_S:g}/s")


def _stamp(url: str, names: Sequence[NodeName], done: Event) -> None:
    writer = Writer(StoreSettings(url=url))
    size = round(len(names) / POLL_S)
    for turn in range(round(LONGEST_S)):
        if done.wait(1.0):
            break
        start = turn * size % len(names)
        writer.stamp(names[start : start + size])
    writer.close()


def _publish(
    url: str, steady: Sequence[Body], burst: Sequence[Body], done: Event, late_s: object
) -> None:
    writer = Writer(StoreSettings(url=url))
    checked = [documents.check(body) for body in (*burst, *steady)]
    half = len(burst) // 2
    bursts = itertools.cycle((checked[:half], checked[half : len(burst)]))
    started_s = time.monotonic()
    burst_s = started_s + FIRST_BURST_S
    for number, document in enumerate(itertools.cycle(checked[len(burst) :])):
        now_s = time.monotonic()
        due_s = started_s + number / RATE_PER_S
        late_s.value = max(0.0, now_s - due_s)  # type: ignore[attr-defined]
        if now_s - started_s > LONGEST_S or done.wait(max(0.0, due_s - now_s)):
            break
        if time.monotonic() >= burst_s:
            writer.put(next(bursts))
            burst_s += BURST_EVERY_S
        writer.put([document])
    writer.close()
