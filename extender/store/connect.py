"""One form of settings for every way to reach Redis or Valkey, and the clients made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool, SSLConnection, parse_url
from redis.credentials import CredentialProvider
from redis.exceptions import AuthenticationError
from redis.retry import Retry
from redis.sentinel import Sentinel

from extender.store.errors import StoreError

READER_TIMEOUT_S: Final = 3.0
"""How long a reader waits for an answer: its longest blocking read, and time for a full load."""
WRITER_TIMEOUT_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS towards the servers; paths of PEM files."""

    ca: Path | None = None
    """Authorities to trust; None: the system's."""
    cert: Path | None = None
    """The client's certificate, for mutual TLS, with its `key`."""
    key: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelSettings:
    """Where to ask who the primary is. Sentinels take the same TLS settings, and no password."""

    hosts: tuple[tuple[str, int], ...]
    service: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """How to reach the cache."""

    url: str = "redis://localhost:6379/0"
    """`redis://`, `rediss://` or `unix://`; not used with `sentinel`."""
    sentinel: SentinelSettings | None = None
    username: str | None = None
    password_file: Path | None = None
    """Read again at every connection, so that a password can be rotated."""
    tls: Tls | None = None

    @property
    def server(self) -> str:
        """The server for messages, without credentials.

        Raises:
            StoreError: the URL is none.
        """
        if self.sentinel:
            hosts = ", ".join(f"{host}:{port}" for host, port in self.sentinel.hosts)
            return f"{self.sentinel.service} of sentinel {hosts}"
        try:
            parts = urlsplit(self.url)
        except ValueError as error:
            raise StoreError(f"store.url: {error}") from error
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class _FileCredentials(CredentialProvider):
    """User and password, the password from a file that may change."""

    def __init__(self, username: str | None, password_file: Path) -> None:
        self._username = username
        self._password_file = password_file

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """Called by the client for each new connection."""
        try:
            password = self._password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            # One of the client's own errors, so that it gives the half-made connection up.
            problem = error.strerror if isinstance(error, OSError) else "is no UTF-8 text"
            raise AuthenticationError(f"{self._password_file}: {problem}") from error
        return (self._username, password) if self._username else (password,)


def connect(settings: StoreSettings, *, timeout_s: float = WRITER_TIMEOUT_S) -> Redis:
    """A client of the server that `settings` name. It connects on first use, and again after each
    error; it never repeats a command by itself, because the caller knows whether that is safe.

    Args:
        settings: where, and as whom.
        timeout_s: longest wait for one answer. redis-py's own default of 5 s would cut a longer
            blocking read, and None would let a paused server hang the caller.

    Raises:
        StoreError: the URL is none.
    """
    options: dict[str, Any] = {
        "protocol": 2,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": min(timeout_s, CONNECT_TIMEOUT_S),
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
    }
    if settings.sentinel:
        tls = _tls(settings.tls) if settings.tls else {}
        finder = Sentinel(  # type: ignore[no-untyped-call]
            settings.sentinel.hosts,
            sentinel_kwargs={**options, **tls},
            **options,
            **tls,
            **_credentials(settings),
        )
        client: Redis = finder.master_for(settings.sentinel.service)  # type: ignore[no-untyped-call]
        return client
    try:
        parsed = dict(parse_url(settings.url))  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise StoreError(f"store.url: {error}") from error
    secure = parsed.get("connection_class") is SSLConnection or settings.tls is not None
    if secure and "path" not in parsed:
        parsed["connection_class"] = SSLConnection
        options |= {k: v for k, v in _tls(settings.tls or Tls()).items() if k != "ssl"}
    return Redis.from_pool(ConnectionPool(**{**options, **parsed, **_credentials(settings)}))


def _credentials(settings: StoreSettings) -> Mapping[str, Any]:
    if settings.password_file:
        provider = _FileCredentials(settings.username, settings.password_file)
        return {"credential_provider": provider, "username": None, "password": None}
    return {"username": settings.username} if settings.username else {}


def _tls(tls: Tls) -> Mapping[str, Any]:
    paths = {"ssl_ca_certs": tls.ca, "ssl_certfile": tls.cert, "ssl_keyfile": tls.key}
    return {"ssl": True, **{name: str(path) for name, path in paths.items() if path}}
