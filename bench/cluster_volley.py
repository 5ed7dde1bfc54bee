"""Many creates at once: what it costs to make pods must not slow down who is to bind them.

A client that waits for each answer needs as much of a core as the API server. Here the requests stand
ready as bytes on connections that are open, each connection takes its share of them at once (HTTP
pipelining), and answers are read only for their status.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedReader
from typing import Final, Self
from urllib.parse import urlsplit

from asking import Json
from e2e.control_plane import ControlPlane
from e2e.identities import MASTERS

CONNECTIONS: Final = 16
TIMEOUT_S: Final = 60.0
USER: Final = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """When the objects were created, in seconds of the epoch."""

    first_s: float
    """Just before the first request was sent."""
    last_s: float
    """When the last one was answered."""

    @property
    def took_s(self) -> float:
        """From one to the other."""
        return self.last_s - self.first_s


class Volley:
    """Connections to one API server, as the administrator; `close` them at the end."""

    def __init__(self, plane: ControlPlane) -> None:
        pair = plane.authority.user(USER, MASTERS)
        context = ssl.create_default_context(cafile=str(plane.authority.certificate))
        context.load_cert_chain(pair.certificate, pair.key)
        self._context = context
        address = urlsplit(plane.server)
        self._host, self._port = str(address.hostname), int(address.port or 443)
        self._sockets = [self._connected() for _ in range(CONNECTIONS)]
        self._readers = [each.makefile("rb") for each in self._sockets]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close them."""
        for reader, connection in zip(self._readers, self._sockets, strict=True):
            reader.close()
            connection.close()

    def create(self, path: str, bodies: Sequence[Json]) -> Created:
        """Create all of them.

        Raises:
            RuntimeError: one was refused.
        """
        requests = [self._request(path, body) for body in bodies]
        shares = [requests[start::CONNECTIONS] for start in range(CONNECTIONS)]
        first_s = time.time()
        for connection, share in zip(self._sockets, shares, strict=True):
            connection.sendall(b"".join(share))
        for reader, share in zip(self._readers, shares, strict=True):
            for _ in share:
                _expect_created(reader)
        return Created(first_s=first_s, last_s=time.time())

    def _connected(self) -> ssl.SSLSocket:
        plain = socket.create_connection((self._host, self._port), TIMEOUT_S)
        return self._context.wrap_socket(plain, server_hostname=self._host)

    def _request(self, path: str, body: Json) -> bytes:
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        return head.encode() + content


def _expect_created(reader: BufferedReader) -> None:
    """Read one answer, and not a byte of the next."""
    status = reader.readline()
    headers = http.client.parse_headers(reader)
    if (length := headers.get("Content-Length")) is not None:
        content = reader.read(int(length))
    else:
        content = b"".join(_chunks(reader))
    if status.split(maxsplit=2)[1:2] != [b"201"]:
        raise RuntimeError(f"not created: {status.decode().strip()} {content.decode()}")


def _chunks(reader: BufferedReader) -> list[bytes]:
    """What an answer holds that was sent in chunks."""
    found: list[bytes] = []
    while size := int(reader.readline(), 16):
        found.append(reader.read(size))
        reader.readline()
    reader.readline()
    return found
