"""What reflectors hand out, for the view; pods and nodes for their mirror too, decoded once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from msgspec import Raw

from extender.controller import objects
from extender.controller.cluster import nodes, shapes
from extender.controller.cluster.groups import Source
from extender.controller.cluster.nodes import SeenNode
from extender.controller.cluster.roster import Said
from extender.controller.cluster.values import Seen
from extender.controller.cluster.view import ClusterView
from extender.controller.mirrors import Mirror, NodeMirror, PodMirror, Told
from extender.controller.objects import KubeNode
from extender.controller.skips import MALFORMED
from extender.kube.shapes import Header
from scoring.model import NodeName

O = TypeVar("O")  # noqa: E741 - an object of the API server
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Pair(Generic[K]):
    """What the cache is to say of an object, and what the view keeps of it."""

    told: Told | None
    kept: K | None


class _Beside(ABC, Generic[O, K]):
    """A mirror and the view on one reflector. What one cannot read, the other may."""

    def __init__(self, mirror: Mirror[Any], view: ClusterView) -> None:
        self.mirror = mirror
        self._view = view

    @abstractmethod
    def decode(self, raw: Raw) -> O:
        """All fields that either of them reads. Raises one of `MALFORMED`."""

    @abstractmethod
    def keep(self, found: O) -> K | None:
        """What the view keeps. Raises one of `MALFORMED`."""

    @abstractmethod
    def put(self, key: str, now: K | None) -> None:
        """Give the view one object."""

    @abstractmethod
    def put_all(self, found: Mapping[str, K], *, whole: bool) -> None:
        """Give the view a list."""

    def read(self, header: Header, raw: Raw) -> Pair[K] | None:
        """What is kept of an object; None: nothing."""
        try:
            found = self.decode(raw)
        except MALFORMED as error:
            # The mirror reads less of it.
            self._view.skips.skip(header.key, str(error))
            told, kept = self.mirror.read(header, raw), None
        else:
            told, kept = self.mirror.tell(header, found), self._kept(header, found)
        return None if told is None and kept is None else Pair(told, kept)

    def listing(self) -> None:
        """A list is about to begin."""
        self.mirror.listing()

    def listed(self, found: dict[str, Pair[K]], *, whole: bool) -> None:
        """All that exists, by key."""
        told = {key: pair.told for key, pair in found.items() if pair.told is not None}
        self.mirror.listed(told, whole=whole)
        kept = {key: pair.kept for key, pair in found.items() if pair.kept is not None}
        self.put_all(kept, whole=whole)

    def changed(self, key: str, now: Pair[K] | None) -> None:
        """One object came, changed, or went."""
        self.mirror.changed(key, now.told if now else None)
        self.put(key, now.kept if now else None)

    def _kept(self, header: Header, found: O) -> K | None:
        try:
            return self.keep(found)
        except MALFORMED as error:
            self._view.skips.skip(header.key, str(error))
            return None


class PodHandler(_Beside[shapes.ClusterPod, Seen]):
    """Pods."""

    def __init__(self, mirror: PodMirror, view: ClusterView) -> None:
        super().__init__(mirror, view)

    def read(self, header: Header, raw: Raw) -> Pair[Seen] | None:
        """What is kept of a pod. One that the answer to a write showed is not read twice; while it is
        bound nowhere, the cache has nothing of it.
        """
        known = self._view.folded(header)
        return super().read(header, raw) if known is None else Pair(None, known)

    def decode(self, raw: Raw) -> shapes.ClusterPod:
        """All that counts of a pod."""
        return shapes.POD.decode(raw)

    def keep(self, found: shapes.ClusterPod) -> Seen | None:
        """What the leader needs of it."""
        kept, metadata = self._view.reader.read(found), found.metadata
        version = metadata.resource_version if metadata else None
        return Seen(kept, version or "") if kept else None

    def put(self, key: str, now: Seen | None) -> None:
        """One pod."""
        self._view.put_pod(key, now)

    def put_all(self, found: Mapping[str, Seen], *, whole: bool) -> None:
        """All pods."""
        self._view.put_pods(found, whole=whole)


class NodeHandler(_Beside[KubeNode, SeenNode]):
    """Nodes."""

    def __init__(self, mirror: NodeMirror, view: ClusterView) -> None:
        super().__init__(mirror, view)

    def decode(self, raw: Raw) -> KubeNode:
        """All that counts of a node."""
        return objects.NODE.decode(raw)

    def keep(self, found: KubeNode) -> SeenNode | None:
        """What it has beside GPUs, and what it carries of Surefoot's."""
        return nodes.seen(found)

    def put(self, key: str, now: SeenNode | None) -> None:
        """One node."""
        self._view.put_node(NodeName(key), now)

    def put_all(self, found: Mapping[str, SeenNode], *, whole: bool) -> None:
        """All nodes."""
        self._view.put_nodes({NodeName(key): each for key, each in found.items()}, whole=whole)


class GroupHandler:
    """Objects of one row of `groups.SOURCES`."""

    def __init__(self, source: Source, view: ClusterView) -> None:
        self._source = source
        self._view = view

    def read(self, header: Header, raw: Raw) -> tuple[Said, ...] | None:
        """What the object says of gangs."""
        try:
            return self._source.read(raw) or None
        except MALFORMED as error:
            self._view.skips.skip(f"{self._source.name} {header.key}", str(error))
            return None

    def listing(self) -> None:
        """Nothing is to be done before a list."""

    def listed(self, found: dict[str, tuple[Said, ...]], *, whole: bool) -> None:
        """All that exists, by key."""
        self._view.put_all_said(self._source.name, found, whole=whole)

    def changed(self, key: str, now: tuple[Said, ...] | None) -> None:
        """One object came, changed, or went."""
        self._view.put_said(self._source.name, key, now or ())
