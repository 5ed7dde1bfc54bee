"""The shapes of the documents (`surefoot.dev/v1`), with the bounds beyond which none is sane.

Fields that are not named here are kept by the store and ignored by the reader, so documents may
grow within a major version. What types cannot say is checked in `values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

API_GROUP: Final = "surefoot.dev"
API_VERSION: Final = f"{API_GROUP}/v1"
MAX_GPUS: Final = 128
"""Of one node: more than the 72 of the largest NVLink domain that one system may show."""
MAX_CAUSES: Final = 256
MAX_COUNT: Final = 2**53 - 1
"""The largest integer that Lua keeps exact."""
MAX_MEMBERS: Final = 100_000
"""Of one gang."""
MAX_WORD: Final = 512
"""Characters of a word."""
MAX_TERM: Final = 2**31 - 1
"""The largest `leaseTransitions` of a Lease."""


class Kind(StrEnum):
    """The kinds of documents that the cache holds."""

    NODE = "Node"
    ALLOCATION = "Allocation"
    GANG = "Gang"
    OVERRIDE = "Override"
    BREAKER = "Breaker"
    REJECTION = "Rejection"
    CLUSTER_NODE = "ClusterNode"
    PLAN = "Plan"


_NAME: Final = r"^[A-Za-z0-9]([-_.:A-Za-z0-9]*[A-Za-z0-9])?$"
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]*$"
_KEY: Final = r"^[^/\s]+/\S+$"
_TARGET: Final = r"^(gpu|node)/[^/\s]+$"

ADVICE: Final[Mapping[str, str]] = {
    _NAME: "write a name of letters, digits and - _ . : between them",
    _PRINTABLE: "write it on one line, without control characters",
    _KEY: "write it like <namespace>/<name>",
    _TARGET: "write it like gpu/<uuid> or node/<name>",
}
"""How to write what a pattern asks for."""

Name = Annotated[str, Meta(max_length=253, pattern=_NAME)]
Word = Annotated[str, Meta(min_length=1, max_length=MAX_WORD, pattern=_PRINTABLE)]
Text = Annotated[str, Meta(max_length=8192)]
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Members = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Time = Annotated[datetime, Meta(tz=True)]
Labels = Annotated[dict[Word, Text], Meta(max_length=2048)]


class Metadata(Struct, frozen=True):
    """The name of a document."""

    name: Word


class NodeMetadata(Struct, frozen=True):
    """The name of a node, and its labels."""

    name: Name
    labels: Labels = {}


class Header(Struct, frozen=True, kw_only=True, rename="camel"):
    """What every document begins with."""

    api_version: str
    kind: str


class Named(Header, frozen=True, kw_only=True, rename="camel"):
    """A document that is told apart by its own fields: its name is for people."""

    metadata: Metadata | None = None


class CauseDoc(Struct, frozen=True, rename="camel"):
    """One open cause; `state` is the name of a Health, `scope` of a Scope."""

    id: Word
    state: str
    scope: str = "gpu"
    first_seen: Time | None = None
    last_seen: Time | None = None
    count: Count = 1
    evidence: Text = ""


Causes = Annotated[list[CauseDoc], Meta(max_length=MAX_CAUSES)]


class GpuDoc(Struct, frozen=True, rename="camel"):
    """One GPU. `sampledAgo`: age of its last full sample when the node reported, a Go duration."""

    uuid: Word
    index: Annotated[int, Meta(ge=0, le=1023)]
    pci: Word | None = None
    model: Word | None = None
    numa: Annotated[int, Meta(ge=-1, le=65_535)] | None = None
    mig: bool = False
    sampled_ago: str | None = None
    causes: Causes = []


class FabricDoc(Struct, frozen=True, rename="camel"):
    """NVML's GpuFabricInfo."""

    state: Word | None = None
    status: Word | None = None
    clique_id: Count | None = None
    cluster_uuid: Word | None = None
    health_mask: Count | None = None
    health_summary: Word | None = None


class SharingDoc(Struct, frozen=True, rename="camel"):
    """GPUs handed out in shares."""

    replicas: Annotated[int, Meta(ge=1, le=1024)]
    policy: str | None = None


