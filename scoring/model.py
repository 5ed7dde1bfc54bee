"""The values that every part of Surefoot speaks about: GPUs, nodes, allocations, asks, the fleet.

All are frozen. Times are seconds on one time line that the caller chooses (the reader's own, see
`Fleet`), unless a field says otherwise. A missing measurement is `None`, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from scoring.gangs.record import GangPlan
    from scoring.links import Links

NodeName = NewType("NodeName", str)
GpuUuid = NewType("GpuUuid", str)
PodUid = NewType("PodUid", str)
GangKey = NewType("GangKey", str)
"""`namespace/name` of a gang; two conventions never share one (the convention is part of Gang)."""


class Health(IntEnum):
    """The state of a GPU or a node; the number is its severity, so `max` picks the worst."""

    HEALTHY = 0
    NEW = 1
    SUSPECT = 2
    PROBATION = 3
    UNMONITORED = 4
    DEGRADED = 5
    UNKNOWN = 6
    RESET_REQUIRED = 7
    REBOOT_REQUIRED = 8
    FAILED = 9

    @property
    def bit(self) -> int:
        """The bit of this state in a set of states kept as an integer."""
        return 1 << self.value


def worst(states: Iterable[Health]) -> Health:
    """The most severe of `states`; HEALTHY when there is none."""
    return max(states, default=Health.HEALTHY)


class Scope(StrEnum):
    """How far a cause reaches. A parent's fault covers its children, never the reverse."""

    COMPUTE_INSTANCE = "ci"
    GPU_INSTANCE = "gi"
    GPU = "gpu"
    LINK = "link"
    """The GPU's peer-to-peer links: of no concern to a pod that uses one GPU alone."""
    NODE = "node"
    FABRIC = "fabric"
    """The NVLink fabric of the node: of no concern to a pod that uses one GPU alone."""

    @property
    def needs_peers(self) -> bool:
        """Whether a cause of this scope hurts only pods that talk between GPUs."""
        return self in (Scope.LINK, Scope.FABRIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One open reason why a GPU or node is not HEALTHY. Only its own clear rule closes it."""

    id: str
    """A dotted name: `xid.79`, `sxid.20034`, `remap.pending`, `nvlink.down`, ..."""
    state: Health
    scope: Scope = Scope.GPU
    first_s: float | None = None
    """When the cause was first seen; Unix time, kept through restarts of whoever reports it."""
    last_s: float | None = None
    count: int = 1
    evidence: str = ""
    """What was measured, for people: a value with its unit, or the log line."""


class AllocationMode(StrEnum):
    """Who picks the GPUs inside a node, hence which sets a pod may get (docs/architecture.md)."""

    NVIDIA = "nvidia"
    """NVIDIA's stock device plugin with its best-effort policy."""
    UNKNOWN = "unknown"
    """Nothing is known: any subset of the free GPUs may come."""
    PLANNED = "planned"
    """A cooperating plugin honours Surefoot's choice."""
    DRA = "dra"
    """The scheduler's DynamicResources plugin chooses among untainted devices."""


class TopologyPolicy(StrEnum):
    """Kubelet's `topologyManagerPolicy`: whether it offers the plugin all free GPUs of a node."""

    NONE = "none"
    """The default: all of them."""
    BEST_EFFORT = "best-effort"
    """Those of the fewest NUMA nodes that have enough, here and below."""
    RESTRICTED = "restricted"
    SINGLE_NUMA_NODE = "single-numa-node"


class SharePolicy(StrEnum):
    """Which GPU the stock plugin takes the next share from (`sharedDevicesAllocationPolicy`)."""

    DISTRIBUTED = "distributed"
    """The default: from the GPU with the fewest shares in use."""
    PACKED = "packed"
    """From the GPU with the most shares in use."""
    SPREAD = "spread"
    """From the GPU that this pod has drawn from least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """GPUs handed out in shares: time-slicing or MPS."""

    replicas: int
    """Shares of each GPU."""
    policy: SharePolicy = SharePolicy.DISTRIBUTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU of a node with the causes that are open on it."""

    uuid: GpuUuid
    index: int
    pci: str | None = None
    model: str | None = None
    numa: int | None = None
    mig: bool = False
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What the driver says of the NVLink fabric (NVML GpuFabricInfo). None: not reported."""

    state: str | None = None
    """`completed`, `in_progress`, `not_started`, `not_supported`."""
    status: str | None = None
    """`success`, or NVML's error."""
    clique_id: int | None = None
    cluster_uuid: str | None = None
    health_mask: int | None = None
    """NVML's fields of two bits, 1 = fault, 2 = no fault, 0 = not supported."""
    health_summary: str | None = None
    """`healthy`, `unhealthy`, `limited`."""


EMPTY: Mapping[str, str] = MappingProxyType({})
NO_UNITS: Mapping[str, int] = MappingProxyType({})
NOT_REJECTED: Mapping[NodeName, tuple[Rejection, ...]] = MappingProxyType({})
NO_CLUSTER: Mapping[NodeName, ClusterNode] = MappingProxyType({})
NO_PLANS: Mapping[GangKey, GangPlan] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One GPU node as its agent described it. The order of documents is (epoch, seq)."""

    name: NodeName
    gpus: tuple[Gpu, ...]
    links: Links
    """Between `gpus`, by position (not by index)."""
    epoch: int = 0
    seq: int = 0
    boot_id: str | None = None
    mode: AllocationMode = AllocationMode.UNKNOWN
    topology_policy: TopologyPolicy = TopologyPolicy.NONE
    sharing: Sharing | None = None
    """None: not shared, or nobody says how; then a share may come from any GPU."""
    expected: int | None = None
    """How many GPUs this product has; None: nobody says."""
    fabric: Fabric | None = None
    causes: tuple[Cause, ...] = ()
    """Of the node itself, those that follow from the document (`health.implied`) included."""
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node."""

    key: str
    effect: str
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`."""
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """What the API server says of a node. kube-scheduler acts on it, verdicts do not."""

    name: NodeName
    labels: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    unschedulable: bool = False
    """Cordoned."""
    taints: tuple[Taint, ...] = ()
    capacity: Mapping[str, int] = field(default_factory=lambda: NO_UNITS)
    """Units of each GPU resource that the node has; a resource that is absent has none."""
    allocatable: Mapping[str, int] = field(default_factory=lambda: NO_UNITS)
    """Those of them that pods may use: less where the device plugin took some back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """GPUs that one bound pod holds on one node."""

    node: NodeName
    uid: PodUid
    namespace: str
    pod: str
    resource: str
    count: int
    gang: GangKey | None = None
    gpus: frozenset[GpuUuid] | None = None
    """Which ones; None: only the count is known."""


class Convention(StrEnum):
    """The ways in which a pod says that it belongs to a gang, in the detector's order."""

    SUREFOOT = "surefoot"
    NATIVE = "native"
    WORKLOAD = "workload"
    COSCHEDULING = "coscheduling"
    COSCHEDULING_LEGACY = "coscheduling-legacy"
    KOORDINATOR = "koordinator"
    VOLCANO = "volcano"
    KAI = "kai"
    KUEUE = "kueue"
    KUEUE_WORKLOAD = "kueue-workload"
    LWS = "lws"
    JOBSET = "jobset"
    GROVE = "grove"
    YUNIKORN = "yunikorn"
    RAY = "ray"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A gang as the cache knows it."""

    key: GangKey
    convention: Convention
    uid: str | None = None
    min: int | None = None
    """Members needed to start; None: unknown, which is never read as 1."""
    size: int | None = None
    members: tuple[PodUid, ...] = ()


class OverrideVerdict(StrEnum):
    """What an operator says of a GPU or node, against whatever telemetry says."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """An operator's word on one GPU or node. It beats telemetry and is always shown."""

    target: str
    """`gpu/<uuid>` or `node/<name>`."""
    verdict: OverrideVerdict
    who: str
    why: str
    until_s: float | None = None
    """On the fleet's time line; None: until removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """One pod that a node's kubelet refused, or that failed right after its start there."""

    node: NodeName
    owner: str
    """What the pod is one of, as `Ask.owner` says it: the next pod of it fares likely the same."""
    reason: str
    """`UnexpectedAdmissionError`, `OutOfnvidia.com/gpu`, ..."""
    at_s: float
    """On the fleet's time line."""
    name: str = ""
    """The pod's, as a rule: tells pods of one owner apart that were refused at the same time."""
    epoch: int | None = None
    seq: int | None = None
    """Of the node's document when that happened: a later one is newer evidence. None: not known."""


class BreakerState(StrEnum):
    """CLOSED: normal. OPEN: too much of the pool is excluded. FROZEN: too much fell silent."""

    CLOSED = "closed"
    OPEN = "open"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """The leader's word on one pool of nodes (too much excluded, or too much silent)."""

    pool: str
    state: BreakerState
    until_s: float | None = None


class WorkClass(StrEnum):
    """What a pod is to the health policy."""

    GANG = "gang"
    SINGLE = "single"


class ResourceKind(StrEnum):
    """What one unit of the asked resource is."""

    WHOLE = "whole"
    MIG = "mig"
    SHARED = "shared"
    NONE = "none"
    """The pod asks for no GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a pod needs of a node: all that a verdict depends on, so pods that share it share it.

    Hashable: it is the key under which verdicts and the ranking of the fleet are kept.
    """

    work: WorkClass
    count: int
    """GPUs (or MIG devices, or shares) held at one time by the pod."""
    kind: ResourceKind = ResourceKind.WHOLE
    resource: str = "nvidia.com/gpu"
    allow: frozenset[Health] = frozenset()
    """States accepted beyond the policy (annotation `surefoot.dev/allow`)."""
    deny: frozenset[Health] = frozenset()
    """States refused although the policy accepts them (annotation `surefoot.dev/deny`)."""
    preemptible: bool = False
    """Whether the pod may be given a GPU on PROBATION."""

    @property
    def talks(self) -> bool:
        """Whether the pod's GPUs talk to one another or to other members: links matter."""
        if self.kind is not ResourceKind.WHOLE:
            return False  # MIG devices and shares have no peer-to-peer (k8s-device-plugin #296)
        return self.count > 1 or self.work is WorkClass.GANG


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRef:
    """The gang a pod says it belongs to."""

    key: GangKey
    convention: Convention
    min: int | None = None
    size: int | None = None
    uid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One pod that kube-scheduler asks about."""

    namespace: str
    name: str
    uid: PodUid
    need: Need
    gang: GangRef | None = None
    scheduler: str = ""
    narrowable: bool = True
    """False where a narrow answer could starve the pod (invariant 8)."""
    nominated: NodeName | None = None
    """The pod's own `status.nominatedNodeName`."""
    notes: tuple[str, ...] = ()
    """What could not be judged, for explain: `MIG devices are judged on health only`, ..."""
    owner: str = ""
    """What the pod is one of: the key of its gang, else `namespace/kind/name` of its controller,
    else its own `namespace/name`. Empty: nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """One immutable picture of the cluster: (generation, seen, now) fixes every answer.

    `now_s` and `seen_s` are on the reader's own time line: it advances only while the reader hears
    from the cache, so that one replica's bad link never ages the fleet.
    """

    generation: int
    now_s: float
    nodes: Mapping[NodeName, Node]
    seen_s: Mapping[NodeName, float]
    """Last full sample of each node; a node that is absent was never seen."""
    allocations: Mapping[NodeName, tuple[Allocation, ...]]
    gangs: Mapping[GangKey, Gang]
    overrides: Mapping[str, Override]
    breakers: Mapping[str, Breaker]
    quarantined: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """What could not be read, by `kind/name`, and why."""
    rejections: Mapping[NodeName, tuple[Rejection, ...]] = field(
        default_factory=lambda: NOT_REJECTED
    )
    """Of each node that has some; in any order."""
    cluster: Mapping[NodeName, ClusterNode] = field(default_factory=lambda: NO_CLUSTER)
    """What the API server says of its nodes, those without a document too. Their labels are in
    `nodes` already."""
    plans: Mapping[GangKey, GangPlan] = field(default_factory=lambda: NO_PLANS)
    """The leading controller's word on each gang that it plans."""
    leader_s: float | None = None
    """The last sign of a leading controller; None: there never was one."""
    ahead_s: float = 0.0
    """How far the time line is ahead of the cache's Unix time, which it was put on."""

    def bound_nodes(self, gang: GangKey) -> frozenset[NodeName]:
        """The nodes on which members of `gang` hold GPUs."""
        return frozenset(
            name
            for name, held in self.allocations.items()
            if any(allocation.gang == gang for allocation in held)
        )
