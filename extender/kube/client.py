"""GET requests on kept connections, as bytes: the client's own models are too slow and too large.

A body that is not read to its end costs its connection, and the next call a TLS handshake (34 ms
instead of 1.4). So pages are read whole, and a watch runs until the server ends it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError, ReadTimeoutError

from extender.kube import settings as kube_settings
from extender.kube.errors import (
    GarbageError,
    GoneError,
    KubeError,
    RefusedError,
    SilentError,
    UnreachableError,
)
from extender.kube.settings import KubeSettings
from extender.kube.shapes import STATUS
from extender.version import VERSION

CONNECT_S: Final = 5.0
SILENCE_S: Final = 30.0
"""How long an answer may pause."""
PAGE_S: Final = 120.0
"""How long one page may take altogether."""
LARGEST_PAGE: Final = 512 << 20
LONGEST_LINE: Final = 64 << 20
"""Bytes of one event: etcd takes objects of 1.5 MB, aggregated servers larger ones."""
_PIECE: Final = 1 << 16
_TOLD: Final = 512
"""Characters of a reason."""
_FUTURE: Final = "Too large resource version"
"""What a server says of a version that it does not know yet: after its etcd was restored it may never."""

Query = Mapping[str, str | int]


class Client:
    """The API server, for one thread; another may `cut` what it waits for."""

    def __init__(self, settings: KubeSettings) -> None:
        self._settings = settings
        self._configuration: Configuration | None = None
        self._rest: RESTClientObject | None = None
        self._open: urllib3.BaseHTTPResponse | None = None

    def get(self, path: str, query: Query) -> bytes:
        """The whole body of an answer.

        Raises:
            KubeError: one of its kinds.
        """
        with self._answer(path, query, SILENCE_S) as (answer, server):
            until_s, body = time.monotonic() + PAGE_S, bytearray()
            for piece in _pieces(answer, server, SILENCE_S):
                body += piece
                if time.monotonic() > until_s:
                    raise SilentError(f"{server} takes more than {PAGE_S:.0f} s for one page")
                if len(body) > LARGEST_PAGE:
                    raise GarbageError(
                        f"{server} sent a page of more than {LARGEST_PAGE >> 20} MiB"
                    )
            return bytes(body)

    @contextmanager
    def lines(self, path: str, query: Query, *, silence_s: float) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they come, until the server ends it.

        A last line without an end is an answer that broke. No whole line for `silence_s`: `SilentError`.

        Raises:
            KubeError: one of its kinds; from the iterator too.
        """
        with self._answer(path, query, silence_s) as (answer, server):
            yield _lines(answer, server, silence_s)

    def cut(self) -> None:
        """End the answer that is being waited for, from another thread."""
        answer = self._open
        if answer is not None:
            with suppress(OSError, RuntimeError, ValueError):  # it may be over this moment
                answer.shutdown()

    def close(self) -> None:
        """Give the connections back, and read the credentials again at the next request."""
        if self._rest is not None:
            self._rest.pool_manager.clear()
            self._rest = None

    @contextmanager
    def _answer(
        self, path: str, query: Query, silence_s: float
    ) -> Iterator[tuple[urllib3.BaseHTTPResponse, str]]:
        rest, configuration = self._session()
        server = f"the API server at {configuration.host}"
        try:
            answer = rest.pool_manager.request(
                "GET",
                f"{configuration.host}{path}?{urlencode(query)}",
                headers=_headers(configuration),
                timeout=urllib3.Timeout(connect=CONNECT_S, read=silence_s),
                preload_content=False,
                retries=False,  # the caller knows when to try again
                redirect=False,
            )
        except ReadTimeoutError as error:
            raise SilentError(f"{server} does not answer for {silence_s:g} s") from error
        except (HTTPError, OSError, ValueError, ConfigException) as error:
            raise UnreachableError(f"{server} cannot be reached: {_plain(error)}") from error
        self._open = answer
        try:
            if answer.status != 200:
                raise self._refusal(answer, server)
            yield answer, server
        finally:
            self._open = None
            answer.close()  # only what was not read whole still has its connection
            answer.release_conn()

    def _session(self) -> tuple[RESTClientObject, Configuration]:
        if self._rest is None or self._configuration is None:
            self._configuration = kube_settings.configuration(self._settings)
            self._rest = RESTClientObject(self._configuration)
        return self._rest, self._configuration

    def _refusal(self, answer: urllib3.BaseHTTPResponse, server: str) -> KubeError:
        if answer.status == 401:
            # Tokens and certificates are renewed in their files.
            self.close()
        try:
            body = answer.read(_PIECE)
        except (HTTPError, OSError):
            body = b""
        asked = answer.headers.get("Retry-After", "")
        return refusal(
            server,
            body,
            status=answer.status,
            retry_after_s=float(asked) if asked.isdecimal() else 0.0,
        )


def refusal(
    server: str, status_body: bytes, *, status: int, retry_after_s: float = 0.0
) -> RefusedError:
    """The error behind an answer, or behind an event of type ERROR: its code wins over `status`."""
    message = ""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        found = STATUS.decode(status_body)
        status, message = found.code or status, found.message or ""
        if found.details and found.details.retry_after_seconds:
            retry_after_s = max(retry_after_s, float(found.details.retry_after_seconds))
    told = f"{server} answered {status}: {message[:_TOLD] or 'no reason given'}"
    kind = GoneError if status == 410 or _FUTURE in message else RefusedError
    return kind(told, status=status, retry_after_s=retry_after_s)


def _headers(configuration: Configuration) -> dict[str, str]:
    """Who we are; the token is asked for each time, because it is renewed."""
    found: Any = configuration.auth_settings()
    tokens = {each["key"]: each["value"] for each in found.values() if each["value"]}
    return {"Accept": "application/json", "User-Agent": f"surefoot/{VERSION}", **tokens}


def _pieces(answer: urllib3.BaseHTTPResponse, server: str, silence_s: float) -> Iterator[bytes]:
    try:
        yield from answer.stream(_PIECE)
    except ReadTimeoutError as error:
        raise SilentError(f"{server} says nothing for {silence_s:g} s") from error
    except (HTTPError, OSError, ValueError) as error:
        raise UnreachableError(f"{server} broke off: {_plain(error)}") from error


def _lines(answer: urllib3.BaseHTTPResponse, server: str, silence_s: float) -> Iterator[bytes]:
    rest, until_s = b"", time.monotonic() + silence_s
    for piece in _pieces(answer, server, silence_s):
        *whole, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
        if whole:
            yield from (line for line in whole if line.strip())
            until_s = time.monotonic() + silence_s
        elif time.monotonic() > until_s:
            raise SilentError(f"{server} sends no whole event for {silence_s:g} s")
        if len(rest) > LONGEST_LINE:
            raise GarbageError(f"{server} sent an event of more than {LONGEST_LINE >> 20} MiB")
    if rest.strip():
        raise UnreachableError(f"{server} broke off in the middle of an event")


def _plain(error: BaseException) -> str:
    """The innermost reason: urllib3 wraps it in the addresses of its objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error)[:_TOLD] or type(error).__name__
