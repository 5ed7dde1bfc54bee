"""Servers in Surefoot's place that do not behave: they are slow, or talk nonsense."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Impostor:
    """What it answers to any POST, after which time; counts how often it was asked."""

    def __init__(self, *, status: int = 200, body: bytes = b"{}", after_s: float = 0.0) -> None:
        self.status = status
        self.body = body
        self.after_s = after_s
        self.calls = 0
        self.ended = threading.Event()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Read the request whole, wait, answer."""
        self.calls += 1
        handler.rfile.read(int(handler.headers["Content-Length"]))
        self.ended.wait(self.after_s)
        try:
            handler.send_response(self.status)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(self.body)))
            handler.end_headers()
            handler.wfile.write(self.body)
        except OSError:  # kube-scheduler hung up, as it should when this is slow
            handler.close_connection = True


@contextmanager
def in_place_of(port: int, impostor: Impostor) -> Iterator[Impostor]:
    """Let it listen on this port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            impostor.answer(self)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield impostor
        finally:
            impostor.ended.set()
            server.shutdown()
            thread.join()
