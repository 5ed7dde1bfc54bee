"""Everything that is written into the cache goes through here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar, cast

from redis.client import Pipeline

from extender.store import render
from extender.store.connect import StoreSettings, connect
from extender.store.documents import Document
from extender.store.errors import StoreError, reaching
from extender.store.keys import text_of
from extender.store.load import Pulse, pulse
from extender.store.schema import Kind
from extender.store.scripts import FIELDS, Mirrored, Scripts, Stored, Wish, stored, unfenced
from scoring.model import NodeName, Override, Rejection

T = TypeVar("T")

BATCH: Final = 500
"""Documents in one round trip: some milliseconds of the server's time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What became of one document of `Writer.put`."""

    document: Document
    stored: Stored

    @property
    def outcome(self) -> str:
        """One word or two for people: `stored`, `unchanged`, or `not newer` than the stored one."""
        if self.stored.changed:
            return "stored"
        return "not newer" if self.document.kind is Kind.NODE else "unchanged"


class Writer:
    """Writes documents and stamps. Safe to share between threads."""

    def __init__(self, settings: StoreSettings) -> None:
        self._server = settings.server
        self._client = connect(settings)
        self._scripts = Scripts(self._client)

    def put(
        self, documents: Collection[Document], *, sampled_s_ago: float | None = 0.0
    ) -> list[Put]:
        """Store documents, in their order, and tell what became of each.

        Each node that is stored is stamped as sampled `sampled_s_ago` seconds ago; None: no stamp.
        A rejection without a time, or with one that is yet to come, was now by the cache's clock.

        Raises:
            StoreError: the cache failed; some documents may be stored, each of them whole.
        """
        ago_ms = None if sampled_s_ago is None else round(sampled_s_ago * 1000)
        results = []
        for batch in _batches(self._dated(documents)):
            with reaching(self._server), self._client.pipeline(transaction=False) as pipe:
                for document in batch:
                    self._queue(document, ago_ms, pipe)
                replies = pipe.execute()
            results += [
                Put(document=document, stored=stored(reply))
                for document, reply in zip(batch, replies, strict=True)
            ]
        return results

    def delete(self, kind: Kind, key: str) -> bool:
        """Remove a document; False: there was none.

        Raises:
            StoreError: the cache failed.
        """
        with reaching(self._server), self._client.pipeline(transaction=False) as pipe:
            self._scripts.delete(kind, key, pipe=pipe)
            (reply,) = pipe.execute()
        return stored(reply).changed

    def mirror(self, wishes: Iterable[Wish], *, term: int) -> Mirrored:
        """Let documents of the controller's stand as a leader of `term` wishes, all at one moment.

        What stands so already is no change. An allocation that names its GPUs stays where the wish
        says the same without names.

        Raises:
            FencedError: the cache has seen a leader of a higher term; nothing is done.
            StoreError: the cache failed; all may be done, or nothing.
        """
        with reaching(self._server):
            return self._scripts.mirror(wishes, term=term)

    def reject(self, rejection: Rejection, *, term: int) -> Put:
        """Store a rejection that a leader of `term` learnt of; `at_s` is Unix time.

        One that is yet to come was now by the cache's clock.

        Raises:
            DocumentError: the rejection holds what no document may.
            FencedError: the cache has seen a leader of a higher term; nothing is done.
            StoreError: the cache failed; it may be stored.
        """
        (document,) = self._dated([render.document(rejection)])
        with reaching(self._server), self._client.pipeline(transaction=False) as pipe:
            self._reject(document, term, pipe)
            (reply,) = pipe.execute()
        return Put(document=document, stored=stored(unfenced(reply, term)))

    def lead(self, *, term: int) -> None:
        """Leave a sign that a leader of `term` is at work; readers find it in `Fleet.leader_s`.

        Raises:
            FencedError: the cache has seen a leader of a higher term; nothing is done.
            StoreError: the cache failed.
        """
        with reaching(self._server):
            self._scripts.lead(term)

    def ids(self, kind: Kind) -> frozenset[str]:
        """The ids of all documents of a kind.

        Raises:
            StoreError: the cache failed.
        """
        with reaching(self._server):
            found: Any = self._client.hkeys(FIELDS[kind].name)
        return frozenset(map(text_of, found))

    def pulse(self) -> Pulse:
        """Which data the cache holds, and its generation, without the stamps.

        Raises:
            StoreError: the cache failed.
        """
        with reaching(self._server):
            return pulse(self._client, with_seen=False)

    def stamp(self, nodes: Collection[NodeName], *, sampled_s_ago: float = 0.0) -> None:
        """Say that `nodes` yielded a full sample `sampled_s_ago` seconds ago.

        Raises:
            StoreError: the cache failed.
        """
        for batch in _batches(nodes):
            with reaching(self._server):
                self._scripts.stamp(batch, sampled_ms_ago=round(sampled_s_ago * 1000))

    def missing(self, documents: Sequence[Document]) -> list[Document]:
        """Those of `documents` that the cache does not hold.

        Raises:
            StoreError: the cache failed.
        """
        lost: list[Document] = []
        for batch in _batches(documents):
            with reaching(self._server), self._client.pipeline(transaction=False) as pipe:
                for document in batch:
                    pipe.hexists(FIELDS[document.kind].name, document.id)
                lost += [each for each, held in zip(batch, pipe.execute(), strict=True) if not held]
        return lost

    def next_epoch(self, node: NodeName) -> int:
        """The epoch of an agent that starts on `node` now.

        Raises:
            StoreError: the cache failed.
        """
        with reaching(self._server):
            return self._scripts.next_epoch(node)

    def ping(self) -> None:
        """Find out whether the cache answers.

        Raises:
            StoreError: it does not.
        """
        with reaching(self._server):
            if not self._client.ping():
                raise StoreError(f"the cache at {self._server} does not answer PING")

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    def _dated(self, documents: Collection[Document]) -> Collection[Document]:
        """The documents, with each rejection's time in the past."""
        if all(document.kind is not Kind.REJECTION for document in documents):
            return documents
        with reaching(self._server):
            seconds, micros = self._client.time()
        now_s = seconds + micros / 1e6
        dated, of_now = [], 0
        for each in documents:
            ahead = isinstance(each.value, Rejection) and each.value.at_s > now_s
            if each.dated and not ahead:
                dated.append(each)
            else:
                # Apart by a millisecond: several that are all "now" are several.
                dated.append(each.at(now_s - of_now / 1000))
                of_now += 1
        return dated

    def _queue(self, document: Document, ago_ms: int | None, pipe: Pipeline) -> None:
        match document.kind:
            case Kind.NODE:
                self._scripts.publish_node(
                    document.id,
                    document.encoded,
                    epoch=document.epoch,
                    seq=document.seq,
                    sampled_ms_ago=ago_ms,
                    pipe=pipe,
                )
            case Kind.OVERRIDE:
                self._scripts.put_override(
                    document.id, document.encoded, until_ms=_until_ms(document), pipe=pipe
                )
            case Kind.REJECTION:
                self._reject(document, None, pipe)
            case kind:
                self._scripts.put(kind, document.id, document.encoded, pipe=pipe)

    def _reject(self, document: Document, term: int | None, pipe: Pipeline) -> None:
        rejection = cast("Rejection", document.value)
        self._scripts.put_rejection(
            document.id,
            document.encoded,
            of=rejection,
            at_ms=round(rejection.at_s * 1000),
            term=term,
            pipe=pipe,
        )


def _until_ms(document: Document) -> int | None:
    value = document.value
    if not isinstance(value, Override) or value.until_s is None:
        return None
    return round(value.until_s * 1000)


def _batches(items: Collection[T]) -> Iterator[Sequence[T]]:
    left = iter(items)
    while batch := tuple(islice(left, BATCH)):
        yield batch
