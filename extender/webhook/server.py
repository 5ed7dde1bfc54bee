"""gunicorn: one gthread worker of eight threads; a replica is the unit of scale.

One process, because Prometheus counters and the picture live in it; threads start in the worker,
because those started before the fork would die with it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from extender.config.model import address
from extender.listening import BindError
from extender.webhook.connections import Worker
from extender.webhook.tls import Certificates, Wsgi, certified

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
        certificates: Certificates | None = None,
        started: Callable[[str], None],
        stopped: Callable[[], None],
    ) -> None:
        """`started` gets the address, in the master; `stopped` runs in the worker as it exits.

        Without `certificates` it speaks plain HTTP.
        """
        self._certificates = certificates
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
        worker = type("TlsWorker", (Worker,), {"certificates": self._certificates})
        self.cfg.set("worker_class", worker)
        self.cfg.set("logger_class", _PlainLogger)
        self.cfg.set("when_ready", lambda arbiter: self._started(str(arbiter.LISTENERS[0])))
        self.cfg.set("worker_exit", lambda _arbiter, _worker: self._stopped())

    def load(self) -> Wsgi:  # noqa: D102
        app: Wsgi = self._build()
        if self._certificates is not None and self._certificates.asks_clients:
            return certified(app)
        return app
