"""What the reflectors' objects come to: an object in, its documents wanted.

Of an object only the ids of its documents are kept here, and nothing at all where it has none.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import structlog
from msgspec import Raw

from extender.controller import objects, projection
from extender.controller.objects import BoundPod, KubeNode
from extender.controller.skips import MALFORMED, Skips
from extender.controller.wanted import Wanted
from extender.kube.shapes import Header
from extender.store import render
from extender.store.errors import StoreError
from extender.store.schema import Kind
from extender.store.values import Value

O = TypeVar("O")  # noqa: E741 - an object of the API server

_log = structlog.get_logger("surefoot.controller")


@dataclass(frozen=True, slots=True)
class Told:
    """What the cache is to say of one object."""

    owner: str
    """How the ids of its documents begin: they belong to nobody else."""
    documents: tuple[tuple[str, bytes], ...]
    """By id; empty also where the object cannot be told, which keeps what others say of it."""


class Mirror(ABC, Generic[O]):
    """Turns the objects of one reflector into wanted documents of one kind."""

    kind: ClassVar[Kind]

    def __init__(self, wanted: Wanted, ids: Callable[[Kind], frozenset[str]]) -> None:
        """`ids`: those that the cache has; it may raise `StoreError`."""
        self._skips = Skips(self.kind.value)
        self._wanted = wanted
        self._ids = ids
        self._held: frozenset[str] | None = None
        self._unswept = threading.Event()
        self._of: dict[str, tuple[str, ...]] = {}
        """The ids of each object that has documents, by its key."""

    @property
    def skipped(self) -> int:
        """Objects that could not be told."""
        return self._skips.count

    @abstractmethod
    def decode(self, raw: Raw) -> O:
        """The fields of an object that count here. Raises one of `MALFORMED`."""

    @abstractmethod
    def values(self, found: O) -> tuple[Value, ...] | None:
        """What an object says; None: it may say nothing. Raises one of `MALFORMED`."""

    @abstractmethod
    def owner_of(self, header: Header) -> str:
        """The owner that this object is; empty: it does not say."""

    @abstractmethod
    def owner(self, id_: str) -> str:
        """Whose document this is."""

    def read(self, header: Header, raw: Raw) -> Told | None:
        """What the cache is to say of the object; None: nothing, and nobody else is to."""
        try:
            found = self.decode(raw)
        except MALFORMED as error:
            self._skips.skip(header.key, str(error))
            return Told(self.owner_of(header), ())
        return self.tell(header, found)

    def tell(self, header: Header, found: O) -> Told | None:
        """The same of an object that is decoded already."""
        owner = self.owner_of(header)
        try:
            values = self.values(found)
            if values is None:
                return None
            papers = [render.document(value) for value in values]
        except MALFORMED as error:
            self._skips.skip(header.key, str(error))
            return Told(owner, ())
        return Told(owner, tuple((paper.id, paper.encoded) for paper in papers))

    def listing(self) -> None:
        """Note what stands in the cache before the list begins: whoever owns it is in the list."""
        self._unswept.clear()  # what the cache loses from here on is for the next list
        try:
            self._held = self._ids(self.kind)
        except StoreError as error:
            _log.warning("sweep_put_off", kind=self.kind.value, problem=str(error))
            self._held = None

    def listed(self, found: dict[str, Told], *, whole: bool) -> None:
        """Want what was found, and what nobody of those found owns gone.

        Of a list that is not whole nothing is taken for gone: it may be what is missing.
        """
        held, self._held = self._held, None
        if not whole:
            for key, told in found.items():
                self.changed(key, told)
            self._wanted.known(self.kind)
            return
        if held is None:
            self._unswept.set()
        owners = {told.owner for told in found.values()}
        known = "" not in owners
        orphans = [id_ for id_ in held or () if known and self.owner(id_) not in owners]
        self._of = {
            key: tuple(id_ for id_, _ in told.documents)
            for key, told in found.items()
            if told.documents
        }
        documents = {id_: raw for told in found.values() for id_, raw in told.documents}
        self._wanted.replace(self.kind, documents, orphans)

    def changed(self, key: str, now: Told | None) -> None:
        """Want what one object comes to now, and no longer what it came to before."""
        documents = dict(now.documents) if now else {}
        before = self._of.pop(key, ())
        if documents:
            self._of[key] = tuple(documents)
        self._wanted.change(self.kind, before, documents)

    def take_unswept(self) -> bool:
        """Whether a sweep is owed: the cache was away in the last list, or lost removals since.

        Told once; called from another thread, as `unsweep` is.
        """
        if not self._unswept.is_set():
            return False
        # What another thread sets in between is no loss: the list that follows sweeps for both.
        self._unswept.clear()
        return True

    def unsweep(self) -> None:
        """The cache may have lost removals: only a sweep repeats them."""
        self._unswept.set()


class PodMirror(Mirror[BoundPod]):
    """Pods as Allocations."""

    kind = Kind.ALLOCATION

    def decode(self, raw: Raw) -> BoundPod:
        """What the pod asks for, and where it is."""
        return objects.POD.decode(raw)

    def values(self, found: BoundPod) -> tuple[Value, ...] | None:
        """What GPUs the pod holds; None unless it is bound and not finished."""
        return projection.allocations(found) if projection.holds(found) else None

    def owner_of(self, header: Header) -> str:
        """Its uid: names are used again."""
        return header.uid or ""

    def owner(self, id_: str) -> str:
        """The uid in front of the resource."""
        return id_.partition("/")[0]


class NodeMirror(Mirror[KubeNode]):
    """Nodes as ClusterNodes."""

    kind = Kind.CLUSTER_NODE

    def decode(self, raw: Raw) -> KubeNode:
        """What the node is and has."""
        return objects.NODE.decode(raw)

    def values(self, found: KubeNode) -> tuple[Value, ...] | None:
        """Labels, cordon, taints and GPUs of the node."""
        return (projection.cluster_node(found),)

    def owner_of(self, header: Header) -> str:
        """Its name."""
        return header.name

    def owner(self, id_: str) -> str:
        """The name again."""
        return id_
