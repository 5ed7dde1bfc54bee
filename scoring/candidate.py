"""One node made ready to be judged: which GPUs are free, and which states each one is in.

It depends on the fleet alone, not on who asks, so it is made once for each change of a node and
judged for every kind of ask. GPUs are positions in `node.gpus`; sets of them are integers, bit i for
position i; sets of states are integers too, bit `Health.bit`, plus `STALE`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scoring import rejections, resources
from scoring.health import implied
from scoring.health.staleness import Freshness, breaker_of, freshness
from scoring.links import links_of
from scoring.model import (
    Allocation,
    AllocationMode,
    BreakerState,
    Cause,
    Fleet,
    GpuUuid,
    Health,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    ResourceKind,
)
from scoring.policy import Policy
from scoring.topology import Domain, domains

QUARANTINED_NODE: Final = "Node/"

STALE: Final = 1 << (max(Health) + 1)
"""The bit that says that the node's telemetry is stale: not a state, yet it must be allowed."""

_SILENCE: Final[Mapping[Freshness, int]] = MappingProxyType(
    {Freshness.FRESH: 0, Freshness.STALE: STALE, Freshness.SILENT: Health.UNKNOWN.bit}
)
"""What the age of telemetry adds to the states of each GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a verdict needs to know of a node."""

    node: Node
    causes: tuple[tuple[Cause, ...], ...]
    """Open on each GPU: its own, the node's, what the document implies, and what pods that were
    rejected say of the node."""
    alone: tuple[int, ...]
    """States of each GPU as a pod sees it that uses it alone."""
    together: tuple[int, ...]
    """States of each GPU as a pod sees it that talks to its peers: causes of links too."""
    free: int
    """GPUs that no pod is known to hold."""
    held: int
    """GPUs that a pod is known to hold."""
    nameless: int
    """How many of `free` are held by pods of which only the count is known."""
    shares_used: tuple[int, ...] | None
    """Shares in use of each GPU; None: not shared, or pods hold some and nobody knows of which GPU."""
    mig: int
    """GPUs split into MIG instances."""
    blocked: bool
    """A lost GPU makes the stock device plugin fail every GPU pod of the node."""
    denied: int
    """GPUs that an operator denied."""
    allowed: int
    """GPUs that an operator allowed, whatever telemetry says."""
    domains: tuple[Domain, ...]
    """Where the node stands in the tree of domains, narrowest first."""
    freshness: Freshness
    breaker_open: bool
    readable: bool = True
    """False: there is a document of the node, and it cannot be read."""
    word: OverrideVerdict | None = None
    """An operator's word on the node."""
    of_node: int = 0
    """States of the node itself, which count where it shows no GPU."""
    changes_at_s: float
    """When, on the fleet's time line, time alone makes this candidate out of date."""

    def of_kind(self, kind: ResourceKind) -> int:
        """The GPUs from which one unit of this kind may come."""
        everything = (1 << len(self.node.gpus)) - 1
        if kind is ResourceKind.MIG:
            return self.mig or everything
        if kind is ResourceKind.WHOLE:
            return everything & ~self.mig
        return everything

    def names(self, positions: int) -> tuple[GpuUuid, ...]:
        """The uuids of a set of positions, in order."""
        return tuple(gpu.uuid for i, gpu in enumerate(self.node.gpus) if positions >> i & 1)


def candidate(fleet: Fleet, node: Node, policy: Policy, *, gone: Iterable[str] = ()) -> Candidate:
    """`node` as it stands in `fleet`, with the pods of uid `gone` imagined away."""
    fresh, changes_at_s = freshness(fleet, node.name, policy)
    breaker = breaker_of(node, fleet, policy)
    if breaker is not None and breaker.until_s is not None:
        changes_at_s = min(changes_at_s, breaker.until_s)
    word = _in_force(fleet, f"node/{node.name}")
    denied, allowed, override_ends_s = _overridden(node, word, fleet)
    causes = implied.open_causes(node)
    suspicion, suspicion_ends_s = rejections.suspicion(
        fleet.rejections.get(node.name, ()), fleet.now_s, policy
    )
    if suspicion is not None:
        causes = tuple((*open_causes, suspicion) for open_causes in causes)
    away = frozenset(gone)
    there = [each for each in fleet.allocations.get(node.name, ()) if each.uid not in away]
    held, nameless = _held(node, there)
    everything = (1 << len(node.gpus)) - 1
    return Candidate(
        node=node,
        causes=causes,
        alone=_states(causes, fresh, allowed, together=False),
        together=_states(causes, fresh, allowed, together=True),
        free=everything & ~held,
        held=held,
        nameless=min(nameless, (everything & ~held).bit_count()),
        shares_used=_shares_used(node, there),
        mig=sum(1 << i for i, gpu in enumerate(node.gpus) if gpu.mig),
        blocked=_blocked(node, causes, allowed, policy),
        denied=denied,
        allowed=allowed,
        domains=domains(node),
        freshness=fresh,
        word=word.verdict if word else None,
        of_node=_of_node(node, suspicion, fresh),
        breaker_open=breaker is not None and breaker.state is BreakerState.OPEN,
        changes_at_s=min(changes_at_s, override_ends_s, suspicion_ends_s),
    )


