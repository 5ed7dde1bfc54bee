"""Pods of gangs, the objects that say how large a gang is, and the gangs that they make."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.gangs.rules import GATE, Hold, OnShortfall
from scoring.model import Convention, GangKey, GangRef
from scoring.planning.values import NO_TOPOLOGY, Member, PendingGang, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The controller of a pod."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPod:
    """One pod of a gang, as the API server has it."""

    namespace: str
    version: str
    """Its resourceVersion, which a write tests."""
    gang: GangRef
    member: Member
    """What the planner needs of it; its uid and name."""
    priority: int = 0
    created_s: float
    """Unix time."""
    owner: Owner | None = None
    topology: Topology = NO_TOPOLOGY
    """What the pod's own annotations ask."""
    on_shortfall: OnShortfall | None = None
    """None: the site's rule."""
    gates: frozenset[str] = frozenset()
    finished: bool = False
    """Succeeded or failed."""
    succeeded: bool = False
    leaving: bool = False
    """Being deleted."""
    refused: bool = False
    """Whether kube-scheduler found no node for it (`PodScheduled` False, for `Unschedulable`). After an
    error it tries again by itself, and this is not set."""
    untold: bool = False
    """Whether it was refused by a replica of Surefoot that did not know its plan."""
    woken_s: float | None = None
    """When it was last woken (annotation `surefoot.dev/wake`), Unix time; None: never."""

    @property
    def gated(self) -> bool:
        """Whether our gate holds it."""
        return GATE in self.gates

    @property
    def counts(self) -> bool:
        """Whether it is a member at all: one that another's gate holds neither counts nor reserves
        (kueue #10076, scheduler-plugins #952).
        """
        return not (self.finished or self.leaving or self.gates - {GATE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What an object says of a gang: a PodGroup, a Workload, the Job or JobSet that owns it."""

    convention: Convention
    key: GangKey
    uid: str
    min: int | None = None
    size: int | None = None
    topology: Topology = NO_TOPOLOGY
    gang: bool = True
    """False: it says that its pods are no gang (`basic`, a minimum of 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """One gang, with all of its pods."""

    key: GangKey
    """Unique among all gangs: where two conventions use one name, the later one in the detector's
    order, or the one without members, is `namespace/name~convention`."""
    uid: str
    convention: Convention
    hold: Hold
    """OFF: its object says that it is no gang, so its pods are judged one by one."""
    on_shortfall: OnShortfall
    min: int | None
    """Members that it still needs to run: those that succeeded are needed no more."""
    size: int | None
    pods: tuple[GangPod, ...]
    """All of them, in the order of uid; also those that do not count."""
    pending: PendingGang | None
    """What is to be planned; None: every member has a node, or none counts."""

    @property
    def members(self) -> tuple[GangPod, ...]:
        """Those that count."""
        return tuple(pod for pod in self.pods if pod.counts)
