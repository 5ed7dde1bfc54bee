"""`surefoot serve` as users run it: a process of its own, under gunicorn, on a free port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from asking import Json
from papers import node_paper
from replicas import Answer, samples
from servers import Cache, eventually

from extender.store.connect import StoreSettings
from extender.store.writer import Writer

REQUEST_S = 2.5
"""No answer takes longer, whatever the cache does: who waits for it waits for 3 s or more."""


class Serve:
    """A running `surefoot serve`; the block's end stops it as Kubernetes would."""

    def __init__(
        self, store: StoreSettings, log: Path, *, before: str = "", **settings: str
    ) -> None:
        """`settings` are variables without their prefix; `before` is code to run in it first."""
        self.log = log
        self.port = 0
        start = f"from extender.cli import main; {before}\nmain()"
        environment = {
            **os.environ,
            "SUREFOOT_WEBHOOK__MODE": "enforce",
            **{f"SUREFOOT_{name}": value for name, value in settings.items()},
        }
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    start,
                    "serve",
                    "--bind=127.0.0.1:0",
                    f"--store={store.url}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    def __enter__(self) -> Self:
        eventually(lambda: self._ended() or self._address(), "it listens", within_s=20)
        if self._ended():
            pytest.fail(f"serve ended: {self.log.read_text()[-2000:]}")
        eventually(self._lives, "it answers", within_s=20)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        """SIGTERM, and the exit code; killed where it does not end."""
        if not self._ended():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
            raise

    def connect(self, timeout_s: float = 10.0) -> http.client.HTTPConnection:
        """A connection that is kept alive."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def ask(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float = 10.0
    ) -> Answer:
        """One request on a connection of its own."""
        connection = self.connect(timeout_s)
        try:
            return ask(connection, method, path, body)
        finally:
            connection.close()

    def post(self, verb: str, body: Json) -> Any:
        """A call as kube-scheduler makes it; it must be answered with 200 within `REQUEST_S`."""
        answer = self.ask("POST", f"/{verb}", json.dumps(body).encode(), REQUEST_S)
        assert answer.status == 200, answer.text
        return answer.json

    def values(self) -> dict[str, float]:
        """/metrics: sample with its labels -> value."""
        return samples(self.ask("GET", "/metrics").text)

    def events(self, name: str) -> list[Json]:
        """The JSON log lines with this event."""
        lines = self.log.read_text().splitlines()
        return [each for line in lines if (each := json.loads(line))["event"] == name]

    def shows(self, count: int) -> bool:
        """Whether its snapshot has this many nodes."""
        return self.values()["surefoot_snapshot_nodes"] == count

    def _ended(self) -> bool:
        return self.process.poll() is not None

    def _address(self) -> bool:
        lines = self.log.read_bytes().splitlines(keepends=True)
        for line in lines:
            if line.endswith(b"\n") and b'"listening"' in line:
                self.port = int(json.loads(line)["address"].rpartition(":")[2])
                return True
        return False

    def _lives(self) -> bool:
        try:
            return self.ask("GET", "/livez").status == 200
        except OSError:
            return False


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> Answer:
    """One request on a connection that stays open."""
    connection.request(method, path, body, {"Content-Type": "application/json"})
    got = connection.getresponse()
    return Answer(status=got.status, body=got.read(), headers=dict(got.headers))


def dial(serve: Serve, timeout_s: float = 10.0) -> socket.socket:
    """A bare connection, to misbehave on."""
    return socket.create_connection(("127.0.0.1", serve.port), timeout=timeout_s)


PATIENT = {"POLICY__STALE_AFTER": "1h", "POLICY__UNKNOWN_AFTER": "2h"}
"""Nobody stamps the nodes of a server that many tests share."""
TEN = tuple(f"gpu-{number}" for number in range(10))
SICK = "gpu-sick"


def fill(cache: Cache) -> None:
    """Ten healthy nodes, and one with a GPU that needs a reset."""
    writer = Writer(cache.settings)
    writer.put([*map(node_paper, TEN), node_paper(SICK, sick={3: "RESET_REQUIRED"})])
    writer.close()


@pytest.fixture(scope="session")
def own_cache() -> Iterator[Cache]:
    """The cache of `served`, apart from those that tests empty."""
    found = Cache()
    yield found
    found.kill()


@pytest.fixture(scope="session")
def served(own_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """One `surefoot serve` for all tests of a worker that leave it as it is: `TEN` and `SICK`."""
    fill(own_cache)
    log = tmp_path_factory.mktemp("serve") / "log"
    with Serve(own_cache.settings, log, **PATIENT) as running:
        eventually(lambda: running.shows(11), "the fleet")
        yield running
