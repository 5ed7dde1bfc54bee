"""What one XID or SXID event means by itself, before its incident is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from scoring.model import Health, Scope
from scoring.xid import nvlink4, nvlink5, recovery
from scoring.xid.catalogue import Entry, Pattern, XidClass, entry_of
from scoring.xid.events import GpuEvent, Lost, Sxid
from scoring.xid.recovery import Action
from scoring.xid.rules import NO_RULES, Rules
from scoring.xid.sxid import state_of, sxid_entry_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The meaning of one event."""

    state: Health | None
    """None: record only."""
    scope: Scope = Scope.GPU
    meaning: str = ""
    entry: Entry | None = None
    """Its row of the XID table; None for events without an XID."""
    action: Action | None = None
    """What an XID 154 asks for."""
    sympathetic: bool = False
    """A weak sign that counts only where nothing else explains it."""
    watch: str | None = None
    """Where it must come back (`nvlink4.REPEATS_TO_ACT` times) to count as RESET_REQUIRED."""
    clears: frozenset[int] = frozenset()

    @property
    def pattern(self) -> Pattern | None:
        """When the code, recorded, points at the GPU after all."""
        return self.entry.pattern if self.entry else None

    def linked(self, branch: int | None) -> bool:
        """Whether the recovery action speaks about this event on a driver of this branch (570 of
        570.86.15). An unknown branch (None) proves a link only for codes that always have it.
        """
        since = self.entry.linked_from if self.entry else None
        return since is not None and (since == 0 or (branch is not None and branch >= since))


def effect(event: GpuEvent, rules: Rules = NO_RULES) -> Effect:
    """What `event` does to its GPU if nothing else is known."""
    if isinstance(event, Lost):
        return _LOST
    found = _effect_of(event.code, event.text if event.code in _DECODERS else "", rules)
    if found.entry is None or not found.entry.per_instance or event.gpu_instance is None:
        return found
    scope = Scope.GPU_INSTANCE if event.compute_instance is None else Scope.COMPUTE_INSTANCE
    return Effect(state=found.state, scope=scope, meaning=found.meaning, entry=found.entry)


def switch_effect(event: Sxid, rules: Rules = NO_RULES) -> Effect:
    """What an NVSwitch error does to the node if nothing else is known."""
    entry = sxid_entry_of(event.code)
    state = rules.state_of(event.id) if rules.has(event.id) else state_of(entry, fatal=event.fatal)
    return Effect(state=state, scope=entry.scope, meaning=entry.meaning, clears=entry.clears)


_LOST: Final = Effect(state=Health.REBOOT_REQUIRED, meaning="the GPU fell off the PCIe bus")


@lru_cache(maxsize=4096)
def _effect_of(code: int, text: str, rules: Rules) -> Effect:
    entry = entry_of(code)
    if rules.has(f"xid.{code}"):
        state = rules.state_of(f"xid.{code}")
        return Effect(
            state=state, scope=entry.scope, meaning=entry.meaning, entry=entry, clears=entry.clears
        )
    if code in _DECODERS:
        return _DECODERS[code](entry, text)
    return Effect(
        state=entry.state,
        scope=entry.scope,
        meaning=entry.meaning,
        entry=entry,
        clears=entry.clears,
    )


def _nvlink4(entry: Entry, text: str) -> Effect:
    error = nvlink4.decode(text)
    state, scope = _OF_SIGN[error.sign]
    return Effect(
        state=state,
        scope=scope,
        meaning=error.meaning,
        entry=entry,
        sympathetic=error.sign is nvlink4.Sign.SYMPATHETIC,
        watch=f"link {error.link}" if error.sign is nvlink4.Sign.WATCH else None,
    )


_OF_SIGN: Final[Mapping[nvlink4.Sign, tuple[Health | None, Scope]]] = {
    nvlink4.Sign.HARMLESS: (None, Scope.LINK),
    nvlink4.Sign.SYMPATHETIC: (Health.SUSPECT, Scope.LINK),
    nvlink4.Sign.WATCH: (Health.SUSPECT, Scope.LINK),
    nvlink4.Sign.ACT: (Health.RESET_REQUIRED, Scope.LINK),
    nvlink4.Sign.FABRIC: (Health.RESET_REQUIRED, Scope.FABRIC),
}


def _nvlink5(entry: Entry, text: str) -> Effect:
    error = nvlink5.decode(entry.code, text)
    if error.resolution is None:
        return Effect(state=entry.state, meaning=error.meaning, entry=entry)
    resets = error.resolution is nvlink5.Resolution.RESET
    state = Health.RESET_REQUIRED if resets else None
    return Effect(state=state, meaning=error.meaning, entry=entry)


def _recovery(entry: Entry, text: str) -> Effect:
    action = recovery.stated(text)
    if action is None:
        return Effect(state=entry.state, meaning=entry.meaning, entry=entry)
    return Effect(
        state=action.state, scope=action.scope, meaning=action.meaning, entry=entry, action=action
    )


_INTENDED: Final = re.compile(r"\bintentional|\bsleep\b", re.IGNORECASE)


def _link_taken_down(entry: Entry, text: str) -> Effect:
    state = None if _INTENDED.search(text) else entry.state
    return Effect(state=state, scope=entry.scope, meaning=entry.meaning, entry=entry)


_DECODERS: Final[Mapping[int, Callable[[Entry, str], Effect]]] = {
    74: _nvlink4,
    **dict.fromkeys(nvlink5.CODES, _nvlink5),
    154: _recovery,
    155: _link_taken_down,
}


def is_link_fault(found: Effect) -> bool:
    """Whether the event says that this GPU may have taken links of its peers down with it."""
    if found.state is None or found.sympathetic or found.state < Health.RESET_REQUIRED:
        return False
    return found.entry is None or found.entry.kind is XidClass.LINK
