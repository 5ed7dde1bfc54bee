"""What the cache keeps of each gang, so that every replica and every tool says the same of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many members a gang has."""

    existing: int
    """Pods that count."""
    seated: int
    """Those of them with a node, planned or bound."""
    bound: int


def tally(seats: Mapping[PodUid, Seat]) -> Tally:
    """The members of a gang, counted."""
    return Tally(
        existing=len(seats),
        seated=sum(seat.node is not None for seat in seats.values()),
        bound=sum(seat.bound for seat in seats.values()),
    )


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
    """When it came into `state`; Unix time in the cache, the fleet's time line in a Fleet."""
    partial_s: float | None = None
    """Since when some of its members run and fewer than it needs, planned for or not, on the same line;
    None: that is not so."""
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

    def moved(self, seconds: float) -> GangPlan:
        """The same with its times so much later: on another time line."""
        partial_s = None if self.partial_s is None else self.partial_s + seconds
        return replace(self, since_s=self.since_s + seconds, partial_s=partial_s)

    def seat(self, uid: PodUid) -> NodeName | None:
        """The node that is planned for a member."""
        found = self.seats.get(uid)
        return found.node if found else None
