"""Every key of the cache, in one table.

All share one hash tag, so that scripts and transactions over several keys stay legal on servers
that shard by tag. Commands are those of Redis 6.2 and Valkey 9 alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PREFIX: Final = "{surefoot:v1}:"


class Type(StrEnum):
    """The type of a key, as `TYPE` prints it."""

    HASH = "hash"
    STREAM = "stream"
    STRING = "string"
    ZSET = "zset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key, or one family of keys that differ by their last part."""

    name: str
    type: Type
    writer: str
    """Which processes write it; everybody may read."""
    life: str
    """What ends it."""
    holds: str

    def of(self, part: str) -> str:
        """The key of the family that ends in `part`."""
        return f"{self.name}:{part}"


NODES: Final = Key(
    name=f"{PREFIX}nodes",
    type=Type.HASH,
    writer="agent (its own node), put",
    life="until the node is deleted",
    holds="node name -> Node document, which begins with its epoch and seq",
)
SEEN: Final = Key(
    name=f"{PREFIX}seen",
    type=Type.HASH,
    writer="agent (its own node), put",
    life="with the node",
    holds="node name -> Redis TIME in ms of the last full sample",
)
EPOCH: Final = Key(
    name=f"{PREFIX}epoch",
    type=Type.STRING,
    writer="agent",
    life="permanent",
    holds="epoch:<node>, counts the starts of its agent",
)
ALLOCATIONS: Final = Key(
    name=f"{PREFIX}alloc",
    type=Type.HASH,
    writer="controller, put",
    life="until the pod is gone",
    holds="<pod uid>/<resource> -> Allocation document",
)
GANGS: Final = Key(
    name=f"{PREFIX}gangs",
    type=Type.HASH,
    writer="controller, put",
    life="until the gang is gone",
    holds="namespace/name -> Gang document",
)
BREAKERS: Final = Key(
    name=f"{PREFIX}breaker",
    type=Type.HASH,
    writer="controller, put",
    life="permanent, void after its `until`",
    holds="pool -> Breaker document",
)
OVERRIDES: Final = Key(
    name=f"{PREFIX}override",
    type=Type.HASH,
    writer="dashboard, put",
    life="void after its `until`, swept by the next write of an override",
    holds="gpu/<uuid> or node/<name> -> Override document",
)
OVERRIDE_ENDS: Final = Key(
    name=f"{PREFIX}override-ends",
    type=Type.ZSET,
    writer="dashboard, put",
    life="with the override",
    holds="target -> Unix ms of its `until`, for the sweep",
)
REJECTIONS: Final = Key(
    name=f"{PREFIX}rejected",
    type=Type.HASH,
    writer="controller, put",
    life="void a day after its `at`, swept by the next write of a rejection; the newest few of each owner and node",
    holds="<node>/<owner>@<Unix ms of its `at`>[/<name>] -> Rejection document",
)
REJECTION_TIMES: Final = Key(
    name=f"{PREFIX}rejected-at",
    type=Type.ZSET,
    writer="controller, put",
    life="with the rejection",
    holds="its field in `rejected` -> Unix ms of its `at`, for the sweep",
)
CLUSTER: Final = Key(
    name=f"{PREFIX}cluster",
    type=Type.HASH,
    writer="controller, put",
    life="until the node leaves the cluster",
    holds="node name -> ClusterNode document",
)
PLANS: Final = Key(
    name=f"{PREFIX}plans",
    type=Type.HASH,
    writer="controller, put",
    life="until the gang is gone, or is no longer planned",
    holds="namespace/name, or namespace/name~convention -> Plan document",
)
TERM: Final = Key(
    name=f"{PREFIX}term",
    type=Type.STRING,
    writer="controller, with every write that its term fences",
    life="permanent",
    holds="the highest leaseTransitions of a leader so far",
)
LEADER: Final = Key(
    name=f"{PREFIX}leader",
    type=Type.STRING,
    writer="controller",
    life="permanent",
    holds="Redis TIME in ms of the last sign of a leader, and its term: `<ms> <term>`",
)
GENERATION: Final = Key(
    name=f"{PREFIX}generation",
    type=Type.STRING,
    writer="every script that changes what a verdict depends on",
    life="permanent",
    holds="counts the changes",
)
INSTANCE: Final = Key(
    name=f"{PREFIX}instance",
    type=Type.STRING,
    writer="whoever writes first",
    life="permanent: a new one tells that the data was lost",
    holds="a nonce of the writer, and Redis TIME in us",
)
CHANGES: Final = Key(
    name=f"{PREFIX}changes",
    type=Type.STREAM,
    writer="with the generation",
    life="capped",
    holds="<generation>-1 -> kind and id of the document that changed",
)
DECISIONS: Final = Key(
    name=f"{PREFIX}decisions",
    type=Type.STREAM,
    writer="serve",
    life="capped",
    holds="decision records, JSON in the field `record`",
)

TABLE: Final = (
    NODES,
    SEEN,
    EPOCH,
    ALLOCATIONS,
    GANGS,
    BREAKERS,
    OVERRIDES,
    OVERRIDE_ENDS,
    REJECTIONS,
    REJECTION_TIMES,
    CLUSTER,
    PLANS,
    TERM,
    LEADER,
    GENERATION,
    INSTANCE,
    CHANGES,
    DECISIONS,
)

CHANGES_MAX: Final = 10_000
"""Entries kept in `changes`: a minute of a busy fleet of 5,000 nodes; who misses more reloads."""
DECISIONS_MAX: Final = 50_000
"""Records kept in `decisions`."""
OWNER_REJECTIONS_MAX: Final = 16
"""Rejections kept of one owner on one node: a pod that is tried for ever pushes out its own ones."""
NODE_REJECTIONS_MAX: Final = 128
"""... of one node."""
REJECTIONS_MAX: Final = 4_096
"""... of all nodes."""


def text_of(key: bytes) -> str:
    """The name that a field of the cache is; whatever bytes it has, some name."""
    return key.decode(errors="backslashreplace")
