"""The server's TLS: its certificate, and the certificates of those who may ask for verdicts.

Probes of the kubelet have no certificate, so a client without one is let in and may read the pages
that say how the server is; what is judged by POST is for those whose certificate the authority
signed.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import structlog

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

TELL_S: Final = 10.0
"""Refused handshakes are logged so often at most: whoever tries in a loop must not fill the disk."""
_PLAIN: Final = b"this port speaks HTTPS\n"
_FORBIDDEN: Final = b"a client certificate is needed\n"

_log = structlog.get_logger("surefoot.webhook.tls")


class TlsError(Exception):
    """The certificate, its key or the authority cannot be used."""


class Certificates:
    """Contexts made of PEM files; a file that is replaced counts from the next connection on.

    Not safe for threads: one accepts connections.
    """

    def __init__(self, cert: Path, key: Path, client_ca: Path | None = None) -> None:
        """`client_ca`: authorities that sign clients; None: nobody is asked for a certificate.

        Raises:
            TlsError: a file is missing, or is not what it should be.
        """
        self._cert, self._key, self._client_ca = cert, key, client_ca
        self._stamps = self._stamped()
        self._context = self._made()

    @property
    def asks_clients(self) -> bool:
        """Whether a verdict is only for clients with a certificate."""
        return self._client_ca is not None

    def wrap(self, sock: socket.socket) -> ssl.SSLSocket:
        """`sock` with TLS on it, before the handshake.

        Raises:
            OSError: the client is gone.
        """
        self._renew()
        return self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def _renew(self) -> None:
        stamps = self._stamped()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._context = self._made()
        except TlsError as error:
            # Certificate and key are seldom replaced in one instant: the next change tries again.
            _log.warning("certificate_not_renewed", problem=str(error))
        else:
            _log.info("certificate_renewed", cert=str(self._cert))

    def _stamped(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(map(_stamp, (self._cert, self._key, self._client_ca)))

    def _made(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._cert, self._key, password=_no_password)
        except (OSError, ValueError) as error:
            raise TlsError(f"{self._cert} with {self._key}: {_told(error)}") from error
        if self._client_ca is not None:
            try:
                context.load_verify_locations(self._client_ca)
            except (OSError, ValueError) as error:
                raise TlsError(f"{self._client_ca}: {_told(error)}") from error
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def certified(app: Wsgi) -> Wsgi:
    """`app` for clients with a certificate; those without may GET."""

    def guard(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in {"GET", "HEAD"} or environ["gunicorn.socket"].getpeercert():
            return app(environ, start_response)
        start_response("403 Forbidden", [("Content-Length", str(len(_FORBIDDEN)))])
        return [_FORBIDDEN]

    return guard


def answered_in_plain(sock: ssl.SSLSocket) -> socket.socket:
    """The bare socket of a client that took this port for plain HTTP, once it was told."""
    bare = socket.socket(fileno=sock.detach())
    bare.setblocking(False)
    head = f"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: {len(_PLAIN)}\r\n\r\n"
    try:
        bare.send(head.encode() + _PLAIN)
    except OSError as error:
        _log.debug("client_gone", problem=str(error))
    return bare


_told_s = -TELL_S


def refused(client: object, error: ssl.SSLError) -> None:
    """Say that a handshake failed."""
    global _told_s  # noqa: PLW0603 - one log, one pace
    now_s = time.monotonic()
    if now_s - _told_s >= TELL_S:
        _told_s = now_s
        _log.warning("handshake_refused", client=str(client), problem=_told(error))


def _stamp(path: Path | None) -> tuple[int, int] | None:
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _told(error: OSError | ValueError) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(error, ssl.SSLError):
        return str(reason or error).replace("_", " ").lower()
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _no_password() -> str:
    raise ValueError("the key is encrypted; store it without a password")
