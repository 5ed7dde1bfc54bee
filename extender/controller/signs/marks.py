"""What the signs see: what nodes carry of Surefoot's, beside what the cluster's view keeps of pods."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from extender.controller.cluster.view import ClusterView
from extender.controller.objects import Taint as TaintShape
from extender.controller.signs.ports import NodeMark, RefusedPod
from extender.kube.reflector import Handler
from extender.kube.shapes import Header
from scoring.conditions import TYPE, NodeCondition, Status
from scoring.learning import FailedPod
from scoring.model import NodeName, Taint

T = TypeVar("T")


class _Object(Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object with Kubernetes' spelling of keys."""


class _Condition(_Object, frozen=True):
    """One condition of a node."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class _Status(_Object, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class _Spec(_Object, frozen=True):
    taints: tuple[TaintShape, ...] | None = None


class _Node(_Object, frozen=True):
    spec: _Spec | None = None
    status: _Status | None = None


_NODE: Final = msgspec.json.Decoder(_Node)
_STATUSES: Final = frozenset(status.value for status in Status)


def mark_of(header: Header, raw: Raw) -> NodeMark:
    """What a node carries.

    Raises:
        msgspec.DecodeError: it is no node.
    """
    node = _NODE.decode(raw)
    conditions = node.status.conditions if node.status else None
    ours = next((each for each in conditions or () if each.type == TYPE), None)
    return NodeMark(
        uid=header.uid or "",
        version=header.resource_version,
        condition=NodeCondition(
            status=Status(ours.status),
            reason=ours.reason or "",
            message=ours.message or "",
        )
        if ours and ours.status in _STATUSES
        else None,
        taints=tuple(
            Taint(key=each.key, effect=each.effect, value=each.value or "")
            for each in (node.spec.taints if node.spec else None) or ()
        ),
    )


@dataclass(frozen=True, slots=True)
class Marked(Generic[T]):
    """What another handler keeps of a node, and its mark; either may be missing."""

    kept: T | None
    mark: NodeMark | None


class MarkedNodes(Generic[T]):
    """Stands before another handler of nodes, and keeps their marks. A reflector's `Handler`."""

    def __init__(self, behind: Handler[T]) -> None:
        self._behind = behind
        self._lock = threading.Lock()
        self._marks: dict[NodeName, NodeMark] = {}
        """Never changed: another takes its place."""

    def marks(self) -> Mapping[NodeName, NodeMark]:
        """Every node of the cluster; the same object while nothing changed."""
        return self._marks

    def read(self, header: Header, raw: Raw) -> Marked[T] | None:
        """What is kept of a node. One without a readable mark keeps its place behind."""
        kept = self._behind.read(header, raw)
        try:
            mark = mark_of(header, raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            mark = None  # whoever is behind has said so
        return None if kept is None and mark is None else Marked(kept, mark)

    def listing(self) -> None:
        """A list is about to begin."""
        self._behind.listing()

    def listed(self, found: dict[str, Marked[T]], *, whole: bool) -> None:
        """All that exists, by name."""
        kept = {key: each.kept for key, each in found.items() if each.kept is not None}
        self._behind.listed(kept, whole=whole)
        marks = {NodeName(key): each.mark for key, each in found.items() if each.mark is not None}
        with self._lock:
            self._marks = marks if whole else {**self._marks, **marks}

    def changed(self, key: str, now: Marked[T] | None) -> None:
        """One node came, changed, or went."""
        self._behind.changed(key, now.kept if now else None)
        mark, name = now.mark if now else None, NodeName(key)
        with self._lock:
            marks = dict(self._marks)
            if mark is not None:
                marks[name] = mark
            else:
                marks.pop(name, None)
            self._marks = marks


class Sight:
    """The cluster's view and the nodes' marks as one. The signs' `View`."""

    def __init__(self, cluster: ClusterView, nodes: MarkedNodes[T]) -> None:
        self._cluster = cluster
        self.marks = nodes.marks

    def refused(self) -> Sequence[RefusedPod]:
        """The pods that kube-scheduler found no node for."""
        return self._cluster.refused()

    def take_failed(self) -> Sequence[FailedPod]:
        """Pods that nodes failed since the last call."""
        return self._cluster.take_failed()
