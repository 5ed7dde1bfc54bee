"""Events in the fold: each opens or refreshes its own cause, and closes only what it is the end of."""

from __future__ import annotations

from dataclasses import replace

from scoring.health import pattern
from scoring.health.draft import Draft
from scoring.health.findings import Finding
from scoring.health.record import OpenCause
from scoring.model import Health


def observe(draft: Draft, finding: Finding, boot_id: str | None) -> None:
    """One event. From another boot, or older than the last clear of its cause, it is stale."""
    if finding.boot_id is not None and boot_id is not None and finding.boot_id != boot_id:
        return
    for id_ in finding.clears:
        ended = draft.open.get(id_)
        if ended is not None and (ended.cause.last_s or 0.0) <= finding.time_s:
            draft.close(id_, finding.time_s)
    closed_s = draft.history(finding.cause).closed_s
    if closed_s is not None and finding.time_s <= closed_s:
        return
    if finding.pattern is not None:
        draft.incidents = pattern.noted(draft.incidents, pattern.incident(finding), draft.policy)
    if finding.state is Health.HEALTHY:
        return
    was = draft.open.get(finding.cause)
    if was is not None:
        _again(draft, was, finding)
        return
    draft.enter(
        finding.cause,
        finding.state,
        finding.scope,
        finding.time_s,
        finding.evidence,
        linked=finding.linked,
    )


def _again(draft: Draft, was: OpenCause, finding: Finding) -> None:
    """An event of an open cause: what is newer undoes a repair, what is not can only worsen it."""
    if was.repaired_s is not None and finding.time_s <= was.repaired_s:
        return
    newer = finding.time_s > (was.cause.last_s or 0.0)
    if newer:
        cause = replace(
            was.cause,
            state=max(was.peak, was.cause.state),
            last_s=finding.time_s,
            count=was.cause.count + 1,
            evidence=finding.evidence,
        )
        draft.open[finding.cause] = replace(was, cause=cause, repaired_s=None, clean_polls=0)
    if not finding.linked:
        draft.open[finding.cause] = replace(draft.open[finding.cause], linked=False)
    # What is neither newer nor worse than the worst so far was judged then, and perhaps acquitted.
    judged = not newer and finding.state <= was.peak
    state = draft.open[finding.cause].cause.state if judged else finding.state
    draft.raise_to(finding.cause, state, finding.scope, finding.time_s)


def note_pattern(draft: Draft, now_s: float) -> None:
    """The pattern of application faults, which follows from the incidents alone."""
    draft.incidents = pattern.recent(draft.incidents, now_s, draft.policy)
    state = pattern.judged(draft.incidents, draft.policy)
    if state is Health.HEALTHY:
        if "pattern" in draft.open:
            draft.close("pattern", now_s)
        return
    last_s = max(incident.end_s for incident in draft.incidents)
    since_s = pattern.since_s(draft.incidents, state, draft.policy)
    evidence = pattern.described(draft.incidents)
    if "pattern" not in draft.open:
        draft.enter_known("pattern", since_s, evidence, state=state)
    was = draft.open["pattern"]
    cause = replace(was.cause, state=state, last_s=last_s, evidence=evidence)
    draft.open["pattern"] = replace(was, cause=cause)
    draft.raise_to("pattern", state, was.cause.scope, since_s)
