"""The fold of one GPU's history into its open causes: pure, and the same on every replay.

`fold(record, poll)` takes what one poll brought; folding a history whole or in pieces gives the same
record. Polls that are not newer than the newest one, and whatever comes from an earlier boot, change
nothing: late, repeated and reordered input is harmless. A poll's time is the agent's own line, which
never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scoring.health import clearing, events, repairs, telemetry
from scoring.health.breaches import Breach, breaches, calm
from scoring.health.draft import Draft
from scoring.health.findings import Finding
from scoring.health.record import GpuRecord, open_causes
from scoring.model import Cause, Health
from scoring.policy import DEFAULT, Policy
from scoring.signals.sampling import Sample
from scoring.signals.thresholds import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What one poll of one GPU brought."""

    time_s: float
    boot_id: str | None
    """None: the source does not say, and no reboot can be seen."""
    sample: Sample | None
    """None: the source did not answer, or not of this GPU."""
    findings: tuple[Finding, ...] = ()
    """Events since the poll before, in any order."""
    lost: bool = False
    """The driver says that the GPU is gone, or lists fewer GPUs than at its start."""
    reset_s: float | None = None
    """The last GPU reset that the agent knows of; it may be said again in each poll."""
    job_faults: frozenset[str] = frozenset()
    """Workloads that fail on other GPUs too (`pattern.of_jobs`): their faults here are theirs."""


class Change(StrEnum):
    """What became of a cause."""

    OPENED = "opened"
    CHANGED = "changed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A cause that opened, changed its state, or is over, for logs and events."""

    time_s: float
    change: Change
    cause: Cause
    """As it is now; as it was, when it is over."""


Folded = tuple[GpuRecord, tuple[Transition, ...]]


def fold(record: GpuRecord, poll: Poll, policy: Policy = DEFAULT) -> Folded:
    """The record after one poll, and what changed in it."""
    sample = poll.sample
    if _quiet(record, poll, policy) and sample is not None and not breaches(sample):
        after = GpuRecord(
            boot_id=record.boot_id,
            past_boots=record.past_boots,
            time_s=poll.time_s,
            full_s=poll.time_s,
            ledger=record.ledger,
        )
        return after, ()
    if poll.boot_id in record.past_boots:
        return record, ()
    newer = poll.time_s > record.time_s
    draft = Draft.of(record.ledger, policy)
    if newer:
        record = repairs.boot(draft, record, poll.boot_id, poll.time_s)
    for finding in sorted(poll.findings, key=_in_order):
        events.observe(draft, finding, record.boot_id)
    full = newer and sample is not None and sample.full and not poll.lost
    if newer:
        _judge(draft, record, poll)
    draft.incidents = tuple(i for i in draft.incidents if i.workload not in poll.job_faults)
    events.note_pattern(draft, poll.time_s if newer else record.time_s)
    after = replace(
        record,
        time_s=poll.time_s if newer else record.time_s,
        full_s=poll.time_s if full else record.full_s,
        ledger=draft.ledger(),
    )
    return after, _transitions(record, after, poll.time_s)


def fold_all(record: GpuRecord, polls: Iterable[Poll], policy: Policy = DEFAULT) -> Folded:
    """The record after polls, in the order in which they arrived."""
    transitions: list[Transition] = []
    for poll in polls:
        record, changes = fold(record, poll, policy)
        transitions += changes
    return record, tuple(transitions)


def observe(record: GpuRecord, findings: Iterable[Finding], policy: Policy = DEFAULT) -> Folded:
    """The record after events that come by themselves, between polls.

    An event of a boot that no poll has shown yet is dropped, like one of an earlier boot: fold the
    first poll of the new boot with its events instead.
    """
    draft = Draft.of(record.ledger, policy)
    latest_s = record.time_s
    for finding in sorted(findings, key=_in_order):
        events.observe(draft, finding, record.boot_id)
        latest_s = max(latest_s, finding.time_s)
    events.note_pattern(draft, record.time_s)  # only polls let time pass
    after = replace(record, ledger=draft.ledger())
    return after, _transitions(record, after, latest_s)