def quarantine(name: NodeName) -> str:
    """The key of a node's document in `Fleet.quarantined`."""
    return f"{QUARANTINED_NODE}{name}"


def stranger(fleet: Fleet, name: NodeName) -> Candidate | None:
    """A node without a readable document of which something is known all the same: that it has a
    broken one, which may say the worst (invariant 2), or an operator's word. None: nothing is.
    """
    word = _in_force(fleet, f"node/{name}")
    readable = quarantine(name) not in fleet.quarantined
    if word is None and readable:
        return None
    node = Node(name=name, gpus=(), links=links_of((), {}))
    return Candidate(
        node=node, causes=(), alone=(), together=(), free=0, held=0, nameless=0,
        shares_used=None, mig=0,
        blocked=False, denied=0, allowed=0, domains=domains(node), freshness=Freshness.FRESH,
        breaker_open=False, readable=readable, word=word.verdict if word else None, changes_at_s=_end_s(word),
    )  # fmt: skip


def _of_node(node: Node, suspicion: Cause | None, fresh: Freshness) -> int:
    """The set of states of the node itself."""
    states = _SILENCE[fresh]
    for cause in (*node.causes, *((suspicion,) if suspicion else ())):
        states |= 1 << cause.state
    return states & ~Health.HEALTHY.bit


def _states(
    causes: Sequence[Sequence[Cause]], fresh: Freshness, allowed: int, *, together: bool
) -> tuple[int, ...]:
    """The set of states of each GPU: that of every open cause, and what silence adds."""
    silence, found = _SILENCE[fresh], []
    for position, open_causes in enumerate(causes):
        states = silence
        for cause in open_causes:
            if together or not cause.scope.needs_peers:
                states |= 1 << cause.state
        found.append(0 if allowed >> position & 1 else states & ~Health.HEALTHY.bit)
    return tuple(found)


def _held(node: Node, allocations: Iterable[Allocation]) -> tuple[int, int]:
    """The positions that pods are known to hold, and how many more are held we know not which.

    MIG devices and shares hold no whole GPU.
    """
    position = {gpu.uuid: i for i, gpu in enumerate(node.gpus)}
    held, nameless = 0, 0
    for allocation in allocations:
        if resources.kind_of(allocation.resource) is not ResourceKind.WHOLE:
            continue
        if allocation.gpus is None:
            nameless += allocation.count
            continue
        nameless += max(0, allocation.count - len(allocation.gpus))
        for uuid in allocation.gpus:
            if uuid in position:
                held |= 1 << position[uuid]
    return held, nameless


def _shares_used(node: Node, allocations: Iterable[Allocation]) -> tuple[int, ...] | None:
    """How many shares of each GPU pods hold; None where that is not known for certain."""
    if node.sharing is None:
        return None
    position = {gpu.uuid: i for i, gpu in enumerate(node.gpus)}
    used = [0] * len(node.gpus)
    for allocation in allocations:
        if resources.kind_of(allocation.resource) is not ResourceKind.SHARED:
            continue
        gpus = allocation.gpus or ()
        if len(gpus) not in (1, allocation.count):
            return None
        for uuid in gpus:
            if uuid not in position:
                return None
            used[position[uuid]] += allocation.count // len(gpus)
    return tuple(used)


def _overridden(node: Node, on_node: Override | None, fleet: Fleet) -> tuple[int, int, float]:
    """GPUs denied, GPUs allowed, and when the first of these words, or the one `on_node`, runs out.

    A word on a GPU beats a word on its node.
    """
    denied, allowed, ends_s = 0, 0, _end_s(on_node)
    if not fleet.overrides:
        return denied, allowed, ends_s
    for i, gpu in enumerate(node.gpus):
        word = _in_force(fleet, f"gpu/{gpu.uuid}") or on_node
        if word is None:
            continue
        if word.verdict is OverrideVerdict.DENY:
            denied |= 1 << i
        else:
            allowed |= 1 << i
        ends_s = min(ends_s, _end_s(word))
    return denied, allowed, ends_s


def _in_force(fleet: Fleet, target: str) -> Override | None:
    word = fleet.overrides.get(target)
    if word is None or (word.until_s is not None and word.until_s <= fleet.now_s):
        return None
    return word


def _end_s(word: Override | None) -> float:
    return math.inf if word is None or word.until_s is None else word.until_s


def _blocked(node: Node, causes: Sequence[Sequence[Cause]], allowed: int, policy: Policy) -> bool:
    if node.mode is AllocationMode.DRA:
        return False
    return any(
        cause.id in policy.blocking_causes
        for position, open_causes in enumerate(causes)
        if not allowed >> position & 1
        for cause in open_causes
    )


def candidates(fleet: Fleet, policy: Policy) -> dict[NodeName, Candidate]:
    """Every node of the fleet, ready to be judged."""
    return {name: candidate(fleet, node, policy) for name, node in fleet.nodes.items()}
