"""GET requests on kept connections, as bytes: the client's own models are too slow and too large.

Pages are read whole, and a watch runs until the server ends it, so that connections are kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlencode

from extender.kube.answers import Answer
from extender.kube.errors import GarbageError, SilentError, UnreachableError
from extender.kube.session import Session
from extender.kube.settings import KubeSettings

SILENCE_S: Final = 30.0
"""How long an answer may pause."""
PAGE_S: Final = 120.0
"""How long one page may take altogether."""
LARGEST_PAGE: Final = 512 << 20
LONGEST_LINE: Final = 64 << 20
"""Bytes of one event: etcd takes objects of 1.5 MB, aggregated servers larger ones."""

Query = Mapping[str, str | int]


class Client:
    """The API server, for one thread; another may `cut` what it waits for."""

    def __init__(self, settings: KubeSettings, *, silence_s: float = SILENCE_S) -> None:
        """`silence_s`: how long the answer to a `get` may pause."""
        self._session = Session(settings)
        self._silence_s = silence_s
        self._open: Answer | None = None

    def get(self, path: str, query: Query) -> bytes:
        """The whole body of an answer.

        Raises:
            KubeError: one of its kinds.
        """
        with self._answer(path, query, self._silence_s) as answer:
            return answer.whole(within_s=PAGE_S, largest=LARGEST_PAGE)

    @contextmanager
    def lines(self, path: str, query: Query, *, silence_s: float) -> Iterator[Iterator[bytes]]:
        """The lines of an answer as they come, until the server ends it.

        A last line without an end is an answer that broke. No whole line for `silence_s`: `SilentError`.

        Raises:
            KubeError: one of its kinds; from the iterator too.
        """
        with self._answer(path, query, silence_s) as answer:
            yield _lines(answer)

    def cut(self) -> None:
        """End the answer that is being waited for, from another thread."""
        answer = self._open
        if answer is not None:
            with suppress(OSError, RuntimeError, ValueError):  # it may be over this moment
                answer.http.shutdown()

    def close(self) -> None:
        """Give the connections back, and read the credentials again at the next request."""
        self._session.close()

    @contextmanager
    def _answer(self, path: str, query: Query, silence_s: float) -> Iterator[Answer]:
        target = f"{path}?{urlencode(query)}" if query else path
        with self._session.answer("GET", target, silence_s=silence_s) as answer:
            self._open = answer
            try:
                yield answer
            finally:
                self._open = None


def _lines(answer: Answer) -> Iterator[bytes]:
    server, silence_s = answer.server, answer.silence_s
    rest, until_s = b"", time.monotonic() + silence_s
    for piece in answer.pieces():
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
