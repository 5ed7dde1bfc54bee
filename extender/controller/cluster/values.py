"""What is kept of each pod. All are frozen; equal parts are one object (`Sharing`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from extender.controller.cluster.refusals import FailedPod
from scoring.gangs.values import GangPod, Owner
from scoring.model import Allocation, GangKey, Need, NodeName, PodUid
from scoring.planning.selection import Selection
from scoring.planning.values import Amounts, Claim, HostPort


class Load(NamedTuple):
    """What a bound pod holds of its node beside GPUs."""

    node: NodeName
    amounts: Amounts
    ports: frozenset[HostPort]
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPod:
    """An unbound pod that asks for GPUs, and that kube-scheduler found no node for."""

    namespace: str
    name: str
    uid: PodUid
    version: str
    """Its resourceVersion."""
    need: Need
    selection: Selection
    message: str
    """Of kube-scheduler."""
    gang: GangKey | None
    owner: Owner | None
    """Its controller."""
    priority: int
    created_s: float
    """Unix time."""
    woken_at: str
    """The annotation that wakes it, as it stands; empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedPod:
    """A pod that our gate holds, though it is in no gang that is planned."""

    namespace: str
    name: str
    uid: PodUid
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One pod. Of most only `load` is there."""

    uid: PodUid
    load: Load | None = None
    gpus: tuple[Allocation, ...] = ()
    """What it holds of them, where it is bound."""
    member: GangPod | None = None
    """Where it is in a gang of a convention that is planned."""
    claim: Claim | None = None
    """Where it is nominated and not bound."""
    refused: RefusedPod | None = None
    gated: GatedPod | None = None
    failed: FailedPod | None = None

    @property
    def version(self) -> str:
        """Its resourceVersion, where somebody may write to it; empty: nobody does."""
        parts = (self.member, self.refused, self.gated)
        return next((part.version for part in parts if part is not None), "")


class Seen(NamedTuple):
    """A pod as a reflector shows it."""

    kept: Kept
    version: str