class NodeDoc(Header, frozen=True, kw_only=True, rename="camel"):
    """One GPU node, as its agent sees it."""

    metadata: NodeMetadata
    gpus: Annotated[list[GpuDoc], Meta(max_length=MAX_GPUS)]
    epoch: Count | None = None
    seq: Count | None = None
    boot_id: Word | None = None
    allocation_mode: str | None = None
    topology_manager_policy: str | None = None
    sharing: SharingDoc | None = None
    expected: Annotated[int, Meta(ge=0, le=MAX_GPUS)] | None = None
    fabric: FabricDoc | None = None
    links: Annotated[dict[str, str], Meta(max_length=MAX_GPUS * MAX_GPUS)] = {}
    causes: Causes = []


class AllocationDoc(Named, frozen=True, kw_only=True, rename="camel"):
    """GPUs that one bound pod holds; `gpus` null: only the count is known."""

    node: Name
    pod: Word
    uid: Word
    namespace: Word
    resource: Word
    count: Annotated[int, Meta(ge=0, le=4096)]
    gang: Word | None = None
    gpus: Annotated[list[Word], Meta(max_length=4096)] | None = None


class GangDoc(Named, frozen=True, kw_only=True, rename="camel"):
    """One gang; `key` is `namespace/name`."""

    key: Annotated[str, Meta(max_length=512, pattern=_KEY)]
    convention: str
    uid: Word | None = None
    min: Members | None = None
    size: Members | None = None
    members: Annotated[list[Word], Meta(max_length=MAX_MEMBERS)] = []


class OverrideDoc(Named, frozen=True, kw_only=True, rename="camel"):
    """An operator's word; `until` missing: until removed."""

    target: Annotated[str, Meta(max_length=512, pattern=_TARGET)]
    verdict: str
    who: Word
    why: Word
    until: Time | None = None


class BreakerDoc(Named, frozen=True, kw_only=True, rename="camel"):
    """The leader's word on a pool; `until` missing: until changed."""

    pool: Word
    state: str
    until: Time | None = None


class RejectionDoc(Named, frozen=True, kw_only=True, rename="camel"):
    """A pod that a node refused. Its name tells it from others of its owner at the same time."""

    node: Name
    owner: Word
    reason: Word
    at: Time
    epoch: Count | None = None
    seq: Count | None = None


class TaintDoc(Struct, frozen=True, rename="camel"):
    """One taint, as in a Node of Kubernetes."""

    key: Word
    effect: Word
    value: Text = ""


Units = Annotated[dict[Word, Count], Meta(max_length=256)]
"""Units by the name of an extended resource."""


class ClusterNodeDoc(Header, frozen=True, kw_only=True, rename="camel"):
    """One node, as the API server knows it; of `capacity` and `allocatable` the GPU resources."""

    metadata: NodeMetadata
    unschedulable: bool = False
    taints: Annotated[list[TaintDoc], Meta(max_length=1024)] = []
    capacity: Units = {}
    allocatable: Units = {}


class SeatDoc(Struct, frozen=True, rename="camel"):
    """One member of a gang, and the node that it has or is to get."""

    pod: Word
    node: Name | None = None
    bound: bool = False


class PlanDoc(Named, frozen=True, kw_only=True, rename="camel"):
    """The leader's word on one gang; `gang` is its key, `seats` are by pod uid."""

    gang: Annotated[str, Meta(max_length=576, pattern=_KEY)]
    """A gang's key has 512 characters at most, and here perhaps `~<convention>` behind it."""
    convention: str
    hold: str
    state: str
    since: Time
    term: Annotated[int, Meta(ge=0, le=MAX_TERM)] = 0
    uid: Word | None = None
    min: Members | None = None
    size: Members | None = None
    seats: Annotated[dict[Word, SeatDoc], Meta(max_length=MAX_MEMBERS)] = {}
    domain: Word | None = None
    lack: Word | None = None
    summary: Text = ""
    counts: Annotated[dict[Word, Count], Meta(max_length=256)] = {}
    nearest: Text = ""
    unblock: Annotated[list[Text], Meta(max_length=64)] = []


Shape = (
    NodeDoc
    | AllocationDoc
    | GangDoc
    | OverrideDoc
    | BreakerDoc
    | RejectionDoc
    | ClusterNodeDoc
    | PlanDoc
)

SHAPES: Final[dict[Kind, type[Shape]]] = {
    Kind.NODE: NodeDoc,
    Kind.ALLOCATION: AllocationDoc,
    Kind.GANG: GangDoc,
    Kind.OVERRIDE: OverrideDoc,
    Kind.BREAKER: BreakerDoc,
    Kind.REJECTION: RejectionDoc,
    Kind.CLUSTER_NODE: ClusterNodeDoc,
    Kind.PLAN: PlanDoc,
}
