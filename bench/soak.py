"""Whether a `surefoot serve` stays as it is: days of the demo, one after the other, for two minutes.

Three days take turns, so that what depends on a fleet is known after the first round. Each is 24 hours
of faults, jobs and kube-scheduler's calls, gone through as fast as the server answers; beside it
another caller asks for ever new kinds of pods. Once a second the server's memory, threads and open
files are read. Prints one line of JSON; exit code 1: something grew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from extender.demo import redis_server, serve_process
from extender.demo.client import Client, HttpExtender
from extender.demo.day import Day
from extender.demo.reports import CacheReports
from extender.demo.scenario import scenario
from extender.demo.tally import Glance
from extender.store import load
from extender.store.connect import StoreSettings, connect
from extender.store.schema import Kind
from extender.store.writer import Writer

NODES: Final = 48
SEEDS: Final = 3
"""Fleets that take turns: a cluster has the same machines tomorrow, and other pods."""
LONGEST_S: Final = 120.0
EVERY_S: Final = 1.0
PAUSE_S: Final = 0.005
"""Between two calls of the other caller."""
GROWTH_RATIO: Final = 0.05
"""Of memory, from the second quarter to the last: an allocator's noise is below."""
STATES: Final = ("SUSPECT", "DEGRADED", "PROBATION", "UNMONITORED", "UNKNOWN", "NEW")


class TimeIsUpError(Exception):
    """The last day ends here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The server at one moment: all of its processes."""

    rss_mib: float
    threads: int
    files: int


def look(pids: Sequence[int]) -> Look:
    """Read it from /proc."""
    page_mib = os.sysconf("SC_PAGE_SIZE") / 2**20
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return Look(
        rss_mib=pages * page_mib,
        threads=sum(_entries(f"/proc/{pid}/task") for pid in pids),
        files=sum(_entries(f"/proc/{pid}/fd") for pid in pids),
    )


def _entries(directory: str) -> int:
    return sum(1 for _ in Path(directory).iterdir())


def server_pids() -> list[int]:
    """The process that we started to serve, and its own."""
    mine = [pid for pid in _children(os.getpid()) if b"serve" in _command(pid)]
    return [*mine, *(child for pid in mine for child in _children(pid))]


