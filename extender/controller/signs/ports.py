"""What the signs are given: what is seen of the cluster, and who writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from extender.kube.writing import PatchKind
from scoring.conditions import NodeCondition
from scoring.learning import FailedPod
from scoring.model import Breaker, NodeName, Rejection, Taint
from scoring.refusals import Owned
from scoring.wakes import Waiting


class KubeWriter(Protocol):
    """The API server, behind the leader's fence. Each method may raise `KubeError`."""

    def patch(self, path: str, body: bytes, *, kind: PatchKind = PatchKind.JSON) -> bytes:
        """Change an object; it, as it is then."""

    def create(self, path: str, body: bytes) -> bytes:
        """Create an object; it, as it is then."""


class CacheWriter(Protocol):
    """The cache, behind the leader's fence. May raise `StoreError`."""

    def reject(self, rejection: Rejection, *, term: int) -> object:
        """Keep a rejection; its time is Unix time."""


class BreakerSink(Protocol):
    """Whoever lets breakers stand in the cache."""

    def stand(self, breakers: Mapping[str, Breaker], term: int) -> None:
        """Want these words on pools, and no others, as the leader of `term`; ends are Unix time."""


class RefusedPod(Waiting, Owned, Protocol):
    """A pod that waits, and where it is found."""

    @property
    def version(self) -> str:
        """Its resourceVersion."""

    @property
    def woken_at(self) -> str:
        """The annotation that wakes it, as it stands; empty: there is none."""


class NodeMark(Protocol):
    """What a node carries of Surefoot's, and what a write tests."""

    @property
    def uid(self) -> str:
        """Its uid."""

    @property
    def version(self) -> str:
        """Its resourceVersion."""

    @property
    def condition(self) -> NodeCondition | None:
        """Its condition `GpuHealthDegraded`."""

    @property
    def taints(self) -> tuple[Taint, ...]:
        """All of its taints, in the order of the object."""


class View(Protocol):
    """The cluster as the controller sees it. Safe for many threads."""

    def refused(self) -> Sequence[RefusedPod]:
        """The pods that ask for GPUs and have `PodScheduled` False, not for gates."""

    def take_failed(self) -> Sequence[FailedPod]:
        """Pods that nodes failed since the last call, each once."""

    def marks(self) -> Mapping[NodeName, NodeMark]:
        """Every node of the cluster. Asked for often: the same object while nothing changed."""
