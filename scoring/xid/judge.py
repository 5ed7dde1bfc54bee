"""Fold the events of one device into causes.

Authority, strongest first: the recovery action read from the driver, the text of an XID 154, the
table with its decodes, SUSPECT for what nobody knows (NVIDIA's XID catalogue, column
"Xid 154 linkage"; NVIDIA/dra-driver-nvidia-gpu PR 1441).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from scoring.model import Cause, Health, Scope
from scoring.xid.effect import Effect, effect, switch_effect
from scoring.xid.events import GpuEvent, KernelEvent, Sxid
from scoring.xid.nvlink4 import REPEATS_TO_ACT
from scoring.xid.recovery import Action
from scoring.xid.rules import AUTHORITY, NO_RULES, Rules

RECOVERY_CAUSE: Final = "recovery.action"
"""The cause that a recovery action opens where no XID 154 was seen."""
FIRST_BRANCH_OF_154: Final = 565
"""The first driver branch that prints XID 154, so that one in the log proves it."""
INCIDENT_GAP_S: Final = 180.0
LOST_XID: Final = "xid.79"
LOST: Final = "gpu.lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the events of a device come to."""

    causes: tuple[Cause, ...] = ()
    """By id, the worst first."""
    recorded: tuple[str, ...] = ()
    """Codes that say nothing against the device by themselves, in order of number."""

    @property
    def state(self) -> Health:
        """The worst state of the causes."""
        return max((cause.state for cause in self.causes), default=Health.HEALTHY)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One event with the state that its incident leaves it; None: recorded."""

    event: KernelEvent
    id: str
    effect: Effect
    state: Health | None
    scope: Scope


def fold_incident(
    events: Iterable[GpuEvent],
    *,
    rules: Rules = NO_RULES,
    action: Action | None = None,
    branch: int | None = None,
    peer_fault: bool = False,
) -> Findings:
    """The causes of one GPU from the events of one incident, in order of time.

    Args:
        events: what the kernel said of this GPU.
        rules: what the site changes.
        action: the recovery action read from the driver after the events; None: not supported.
        branch: the driver's branch (570 of 570.86.15); None: unknown, and then an action of none
            acquits only codes that every branch with XID 154 links to it.
        peer_fault: another device of the node explains sympathetic link errors.
    """
    return _fold([list(events)], rules, action, branch, peer_fault=peer_fault)


def fold_history(
    events: Iterable[GpuEvent],
    *,
    gap_s: float = INCIDENT_GAP_S,
    rules: Rules = NO_RULES,
    action: Action | None = None,
    branch: int | None = None,
    peer_fault: bool = False,
) -> Findings:
    """As `fold_incident`, over as many incidents as the events make: silence of `gap_s` ends one.

    Followers and repeats are folded within an incident; the last recovery action speaks for all
    that came before it.
    """
    incidents = list(split(list(events), gap_s))
    return _fold(incidents, rules, action, branch, peer_fault=peer_fault)


def fold_switches(events: Iterable[Sxid], rules: Rules = NO_RULES) -> Findings:
    """The causes of a node from the errors of its NVSwitches, in order of time."""
    judged: list[_Judged] = []
    for event in events:
        found = switch_effect(event, rules)
        if found.clears:
            ended = {f"sxid.{code}" for code in found.clears}
            judged = [j for j in judged if j.id not in ended or j.event.pci != event.pci]
        judged.append(_Judged(event, event.id, found, found.state, found.scope))
    return _findings(judged)


def fold_unattributed(events: Iterable[GpuEvent], rules: Rules = NO_RULES) -> Findings:
    """The causes of a node from messages that name no device: any of its GPUs may be meant, so
    the node is SUSPECT.
    """
    found = fold_incident(events, rules=rules)
    return Findings(
        causes=tuple(
            dataclasses.replace(cause, state=Health.SUSPECT, scope=Scope.NODE)
            for cause in found.causes
        ),
        recorded=found.recorded,
    )


def split(events: Sequence[GpuEvent], gap_s: float = INCIDENT_GAP_S) -> Iterator[list[GpuEvent]]:
    """The events by incident. Where a clock is missing the incident goes on."""
    incident: list[GpuEvent] = []
    last_s: float | None = None
    for event in events:
        now_s = event.clock_s
        # A clock that ran backwards is another boot.
        if now_s is not None and last_s is not None and not 0 <= now_s - last_s <= gap_s:
            yield incident
            incident = []
        incident.append(event)
        last_s = last_s if now_s is None else now_s
    if incident:
        yield incident


def _fold(
    incidents: Iterable[Sequence[GpuEvent]],
    rules: Rules,
    reading: Action | None,
    branch: int | None,
    *,
    peer_fault: bool,
) -> Findings:
    judged = _without_cleared(
        list(chain.from_iterable(_incident(i, rules, peer_fault=peer_fault) for i in incidents))
    )
    stated = [(i, said) for i, j in enumerate(judged) if (said := j.effect.action) is not None]
    if stated:
        branch = branch or FIRST_BRANCH_OF_154
        judged = _after_154(judged, *stated[-1], branch)
    if reading is not None:
        judged = [_settled(j, reading, branch) for j in judged]
    if any(j.id == LOST_XID and j.state is not None for j in judged):
        judged = [j for j in judged if j.id != LOST]
    raised = reading is not None and reading.state is not None
    return _findings(judged, reading if raised else None)


def _incident(events: Sequence[GpuEvent], rules: Rules, *, peer_fault: bool) -> Iterator[_Judged]:
    """Each event with the state that its incident leaves it: followers and details say nothing,
    sympathetic errors only where nothing else explains them, some only when they come back.
    """
    effects = [effect(event, rules) for event in events]
    present = {e.entry.code for e in effects if e.entry is not None and e.state is not None}
    explained = peer_fault or any(_explains(e) for e in effects)
    seen_at = Counter(e.watch for e in effects if e.watch is not None)
    leaders: set[int] = set()
    for event, found in zip(events, effects, strict=True):
        state = found.state
        if found.entry is not None and state is not None:
            if found.entry.detail_of in present or not leaders.isdisjoint(found.entry.follows):
                state = None
            elif state >= Health.RESET_REQUIRED:
                leaders.add(found.entry.code)
        if found.sympathetic and explained:
            state = None
        if found.watch is not None and seen_at[found.watch] >= REPEATS_TO_ACT:
            state = Health.RESET_REQUIRED
        yield _Judged(event, event.id, found, state, found.scope)


def _explains(found: Effect) -> bool:
    """Whether the event is a fault that drags sympathetic errors along."""
    return found.state is not None and not found.sympathetic and found.action is None


def _without_cleared(judged: list[_Judged]) -> list[_Judged]:
    """Drop what a later event declares over (162 ends 163)."""
    kept: list[_Judged] = []
    for item in judged:
        ended = {f"xid.{code}" for code in item.effect.clears}
        if ended:
            kept = [earlier for earlier in kept if earlier.id not in ended]
        kept.append(item)
    return kept


def _after_154(judged: list[_Judged], at: int, action: Action, branch: int) -> list[_Judged]:
    """Apply the last recovery action that the log states: it speaks about all before it."""
    before = [_settled(item, action, branch) for item in judged[:at] if item.id != AUTHORITY]
    return [*before, *judged[at:]]


def _settled(item: _Judged, action: Action, branch: int | None) -> _Judged:
    """`item` under the driver's verdict. Only faults that need a repair are open to it, and only
    where the driver's branch links their code to it; a graver verdict opens a cause of its own.
    """
    if item.id == AUTHORITY:
        return dataclasses.replace(item, state=action.state, scope=action.scope)
    if item.state is None or not Health.RESET_REQUIRED <= item.state < Health.FAILED:
        return item
    if not action.settles or not item.effect.linked(branch):
        return item
    state = Health.SUSPECT if action.state is None else action.state
    return dataclasses.replace(item, state=state)


def _findings(judged: Iterable[_Judged], reading: Action | None = None) -> Findings:
    """Group by code: the worst event of a code speaks for it, and its first evidence is kept."""
    open_: dict[str, list[_Judged]] = {}
    recorded: dict[str, None] = {}
    for item in judged:
        if item.state is None:
            recorded[item.id] = None
        else:
            open_.setdefault(item.id, []).append(item)
    causes = [_cause(id_, items) for id_, items in open_.items()]
    if reading is not None and reading.state is not None and AUTHORITY not in open_:
        causes.append(
            Cause(
                id=RECOVERY_CAUSE,
                state=reading.state,
                scope=reading.scope,
                evidence=reading.meaning,
            )
        )
    return Findings(
        causes=tuple(sorted(causes, key=lambda cause: (-cause.state, _number(cause.id)))),
        recorded=tuple(sorted((r for r in recorded if r not in open_), key=_number)),
    )


def _cause(id_: str, items: Sequence[_Judged]) -> Cause:
    worst = max(items, key=lambda item: item.state or Health.HEALTHY)
    times_s = [item.event.unix_s for item in items if item.event.unix_s is not None]
    return Cause(
        id=id_,
        state=worst.state or Health.HEALTHY,
        scope=worst.scope,
        first_s=min(times_s, default=None),
        last_s=max(times_s, default=None),
        count=sum(item.event.count for item in items),
        evidence=f"{worst.effect.meaning}: {worst.event.evidence}".rstrip(": "),
    )


def _number(id_: str) -> tuple[str, int, str]:
    kind, _, number = id_.partition(".")
    return kind, int(number) if number.isdecimal() else 0, number
