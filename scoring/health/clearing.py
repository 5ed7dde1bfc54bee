"""When an open cause is over: one function for each clear rule.

A rule sees one full sample at a time; a sample with gaps clears nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from scoring.health.breaches import Breach, calm
from scoring.health.causes import Clear, clear_of
from scoring.health.damping import History, exit_delay_s
from scoring.health.record import OpenCause
from scoring.model import Health
from scoring.policy import Policy
from scoring.signals.catalogue import Signal
from scoring.signals.sampling import Sample

RECOVERY_SETTLE_S: Final = 5.0
"""The driver's recovery action may lag an event by this much (ours, unmeasured)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One full sample as the rules see it."""

    time_s: float
    silence_s: float
    """Time since the full sample before that nobody watched; 0 where polls follow each other."""
    sample: Sample
    breaches: Mapping[str, Breach]
    trouble: bool
    """Something worse than a term is open, so that terms do not run."""
    policy: Policy

    @property
    def no_recovery_asked(self) -> bool:
        """The driver supports recovery actions and asks for none."""
        return self.sample.levels.get(Signal.RECOVERY_ACTION) == 0

    def severe(self, cause: str) -> bool:
        """Whether something else in the sample still asks for a repair."""
        return any(
            breach.state >= Health.RESET_REQUIRED and breach.cause != cause
            for breach in self.breaches.values()
        )


_Rule = Callable[[OpenCause, History, Look], OpenCause | None]
"""The cause after this look; None: it is over."""


def cleared(was: OpenCause, history: History, look: Look) -> OpenCause | None:
    """What is left of an open cause after a full sample that does not breach it."""
    if look.silence_s and was.clean_s is not None:
        was = replace(was, clean_s=was.clean_s + look.silence_s)
    if look.silence_s and was.until_s is not None:
        was = replace(was, until_s=was.until_s + look.silence_s)
    return _RULES[clear_of(was.cause.id, was.peak)](was, history, look)


def returns_on_probation(was: OpenCause) -> bool:
    """Whether the GPU is on probation once this cause is over."""
    if clear_of(was.cause.id, was.peak) not in (Clear.REPAIR, Clear.COUNTER):
        return False
    return was.peak >= Health.RESET_REQUIRED or was.repaired_s is not None


def _stays(was: OpenCause, _history: History, _look: Look) -> OpenCause | None:
    return was


def _after_repair(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    if was.cause.state is Health.FAILED:
        return was
    was = _lowered(was, look)
    repaired = (
        was.repaired_s is not None
        or was.cause.id == "gpu.lost"
        or (was.cause.id == "recovery.action" and look.no_recovery_asked)
        or (was.linked and was.cause.state < was.peak)
    )
    if not repaired or look.severe(was.cause.id):
        return replace(was, clean_polls=0)
    return _counted(was, look.policy.event_clean_polls)


def _lowered(was: OpenCause, look: Look) -> OpenCause:
    """SUSPECT instead of a reset, while a driver that would ask for one does not."""
    settled = look.time_s - (was.cause.last_s or 0.0) >= RECOVERY_SETTLE_S
    reset_class = was.linked and was.peak is Health.RESET_REQUIRED
    if reset_class and settled and look.no_recovery_asked:
        return replace(was, cause=replace(was.cause, state=Health.SUSPECT))
    return was


def _counter_again(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    if not calm(look.sample, was.cause.id) or look.severe(was.cause.id):
        return replace(was, clean_polls=0)
    return _counted(was, look.policy.event_clean_polls)


def _flag_down(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    return None if calm(look.sample, was.cause.id) else was


def _polls(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    if not calm(look.sample, was.cause.id):
        return was
    return _counted(was, look.policy.event_clean_polls)


def _counted(was: OpenCause, needed: int) -> OpenCause | None:
    polls = was.clean_polls + 1
    return None if polls >= needed else replace(was, clean_polls=polls)


def _level(was: OpenCause, history: History, look: Look) -> OpenCause | None:
    if not calm(look.sample, was.cause.id):
        return was
    now = _clean(was, look)
    waited = _waited(now, look) >= exit_delay_s(history, look.policy)
    return None if waited and now.clean_polls >= look.policy.clean_polls else now


def _rate(was: OpenCause, history: History, look: Look) -> OpenCause | None:
    quiet = calm(look.sample, was.cause.id, look.policy.rate_clear_ratio)
    if quiet is None:
        return was
    if not quiet:
        return replace(was, clean_polls=0, clean_s=None)
    now = _clean(was, look)
    needed_s = max(look.policy.rate_clear_s, exit_delay_s(history, look.policy))
    return None if _waited(now, look) >= needed_s else now


def _clean(was: OpenCause, look: Look) -> OpenCause:
    since_s = look.time_s if was.clean_s is None else was.clean_s
    return replace(was, clean_polls=was.clean_polls + 1, clean_s=since_s)


def _waited(was: OpenCause, look: Look) -> float:
    return look.time_s - (look.time_s if was.clean_s is None else was.clean_s)


def _window(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    last_s = was.cause.last_s or 0.0
    return None if look.time_s - last_s >= look.policy.pattern.window_s else was


def _sample(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    """Full samples end silence: one, or two in a row where it was long."""
    if was.cause.id == "gpu.new":
        return None
    first = was.clean_polls == 0
    last_s = look.time_s if first else was.cause.last_s
    now = replace(was, cause=replace(was.cause, last_s=last_s))
    long_s = look.policy.unknown_after_s + look.policy.unknown_long_s
    silent_s = (now.cause.last_s or 0.0) - (now.cause.first_s or 0.0)
    return _counted(now, 2 if silent_s >= long_s else 1)


def _term(was: OpenCause, _history: History, look: Look) -> OpenCause | None:
    until_s = look.time_s if was.until_s is None else was.until_s
    if was.cause.id == "probation" and look.trouble:
        return replace(was, until_s=max(until_s, look.time_s + look.policy.probation_s))
    return None if look.time_s >= until_s else was


_RULES: Final[Mapping[Clear, _Rule]] = MappingProxyType(
    {
        Clear.NEVER: _stays,
        Clear.REPAIR: _after_repair,
        Clear.COUNTER: _counter_again,
        Clear.FLAG: _flag_down,
        Clear.POLLS: _polls,
        Clear.LEVEL: _level,
        Clear.RATE: _rate,
        Clear.WINDOW: _window,
        Clear.SAMPLE: _sample,
        Clear.TIME: _term,
    }
)