def _children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def _command(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """`work` in a thread of its own, until the block ends; its error is raised then."""
    done, errors = threading.Event(), list[Exception]()

    def run() -> None:
        try:
            work(done)
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if errors:
        raise errors[0]


def strange_pods(seed: int = 1) -> Iterator[dict[str, Any]]:
    """Without end: pods that differ in all that Surefoot reads, gangs of names never seen before."""
    draw = random.Random(seed)
    for number in itertools.count():
        gang = {"surefoot.dev/gang": f"odd-{number}"} if number % 3 else {}
        words = (",".join(draw.sample(STATES, draw.randint(0, 3))) for _ in range(2))
        limits = {"nvidia.com/gpu": str(draw.randint(1, 16))}
        yield {
            "metadata": {
                "name": f"odd-{number}",
                "namespace": f"team-{number % 7}",
                "uid": f"uid-{number}",
                "labels": gang,
                "annotations": dict(
                    zip(("surefoot.dev/allow", "surefoot.dev/deny"), words, strict=True)
                ),
            },
            "spec": {"containers": [{"resources": {"limits": limits}}]},
        }


def another_caller(
    port: int, names: Sequence[str], calls: list[int]
) -> Callable[[threading.Event], None]:
    """Asks all questions about strange pods, on connections that come and go."""

    def work(done: threading.Event) -> None:
        for number, pod in enumerate(strange_pods()):
            if number % 50 == 0:
                client = Client(serve_process.HOST, port)
            for verb in ("filter", "prioritize", "explain"):
                client.post(f"/{verb}", {"Pod": pod, "NodeNames": names})
                calls[0] += 1
            if number % 50 == 49:
                client.close()
            if done.wait(PAUSE_S):
                client.close()
                return

    return work


def days(settings: StoreSettings, port: int, deadline_s: float) -> tuple[float, int]:
    """Go through days until the deadline; how many, and the calls of /filter in them."""
    number, calls, hours = 0, 0, 0.0

    def watch(glance: Glance) -> None:
        nonlocal hours
        hours = glance.time_s / 3600
        if time.monotonic() >= deadline_s:
            raise TimeIsUpError

    with ExitStack() as stack:
        client = stack.enter_context(closing(Client(serve_process.HOST, port)))
        writer = stack.enter_context(closing(Writer(settings)))
        redis = stack.enter_context(closing(connect(settings)))

        def settled() -> None:
            client.wait_for(load.pulse(redis, with_seen=False).generation)

        while True:
            number += 1
            for key in load.contents(redis).documents[Kind.ALLOCATION]:
                writer.delete(Kind.ALLOCATION, key.decode())
            plan = scenario(NODES, (number - 1) % SEEDS + 1)
            reports = CacheReports(plan, writer, settled)
            extender = HttpExtender(client, reports.settle)
            try:
                Day(plan, extender, reports).run(watch)
            except TimeIsUpError:
                return number - 1 + hours / 24, calls + len(extender.filter_latencies_s)
            calls += len(extender.filter_latencies_s)


def quarter(looks: Sequence[Look], number: int) -> Sequence[Look]:
    """The first (1) to the last (4) quarter of the time."""
    size = len(looks) // 4
    return looks[(number - 1) * size : number * size]


def grew(looks: Sequence[Look]) -> dict[str, bool]:
    """What is more in the last quarter of the time than in the second: in the first, caches fill."""
    early, late = quarter(looks, 2), quarter(looks, 4)
    rss = [statistics.median(each.rss_mib for each in part) for part in (early, late)]
    return {
        "rss": rss[1] > rss[0] * (1 + GROWTH_RATIO),
        "threads": max(each.threads for each in late) > max(each.threads for each in early),
        "files": statistics.median(each.files for each in late)
        > statistics.median(each.files for each in early) + 1,
    }


def soak(seconds: float) -> dict[str, Any]:
    """The whole run, and what came of it."""
    looks, others = list[Look](), [0]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surefoot-soak-")))
        settings = stack.enter_context(redis_server.embedded(directory, nullcontext))
        port = stack.enter_context(serve_process.serving(settings.url, directory, nullcontext))
        pids = server_pids()
        deadline_s = time.monotonic() + seconds

        def measure(done: threading.Event) -> None:
            while not done.wait(EVERY_S):
                looks.append(look(pids))

        names = [machine.name for machine in scenario(NODES, 1).machines]
        stack.enter_context(beside(another_caller(port, names, others)))
        stack.enter_context(beside(measure))
        gone_through, calls = days(settings, port, deadline_s)
    grown = grew(looks)
    return {
        "bench": "soak",
        "seconds": round(seconds),
        "nodes": NODES,
        "days": round(gone_through, 2),
        "filters": calls,
        "other_calls": others[0],
        "rss_mib": [
            round(statistics.median(each.rss_mib for each in quarter(looks, number)), 1)
            for number in range(1, 5)
        ],
        "threads": [looks[0].threads, looks[-1].threads],
        "files": [looks[0].files, looks[-1].files],
        "grew": [name for name, more in grown.items() if more],
    }


def main() -> int:
    """Exit code 0: flat. 1: something grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=LONGEST_S, help="how long, at most two minutes"
    )
    options = parser.parse_args()
    if not 8 * EVERY_S <= options.seconds <= LONGEST_S:
        parser.error(f"--seconds: {8 * EVERY_S:g} to {LONGEST_S:g}")
    found = soak(options.seconds)
    print(json.dumps(found))
    return 1 if found["grew"] else 0


if __name__ == "__main__":
    sys.exit(main())
