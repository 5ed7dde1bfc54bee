"""The whole demo: the day without Surefoot, then the same day with all of it running."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from extender.demo import redis_server, serve_process
from extender.demo.client import Client, HttpExtender
from extender.demo.day import Day, NoReports, Watch
from extender.demo.decisions import Collector, Explained
from extender.demo.interrupts import Interrupts
from extender.demo.outcome import Outcome
from extender.demo.reports import CacheReports
from extender.demo.scenario import Scenario
from extender.store import load
from extender.store.connect import StoreSettings, connect
from extender.store.writer import Writer

PREFIX = "surefoot-demo-"
"""Of the temporary directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What both runs came to."""

    with_surefoot: Outcome
    without: Outcome
    filter_latencies_s: tuple[float, ...]
    explained: tuple[Explained, ...]


def run(
    plan: Scenario,
    interrupts: Interrupts,
    redis_url: str | None = None,
    watch: Callable[[str], Watch | None] = lambda _: None,
) -> Report:
    """Run the day twice; whatever was started has ended when this returns or raises.

    Args:
        plan: fleet, faults and jobs.
        interrupts: entered, so that a signal ends the demo cleanly.
        redis_url: a Redis to use instead of an embedded one.
        watch: told which run begins, gives who watches it.

    Raises:
        DemoError: Redis or `serve` does not run or answers as it must not.
        StoreError: the cache failed.
    """
    without = Day(plan, None, NoReports()).run(watch("without"))
    with ExitStack() as stack:
        try:
            with interrupts.held():
                directory = stack.enter_context(_directory())
            settings = stack.enter_context(_store(redis_url, directory, interrupts))
            port = stack.enter_context(
                serve_process.serving(settings.url, directory, interrupts.held)
            )
            client = stack.enter_context(closing(Client(serve_process.HOST, port)))
            return _with_surefoot(plan, without, settings, client, stack, watch("with"))
        finally:
            interrupts.ignore()


def _with_surefoot(
    plan: Scenario,
    without: Outcome,
    settings: StoreSettings,
    client: Client,
    stack: ExitStack,
    watch: Watch | None,
) -> Report:
    writer = stack.enter_context(closing(Writer(settings)))
    reports = CacheReports(plan, writer, _waiter(settings, client, stack))
    extender = HttpExtender(client, reports.settle)
    day = Day(plan, extender, reports)
    collector = Collector(extender.explain, day.offered)
    outcome = day.run(watch, collector.ask)
    return Report(
        with_surefoot=outcome,
        without=without,
        filter_latencies_s=tuple(extender.filter_latencies_s),
        explained=collector.found,
    )


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory for logs and data, gone at the end."""
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _store(
    redis_url: str | None, directory: Path, interrupts: Interrupts
) -> AbstractContextManager[StoreSettings]:
    if redis_url is None:
        return redis_server.embedded(directory, interrupts.held)
    return redis_server.foreign(redis_url)


def _waiter(settings: StoreSettings, client: Client, stack: ExitStack) -> Callable[[], None]:
    """Waits until answers rest on all that is in the cache."""
    redis = stack.enter_context(closing(connect(settings)))
    return lambda: client.wait_for(load.pulse(redis, with_seen=False).generation)
