"""Decision records on their way into the cache, never in the way of a decision."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Final

import structlog
from redis.exceptions import RedisError

from extender.store import keys
from extender.store.connect import StoreSettings, connect
from extender.store.errors import StoreError, reaching

CAPACITY: Final = 10_000
"""Records that wait at most; then the oldest is dropped for each new one."""
RAW: Final = 256
"""Records that wait unrendered at most, as each may keep thousands of names alive."""
BATCH: Final = 256
COALESCE_S: Final = 0.02
"""Records that come within this time after the first are shipped with it, once it is answered."""
YIELD_S: Final = 0.0002
"""Between two records of a batch: decisions that come meanwhile wait for one record, not for all."""
TIMEOUT_S: Final = 1.0
FIRST_BACKOFF_S: Final = 0.05
LAST_BACKOFF_S: Final = 0.5

Render = Callable[[], bytes]
"""Makes the JSON of one record."""

_log = structlog.get_logger("surefoot.store.decisions")


class DecisionLog:
    """A bounded queue, and a thread that ships it to the capped stream `decisions`.

    The thread renders the records too: that costs more than many a decision. A record whose
    acknowledgement was lost is shipped again: readers tell it by its id.
    """

    def __init__(self, settings: StoreSettings, *, capacity: int = CAPACITY) -> None:
        self._server = settings.server
        self._client = connect(settings, timeout_s=TIMEOUT_S)
        self._capacity = capacity
        self._waiting: deque[bytes | Render] = deque()
        self._raw = 0
        self._dropped = 0
        self._shipped = 0
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._closing = threading.Event()
        self._deadline_s = float("inf")
        self._thread = threading.Thread(target=self._run, name="surefoot-decisions", daemon=True)

    @property
    def dropped(self) -> int:
        """Records that were lost: the queue was full, they could not be made, or it was the end."""
        return self._dropped

    @property
    def shipped(self) -> int:
        """Records that the cache has."""
        return self._shipped

    @property
    def waiting(self) -> int:
        """Records that are neither."""
        return len(self._waiting)

    def start(self) -> None:
        """Begin to ship."""
        self._thread.start()

    def append(self, render: Render) -> None:
        """Queue one record; returns without waiting for the cache, whatever that does.

        `render` is called once: soon, by the thread, or here and now where too many wait for that.
        """
        record = render if self._raw < RAW else self._rendered(render)
        if record is None:
            return
        with self._lock:
            if len(self._waiting) >= self._capacity:
                self._take()
                self._dropped += 1
            self._waiting.append(record)
            self._raw += callable(record)
        self._news.set()

    def close(self, deadline_s: float = 2.0) -> None:
        """Ship what waits, for `deadline_s` seconds at most; the rest counts as dropped."""
        self._deadline_s = time.monotonic() + deadline_s
        self._closing.set()
        self._news.set()
        if self._thread.ident is None:
            self._give_up()
        else:
            self._thread.join(deadline_s)
        self._client.close()

    def _run(self) -> None:
        self._ship_all()
        self._give_up()

    def _ship_all(self) -> None:
        """Ship whatever comes, until `close` is called and nothing waits, or its deadline."""
        backoff_s = FIRST_BACKOFF_S
        while self._waiting or not self._closing.is_set():
            if time.monotonic() >= self._deadline_s:
                return
            self._news.wait()
            self._closing.wait(COALESCE_S)
            self._news.clear()
            try:
                while self._ship():
                    backoff_s = FIRST_BACKOFF_S
            except StoreError as error:
                if backoff_s == FIRST_BACKOFF_S:
                    _log.warning("decisions_wait", problem=str(error), waiting=self.waiting)
                time.sleep(backoff_s * random.uniform(0.5, 1.0))
                backoff_s = min(2 * backoff_s, LAST_BACKOFF_S)
                self._news.set()

    def _ship(self) -> bool:
        """Ship one batch; False: nothing waits."""
        with self._lock:
            taken = [self._take() for _ in range(min(BATCH, len(self._waiting)))]
        if not taken:
            return False
        batch = [record for record in map(self._made, taken) if record is not None]
        replies: list[object] = []
        try:
            with reaching(self._server):
                replies = self._send(batch)
                for reply in replies:
                    if isinstance(reply, RedisError):
                        raise reply
        finally:
            # A full cache may take some records and refuse others: those alone are shipped again.
            pairs = zip_longest(batch, replies)
            refused = [record for record, reply in pairs if not isinstance(reply, bytes)]
            self._shipped += len(batch) - len(refused)
            self._put_back(refused)
        return True

    def _send(self, batch: Iterable[bytes]) -> list[object]:
        """What the cache answers to each record: the id of its entry, or an error."""
        with self._client.pipeline(transaction=False) as pipe:
            for record in batch:
                pipe.xadd(
                    keys.DECISIONS.name,
                    {"record": record},
                    maxlen=keys.DECISIONS_MAX,
                    approximate=True,
                )
            return pipe.execute(raise_on_error=False)

    def _made(self, record: bytes | Render) -> bytes | None:
        if isinstance(record, bytes):
            return record
        if self._raw < RAW // 2:
            self._closing.wait(YIELD_S)
        return self._rendered(record)

    def _rendered(self, render: Render) -> bytes | None:
        """The record; None: it cannot be made, which must cost no other one."""
        try:
            return render()
        except Exception:  # noqa: BLE001 - whatever it is, the others must be shipped
            _log.exception("decision_not_recorded")
            with self._lock:
                self._dropped += 1
            return None

    def _take(self) -> bytes | Render:
        record = self._waiting.popleft()
        self._raw -= callable(record)
        return record

    def _give_up(self) -> None:
        with self._lock:
            self._dropped += len(self._waiting)
            self._waiting.clear()
            self._raw = 0

    def _put_back(self, batch: list[bytes]) -> None:
        with self._lock:
            room = self._capacity - len(self._waiting)
            kept = batch[-room:] if room > 0 else []
            self._dropped += len(batch) - len(kept)
            self._waiting.extendleft(reversed(kept))
