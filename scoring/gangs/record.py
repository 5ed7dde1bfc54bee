"""What the cache keeps of each gang, so that every replica and every tool says the same of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from scoring.gangs.rules import Hold
from scoring.model import Convention, GangKey, NodeName, PodUid


class GangState(StrEnum):
    """How far a gang has come."""

    WAITING = "waiting"
    """It has no plan; `lack` and `summary` say why."""
    PLANNED = "planned"
    """Its members have nodes, and not all that it needs are bound."""
    RUNNING = "running"
    """As many members as it needs are bound."""
    PARTIAL = "partial"
    """Some are bound, fewer than it needs, and it has no plan for the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One member of a gang."""

    pod: str
    """Its name."""
    node: NodeName | None = None
    """Where it is bound, else where it is planned."""
    bound: bool = False


NO_COUNTS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPlan:
    """The leader's word on one gang. `plans` of the cache holds one for each gang that it plans."""

    gang: GangKey
    convention: Convention
    uid: str = ""
    term: int
    """`leaseTransitions` of the leader that wrote it: a lower one is never newer."""
    hold: Hold
    state: GangState
    min: int | None = None
    size: int | None = None
    seats: Mapping[PodUid, Seat]
    """Every member that exists and counts, by uid."""
    since_s: float
    """When it came into `state`, or when its first member ran in it; Unix time in the cache, the
    fleet's time line in a Fleet."""
    domain: str = ""
    """`clique c3`: the narrowest that holds all seats; empty: none, or the whole cluster."""
    lack: str = ""
    """A word of `planning.outcome.Lack`; empty: it has a plan."""
    summary: str = ""
    """One sentence for people."""
    counts: Mapping[str, int] = field(default_factory=lambda: NO_COUNTS)
    """How many nodes take no further member, by reason or obstacle."""
    nearest: str = ""
    """`4 of 5 members fit in clique c3; n17 would do if GPU 3 were reset`."""
    unblock: tuple[str, ...] = ()

    def seat(self, uid: PodUid) -> NodeName | None:
        """The node that is planned for a member."""
        found = self.seats.get(uid)
        return found.node if found else None
