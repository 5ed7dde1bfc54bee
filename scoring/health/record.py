"""What is remembered of one GPU between polls: a value that the agent keeps outside its process.

The open causes are the verdict; all else is what their rules need to go on after a restart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from scoring.health.causes import CATALOGUE
from scoring.health.damping import History, Penalty
from scoring.health.pattern import Incident
from scoring.model import Cause, Health, worst


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCause:
    """A cause with what its clear rule has seen so far."""

    cause: Cause
    peak: Health
    """The worst that it was; `cause.state` may be lower while the driver asks for no recovery."""
    linked: bool = False
    clean_polls: int = 0
    clean_s: float | None = None
    """Since when it is clean; silence moves this forward, for silence is not clean time."""
    repaired_s: float | None = None
    """When a reset or reboot was seen after the last event."""
    until_s: float | None = None
    """End of its term, for causes that clear by time."""


_NEW: Final = CATALOGUE["gpu.new"]
NEW: Final = OpenCause(cause=Cause(id=_NEW.id, state=_NEW.state, count=1), peak=_NEW.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Everything about a GPU that a quiet healthy poll leaves as it is."""

    open: Mapping[str, OpenCause] = field(
        default_factory=lambda: MappingProxyType({NEW.cause.id: NEW})
    )
    """By id of the cause, in order of ids."""
    streaks: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Bad polls in a row of causes that are not open yet."""
    incidents: tuple[Incident, ...] = ()
    histories: Mapping[str, History] = field(default_factory=lambda: MappingProxyType({}))
    penalty: Penalty = field(default_factory=Penalty)

    @property
    def idle(self) -> bool:
        """Whether no rule waits for anything."""
        return not (self.open or self.streaks or self.incidents)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRecord:
    """One GPU, by what was seen of it. A new one is NEW until its first full sample."""

    boot_id: str | None = None
    past_boots: tuple[str, ...] = ()
    """Earlier boots, the latest last: what still comes from them is stale."""
    time_s: float = -math.inf
    """The newest poll."""
    full_s: float | None = None
    """The newest full sample."""
    ledger: Ledger = field(default_factory=Ledger)


def open_causes(record: GpuRecord) -> tuple[Cause, ...]:
    """The open causes, in order of their ids: what the node's document says of the GPU."""
    return tuple(each.cause for each in record.ledger.open.values())


def state_of(record: GpuRecord) -> Health:
    """The most severe state of any open cause (invariant 3)."""
    return worst(each.cause.state for each in record.ledger.open.values())
