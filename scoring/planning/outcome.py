"""What the planner answers for each gang: a plan, or a shortfall that says why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from scoring.model import GangKey, NodeName, PodUid
from scoring.planning.obstacles import Bar
from scoring.topology import Domain


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Objective:
    """What a plan costs. Less is better, and the first part that differs decides."""

    zones: int
    blocks: int
    racks: int
    cliques: int
    nodes: int
    """How many of each the members are spread over, those that have nodes already included. A node
    that no label puts into a domain is one of its own."""
    suspect_gpus: int
    """GPUs that are not HEALTHY, and that the newly placed members may be given at worst."""
    stranded_gpus: int
    """GPUs that the newly placed members leave over: free ones of their nodes, and those of islands,
    nodes and healthy cliques that were whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A node for each member that is to run."""

    gang: GangKey
    uid: str
    places: Mapping[PodUid, NodeName]
    """Of the members with a node, old and new."""
    kept: frozenset[PodUid]
    """Those of `places` whose node stood before: bound, or nominated and kept."""
    waiting: tuple[PodUid, ...] = ()
    """Members beyond the minimum for which there is no node."""
    domain: Domain | None
    """The narrowest domain that holds all of `places`; None: only the whole cluster does."""
    objective: Objective


class Lack(StrEnum):
    """Why a gang has no plan."""

    SIZE_UNKNOWN = "SizeUnknown"
    MEMBERS_MISSING = "MembersMissing"
    TOO_LARGE = "MemberTooLarge"
    NO_ROOM = "NoRoom"
    DOMAIN_TOO_SMALL = "DomainTooSmall"
    MEMBERS_APART = "MembersApart"
    BEHIND_OTHERS = "BehindOthers"
    KIND_UNREADABLE = "KindUnreadable"
    """The objects that say what it needs cannot be read."""
    WRITE_REFUSED = "WriteRefused"
    """The API server refuses, for good, what would carry a plan out."""
    INTERNAL_ERROR = "InternalError"
    """A mistake of ours: planning failed on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """The domain that came nearest."""

    domain: str
    """`clique c3`; `the cluster`."""
    placed: int
    """Members that would have a node there, pinned ones included."""
    needed: int
    cures: tuple[str, ...]
    """Nodes of it that lack the least, with what they lack: `n17 would do if GPU 3 were reset`."""

    @property
    def told(self) -> str:
        """`4 of 5 members fit in clique c3; n17 would do if GPU 3 were reset`."""
        near = f"{self.placed} of {self.needed} members fit in {self.domain}"
        return "; ".join((near, *self.cures))


NOTHING_HELD: Mapping[PodUid, NodeName] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why a gang has no plan, and what would help."""

    gang: GangKey
    uid: str
    lack: Lack
    constraint: str
    """What cannot be met, in one sentence: `3 of 4 pods exist; worker-2 is missing`."""
    counts: Mapping[Bar, int]
    """How many nodes take no further member, by what keeps them from it."""
    nearest: Miss | None = None
    unblock: tuple[str, ...] = ()
    """What a person could do."""
    held: Mapping[PodUid, NodeName] = field(default_factory=lambda: NOTHING_HELD)
    """Nodes that this gang holds against those after it, as it has waited too long; else empty."""

    @property
    def summary(self) -> str:
        """All of it for an event, in one line."""
        told = [self.constraint]
        if self.nearest is not None:
            told.append(f"Nearest: {self.nearest.told}")
        return ". ".join(told) + "."


Outcome: TypeAlias = Plan | Shortfall
