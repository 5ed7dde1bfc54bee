"""A TCP proxy in front of a server, to make the network bad: slow, cut, refused, silent.

In front of several it is what a Service is: each connection goes to the next one that is there.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from extender.store.connect import StoreSettings

CHUNK = 1 << 20


class Listens(Protocol):
    """A server on a port of this host."""

    port: int


class Proxy:
    """Passes bytes on to ports of this host, in turns, until told to be worse."""

    def __init__(self, *target_ports: int) -> None:
        self.latency_s = 0.0
        """How long each piece of an answer takes longer."""
        self.accepted = 0
        """Connections that were made so far."""
        self._targets = deque(target_ports)
        self._flows = threading.Event()
        self._flows.set()
        self._mark = b""
        self._left = 0
        self._refuses = False
        self._closed = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    @property
    def settings(self) -> StoreSettings:
        """How to reach the cache through here."""
        return StoreSettings(url=f"redis://127.0.0.1:{self.port}/0")

    def cut(self) -> None:
        """End every connection."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """End every connection, and each new one at once."""
        self._refuses = True
        self.cut()

    def stall(self) -> None:
        """Keep every connection, accept new ones, and pass nothing on: half-open."""
        self._flows.clear()

    def stall_at(self, number: int, mark: bytes) -> None:
        """Keep back, of the pieces to a server that hold `mark`, the one of this number from now on,
        and everything that comes after it.
        """
        self._mark, self._left = mark, number

    @property
    def stalled(self) -> bool:
        """Whether something is kept back."""
        return not self._flows.is_set()

    def heal(self) -> None:
        """Pass everything on again, what was held back included."""
        self._refuses = False
        self.latency_s = 0.0
        self._flows.set()

    def close(self) -> None:
        """End it."""
        self._closed.set()
        self._flows.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            server = self._dial()
            if server is None:
                client.close()
                continue
            server.settimeout(None)
            self._sockets |= {client, server}
            self._start(self._pump, client, server, False)
            self._start(self._pump, server, client, True)
            if self._refuses:
                self.cut()

    def _dial(self) -> socket.socket | None:
        """A connection to the next target that accepts one."""
        for _ in range(len(self._targets)):
            self._targets.rotate(-1)
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", self._targets[-1]), timeout=2)
        return None

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        """One direction of one connection, until either end is gone."""
        with suppress(OSError):
            while chunk := source.recv(CHUNK):
                if answers and self.latency_s:
                    self._closed.wait(self.latency_s)
                self._flows.wait()
                if self._mark in chunk and not answers and self._left:
                    self._left -= 1
                    if not self._left:
                        self.stall()
                        self._flows.wait()
                sink.sendall(chunk)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        source.close()
        self._sockets.discard(source)

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()


@contextmanager
def before(*servers: Listens) -> Iterator[Proxy]:
    """A proxy in front of `servers`, until the block ends."""
    made = Proxy(*(each.port for each in servers))
    try:
        yield made
    finally:
        made.close()
