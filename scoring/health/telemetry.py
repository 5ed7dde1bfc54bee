"""Polls without a full sample: NEW runs out, what was fresh gets stale, then UNKNOWN.

No data is not health (invariant 2). This is about one GPU of a node that is heard from;
`staleness` judges the silence of a whole node when it is read.
"""

from __future__ import annotations

from dataclasses import replace

from scoring.health.draft import Draft
from scoring.model import Health


def silent(draft: Draft, full_s: float | None, time_s: float) -> None:
    """A poll at `time_s` without a full sample; `full_s`: when the last one came."""
    policy = draft.policy
    new, stale = draft.open.get("gpu.new"), draft.open.get("stale")
    if new is not None:
        first_s = time_s if new.cause.first_s is None else new.cause.first_s
        if time_s - first_s < policy.new_grace_s:
            draft.open["gpu.new"] = replace(new, cause=replace(new.cause, first_s=first_s))
            return
        del draft.open["gpu.new"]
        open_stale(draft, first_s, time_s, Health.UNKNOWN)
        return
    since_s = full_s if stale is None else stale.cause.first_s
    age_s = time_s - (time_s if since_s is None else since_s)
    if full_s is None or age_s >= policy.unknown_after_s:
        open_stale(draft, time_s - age_s, time_s, Health.UNKNOWN)
    elif stale is not None or age_s >= policy.stale_after_s:
        open_stale(draft, time_s - age_s, time_s, Health.UNMONITORED)


def returned(draft: Draft, silence_s: float, time_s: float) -> None:
    """A full sample after silence; after a long one it is UNKNOWN until the next one agrees."""
    policy = draft.policy
    if silence_s >= policy.unknown_after_s + policy.unknown_long_s and "stale" not in draft.open:
        open_stale(draft, time_s - silence_s, time_s, Health.UNKNOWN)


def open_stale(draft: Draft, since_s: float, time_s: float, state: Health) -> None:
    """The last full sample is from `since_s`, and that is too long ago."""
    evidence = f"no full sample for {time_s - since_s:.0f} s"
    if "stale" not in draft.open:
        draft.enter_known("stale", since_s, evidence, state=state)
    was = draft.open["stale"]
    cause = replace(was.cause, state=state, last_s=time_s, evidence=evidence)
    draft.open["stale"] = replace(was, cause=cause, peak=max(was.peak, state), clean_polls=0)
