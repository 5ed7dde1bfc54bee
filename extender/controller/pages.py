"""/livez, /readyz and /metrics of a controller: plain WSGI on threads of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from extender.listening import BindError

STALL_S: Final = 10.0
"""How long a client may pause before it loses its thread."""
CLOSE_S: Final = 0.05
"""How long the end may go unnoticed."""

_TEXT: Final = "text/plain; charset=utf-8"
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is asked about."""

    name: str
    good: bool
    told: str


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        """Without http.server's look-up of its own name, for which a broken DNS takes seconds."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = STALL_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Probes and scrapes are not worth a line each."""


class Pages:
    """Serves from `start` to `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        lives: Callable[[], Iterable[Check]],
        ready: Callable[[], Iterable[Check]],
        metrics: Callable[[], bytes],
    ) -> None:
        """Listen at once.

        Raises:
            BindError: somebody else does, or it is no address of this machine.
        """
        self._lives = lives
        self._ready = ready
        self._metrics = metrics
        kind = _ServerV6 if ":" in host else _Server
        try:
            self._server = make_server(host, port, self._answer, kind, _Handler)
        except OSError as error:
            problem = error.strerror or str(error)
            raise BindError(f"cannot listen on {host}:{port}: {problem}") from error
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(CLOSE_S,),
            name="surefoot-pages",
            daemon=True,
        )

    @property
    def address(self) -> str:
        """Where it listens, `host:port`."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        path, verbose = environ["PATH_INFO"], "verbose" in environ.get("QUERY_STRING", "")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            status, kind, body = "405 Method Not Allowed", _TEXT, b"this path takes GET\n"
        elif path in ("/livez", "/healthz"):
            status, kind, body = _told(self._lives(), verbose=verbose)
        elif path == "/readyz":
            status, kind, body = _told(self._ready(), verbose=verbose)
        elif path == "/metrics":
            status, kind, body = "200 OK", _METRICS, self._metrics()
        else:
            status, kind = "404 Not Found", _TEXT
            body = b"no such path; there are /livez /readyz /healthz /metrics\n"
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _told(checks: Iterable[Check], *, verbose: bool) -> tuple[str, str, bytes]:
    found = list(checks)
    good = all(check.good for check in found)
    lines = [f"[{'+' if each.good else '-'}]{each.name} {each.told}" for each in found]
    text = "\n".join([*lines, "ok" if good else "not ok"]) if verbose or not good else "ok"
    return ("200 OK" if good else "503 Service Unavailable"), _TEXT, f"{text}\n".encode()
