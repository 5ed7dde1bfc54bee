"""When pods are woken: not twice within ten seconds, at a bounded rate, and all of them in the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiters import Waiter

from scoring import wake_queue
from scoring.model import NodeName, PodUid
from scoring.wake_queue import EMPTY, PAUSE_S, RATE_HZ, SETTLE_S, Queue, called, due, unheard

PODS = [Waiter(name=f"p{at}") for at in range(3)]
STEP_S = 0.1


def calls(*pods: Waiter, again: bool = False) -> dict[PodUid, bool]:
    """A call for each."""
    return {pod.uid: again for pod in pods}


def run(
    queue: Queue, pods: list[Waiter], from_s: float, to_s: float
) -> tuple[dict[str, list[float]], Queue]:
    """When each pod is touched between two moments."""
    touched = defaultdict(list)
    for step in range(round((to_s - from_s) / STEP_S) + 1):
        now_s = from_s + step * STEP_S
        chosen, queue = due(queue, pods, now_s)
        for pod in chosen:
            touched[pod.name].append(now_s)
    return dict(touched), queue


class TestQueue:
    """One after another."""

    def test_a_call_settles_and_is_heard_within_two_seconds(self) -> None:
        """Replicas have a moment to read the change; an idle pod does not wait for longer."""
        queue = called(EMPTY, calls(PODS[0]), 100.0)
        touched, _ = run(queue, PODS, 100.0, 105.0)
        (at_s,) = touched["p0"]
        assert 100.0 + SETTLE_S <= at_s < 102.0
        assert touched.keys() == {"p0"}

    def test_a_second_call_waits_for_its_ten_seconds(self) -> None:
        """A node that flaps wakes a pod every ten seconds at most, and the last change is heeded."""
        queue, times = EMPTY, []
        for step in range(300):
            now_s = 100.0 + step * STEP_S
            if now_s < 120.0:
                queue = called(queue, calls(PODS[0]), now_s)
            chosen, queue = due(queue, PODS, now_s)
            times += [now_s for _ in chosen]
        assert all(later - sooner >= PAUSE_S - 1e-6 for sooner, later in pairwise(times))
        assert times[-1] >= 120.0

    def test_who_is_called_twice_is_touched_twice(self) -> None:
        """And not a third time."""
        touched, queue = run(called(EMPTY, calls(PODS[0], again=True), 0.0), PODS, 0.0, 60.0)
        assert len(touched["p0"]) == 2
        assert not queue.calls

    def test_a_second_reason_before_the_touch_is_not_lost(self) -> None:
        """The touch may come before replicas know of the later change, so there is another."""
        queue = called(EMPTY, calls(PODS[0]), 0.0)
        queue = called(queue, calls(PODS[0]), SETTLE_S - 0.01)
        assert len(run(queue, PODS, SETTLE_S, 60.0)[0]["p0"]) == 2

    def test_a_touch_that_changed_nothing_is_made_again_at_once(self) -> None:
        """And the one that was to follow it follows."""
        queue = called(EMPTY, calls(PODS[0], again=True) | calls(PODS[1]), 100.0)
        _, queue = due(queue, PODS, 101.0)
        queue = unheard(queue, [pod.uid for pod in PODS[:2]], 101.0)
        touched, _ = run(queue, PODS, 101.0, 125.0)
        assert touched == {"p0": [101.0, pytest.approx(111.0, abs=0.2)], "p1": [101.0]}

    def test_what_another_leader_touched_is_left_for_its_time(self) -> None:
        """The annotation says so; the call stays until then."""
        queue = called(EMPTY, calls(PODS[0]), 0.0)
        chosen, queue = due(queue, PODS, 1.0, blocked={PODS[0].uid})
        assert not chosen
        assert due(queue, PODS, 2.0)[0] == (PODS[0],)

    def test_a_pod_that_waits_no_more_is_forgotten(self) -> None:
        """It was bound, or deleted."""
        queue = called(EMPTY, calls(*PODS), 0.0)
        chosen, queue = due(queue, PODS[1:], 1.0)
        assert [pod.name for pod in chosen] == ["p1", "p2"]
        assert not queue.calls

    def test_the_most_important_come_first(self) -> None:
        """By priority, then by age, then by uid."""
        crowd = [Waiter(name=f"w{at:03}", created_s=float(-at)) for at in range(120)]
        vip = Waiter(name="vip", priority=1, created_s=9.0)
        queue = called(EMPTY, calls(*crowd, vip), 0.0)
        chosen, _ = due(queue, [*crowd, vip], 1.0)
        assert [pod.name for pod in chosen[:3]] == ["vip", "w119", "w118"]
        assert len(chosen) == RATE_HZ


@given(
    crowd=st.integers(1, 400),
    later=st.lists(st.integers(0, 50), max_size=5),
)
def test_nobody_is_forgotten_and_the_rate_is_bounded(crowd: int, later: list[int]) -> None:
    """However many are called, in every second at most the rate is touched, and each one is."""
    pods = [Waiter(name=f"p{at}") for at in range(crowd)]
    queue = called(EMPTY, calls(*pods), 0.0)
    touched: Counter[str] = Counter()
    seconds: Counter[int] = Counter()
    for step in range(300):
        now_s = step * STEP_S
        if step in later:
            queue = called(queue, calls(*pods[::7]), now_s)
        chosen, queue = due(queue, pods, now_s)
        touched.update(pod.name for pod in chosen)
        seconds[int(now_s)] += len(chosen)
    assert len(touched) == crowd
    assert all(found <= 2 * RATE_HZ for found in seconds.values())
    assert sum(seconds.values()) <= RATE_HZ * 31


class TestRecent:
    """Changes that pods in their cycle may have missed."""

    def test_the_oldest_look_within_the_time_counts(self) -> None:
        """A node that turned well and changed again is compared with what it was at first."""
        name = NodeName("n0")
        found = wake_queue.recalled({}, {name: None}, 0.0)
        found = wake_queue.recalled(found, {name: None}, 5.0)
        assert found == {name: (5.0, None)}
        assert wake_queue.recalled(found, {}, 14.9)
        assert not wake_queue.recalled(found, {}, 15.0)
