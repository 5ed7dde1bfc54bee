"""What pods that a node refused, or that failed at once there, say of the node.

Telemetry may be silent on a node that fails every pod (pytorch/ci-infra #1058: one lost GPU, 554 pods
in 106 minutes), and a refused pod is tried again where it was refused (kubernetes #67874, #70201). So
a rejection counts twice: for a while against the node for pods of the same owner, and, where
several owners meet the same, against the node itself.

No order of rejections matters, one more never makes a node look better, and time alone never makes
it look worse.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scoring.model import Cause, Fleet, Health, NodeName, Rejection, Scope
from scoring.policy import Policy

CAUSE: Final = "pods.rejected"
"""The cause that is open on a node which rejects pods of several owners."""

_SHOWN: Final = 3
"""Reasons that the evidence names."""
_SHOWN_LENGTH: Final = 80
"""Characters of each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Rejections for one reason."""

    reason: str
    count: int
    last_s: float


def penalty_ratio(
    rejections: Iterable[Rejection], owner: str, now_s: float, policy: Policy
) -> float:
    """How much the rejections of one node speak against it for the next pod of `owner`: 0..1.

    Each counts 1 when it is fresh, half of that after each half-life, nothing after `keep`; together
    1 at most.
    """
    counts = (
        0.5 ** (_age_s(each, now_s) / policy.rejection.half_life_s)
        for each in _of(owner, rejections, now_s, policy)
    )
    # The exact sum: the same in any order.
    return min(1.0, math.fsum(counts))


def by_node(fleet: Fleet, owner: str, policy: Policy) -> Mapping[NodeName, float]:
    """The part of its rank that a node loses for pods of `owner`: 0..`rejection.weight`, for the few
    nodes that lose something. The rank that is left is `rank * (1 - part)`, still 0..1.
    """
    if not owner:
        return {}
    found = {}
    for name, rejections in fleet.rejections.items():
        part = policy.rejection.weight * penalty_ratio(rejections, owner, fleet.now_s, policy)
        if part > 0.0:
            found[name] = part
    return found


def tallies(
    rejections: Iterable[Rejection], owner: str, now_s: float, policy: Policy
) -> tuple[Tally, ...]:
    """The rejections of one node that count against it for `owner`, by reason, the latest first."""
    times_s: dict[str, list[float]] = {}
    for each in _of(owner, rejections, now_s, policy):
        times_s.setdefault(each.reason, []).append(each.at_s)
    found = (
        Tally(reason=reason[:_SHOWN_LENGTH], count=len(times), last_s=max(times))
        for reason, times in times_s.items()
    )
    return tuple(sorted(found, key=lambda tally: (-tally.last_s, tally.reason)))


def suspicion(
    rejections: Iterable[Rejection], now_s: float, policy: Policy
) -> tuple[Cause | None, float]:
    """The cause that is open on a node with these rejections, and when it is over (infinity where
    none is open).

    It opens with `pods` rejections of `workloads` owners within `window`, and is over when the last
    such window ended `suspect_for` ago.
    """
    rules = policy.rejection
    window = _last_window(rejections, policy)
    if not window:
        return None, math.inf
    ends_s = window[-1].at_s + rules.suspect_for_s
    if now_s >= ends_s:
        return None, math.inf
    cause = Cause(
        id=CAUSE,
        state=Health.SUSPECT,
        scope=Scope.NODE,
        first_s=window[0].at_s,
        last_s=window[-1].at_s,
        count=len(window),
        evidence=_evidence(window),
    )
    return cause, ends_s


def _last_window(rejections: Iterable[Rejection], policy: Policy) -> Sequence[Rejection]:
    """The latest rejections within one window that are enough for suspicion, in the order of time;
    empty where no window holds enough.
    """
    rules = policy.rejection
    ordered = sorted(rejections, key=lambda each: (each.at_s, each.owner, each.reason, each.name))
    times_s = [each.at_s for each in ordered]
    for end in range(len(ordered), rules.pods - 1, -1):
        window = ordered[bisect_right(times_s, times_s[end - 1] - rules.window_s) : end]
        owners = {each.owner for each in window}
        if len(window) >= rules.pods and len(owners) >= rules.workloads:
            return window
    return ()


def _evidence(window: Sequence[Rejection]) -> str:
    owners = len({each.owner for each in window})
    reasons = sorted({each.reason[:_SHOWN_LENGTH] for each in window})
    more = f" and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
    span_s = math.ceil(window[-1].at_s - window[0].at_s)
    return (
        f"{len(window)} pods of {owners} workloads rejected within {span_s} s:"
        f" {', '.join(reasons[:_SHOWN])}{more}"
    )


def _of(
    owner: str, rejections: Iterable[Rejection], now_s: float, policy: Policy
) -> Iterable[Rejection]:
    """Those of `owner` that still count."""
    keep_s = policy.rejection.keep_s
    return (each for each in rejections if each.owner == owner and now_s - each.at_s < keep_s)


def _age_s(rejection: Rejection, now_s: float) -> float:
    """A time ahead of us is another clock's: it is now, not better than now."""
    return max(0.0, now_s - rejection.at_s)
