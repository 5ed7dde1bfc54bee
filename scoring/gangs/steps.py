"""What is to be written to a gang's pods next, so that they come to run where they are planned.

Derived from what is observed alone, each time anew: whoever leads next goes on where the last one
ended, after any of its writes. A member costs two writes at most: its nomination, and its gate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.recording import INCOMPLETE, UNJUDGED
from scoring.gangs.rules import GangRules, Hold, OnShortfall
from scoring.gangs.values import GangPod, Gathered
from scoring.model import NodeName

WAKE_AFTER_S: Final = 10.0
"""A pod is woken once in this time at most, and less and less often while that does not help."""
SETTLE_S: Final = 1.0
"""How long a gang that may evict waits between plan and lift: every replica is to know the plan when
kube-scheduler asks about victims, since what is refused then is not asked again soon."""
_LACKING: Final = frozenset({GangState.WAITING, GangState.PARTIAL})


class Verb(StrEnum):
    """One kind of write."""

    NOMINATE = "nominate"
    """Write `status.nominatedNodeName`: kube-scheduler tries that node first, and keeps its room."""
    CLEAR = "clear"
    """Take the nomination back: it holds room that no plan needs."""
    LIFT = "lift"
    """Remove the scheduling gate."""
    WAKE = "wake"
    """Touch an annotation, so that kube-scheduler tries a pod again that it has laid aside."""
    EVICT = "evict"
    """Evict a member that runs, of a gang that has been partial for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One write to one pod."""

    verb: Verb
    pod: GangPod
    node: NodeName | None = None
    """The node to nominate."""


def steps(gang: Gathered, record: GangPlan, rules: GangRules, now_s: float) -> tuple[Step, ...]:
    """The writes that can be done at once, in any order. `now_s`: Unix time, as the record's.

    Gates are lifted when every nomination of the gang is observed, so that the members are bound in
    one burst or wait together.
    """
    if gang.hold is Hold.OFF:
        # Its group says that it is no gang, so nothing is worth waiting for.
        return tuple(Step(verb=Verb.LIFT, pod=pod) for pod in gang.members if pod.gated)
    if gang.pending is None and record.state is GangState.RUNNING:
        return ()
    pending = [pod for pod in gang.members if pod.member.bound is None]
    nominations = tuple(_nominations(gang, pending, record))
    if nominations:
        return nominations
    if rules.release_partial and overdue(record, rules, now_s) and record.lack not in UNJUDGED:
        return tuple(
            Step(verb=Verb.EVICT, pod=pod) for pod in gang.members if pod.member.bound is not None
        )
    return (*_lifts(gang, pending, record, rules, now_s), *_wakes(pending, record, now_s))


def overdue(record: GangPlan, rules: GangRules, now_s: float) -> bool:
    """Whether some members have run for too long without the others."""
    return record.partial_s is not None and now_s - record.partial_s >= rules.partial_after_s


def _nominations(gang: Gathered, pending: list[GangPod], record: GangPlan) -> Iterator[Step]:
    for pod in pending:
        seat, nominated = record.seat(pod.member.uid), pod.member.nominated
        if seat is not None and nominated != seat:
            yield Step(verb=Verb.NOMINATE, pod=pod, node=seat)
        elif seat is None and nominated is not None and (gang.hold is Hold.REQUIRE or pod.gated):
            # Under PREFER that of a pod without our gate may be kube-scheduler's own: it evicts for
            # the pod there.
            yield Step(verb=Verb.CLEAR, pod=pod)


def _lifts(
    gang: Gathered, pending: list[GangPod], record: GangPlan, rules: GangRules, now_s: float
) -> Iterator[Step]:
    if gang.on_shortfall is OnShortfall.PREEMPT and now_s - record.since_s < SETTLE_S:
        return
    lacking = record.state in _LACKING  # with seats: they are of a plan for fewer members
    seen_by_autoscalers = (
        record.state is not GangState.PLANNED  # one that runs may want more than it needs
        and record.lack not in INCOMPLETE
        and gang.on_shortfall is OnShortfall.AUTOSCALE
        and now_s - record.since_s >= rules.autoscale_after_s
    )
    for pod in pending:
        planned = not lacking and record.seat(pod.member.uid) is not None
        if pod.gated and (planned or seen_by_autoscalers):
            yield Step(verb=Verb.LIFT, pod=pod)


def _wakes(pending: list[GangPod], record: GangPlan, now_s: float) -> Iterator[Step]:
    for pod in pending:
        if record.seat(pod.member.uid) is None or pod.gated or not pod.refused:
            continue
        woken_s = pod.woken_s
        # A time ahead of us is another clock's, and says nothing.
        if woken_s is None or not 0 <= now_s - woken_s < max(
            WAKE_AFTER_S, woken_s - record.since_s
        ):
            yield Step(verb=Verb.WAKE, pod=pod)
