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
HALF_LIVES_KEPT: Final = 10
"""An entry older than this, which counts less than a thousandth, is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """Each entry into DEGRADED or worse counts 1, and half of it after every `flap.halfLife`.

    One incident has many symptoms, so a slot of `incidentGap` seconds counts once. Slots are aligned
    to the clock, not to the first symptom, and a late entry counts in its own: then neither one more
    cause nor the order of arrival can make the sum smaller.
    """

    slots: tuple[int, ...] = ()
    """The slots that count, in order."""

    def at(self, time_s: float, policy: Policy) -> float:
        """The sum at `time_s`, over the slots that began by then."""
        ages_s = [time_s - slot * policy.incident_gap_s for slot in self.slots]
        half_life_s, longest_s = policy.flap.half_life_s, _longest_s(policy)
        return float(
            sum(0.5 ** (age_s / half_life_s) for age_s in ages_s if 0 <= age_s < longest_s)
        )

    def grown(self, time_s: float, policy: Policy) -> Penalty:
        """The penalty after one more entry."""
        slot = int(time_s // policy.incident_gap_s)
        if slot in self.slots:
            return self
        slots = sorted({*self.slots, slot})
        oldest = slots[-1] - _longest_s(policy) / policy.incident_gap_s
        return Penalty(slots=tuple(each for each in slots if each > oldest))

    def reached_s(self, level: float, time_s: float, policy: Policy) -> float | None:
        """The beginning of the newest slot, not before that of `time_s`, with a sum of `level` or
        more; None: there is none.
        """
        first = int(time_s // policy.incident_gap_s)
        begins_s = (each * policy.incident_gap_s for each in reversed(self.slots) if each >= first)
        return next((each_s for each_s in begins_s if self.at(each_s, policy) >= level), None)


def _longest_s(policy: Policy) -> float:
    return HALF_LIVES_KEPT * policy.flap.half_life_s


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
