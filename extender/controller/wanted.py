"""How the controller's documents are to stand in the cache, and which may not stand so yet.

A state, not a log: however long the cache is away, at most one wish waits for each document.

Documents are of two sorts. Those of `REFLECTED` kinds say what the API server says, and are kept up
by a controller that stands by, too. Those of `RULED` kinds are the word of the leader: each term
begins with none, and what was said in an earlier one is void.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from extender.store.schema import Kind
from extender.store.scripts import Wish

REFLECTED: Final = (Kind.ALLOCATION, Kind.CLUSTER_NODE)
RULED: Final = (Kind.GANG, Kind.PLAN, Kind.BREAKER)
KINDS: Final = (*RULED, *REFLECTED)
"""In the order in which they are written: what the leader says is little, and waited for."""
_NEVER: Final = -1
"""Below every term."""


class Wanted:
    """Safe for many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._documents: dict[Kind, dict[str, bytes]] = {kind: {} for kind in KINDS}
        self._due_s: dict[Kind, dict[str, float]] = {kind: {} for kind in KINDS}
        """When each document that is to be written became so."""
        self._taken_s: dict[Kind, dict[str, float]] = {kind: {} for kind in KINDS}
        """The same of those that are being written."""
        self._first_s: dict[Kind, float] = {}
        """When all documents of a reflected kind were known first."""
        self._term = _NEVER
        """The last one that this controller began to lead in."""
        self._ruled: dict[Kind, int] = dict.fromkeys(RULED, _NEVER)
        """The term in which the documents of a ruled kind were said."""
        self._came = threading.Event()

    def replace(self, kind: Kind, documents: Mapping[str, bytes], orphans: Iterable[str]) -> None:
        """Want these documents of a reflected kind and no others; `orphans`: ids of others that stand."""
        with self._lock:
            self._replace(kind, documents)
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

    def rule(self, kind: Kind, documents: Mapping[str, bytes], term: int) -> bool:
        """Want these documents of a ruled kind and no others, as the leader of `term` says: its whole
        word each time. False: a later term has begun, and nothing was taken.
        """
        with self._lock:
            if term < max(self._term, self._ruled[kind]):
                return False
            if term > self._ruled[kind]:
                self._forget(kind)
                self._ruled[kind] = term
            self._replace(kind, documents)
            return True

    def lead(self, term: int) -> None:
        """A term begins: what was ruled in earlier ones is void, and what waited for a leader waits
        from now on.
        """
        with self._lock:
            self._term = max(self._term, term)
            for kind in RULED:
                if self._ruled[kind] < term:
                    self._forget(kind)
            now_s = self._clock()
            self._due_s = {kind: dict.fromkeys(due_s, now_s) for kind, due_s in self._due_s.items()}

    def ruled(self, kind: Kind) -> bool:
        """Whether the leader of this term has said its word of a kind."""
        return self._ruled[kind] >= self._term

    def waits(self, kind: Kind, id_: str) -> bool:
        """Whether a document is still to be written, or being written."""
        return id_ in self._due_s[kind] or id_ in self._taken_s[kind]

    def doubt(self, kind: Kind) -> None:
        """Take nothing of a kind for written: the cache may have lost it."""
        with self._lock:
            self._due(kind, self._documents[kind])

    def sweep(self, kind: Kind, held: Iterable[str]) -> None:
        """Let go what stands and is not wanted; `held`: the ids that stand."""
        with self._lock:
            documents = self._documents[kind]
            self._due(kind, (id_ for id_ in held if id_ not in documents))

    def strays(self, kind: Kind, held: Iterable[str]) -> bool:
        """Whether something stands of which nothing is known: neither wanted, nor to go. Before the
        kind is known at all that says nothing: no.
        """
        with self._lock:
            if kind not in self._first_s:
                return False
            documents, due_s = self._documents[kind], self._due_s[kind]
            return any(id_ not in documents and id_ not in due_s for id_ in held)

    def prune(self, kind: Kind, held: Collection[str]) -> None:
        """Forget what was to go and does not stand any more; `held`: the ids that stand."""
        with self._lock:
            documents = self._documents[kind]
            self._due_s[kind] = {
                id_: since_s
                for id_, since_s in self._due_s[kind].items()
                if id_ in documents or id_ in held
            }
            self._tell()

    def take(self, most: int, most_bytes: float = math.inf) -> tuple[Wish, ...]:
        """Up to `most` wishes, of each kind the oldest first, and none after the one that reaches
        `most_bytes`. Say `done` or `give_back` before taking more.
        """
        with self._lock:
            wishes: list[Wish] = []
            size = 0
            for wish in self._wishes():
                if len(wishes) >= most or size >= most_bytes:
                    break
                wishes.append(wish)
                size += len(wish.document or b"")
            for wish in wishes:
                self._taken_s[wish.kind][wish.id] = self._due_s[wish.kind].pop(wish.id)
            self._tell()
            return tuple(wishes)

    def done(self) -> None:
        """What was taken is written."""
        with self._lock:
            self._taken_s = {kind: {} for kind in KINDS}

    def give_back(self) -> None:
        """What was taken is not written. What is wanted of it is looked up again."""
        with self._lock:
            for kind, taken_s in self._taken_s.items():
                self._due_s[kind] = {**self._due_s[kind], **taken_s}
                taken_s.clear()
            self._tell()

    def wait(self, seconds: float) -> bool:
        """Wait for something to write; whether there is."""
        return self._came.wait(seconds)

    def pending(self) -> int:
        """How many documents are to be written, or are being written."""
        waiting_s = (*self._due_s.values(), *self._taken_s.values())
        return sum(map(len, waiting_s))

    def complete(self) -> bool:
        """Whether the first state of every reflected kind is known, written or not."""
        with self._lock:
            return len(self._first_s) == len(REFLECTED)

    def settled(self) -> bool:
        """Whether the first state of every reflected kind was known, and written."""
        with self._lock:
            if len(self._first_s) < len(REFLECTED):
                return False
            return self._oldest_s(REFLECTED) > max(self._first_s.values())

    def lag_s(self) -> float:
        """How long the oldest of them waits; 0: there is none."""
        with self._lock:
            return max(0.0, self._clock() - self._oldest_s(KINDS))

    def count(self, kind: Kind) -> int:
        """How many documents of a kind are wanted."""
        return len(self._documents[kind])

    def _oldest_s(self, kinds: Collection[Kind]) -> float:
        """Since when the oldest wish of these kinds waits; infinity: there is none."""
        waiting_s = ((*self._due_s[kind].values(), *self._taken_s[kind].values()) for kind in kinds)
        return min(chain.from_iterable(waiting_s), default=math.inf)

    def _wishes(self) -> Iterator[Wish]:
        for kind, due_s in self._due_s.items():
            documents = self._documents[kind]
            for id_ in due_s:
                yield Wish(kind=kind, id=id_, document=documents.get(id_))

    def _replace(self, kind: Kind, documents: Mapping[str, bytes]) -> None:
        before = self._documents[kind]
        self._documents[kind] = dict(documents)
        ids = before.keys() | documents.keys()
        self._due(kind, (id_ for id_ in ids if before.get(id_) != documents.get(id_)))

    def _forget(self, kind: Kind) -> None:
        """Know nothing of a kind, and want nothing of it."""
        self._documents[kind], self._due_s[kind] = {}, {}
        self._tell()

    def _due(self, kind: Kind, ids: Iterable[str]) -> None:
        now_s, due_s = self._clock(), self._due_s[kind]
        for id_ in ids:
            due_s.setdefault(id_, now_s)
        self._tell()

    def _tell(self) -> None:
        """Let `wait` know whether something is to be written."""
        if any(self._due_s.values()):
            self._came.set()
        else:
            self._came.clear()
