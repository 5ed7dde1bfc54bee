"""What the planner is given: gangs with their members, and what is left of the nodes.

All are frozen. The controller fills them from pods and nodes; nothing here knows the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from scoring.model import GangKey, Need, NodeName, PodUid, ResourceKind
from scoring.planning.selection import ANYWHERE, Selection
from scoring.topology import Level

Span: TypeAlias = Level | str
"""A level of the domain tree, or the key of a node label whose value names the domain."""
Spans: TypeAlias = tuple[Span, ...]
"""The members must share a domain of each of these; empty: they may be anywhere."""


class HostPort(NamedTuple):
    """A port of the node itself. An empty ip is every address."""

    port: int
    protocol: str = "TCP"
    ip: str = ""

    def clashes(self, other: HostPort) -> bool:
        """Whether two pods of one node cannot have both."""
        if self.port != other.port or self.protocol != other.protocol:
            return False
        return self.ip == other.ip or bool({self.ip, other.ip} & _EVERY_ADDRESS)


_EVERY_ADDRESS: Final = frozenset({"", "0.0.0.0"})  # noqa: S104 - nothing is bound here


class Amounts(NamedTuple):
    """What a pod asks beside GPUs, or what a node has of it."""

    cpu_m: int = 0
    """Thousandths of a core."""
    memory_bytes: int = 0
    storage_bytes: int = 0
    """Ephemeral storage."""


NOTHING: Final = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one member asks. Members of one shape may stand for each other."""

    need: Need
    """Of work class GANG."""
    amounts: Amounts = NOTHING
    ports: frozenset[HostPort] = frozenset()
    selection: Selection = ANYWHERE

    @property
    def gpus(self) -> int:
        """Whole GPUs that a member takes."""
        return self.need.count if self.need.kind is ResourceKind.WHOLE else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One pod of a gang that exists and counts: not done, not leaving, held by no foreign gate."""

    uid: PodUid
    name: str
    shape: Shape
    index: int | None = None
    """Completion index, LWS worker index, ...; None: the name decides."""
    bound: NodeName | None = None
    nominated: NodeName | None = None
    """Where an earlier plan put it; of no meaning once it is bound."""

    def __hash__(self) -> int:
        return hash(self.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How near to each other the members must, or should, be."""

    required: Span | None = None
    preferred: Span | None = None


NO_TOPOLOGY: Final = Topology()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingGang:
    """A gang of which some member has no node yet."""

    key: GangKey
    uid: str = ""
    """Tells it from an earlier one of the same name."""
    priority: int = 0
    since_s: float
    """When its first pod came; on the fleet's time line."""
    min: int | None
    """Members needed to start; None: not known yet, and then nothing is planned."""
    size: int | None = None
    """Members that there shall be; None: those that there are."""
    topology: Topology = NO_TOPOLOGY
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a node has beside GPUs, and what its bound pods hold of it, DaemonSets' pods included."""

    allocatable: Amounts
    pods: int
    held: Amounts = NOTHING
    held_pods: int = 0
    ports: frozenset[HostPort] = frozenset()
    """Host ports of its bound pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A nominated pod of no pending gang: it holds its room as if it were bound."""

    uid: PodUid
    node: NodeName
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A node that failed a pod: the gang `owner` does not go back until it reports anew."""

    node: NodeName
    owner: GangKey
    epoch: int
    seq: int
    """Of the node's document when it failed the pod: only a later one lifts this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the planner needs to know of the cluster besides the picture."""

    rooms: Mapping[NodeName, Room]
    """Of every node that pods may go to. A node that is absent here or in `Fleet.cluster` takes none."""
    claims: tuple[Claim, ...] = ()
    exclusions: frozenset[Exclusion] = field(default_factory=frozenset)