def _quiet(record: GpuRecord, poll: Poll, policy: Policy) -> bool:
    """Nothing is open or on its way, and the poll brings an ordinary full sample."""
    sample, full_s = poll.sample, record.full_s
    return (
        sample is not None
        and full_s is not None
        and record.time_s < poll.time_s < full_s + policy.unknown_after_s
        and record.boot_id == poll.boot_id
        and record.ledger.idle
        and not (poll.findings or poll.lost or sample.missing or sample.was_reset)
        and poll.reset_s is None
        and bool(sample.levels)
    )


def _in_order(finding: Finding) -> tuple[float, str, Health, str]:
    return finding.time_s, finding.cause, finding.state, finding.evidence


def _judge(draft: Draft, record: GpuRecord, poll: Poll) -> None:
    """What the sample of a newer poll says, or that there is none."""
    sample = poll.sample
    if poll.lost:
        draft.lose(poll.time_s)
    if poll.reset_s is not None:
        repairs.reset(draft, poll.reset_s)
    if sample is None:
        telemetry.silent(draft, record.full_s, poll.time_s)
        return
    if sample.was_reset and poll.reset_s is None:
        repairs.reset(draft, record.time_s)  # somewhere between the poll before and this one
    found = {breach.cause: breach for breach in breaches(sample)}
    _breached(draft, found, sample, poll.time_s)
    if sample.full and not poll.lost:
        _clear(draft, record, poll, sample, found)
    else:
        telemetry.silent(draft, record.full_s, poll.time_s)


def _breached(draft: Draft, found: Mapping[str, Breach], sample: Sample, time_s: float) -> None:
    """What the sample shows opens at once, or after `entryPolls` polls in a row."""
    for id_ in [id_ for id_ in draft.streaks if id_ not in found]:
        if calm(sample, id_) is not None:
            del draft.streaks[id_]
    for id_, breach in found.items():
        if id_ in draft.open:
            draft.show_again(breach, time_s)
            continue
        streak = draft.streaks.get(id_, 0) + 1
        draft.streaks[id_] = streak
        if breach.entry is Entry.FLAG or streak >= draft.policy.entry_polls:
            draft.enter(id_, breach.state, breach.scope, time_s, breach.evidence)


def _clear(
    draft: Draft, record: GpuRecord, poll: Poll, sample: Sample, found: Mapping[str, Breach]
) -> None:
    """A full sample lets causes clear that it does not show."""
    policy = draft.policy
    silence_s = 0.0 if record.full_s is None else poll.time_s - record.full_s
    telemetry.returned(draft, silence_s, poll.time_s)
    look = clearing.Look(
        time_s=poll.time_s,
        silence_s=silence_s if silence_s >= policy.stale_after_s else 0.0,
        sample=sample,
        breaches=found,
        trouble=any(each.cause.state >= Health.DEGRADED for each in draft.open.values()),
        policy=policy,
    )
    for id_ in sorted(draft.open.keys() - found.keys()):
        was = draft.open[id_]
        now = clearing.cleared(was, draft.history(id_), look)
        if now is not None:
            draft.open[id_] = now
            continue
        draft.close(id_, poll.time_s)
        if clearing.returns_on_probation(was):
            draft.put_on_probation(poll.time_s)


def _transitions(before: GpuRecord, after: GpuRecord, time_s: float) -> tuple[Transition, ...]:
    was = {cause.id: cause for cause in open_causes(before)}
    now = {cause.id: cause for cause in open_causes(after)}
    found = []
    for id_ in sorted({*was, *now}):
        if id_ not in now:
            found.append(Transition(time_s=time_s, change=Change.CLOSED, cause=was[id_]))
        elif id_ not in was:
            found.append(Transition(time_s=time_s, change=Change.OPENED, cause=now[id_]))
        elif was[id_].state is not now[id_].state:
            found.append(Transition(time_s=time_s, change=Change.CHANGED, cause=now[id_]))
    return tuple(found)
