"""From kernel events of one GPU to findings: the bridge from `scoring.xid` to the fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scoring.health.findings import Finding
from scoring.model import Health
from scoring.xid.effect import Effect, effect
from scoring.xid.events import GpuEvent, Lost
from scoring.xid.judge import fold_incident
from scoring.xid.rules import AUTHORITY, NO_RULES, Rules


def findings(
    events: Iterable[GpuEvent],
    *,
    time_s: float,
    boot_id: str | None = None,
    branch: int | None = None,
    workload: str | None = None,
    rules: Rules = NO_RULES,
) -> tuple[Finding, ...]:
    """The findings of one GPU from the events of one incident, in order of time.

    Followers and details are folded; the text of an XID 154 settles what came before it.

    Args:
        events: what the kernel said of this GPU.
        time_s: when, for events whose log does not say.
        boot_id: the boot of the log.
        branch: the driver's branch, 570 of 570.86.15; None: unknown.
        workload: the job that holds the GPU, the same for all its pods; None: unknown.
        rules: what the site changes.
    """
    incident = list(events)
    effects = [effect(event, rules) for event in incident]
    linked = {e.id: f for e, f in zip(incident, effects, strict=True) if _linked(e, f, branch)}
    opened = tuple(
        Finding(
            cause=cause.id,
            time_s=time_s if cause.last_s is None else cause.last_s,
            state=cause.state,
            boot_id=boot_id,
            scope=cause.scope,
            linked=cause.id in linked,
            evidence=cause.evidence,
        )
        for cause in fold_incident(incident, rules=rules, branch=branch).causes
    )
    recorded = (
        Finding(
            cause=event.id,
            time_s=time_s if event.unix_s is None else event.unix_s,
            state=Health.HEALTHY,
            boot_id=boot_id,
            pattern=found.pattern,
            workload=workload,
            clears=tuple(_clears(event, found)),
            evidence=event.evidence,
        )
        for event, found in zip(incident, effects, strict=True)
        if found.state is None
    )
    return (*opened, *recorded)


def _linked(event: GpuEvent, found: Effect, branch: int | None) -> bool:
    """The recovery action speaks about the codes linked to it, and about its own message."""
    return event.id == AUTHORITY or found.linked(branch)


def _clears(event: GpuEvent, found: Effect) -> Iterator[str]:
    """What the event is the end of: a 154 that asks for nothing ends the 154 before it."""
    if not isinstance(event, Lost) and event.id == AUTHORITY and found.action is not None:
        yield AUTHORITY
    yield from (f"xid.{code}" for code in sorted(found.clears))
