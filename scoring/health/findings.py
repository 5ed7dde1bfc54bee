"""What happened to a GPU, as the fold takes it: events that somebody already understood.

The fold does not know log texts or XID tables. Whoever reads them (`scoring.xid`) says which cause
an event is of, how severe it is, and whether it counts for the pattern of application faults.
"""

from __future__ import annotations

from dataclasses import dataclass

from scoring.model import Health, Scope
from scoring.xid.catalogue import Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One event of one GPU."""

    cause: str
    """`xid.79`, `sxid.20034`, ..."""
    time_s: float
    """On the line of the polls."""
    state: Health
    """HEALTHY: only recorded (application faults, followers of another event)."""
    boot_id: str | None = None
    """The boot it fell in; None: the source does not say, and only its time is judged."""
    scope: Scope = Scope.GPU
    linked: bool = False
    """The driver's recovery action follows this event, so that NONE speaks about it."""
    pattern: Pattern | None = None
    """When a recorded event points at the GPU after all; None: never."""
    workload: str | None = None
    """The job that ran, the same for all its pods; None: not known."""
    clears: tuple[str, ...] = ()
    """Causes that this event declares over: 162 is the end of 163, nothing else."""
    evidence: str = ""
