"""gunicorn: one gthread worker of eight threads; a replica is the unit of scale.

One process, because Prometheus counters and the picture live in it; threads start in the worker,
because those started before the fork would die with it.

A thread is lent for a whole head only, and its body has to keep coming: eight clients that stall or
drip must not keep the other callers, and the kubelet's probes, waiting.
"""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn, ThreadWorker

from extender.config.model import address

HEAD_S: Final = 2.0
"""How long a head may take from its first byte: kube-scheduler sends it at once."""

STALL_S: Final = 10.0
"""How long a client may pause within a body or an answer before it loses its thread."""

REQUEST_S: Final = 10.0
"""How long a request may take from its first byte, beside what `SLOWEST_BPS` grants it: less than
the three failed probes after which a kubelet restarts the pod."""

SLOWEST_BPS: Final = 1e6
"""Bytes a second at which a body may come however large it is: 80 MB get 90 s."""

_HEAD_END: Final = b"\r\n\r\n"
_LONGEST_HEAD: Final = 1 << 16
"""Bytes. A longer one is for the parser to refuse."""
_PIECE: Final = 1 << 13

_MEMORY: Final = "/dev/shm"  # noqa: S108 - gunicorn makes a file of its own there, by mkstemp

SETTINGS: Final[dict[str, Any]] = {
    "workers": 1,
    "threads": 8,
    "keepalive": 120,  # kube-scheduler keeps its connections; a TLS handshake costs 14 ms
    "timeout": 30,
    "graceful_timeout": 20,
    "control_socket_disable": True,  # on by default and writes under $HOME: breaks a read-only root
    "worker_tmp_dir": _MEMORY if Path(_MEMORY).is_dir() else None,  # the root may be read-only
}


class _PlainLogger(Logger):  # type: ignore[misc]
    """The logger of gunicorn without handlers of its own: its records go where all others go."""

    def setup(self, cfg: Any) -> None:  # noqa: ARG002 - gunicorn's signature
        self.error_log.propagate = True
        self.error_log.handlers = []
        self.error_log.setLevel(logging.WARNING)
        self.access_log.handlers = []
        self.access_log.propagate = False


class _Unreader(SocketUnreader):  # type: ignore[misc]
    """The bytes of a connection, until the request is due; after that the client counts as gone."""

    due_s = 0.0

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next piece.

        Raises:
            ConnectionResetError: it did not come in time. gunicorn closes such a connection without
                a word, whereas it logs a TimeoutError with a traceback.
        """
        bound_s = self.sock.gettimeout()
        try:
            self.sock.settimeout(min(bound_s, self._left_s()))
            piece: bytes = super().chunk(size_hint)
        except TimeoutError as error:
            # Or gunicorn would wait for the rest once more, to keep the connection.
            self.due_s = 0.0
            raise ConnectionResetError(errno.ECONNRESET, "the client is too slow") from error
        finally:
            self.sock.settimeout(bound_s)
        self.due_s += len(piece) / SLOWEST_BPS
        return piece

    def _left_s(self) -> float:
        left_s = self.due_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class _Connection(TConn):  # type: ignore[misc]
    """A connection that collects the next head while no thread is bound to it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.data_ready = True  # it gets a thread only then
        self._head = b""
        self._began_s = 0.0

    def hears(self) -> bool:
        """Take in what has come; whether that is a whole head, or all that will ever come."""
        self.sock.setblocking(False)
        if not self._head:
            self._began_s = time.monotonic()
            self.timeout = self._began_s + HEAD_S
            self._head = self.parser.unreader.take_buffered() if self.parser else b""
        if _HEAD_END in self._head:  # read along with the body before it
            return True
        try:
            piece = self.sock.recv(_PIECE)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self._head += piece
        return not piece or _HEAD_END in self._head or len(self._head) > _LONGEST_HEAD

    def init(self) -> None:
        """Make ready for a request, in its thread."""
        super().init()
        self.sock.settimeout(STALL_S)
        if not isinstance(self.parser.unreader, _Unreader):
            self.parser.unreader = _Unreader(self.sock)
        self.parser.unreader.unread(self._head)
        self.parser.unreader.due_s = self._began_s + REQUEST_S
        self._head = b""


class _Worker(ThreadWorker):  # type: ignore[misc]
    """The worker of gunicorn, none of whose threads waits for a head, nor its polling one at all.

    gunicorn lends a new connection a thread, which then reads the head without any bound. Here it
    is polled like one that is kept alive, and its head is read by the polling thread as it comes.

    Before gunicorn closes a connection it lingers for up to 2 s until the client has closed its
    end, and meanwhile nobody else is accepted or read: here a thread of its own lingers.
    """

    pending_conns: deque[_Connection]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._closers = ThreadPoolExecutor(8, thread_name_prefix="surefoot-closer")

    def accept(self, listener: socket.socket) -> None:
        """Take a connection. One that says nothing yet is idle: Go dials some in reserve."""
        try:
            sock, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self.nr_conns += 1
        conn = _Connection(self.cfg, sock, client, listener.getsockname())
        conn.set_timeout()
        self.keepalived_conns.append(conn)
        heard = partial(self.on_client_socket_readable, conn)
        self.poller.register(sock, selectors.EVENT_READ, heard)

    def enqueue_req(self, conn: _Connection) -> None:
        """Lend a thread to a connection with a whole head; any other waits on without one."""
        if conn.hears():
            super().enqueue_req(conn)
            return
        self.pending_conns.append(conn)
        heard = partial(self.on_pending_socket_readable, conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, heard)

    def murder_pending(self) -> None:
        """Close what did not send its head in time; one that drips has moved to the end."""
        self.pending_conns = deque(sorted(self.pending_conns, key=lambda conn: conn.timeout))
        super().murder_pending()

    def finish_request(self, conn: TConn, fs: Future[Any]) -> None:
        """Keep the connection, or have it closed."""
        conn.close = partial(self._closers.submit, TConn.close, conn)
        super().finish_request(conn, fs)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Take new connections or not; while stopping refuse them, instead of leaving them unheard."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()


class BindError(Exception):
    """The address cannot be had: another process listens there, or it is not this machine's."""


def check_free(bind: str) -> None:
    """Find out at once whether `bind` can be had: gunicorn tries for seconds, a log line each.

    Raises:
        BindError: with a sentence.
    """
    host, port = address(bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BindError(f"cannot listen on {bind}: {error.strerror}") from error


class Server(BaseApplication):  # type: ignore[misc]
    """The gunicorn around the app that `build` makes inside the worker."""

    def __init__(
        self,
        bind: str,
        build: Callable[[], Flask],
        *,
        started: Callable[[str], None],
        stopped: Callable[[], None],
    ) -> None:
        """`started` gets the address, in the master; `stopped` runs in the worker as it exits."""
        self._bind = bind
        self._build = build
        self._started = started
        self._stopped = stopped
        super().__init__()

    def run(self) -> None:
        """Serve until a signal ends it.

        Raises:
            BindError: before anything started.
        """
        check_free(self._bind)
        super().run()

    def load_config(self) -> None:  # noqa: D102
        for name, value in SETTINGS.items():
            self.cfg.set(name, value)
        self.cfg.set("bind", self._bind)
        self.cfg.set("worker_class", _Worker)
        self.cfg.set("logger_class", _PlainLogger)
        self.cfg.set("when_ready", lambda arbiter: self._started(str(arbiter.LISTENERS[0])))
        self.cfg.set("worker_exit", lambda _arbiter, _worker: self._stopped())

    def load(self) -> Flask:  # noqa: D102
        return self._build()
