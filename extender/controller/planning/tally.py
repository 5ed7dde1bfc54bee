"""What the rounds of planning came to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Tally:
    """What the rounds came to, for metrics."""

    rounds: int = 0
    plans: int = 0
    plan_s: float = 0.0
    """Time spent on plans, together."""
    overdue: int = 0
    """Gangs that run in part, and for too long."""
    failing: int = 0
    """Gangs that something failed on, by a mistake of ours."""
    problem: str | None = None
    """Why the last round failed."""
