"""A bounded queue with a thread that sends: whoever decides never waits for a server."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import structlog

from extender.kube.errors import KubeError
from extender.store.errors import StoreError

T = TypeVar("T")

MOST: Final = 1_000
STEP_S: Final = 0.5
"""Longest wait: how long `close` may take while the server answers."""

_log = structlog.get_logger("surefoot.controller.signs")


class Outbox(Generic[T]):
    """Sends what is put in, in its order, each once. What does not fit pushes the oldest out."""

    def __init__(self, name: str, send: Callable[[T], None], *, most: int = MOST) -> None:
        """`send` may raise `KubeError` or `StoreError`."""
        self.name: Final = name
        self.sent = 0
        self.failed = 0
        self.dropped = 0
        self._send = send
        self._queue: deque[T] = deque()
        self._most = most
        self._sending = 0
        self._lost: deque[T] = deque(maxlen=most)
        self._problem: str | None = None
        self._ready = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=f"surefoot-{name}", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    @property
    def pending(self) -> int:
        """How many wait, or are being sent."""
        return len(self._queue) + self._sending

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread to end. What waits is not sent."""
        with self._ready:
            self._stopped = True
            self._ready.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def put(self, item: T) -> None:
        """Have it sent."""
        with self._ready:
            if len(self._queue) >= self._most:
                self._lose(self._queue.popleft())
                self.dropped += 1
            self._queue.append(item)
            self._ready.notify()

    def clear(self) -> None:
        """Forget what waits, and what was lost."""
        with self._ready:
            self._queue.clear()
            self._lost.clear()

    def take_lost(self) -> list[T]:
        """What no server took since the last call, or what was pushed out: for those who try again."""
        with self._ready:
            lost = list(self._lost)
            self._lost.clear()
            return lost

    def _lose(self, item: T) -> None:
        self._lost.append(item)

    def _run(self) -> None:
        while (item := self._next()) is not None:
            try:
                self._send(item[0])
            except (KubeError, StoreError) as error:
                self._missed(item[0], str(error))
            except Exception as error:  # noqa: BLE001 - the thread must outlive any surprise
                # It would fail again, so nobody is to try.
                _log.exception("sign_failed", outbox=self.name)
                self.failed += 1
                self._problem = f"{type(error).__name__}: {error}"
            else:
                self.sent += 1
                self._problem = None
            self._sending = 0

    def _next(self) -> tuple[T] | None:
        with self._ready:
            while not self._queue and not self._stopped:
                self._ready.wait(STEP_S)
            if self._stopped:
                return None
            self._sending = 1
            return (self._queue.popleft(),)

    def _missed(self, item: T, problem: str) -> None:
        if self._problem is None:
            # Said once: it is over with the first sign that gets through.
            _log.warning("sign_not_given", outbox=self.name, problem=problem)
        self._problem = problem
        with self._ready:
            self.failed += 1
            self._lose(item)
