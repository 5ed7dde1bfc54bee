"""When waiting pods are touched: none twice within some seconds, all together at a bounded rate, and
nobody is forgotten.

Values and functions: the queue that comes back is the next one. Times are of the caller's monotonic
clock, in seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from scoring.candidate import Candidate
from scoring.model import NodeName, PodUid
from scoring.wakes import Waiting

W = TypeVar("W", bound=Waiting)

SETTLE_S: Final = 0.3
"""From the change to the touch. A replica that has not read the change yet would refuse the pod again,
and nothing would bring it back; it takes 50 ms."""
PAUSE_S: Final = 10.0
"""Between two touches of one pod."""
RATE_HZ: Final = 50.0
"""Touches a second, of all pods together; as many may come at once."""
LATE_S: Final = 10.0
"""A pod whose refusal is seen may have been judged by a picture of so long ago: it was in its cycle
while a node changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A pod that is to be touched."""

    due_s: float
    again: bool
    """Whether it is called once more afterwards, for replicas that see a change seconds late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Who is called, who was touched lately, and how many may be touched now."""

    calls: Mapping[PodUid, Call] = field(default_factory=dict)
    woken_s: Mapping[PodUid, float] = field(default_factory=dict)
    credit: float = RATE_HZ
    at_s: float = 0.0


EMPTY: Final = Queue()


def called(queue: Queue, pods: Mapping[PodUid, bool], now_s: float) -> Queue:
    """`queue` with these pods called too; True: twice.

    One that is called already keeps its place, and is called twice: its touch may come too soon for
    replicas to know the second reason.
    """
    calls = dict(queue.calls)
    for uid, again in pods.items():
        there = calls.get(uid)
        if there is None:
            calls[uid] = Call(due_s=now_s + SETTLE_S, again=again)
        else:
            calls[uid] = replace(there, again=True)
    return replace(queue, calls=calls)


def unheard(queue: Queue, pods: Iterable[PodUid], now_s: float) -> Queue:
    """`queue` as if these pods had not been touched yet: their touch changed nothing."""
    calls, woken_s = dict(queue.calls), dict(queue.woken_s)
    for uid in pods:
        woken_s.pop(uid, None)
        calls[uid] = Call(due_s=now_s, again=uid in calls)
    return replace(queue, calls=calls, woken_s=woken_s)


def due(
    queue: Queue, pods: Iterable[W], now_s: float, blocked: Collection[PodUid] = ()
) -> tuple[tuple[W, ...], Queue]:
    """Which of the waiting `pods` are to be touched now, the highest priority and the oldest first,
    and the queue without them. A call for a pod that waits no more is over.

    `blocked`: those that somebody else touched within `PAUSE_S`.
    """
    there = {pod.uid: pod for pod in pods}
    calls = {uid: call for uid, call in queue.calls.items() if uid in there}
    woken_s = {uid: at_s for uid, at_s in queue.woken_s.items() if now_s < at_s + PAUSE_S}
    passed_s = max(0.0, now_s - queue.at_s)
    credit = min(RATE_HZ, queue.credit + RATE_HZ * passed_s)
    ready = [
        there[uid]
        for uid, call in calls.items()
        if call.due_s <= now_s and uid not in woken_s and uid not in blocked
    ]
    ready.sort(key=lambda pod: (-pod.priority, pod.created_s, pod.uid))
    chosen = tuple(ready[: int(credit)])
    for pod in chosen:
        call = calls.pop(pod.uid)
        woken_s[pod.uid] = now_s
        if call.again:
            calls[pod.uid] = Call(due_s=now_s + PAUSE_S, again=False)
    return chosen, Queue(calls=calls, woken_s=woken_s, credit=credit - len(chosen), at_s=now_s)


Recent = Mapping[NodeName, tuple[float, Candidate | None]]
"""The nodes that changed lately: when last, and as they were before the first of these changes."""


def recalled(recent: Recent, before: Mapping[NodeName, Candidate | None], now_s: float) -> Recent:
    """`recent` with the nodes that changed now, and without those that did long ago."""
    kept = {name: found for name, found in recent.items() if now_s - found[0] < LATE_S}
    for name, then in before.items():
        kept[name] = (now_s, kept[name][1] if name in kept else then)
    return kept
