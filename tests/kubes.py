"""An API server of the tests' own, on real sockets: it lists, watches and takes writes, and answers as
`ApiServer.faults` says when a test tells it to.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from patches import TestFailedError
from routes import Route, route
from writes import RefusalError, Write, written

from extender.kube.settings import KubeSettings

Json = dict[str, Any]
Fault = Callable[["Call"], None]
"""Answers one call in the place of the server."""


class Call(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener
    body = b""
    """Of a write."""

    @property
    def query(self) -> dict[str, str]:
        """Its parameters."""
        return dict(parse_qsl(urlsplit(self.path).query))

    @property
    def route(self) -> Route:
        """What it is about."""
        return route(urlsplit(self.path).path)

    @property
    def kind(self) -> str:
        """Of which objects: `pods`."""
        return self.route.kind

    def setup(self) -> None:
        """A connection came."""
        super().setup()
        self.server.owner.connections += 1

    def do_GET(self) -> None:
        """The name that http.server calls."""
        owner, verb = self.server.owner, "list"
        answer: Fault = owner.list
        if not self.kind or self.route.name:
            verb, answer = "read", owner.read
        elif "watch" in self.query:
            verb, answer = "watch", owner.watch
        if verb != "read":
            owner.calls.append((self.kind, self.query))
            if not owner.serves(self.route):
                answer = refuses(404, "the server could not find the requested resource")
        self._answered(verb, answer)

    def do_PATCH(self) -> None:
        """The same for all that writes."""
        length = int(self.headers.get("Content-Length", "0"))
        self.body = self.rfile.read(length)
        self._answered("write", self.server.owner.write)

    do_POST = do_PUT = do_DELETE = do_PATCH  # noqa: N815 - as http.server calls them

    def _answered(self, verb: str, answer: Fault) -> None:
        owner = self.server.owner
        owner.tokens.append(self.headers.get("Authorization"))
        faults = owner.faults[verb]
        try:
            (faults.popleft() if faults else answer)(self)
        except OSError:
            self.close_connection = True  # the client went
        self.close_connection |= owner.closed

    def answer(self, status: int, body: Json | bytes, **headers: str) -> None:
        """A whole answer."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(sent))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(sent)

    def stream(self) -> None:
        """Begin an answer in chunks."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, sent: bytes) -> None:
        """One chunk; an empty one ends the answer."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(sent), sent))
        self.wfile.flush()

    def event(self, kind: str, body: Json) -> None:
        """One line of a watch."""
        self.chunk(json.dumps({"type": kind, "object": body}).encode() + b"\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Say nothing."""


class Listener(ThreadingHTTPServer):
    """The socket, and whom it belongs to."""

    daemon_threads = True
    owner: ApiServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went is no news: tests tell by what they see."""

    def shutdown_request(self, request: Any) -> None:
        """A connection is over on this side."""
        super().shutdown_request(request)
        self.owner.ended += 1


class ApiServer:
    """Objects of some kinds, every version of them, and who watches."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str]]] = []
        """Kind and parameters of each request."""
        self.tokens: list[str | None] = []
        self.connections = 0
        self.ended = 0
        """Of the connections."""
        self.page_size: int | None = None
        """Of lists; None: what the client asks for."""
        self.writes: list[Write] = []
        """Each write that was heeded, or refused by the rules of an API server."""
        self.heeding: Callable[[Call], None] = lambda _: None
        """Called before each write is heeded, which it may hold up."""
        self.groups: dict[str, dict[str, tuple[str, ...]]] = {}
        """What discovery tells: the resources of each version of each group, preferred first."""
        self.faults: Mapping[str, deque[Fault]] = {
            verb: deque() for verb in ("list", "watch", "read", "write")
        }
        """For the next requests of each verb, one each; `read`: of one object, or discovery."""
        self.version = 100
        self.oldest = 0
        """Watches from before this version are refused with 410."""
        self._objects: dict[tuple[str, str], Json] = {}
        self._log: list[tuple[int, str, str, Json]] = []
        self._changed = threading.Condition()
        self.closed = False
        self._start(0)

    def _start(self, port: int) -> None:
        self._listener = Listener(("127.0.0.1", port), Call)
        self._listener.owner = self
        self.port = self._listener.server_address[1]
        self._thread = threading.Thread(target=self._listener.serve_forever, args=(0.02,))
        self._thread.start()

    def set(self, kind: str, body: Json) -> None:
        """Create or change an object."""
        with self._changed:
            key = (kind, _key(body))
            word = "MODIFIED" if key in self._objects else "ADDED"
            self._append(kind, word, body)
            self._objects[key] = body

    def edit(self, kind: str, key: str, change: Callable[[Json], None]) -> None:
        """Change an object as somebody would who saw the latest version of it."""
        with self._changed:
            body = self.get(kind, key)
            assert body is not None, f"there is no {kind} {key}"
            change(body)
            self.set(kind, body)

    def get(self, kind: str, key: str) -> Json | None:
        """One as it is now: `namespace/name`, or `name`."""
        with self._changed:
            found: Json | None = json.loads(json.dumps(self._objects.get((kind, key))))
            return found

    def delete(self, kind: str, key: str) -> None:
        """Remove one: `namespace/name`, or `name`."""
        with self._changed:
            self._append(kind, "DELETED", self._objects.pop((kind, key)))

    def forget(self, kind: str, key: str) -> None:
        """Remove one, and keep no event of it: only a new list tells."""
        with self._changed:
            del self._objects[kind, key]
            self.version += 1
            self.oldest = self.version

    def bookmark(self) -> None:
        """Tell all watchers that they are up to date."""
        with self._changed:
            for kind in {kind for kind, _ in self._objects}:
                self._append(kind, "BOOKMARK", {"metadata": {}})

    def _append(self, kind: str, word: str, body: Json) -> None:
        self.version += 1
        body.setdefault("metadata", {})["resourceVersion"] = str(self.version)
        self._log.append((self.version, kind, word, json.loads(json.dumps(body))))
        self._changed.notify_all()

    def serves(self, at: Route) -> bool:
        """Whether these objects can be listed: those of `/api/v1` always, others as in `groups`."""
        return not at.group or at.kind in self.groups.get(at.group, {}).get(at.version, ())

    def read(self, call: Call) -> None:
        """Answer with one object, or with what is served."""
        at = call.route
        found: Json | None = None
        if at.name:
            found = self.get(at.kind, at.key)
        elif at.group in self.groups:
            versions = self.groups[at.group]
            names = [{"version": each, "groupVersion": f"{at.group}/{each}"} for each in versions]
            found = {"versions": names, "preferredVersion": names[0]}
            if at.version:
                resources = [{"name": each} for each in versions.get(at.version, ())]
                found = {"resources": resources} if at.version in versions else None
        call.answer(*((200, found) if found else (404, refused(404, "not found"))))

    def write(self, call: Call) -> None:
        """Do what a write asks, unless another was quicker."""
        self.heeding(call)
        call.answer(*self.heed(call))

    def heed(self, call: Call) -> tuple[int, Json]:
        """The same, without the answer."""
        content = call.headers.get("Content-Type", "")
        write = Write(verb=call.command, route=call.route, content=content, body=call.body)
        with self._changed:
            self.writes.append(write)
            key = (write.route.kind, write.key)
            now = self._objects.get(key)
            try:
                made = written(write, now, str(self.version + 1))
            except RefusalError as error:
                return error.status, refused(error.status, str(error))
            except TestFailedError as error:
                return 422, refused(422, str(error))
            if made is None:
                self._append(write.route.kind, "DELETED", self._objects.pop(key))
                return 200, {"kind": "Status", "status": "Success"}
            if made != now:
                self._append(write.route.kind, "ADDED" if now is None else "MODIFIED", made)
                self._objects[write.route.kind, _key(made)] = made
            return 201 if now is None else 200, made

    def list(self, call: Call) -> None:
        """Answer a list, in pages."""
        with self._changed:
            every = [body for (kind, _), body in sorted(self._objects.items()) if kind == call.kind]
            version = self.version
        begin = int(call.query.get("continue", "0"))
        end = begin + (self.page_size or int(call.query["limit"]))
        metadata = {"resourceVersion": str(version)}
        if end < len(every):
            metadata["continue"] = str(end)
        call.answer(200, {"kind": "List", "metadata": metadata, "items": every[begin:end]})

    def watch(self, call: Call) -> None:
        """Answer a watch until its time is over."""
        since = int(call.query["resourceVersion"])
        until_s = time.monotonic() + float(call.query["timeoutSeconds"])
        call.stream()
        if since < self.oldest:
            gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
            call.event("ERROR", gone)
        else:
            for word, body in self._events(call.kind, since, until_s):
                call.event(word, body)
        call.chunk(b"")

    def _events(self, kind: str, since: int, until_s: float) -> Iterator[tuple[str, Json]]:
        at = 0
        while not self.closed and time.monotonic() < until_s:
            with self._changed:
                found, at = self._log[at:], len(self._log)
                if not found:
                    self._changed.wait(0.05)
            for version, each, word, body in found:
                if version > since and each == kind:
                    yield word, body

    def stop(self) -> None:
        """End every watch, and refuse connections."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._listener.shutdown()
        self._thread.join()
        self._listener.server_close()

    def start(self) -> None:
        """Be there again, on the same port, with the same objects."""
        self.closed = False
        self._start(self.port)

    def settings(self, folder: Path, token: str = "a-token") -> KubeSettings:
        """A kubeconfig for it."""
        file = folder / "kubeconfig"
        file.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{self.port}", token)))
        return KubeSettings(kubeconfig=file)


def kubeconfig(server: str, token: str = "a-token") -> Json:
    """What kubectl would read."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "clusters": [{"name": "tests", "cluster": {"server": server}}],
        "users": [{"name": "tester", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tester"}}],
    }


def _key(body: Json) -> str:
    metadata = body["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """An API server of this test's own."""
    server = ApiServer()
    yield server
    server.stop()


def refuses(status: int, message: str = "no", **headers: str) -> Fault:
    """An answer with this status."""
    return lambda call: call.answer(status, refused(status, message), **headers)


def refused(status: int, message: str) -> Json:
    """Why."""
    return {"kind": "Status", "code": status, "message": message}
