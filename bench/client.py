"""HTTP over one kept-alive connection, with so little around it that the server is what is timed."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Final, Self

TIMEOUT_S: Final = 10.0


class BadAnswerError(Exception):
    """The server answered as it must not, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, and how long that took from the first byte sent to the last received."""

    status: int
    body: bytes
    took_s: float


class Client:
    """One connection. Not safe for threads."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def get(self, path: str) -> Answer:
        """Whatever the answer to a GET is.

        Raises:
            BadAnswerError: none that is HTTP.
        """
        return self._call(f"GET {path} HTTP/1.1\r\nHost: surefoot\r\n\r\n".encode())

    def post(self, path: str, body: bytes) -> Answer:
        """The answer to a JSON body.

        Raises:
            BadAnswerError: not a 200.
        """
        head = (
            f"POST {path} HTTP/1.1\r\nHost: surefoot\r\nUser-Agent: kube-scheduler\r\n"
            f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n"
        )
        answer = self._call(head.encode() + body)
        if answer.status != 200:
            raise BadAnswerError(f"POST {path}: {answer.status} {answer.body[:200]!r}")
        return answer

    def _call(self, request: bytes) -> Answer:
        started_s = time.perf_counter()
        self._socket.sendall(request)
        received = bytearray()
        while (end := received.find(b"\r\n\r\n")) < 0:
            self._receive(received)
        head = bytes(received[:end]).decode("latin-1").lower().split("\r\n")
        lengths = [int(line[15:]) for line in head if line.startswith("content-length:")]
        if len(lengths) != 1:
            raise BadAnswerError(f"no length in the answer: {head}")
        while len(received) < end + 4 + lengths[0]:
            self._receive(received)
        took_s = time.perf_counter() - started_s
        status = int(head[0].split()[1])
        return Answer(status=status, body=bytes(received[end + 4 :]), took_s=took_s)

    def _receive(self, into: bytearray) -> None:
        chunk = self._socket.recv(1 << 18)
        if not chunk:
            raise BadAnswerError("the server closed the connection")
        into += chunk
