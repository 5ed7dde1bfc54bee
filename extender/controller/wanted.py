"""How the controller's documents are to stand in the cache, and which may not stand so yet.

A state, not a log: however long the cache is away, at most one wish waits for each document.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from typing import Final

from extender.store.schema import Kind
from extender.store.scripts import Wish

KINDS: Final = (Kind.ALLOCATION, Kind.CLUSTER_NODE)


class Wanted:
    """Safe for many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._documents: dict[Kind, dict[str, bytes]] = {kind: {} for kind in KINDS}
        self._due_s: dict[tuple[Kind, str], float] = {}
        """When each document that is to be written became so."""
        self._taken: dict[tuple[Kind, str], float] = {}
        """The same of those that are being written."""
        self._first_s: dict[Kind, float] = {}
        """When all documents of a kind were known first."""
        self._came = threading.Event()

    def replace(self, kind: Kind, documents: Mapping[str, bytes], orphans: Iterable[str]) -> None:
        """Want these documents of a kind and no others; `orphans`: ids of others that stand."""
        with self._lock:
            before = self._documents[kind]
            self._documents[kind] = dict(documents)
            ids = before.keys() | documents.keys()
            self._due(kind, (id_ for id_ in ids if before.get(id_) != documents.get(id_)))
            self._due(kind, (id_ for id_ in orphans if id_ not in documents))
            self._first_s.setdefault(kind, self._clock())

    def known(self, kind: Kind) -> None:
        """All that can be known of a kind is, though not by `replace`."""
        with self._lock:
            self._first_s.setdefault(kind, self._clock())

    def change(self, kind: Kind, gone: Iterable[str], documents: Mapping[str, bytes]) -> None:
        """Want `documents`, and no longer those of the ids `gone` that are not among them."""
        with self._lock:
            held = self._documents[kind]
            for id_ in gone:
                if id_ not in documents and held.pop(id_, None) is not None:
                    self._due(kind, (id_,))
            for id_, document in documents.items():
                if held.get(id_) != document:
                    held[id_] = document
                    self._due(kind, (id_,))

    def doubt(self, kind: Kind) -> None:
        """Take nothing of a kind for written: the cache may have lost it."""
        with self._lock:
            self._due(kind, self._documents[kind])

    def take(self, most: int) -> tuple[Wish, ...]:
        """Up to `most` wishes, oldest first. Say `done` or `give_back` before taking more."""
        with self._lock:
            self._taken = {key: self._due_s.pop(key) for key in list(islice(self._due_s, most))}
            if not self._due_s:
                self._came.clear()
            return tuple(
                Wish(kind=kind, id=id_, document=self._documents[kind].get(id_))
                for kind, id_ in self._taken
            )

    def done(self) -> None:
        """What was taken is written."""
        with self._lock:
            self._taken = {}

    def give_back(self) -> None:
        """What was taken is not written. What is wanted of it is looked up again."""
        with self._lock:
            self._due_s = {**self._due_s, **self._taken}
            self._taken = {}
            if self._due_s:
                self._came.set()

    def wait(self, seconds: float) -> bool:
        """Wait for something to write; whether there is."""
        return self._came.wait(seconds)

    def pending(self) -> int:
        """How many documents are to be written, or are being written."""
        return len(self._due_s) + len(self._taken)

    def settled(self) -> bool:
        """Whether the first state of every kind was known, and written."""
        with self._lock:
            known_s = max(self._first_s.values()) if len(self._first_s) == len(KINDS) else math.inf
            return self._oldest_s() > known_s

    def lag_s(self) -> float:
        """How long the oldest of them waits; 0: there is none."""
        with self._lock:
            return max(0.0, self._clock() - self._oldest_s())

    def count(self, kind: Kind) -> int:
        """How many documents of a kind are wanted."""
        return len(self._documents[kind])

    def _oldest_s(self) -> float:
        """Since when the oldest wish waits; infinity: there is none."""
        return min(chain(self._due_s.values(), self._taken.values()), default=math.inf)

    def _due(self, kind: Kind, ids: Iterable[str]) -> None:
        now_s = self._clock()
        for id_ in ids:
            self._due_s.setdefault((kind, id_), now_s)
        if self._due_s:
            self._came.set()
