"""What agents do to the cache meanwhile, from a process of its own."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from typing import Any, Final

from extender.store import documents
from extender.store.connect import StoreSettings
from extender.store.errors import StoreError
from extender.store.writer import Writer
from scoring.model import NodeName

GoesOn = Callable[[float], bool]
"""Waits for so many seconds; false: it is time to stop."""
POLL_S: Final = 15.0
"""How often each agent stamps its node."""
RATE_PER_S: Final = 170.0
FIRST_BURST_S: Final = 1.0
BURST_EVERY_S: Final = 5.0
MOST_LATE_S: Final = 1.0
GRACE_S: Final = 2.0
"""A cache that goes away just before us is no failure."""

Body = Mapping[str, Any]
"""A document as plain values: checked ones cannot be sent to another process."""

_SPAWN: Final = multiprocessing.get_context("spawn")


@contextmanager
def stamping(url: str, names: Sequence[NodeName]) -> Iterator[None]:
    """Every node polls in its turn, so that none grows stale.

    Raises:
        RuntimeError: at the end, where it broke off.
    """
    with _beside(_stamp, url, names):
        yield


@contextmanager
def publishing(url: str, steady: Sequence[Body], burst: Sequence[Body]) -> Iterator[None]:
    """`RATE_PER_S` documents a second, in turn, and from time to time half of `burst` at once.

    Raises:
        RuntimeError: at the end, where it broke off or this machine could not keep that rate.
    """
    late_s = _SPAWN.Value("d", 0.0)
    with _beside(_publish, url, steady, burst, late_s):
        yield
    if late_s.value > MOST_LATE_S:
        raise RuntimeError(f"the publisher fell {late_s.value:.1f} s behind {RATE_PER_S:g}/s")


@contextmanager
def _beside(work: Callable[..., None], *args: object) -> Iterator[None]:
    """`work` in a process of its own, until the block ends."""
    done = _SPAWN.Event()
    process = _SPAWN.Process(target=_worker, args=(work, done, *args), daemon=True)
    process.start()
    try:
        yield
    finally:
        done.set()
        process.join()
    if process.exitcode:
        raise RuntimeError(f"{work.__name__} ended with {process.exitcode}")


def _worker(work: Callable[..., None], done: Event, url: str, *args: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    writer = Writer(StoreSettings(url=url))
    try:
        work(writer, lambda wait_s: not _ends(done, wait_s), *args)
    except StoreError as error:
        sys.exit(f"{work.__name__}: {error}" if not _ends(done, GRACE_S) else 0)
    finally:
        writer.close()


def _ends(done: Event, wait_s: float) -> bool:
    parent = multiprocessing.parent_process()
    return done.wait(wait_s) or parent is None or not parent.is_alive()


def _stamp(writer: Writer, goes_on: GoesOn, names: Sequence[NodeName]) -> None:
    size = math.ceil(len(names) / POLL_S)
    starts = itertools.cycle(range(0, len(names), size))
    while goes_on(1.0):
        start = next(starts)
        writer.stamp(names[start : start + size])


def _publish(
    writer: Writer,
    goes_on: GoesOn,
    steady: Sequence[Body],
    burst: Sequence[Body],
    late_s: Synchronized[float],
) -> None:
    checked = [documents.check(body) for body in (*burst, *steady)]
    half = len(burst) // 2
    bursts = itertools.cycle((checked[:half], checked[half : len(burst)]))
    started_s = time.monotonic()
    burst_s = started_s + FIRST_BURST_S
    for number, document in enumerate(itertools.cycle(checked[len(burst) :])):
        now_s = time.monotonic()
        due_s = started_s + number / RATE_PER_S
        late_s.value = max(0.0, now_s - due_s)
        if not goes_on(max(0.0, due_s - now_s)):
            break
        if now_s >= burst_s:
            writer.put(next(bursts))
            burst_s += BURST_EVERY_S
        writer.put([document])
