"""Between a controller and the API server: tells what was asked, and stops all writes at one that a
test chooses.

A request that waits here is one that the network delivers late; one whose relay is closed is lost.
"""

from __future__ import annotations

import json
import math
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import urllib3
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from e2e.cluster import Cluster
from e2e.identities import Pair

PIECE: Final = 1 << 16
OF_ONE_HOP: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
CONNECTIONS: Final = 64


@dataclass(slots=True, kw_only=True)
class Request:
    """One that came to the relay."""

    method: str
    target: str
    """Path and query."""
    body: bytes
    status: int | None = None
    """What the API server answered; None: it was not asked, or has not answered."""

    @property
    def writes(self) -> bool:
        """Whether it changes anything."""
        return self.method != "GET"

    @property
    def of_pod(self) -> bool:
        """Whether it changes a pod."""
        return self.writes and "/pods/" in self.target

    @property
    def of_lease(self) -> bool:
        """Whether it changes a Lease."""
        return self.writes and "/leases" in self.target


Kind = Callable[[Request], bool]


def _none(_: Request) -> bool:
    return False


def _nothing() -> None:
    """Do nothing."""


class Relay:
    """Passes everything on, one write at a time, until told to stop."""

    def __init__(self, server: str, authority: Path, serving: Pair) -> None:
        """`server`: the API server's address. `serving`: what the relay shows to its clients."""
        self.requests: list[Request] = []
        """In the order of their coming, also those that were not passed on."""
        self._server = server
        self._pool = urllib3.PoolManager(
            maxsize=CONNECTIONS, ca_certs=str(authority), retries=False
        )
        self._writing = threading.Lock()
        self._kind: Kind = _none
        self._left: float = math.inf
        self._answers = True
        self._then: Callable[[], None] = _nothing
        self._flows = threading.Event()
        self._flows.set()
        self._closed = threading.Event()
        self._open: set[BaseHTTPResponse] = set()
        self._listener = _listener(self, serving)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, kwargs={"poll_interval": 0.05}
        )
        self._thread.start()

    def stop_after(
        self,
        count: int,
        kind: Kind,
        *,
        answered: bool = True,
        then: Callable[[], None] = _nothing,
    ) -> None:
        """Let `count` more requests of a kind reach the API server, and with the last of them stop all
        writes, of whatever kind. `then` is called at that moment.

        Not `answered`: the answer to the last one waits with the writes.
        """
        with self._writing:
            self._kind, self._left, self._answers, self._then = kind, count, answered, then

    @property
    def stopped(self) -> bool:
        """Whether writes wait."""
        return not self._flows.is_set()

    def release(self) -> None:
        """Pass on what waits, and all that comes."""
        self._flows.set()

    def kubeconfig(self, direct: Path, file: Path) -> Path:
        """`direct` with this relay in the API server's place; `file` is returned."""
        content = json.loads(direct.read_text())
        (cluster,) = content["clusters"]
        cluster["cluster"]["server"] = f"https://127.0.0.1:{self._listener.server_port}"
        file.write_text(json.dumps(content))
        file.chmod(0o600)
        return file

    def close(self) -> None:
        """Lose what waits, and end every answer."""
        if self._closed.is_set():
            return
        self._closed.set()
        self._flows.set()
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()
        for answer in list(self._open):
            with suppress(OSError, RuntimeError, ValueError):  # it may be over this moment
                answer.shutdown()
        self._pool.clear()

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        """One request of a client, on a thread of its connection's own."""
        request = Request(
            method=handler.command,
            target=handler.path,
            body=handler.rfile.read(int(handler.headers.get("Content-Length", 0))),
        )
        self.requests.append(request)
        try:
            if request.writes:
                self._pass_in_turn(handler, request)
            else:
                self._answer(handler, self._ask(handler, request))
        except (HTTPError, OSError):  # either side is gone
            handler.close_connection = True

    def _pass_in_turn(self, handler: BaseHTTPRequestHandler, request: Request) -> None:
        with self._writing:
            self._wait()
            answer = self._ask(handler, request)
            self._left -= self._kind(request)
            last = self._left == 0
            if not last or self._answers:
                self._answer(handler, answer)
            if last:
                self._left = math.inf
                self._flows.clear()
                self._then()
        if last and not self._answers:
            self._wait()
            self._answer(handler, answer)

    def _wait(self) -> None:
        """Until writes flow; an `OSError` where they are lost."""
        self._flows.wait()
        if self._closed.is_set():
            raise ConnectionAbortedError("the relay was closed")

    def _ask(self, handler: BaseHTTPRequestHandler, request: Request) -> BaseHTTPResponse:
        headers = {
            name: value for name, value in handler.headers.items() if name.lower() not in OF_ONE_HOP
        }
        answer = self._pool.request(
            request.method,
            f"{self._server}{request.target}",
            body=request.body or None,
            headers=headers,
            preload_content=False,
            decode_content=False,
        )
        request.status = answer.status
        return answer

    def _answer(self, handler: BaseHTTPRequestHandler, answer: BaseHTTPResponse) -> None:
        """Piece by piece, since a watch has no end."""
        length = answer.headers.get("Content-Length")
        self._open.add(answer)
        try:
            handler.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in OF_ONE_HOP:
                    handler.send_header(name, value)
            if length is None:
                handler.send_header("Transfer-Encoding", "chunked")
            else:
                handler.send_header("Content-Length", length)
            handler.end_headers()
            for piece in answer.stream(PIECE, decode_content=False):
                handler.wfile.write(piece if length else b"%x\r\n%s\r\n" % (len(piece), piece))
            if length is None:
                handler.wfile.write(b"0\r\n\r\n")
        finally:
            self._open.discard(answer)
            answer.close()  # only what was not read whole still has its connection
            answer.release_conn()


@contextmanager
def before(cluster: Cluster) -> Iterator[Relay]:
    """A relay before the API server, until the block ends."""
    authority = cluster.plane.authority
    made = Relay(cluster.plane.server, authority.certificate, authority.serving)
    try:
        yield made
    finally:
        made.close()


def _listener(relay: Relay, serving: Pair) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle(self) -> None:
            with suppress(OSError):  # a client that was killed says no goodbye
                super().handle()

        def do(self) -> None:
            relay.serve(self)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do  # noqa: N815 - what it looks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
            """Say nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.certificate, serving.key)
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    # Its own thread shakes hands, so that no client waits for another.
    made.socket = context.wrap_socket(made.socket, server_side=True, do_handshake_on_connect=False)
    return made
