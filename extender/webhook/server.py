"""gunicorn: one gthread worker of eight threads; a replica is the unit of scale.

One process, because Prometheus counters and the picture live in it; threads start in the worker,
because those started before the fork would die with it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger
from gunicorn.workers.gthread import TConn, ThreadWorker

from extender.config.model import address

STALL_S: Final = 10.0
"""How long a client may pause within a body or an answer before it loses its thread."""

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


class _Worker(ThreadWorker):  # type: ignore[misc]
    """The worker of gunicorn, whose one polling thread never waits for a client.

    Before it closes a connection it lingers for up to 2 s until the client has closed its end, and
    meanwhile nobody else is accepted or read: here a thread of its own lingers.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._closers = ThreadPoolExecutor(8, thread_name_prefix="surefoot-closer")

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


def _bound_stalls(_worker: Any, request: Any) -> None:
    """Turn a stall within a body, which gunicorn would wait out without limit, into an error."""
    request.unreader.sock.settimeout(STALL_S)


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
        self.cfg.set("pre_request", _bound_stalls)
        self.cfg.set("when_ready", lambda arbiter: self._started(str(arbiter.LISTENERS[0])))
        self.cfg.set("worker_exit", lambda _arbiter, _worker: self._stopped())

    def load(self) -> Flask:  # noqa: D102
        return self._build()
