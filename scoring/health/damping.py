"""Flap damping: trouble that returns costs more each time.

Three memories, each decaying: a penalty for the GPU, the number of entries for each cause (it
doubles the clean time asked before the cause closes), and the repairs tried for each cause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from scoring.model import Health
from scoring.policy import Policy

REPAIR_MEMORY_S: Final = 7 * 86_400.0
"""How long a repair is remembered against its cause (NVSentinel counts remediations in 7 days)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """A sum that halves every `flap.halfLife`."""

    value: float = 0.0
    at_s: float = 0.0
    slot: int | None = None
    """The slot of `incidentGap` seconds in which it last grew."""

    def at(self, time_s: float, policy: Policy) -> float:
        """What is left of it at `time_s`."""
        if not self.value:
            return 0.0
        age_s = max(0.0, time_s - self.at_s)
        return float(self.value * 0.5 ** (age_s / policy.flap.half_life_s))

    def grown(self, time_s: float, policy: Policy) -> Penalty:
        """The penalty after one more entry into DEGRADED or worse.

        One incident has many symptoms, so a slot of time counts once. Slots are aligned to the
        clock, not to the first symptom: then one more cause can never make the sum smaller.
        """
        slot = int(time_s // policy.incident_gap_s)
        if self.slot is not None and slot <= self.slot:
            return self
        at_s = slot * policy.incident_gap_s
        return Penalty(value=self.at(at_s, policy) + 1.0, at_s=at_s, slot=slot)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What one cause did on this GPU before."""

    entries: int = 0
    resets: int = 0
    """Repairs that were seen while the cause was open."""
    reboots: int = 0
    closed_s: float | None = None
    """When it was last over: older events of it are stale."""

    def entered(self, time_s: float, policy: Policy) -> History:
        """One more entry; old ones are forgotten after a half-life, repairs after a week."""
        if self.closed_s is None:
            return replace(self, entries=self.entries + 1)
        away_s = time_s - self.closed_s
        entries = self.entries if away_s < policy.flap.half_life_s else 0
        if away_s < REPAIR_MEMORY_S:
            return replace(self, entries=entries + 1)
        return replace(self, entries=entries + 1, resets=0, reboots=0)


FIRST: Final = History()


def exit_delay_s(history: History, policy: Policy) -> float:
    """Clean time asked before a level's cause closes: it doubles with each re-entry."""
    flap = policy.flap
    doublings = min(max(history.entries - 1, 0), 32)
    return float(min(flap.exit_delay_s * 2.0**doublings, flap.exit_delay_max_s))


def escalated(state: Health, history: History, policy: Policy) -> Health:
    """The cure to ask for after those that did not last: resets, then a reboot, then FAILED."""
    if state is Health.RESET_REQUIRED and history.resets >= policy.attempts.resets:
        state = Health.REBOOT_REQUIRED
    if state is Health.REBOOT_REQUIRED and history.reboots >= policy.attempts.reboots:
        state = Health.FAILED
    return state
