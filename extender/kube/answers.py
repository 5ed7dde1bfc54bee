"""What the API server answers: read to its end, or told as an error of one sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, ReadTimeoutError

from extender.kube.errors import (
    GarbageError,
    GoneError,
    RefusedError,
    SilentError,
    UnreachableError,
)
from extender.kube.shapes import STATUS

_PIECE: Final = 1 << 16
_TOLD: Final = 512
"""Characters of a reason."""
_FUTURE: Final = "Too large resource version"
"""What a server says of a version that it does not know yet: after its etcd was restored it may never."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that has begun, and who gives it."""

    http: urllib3.BaseHTTPResponse
    server: str
    silence_s: float
    """How long it may pause."""

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes.

        Raises:
            UnreachableError: it broke off, or paused for too long (`SilentError`).
        """
        try:
            yield from self.http.stream(_PIECE)
        except ReadTimeoutError as error:
            raise SilentError(f"{self.server} says nothing for {self.silence_s:g} s") from error
        except (HTTPError, OSError, ValueError) as error:
            raise UnreachableError(f"{self.server} broke off: {plain(error)}") from error

    def whole(self, *, within_s: float, largest: int) -> bytes:
        """The body, of at most `largest` bytes.

        Raises:
            KubeError: one of its kinds.
        """
        until_s, body = time.monotonic() + within_s, bytearray()
        for piece in self.pieces():
            body += piece
            if time.monotonic() > until_s:
                raise SilentError(f"{self.server} takes more than {within_s:.0f} s for one answer")
            if len(body) > largest:
                raise GarbageError(f"{self.server} sent an answer of more than {largest >> 20} MiB")
        return bytes(body)

    def refusal(self) -> RefusedError:
        """The error that this answer is."""
        try:
            body = self.http.read(_PIECE)
        except (HTTPError, OSError):
            body = b""
        asked = self.http.headers.get("Retry-After", "")
        return refusal(
            self.server,
            body,
            status=self.http.status,
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


def plain(error: BaseException) -> str:
    """The innermost reason: urllib3 wraps it in the addresses of its objects."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error)[:_TOLD] or type(error).__name__
