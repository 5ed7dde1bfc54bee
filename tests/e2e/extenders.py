"""Extenders of the tests' own, beside Surefoot: one refuses nodes, one listens in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import urllib3
from asking import Json

Extender = Callable[[str, bytes], bytes]
"""What it answers to a POST of this verb and body."""

JSON: Final = {"Content-Type": "application/json"}


class Refuser:
    """An extender with /filter alone, which refuses some nodes and says who was offered to it."""

    def __init__(self, refused: Collection[str]) -> None:
        self.refused = frozenset(refused)
        self.offered: list[frozenset[str]] = []
        """The nodes of each call."""

    def __call__(self, _: str, body: bytes) -> bytes:
        """Pass the others on."""
        names = json.loads(body)["NodeNames"]
        self.offered.append(frozenset(names))
        answer = {
            "NodeNames": [name for name in names if name not in self.refused],
            "FailedNodes": {name: "no licence" for name in names if name in self.refused},
        }
        return json.dumps(answer).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request of kube-scheduler, and what came back."""

    verb: str
    asked: Json
    answered: Any


class Recorder:
    """Hands each request on to another extender, and keeps what was said."""

    def __init__(self, url: str) -> None:
        self.calls: list[Call] = []
        self._url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=10.0)

    def of(self, verb: str) -> list[Call]:
        """The calls of one verb so far."""
        return [call for call in self.calls if call.verb == verb]

    def __call__(self, verb: str, body: bytes) -> bytes:
        """What the other one answers."""
        answer = self._pool.request("POST", f"{self._url}/{verb}", body=body, headers=JSON)
        assert answer.status == HTTPStatus.OK, answer.data
        call = Call(verb=verb, asked=json.loads(body), answered=answer.json())
        self.calls.append(call)
        return answer.data

    def close(self) -> None:
        """Close its connections."""
        self._pool.clear()


@contextmanager
def served(extender: Extender) -> Iterator[str]:
    """Its address, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = extender(self.path.removeprefix("/"), body)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its signature
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
