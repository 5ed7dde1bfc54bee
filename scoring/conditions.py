"""What the condition `GpuHealthDegraded` of a node says: for drainers, dashboards and people, who
read nodes and not the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from scoring.candidate import Candidate, quarantine
from scoring.health.staleness import Freshness
from scoring.model import Cause, Health, NodeName, Scope
from scoring.picture import Picture

TYPE: Final = "GpuHealthDegraded"
LONGEST: Final = 512
"""Characters of a message."""

_PROBLEMS: Final = frozenset(
    {
        Health.SUSPECT,
        Health.PROBATION,
        Health.DEGRADED,
        Health.RESET_REQUIRED,
        Health.REBOOT_REQUIRED,
        Health.FAILED,
    }
)
"""States in which something is known to be wrong; NEW, UNMONITORED and UNKNOWN say that too little is
known."""


class Status(StrEnum):
    """As conditions write it."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    """The condition of one node, without its times."""

    status: Status
    reason: str
    """CamelCase: the worst cause, `Xid48`."""
    message: str
    """Which GPUs, with the evidence."""


UNREPORTED: Final = NodeCondition(
    status=Status.UNKNOWN,
    reason="NodeUnreported",
    message="no GPU health is reported of this node any more",
)
"""Of a node whose document is gone."""

_SILENT: Final[Mapping[Freshness, tuple[str, str]]] = MappingProxyType(
    {
        Freshness.STALE: ("TelemetryStale", "the GPU health data of this node is stale"),
        Freshness.SILENT: ("TelemetrySilent", "the GPU health data of this node is too old"),
    }
)


def condition(picture: Picture, name: NodeName) -> NodeCondition | None:
    """What is to be said of a node; None: it has no document, so nothing is.

    Silence hides a lesser trouble, never one that needs a reset or worse (invariant 2). GPUs that an
    operator allowed are well.
    """
    found = picture.candidates.get(name)
    if found is None:
        return None
    if not found.readable:
        problem = picture.fleet.quarantined.get(quarantine(name), "")
        return _said(Status.UNKNOWN, "DocumentUnreadable", f"document cannot be read: {problem}")
    if name not in picture.fleet.nodes:
        return None  # an operator's word alone
    troubles = sorted(
        _troubles(found), key=lambda each: (-each.cause.state, each.gpu, each.cause.id)
    )
    known = [each for each in troubles if each.cause.state in _PROBLEMS]
    hard = bool(known) and known[0].cause.state > Health.UNKNOWN
    if found.freshness is not Freshness.FRESH and not hard:
        return _said(Status.UNKNOWN, *_SILENT[found.freshness])
    if known:
        return _said(Status.TRUE, _camel(known[0].cause.id), _list(known))
    if found.denied:
        return _said(
            Status.TRUE, "OverrideDenied", "an operator denied the node or one of its GPUs"
        )
    if troubles:
        return _said(Status.UNKNOWN, _camel(troubles[0].cause.id), _list(troubles))
    return _said(Status.FALSE, "GpusHealthy", f"all {len(found.node.gpus)} GPUs are healthy")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trouble:
    gpu: int
    """Its index; -1: the node."""
    cause: Cause


def _troubles(found: Candidate) -> Iterator[_Trouble]:
    """Every open cause, one of the node once."""
    if not found.node.gpus:
        yield from (_Trouble(gpu=-1, cause=cause) for cause in found.node.causes)
    seen: set[Cause] = set()
    for position, (gpu, causes) in enumerate(zip(found.node.gpus, found.causes, strict=True)):
        if found.allowed >> position & 1:
            continue
        for cause in causes:
            of_node = cause.scope in (Scope.NODE, Scope.FABRIC)
            if cause.state is Health.HEALTHY or (of_node and cause in seen):
                continue
            seen.add(cause)
            yield _Trouble(gpu=-1 if of_node else gpu.index, cause=cause)


def _list(troubles: list[_Trouble]) -> str:
    told = []
    for each in troubles:
        evidence = f" ({each.cause.evidence})" if each.cause.evidence else ""
        where = "node" if each.gpu < 0 else f"GPU {each.gpu}"
        told.append(f"{where}: {each.cause.state.name} by {each.cause.id}{evidence}")
    return "; ".join(told)


def _said(status: Status, reason: str, message: str) -> NodeCondition:
    shown = message if len(message) <= LONGEST else message[: LONGEST - 1] + "…"
    return NodeCondition(status=status, reason=reason, message=shown)


def _camel(cause: str) -> str:
    """`remap.pending` as `RemapPending`; what is no letter or digit parts words."""
    words = "".join(each if each.isascii() and each.isalnum() else " " for each in cause).split()
    joined = "".join(word[:1].upper() + word[1:] for word in words)[:64]
    return joined if joined[:1].isalpha() else f"Cause{joined}"
