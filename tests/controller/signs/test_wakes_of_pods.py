"""Waiting pods are touched at the API server when a change of health helps them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from kubes import refuses
from pools import fleet_of, of_state, seen
from servers import eventually
from signing import Json, Stage, stage
from unsound import slow
from waiters import SINGLE_1, Waiter

from extender.config.model import Mode
from extender.controller.signs.signs import Signs
from scoring.gangs.rules import WAKE
from scoring.model import GangKey, Health, NodeName
from scoring.picture import Picture
from scoring.reasons import Reason

__all__ = ["stage"]

BAD = seen(fleet_of(of_state("n0", Health.RESET_REQUIRED)))
WELL = seen(fleet_of(of_state("n0")))
ALL = frozenset({NodeName("n0")})
POD = Waiter()


@pytest.fixture
def signs(stage: Stage) -> Iterator[Signs]:
    """Signs of a leader that has seen a bad node."""
    found = stage.signs()
    found.start()
    yield led(found)
    found.close()


def led(found: Signs, picture: Picture = BAD) -> Signs:
    """Signs that lead, after their first look."""
    found.lead(7)
    found.on_fleet(None, picture, None)
    found.tick()
    return found


def after(stage: Stage, signs: Signs, seconds: float) -> None:
    """Tick through some seconds."""
    for _ in range(round(seconds * 10)):
        stage.clock.pass_s(0.1)
        signs.tick()


def woken(stage: Stage, signs: Signs, *pods: Waiter, within_s: float = 1.9) -> bool:
    """Whether each pod is touched within two seconds of the stage's time."""
    after(stage, signs, within_s)
    eventually(lambda: signs.wakes.outbox.pending == 0, "all touches are sent")
    return all(eventually_touched(stage, pod) for pod in pods)


def eventually_touched(stage: Stage, pod: Waiter) -> bool:
    """Whether the touch arrives."""
    return bool(eventually(lambda: stage.annotation(pod), f"{pod.name} is touched"))


def wakes_it(when: str) -> Callable[[Json], None]:
    """Somebody else's touch."""

    def touch(pod: Json) -> None:
        pod["metadata"]["annotations"] = {WAKE: when}

    return touch


def count(stage: Stage) -> int:
    """How many touches the server saw."""
    return sum(write.verb == "PATCH" and write.route.kind == "pods" for write in stage.api.writes)


class TestTouch:
    """From a change to an annotation."""

    def test_an_idle_pod_is_touched_in_less_than_two_seconds(
        self, stage: Stage, signs: Signs
    ) -> None:
        """The pod whose node recovered is; one that waits for counts is not."""
        idle = Waiter(name="idle", message="0/1 nodes are available: 1 Insufficient cpu.")
        stage.wait(POD, idle)
        signs.on_fleet(BAD, WELL, ALL)
        assert woken(stage, signs, POD)
        assert stage.annotation(idle) is None
        assert (stage.annotation(POD) or "").startswith("2026-09-21T14:13:2")

    def test_members_of_planned_gangs_are_not_touched(self, stage: Stage, signs: Signs) -> None:
        """The planning loop wakes them, with their nominations."""
        stage.planned = {GangKey("lab/ranks")}
        member = Waiter(name="rank-0", gang=GangKey("lab/ranks"))
        other = Waiter(name="rank-1", gang=GangKey("lab/free"))
        stage.wait(member, other)
        signs.on_fleet(BAD, WELL, ALL)
        assert woken(stage, signs, other)
        assert stage.annotation(member) is None

    def test_a_flapping_node_touches_a_pod_every_ten_seconds_at_most(
        self, stage: Stage, signs: Signs
    ) -> None:
        """Thirty changes in thirty seconds are four touches."""
        stage.wait(POD)
        for _ in range(15):
            signs.on_fleet(BAD, WELL, ALL)
            after(stage, signs, 1.0)
            signs.on_fleet(WELL, BAD, ALL)
            after(stage, signs, 1.0)
        eventually(lambda: count(stage) >= 3, "the touches are sent")
        assert count(stage) <= 4

    def test_what_another_leader_touched_is_left_for_ten_seconds(
        self, stage: Stage, signs: Signs
    ) -> None:
        """The annotation tells, whoever wrote it; one from the future tells nothing."""
        lately = replace(POD, woken_at="2026-09-21T14:13:15Z")
        ahead = Waiter(name="ahead", woken_at="2026-09-21T15:00:00Z")
        odd = Waiter(name="odd", woken_at="yesterday")
        stage.wait(lately, ahead, odd)
        signs.on_fleet(BAD, WELL, ALL)
        assert woken(stage, signs, ahead, odd)
        assert stage.annotation(lately) is None
        after(stage, signs, 10.0)
        assert eventually_touched(stage, lately)

    def test_a_pod_that_was_in_its_cycle_is_not_forgotten(self, stage: Stage, signs: Signs) -> None:
        """Its refusal is seen after the change, and rests on what was before."""
        signs.on_fleet(BAD, WELL, ALL)
        after(stage, signs, 3.0)
        stage.wait(POD)
        assert woken(stage, signs, POD)
        later = Waiter(name="later")
        after(stage, signs, 10.0)
        stage.wait(later)
        after(stage, signs, 5.0)
        assert stage.annotation(later) is None

    def test_a_pod_that_is_gone_or_another_is_no_error(self, stage: Stage, signs: Signs) -> None:
        """Deleted, or deleted and made again: its touch is in vain, and that is all."""
        again = Waiter(name="twin")
        stage.wait(POD, again)
        signs.on_fleet(BAD, WELL, ALL)
        stage.api.faults["write"].append(refuses(404, "pods not found"))
        body = stage.api.get("pods", "lab/twin") or {}
        stage.api.set("pods", {**body, "metadata": {**body["metadata"], "uid": "another"}})
        after(stage, signs, 1.0)
        eventually(lambda: signs.wakes.vain == 2, "both touches were in vain")
        assert signs.wakes.outbox.failed == 0
        assert stage.annotation(again) is None

    def test_a_late_touch_changes_nothing_where_somebody_touched_the_pod(
        self, stage: Stage, signs: Signs
    ) -> None:
        """The one request that a stopped leader has on its way is refused by the pod's version."""
        stage.wait(POD)
        release = threading.Event()
        stage.api.faults["write"].append(slow(release))
        signs.on_fleet(BAD, WELL, ALL)
        after(stage, signs, 1.0)
        eventually(lambda: not stage.api.faults["write"], "the touch is on its way")
        stage.api.edit("pods", "lab/train-0", wakes_it("by the next leader"))
        release.set()
        eventually(lambda: signs.wakes.vain == 1, "the touch was in vain")
        assert stage.annotation(POD) == "by the next leader"
        assert signs.wakes.outbox.failed == 0

    def test_a_pod_that_changed_meanwhile_is_touched_as_it_is_then(
        self, stage: Stage, signs: Signs
    ) -> None:
        """As soon as the view shows the change, and not before: it would be in vain again."""
        stage.wait(POD)
        stage.view.behind = stage.view.refused()
        stage.api.edit("pods", "lab/train-0", wakes_it("long ago"))
        signs.on_fleet(BAD, WELL, ALL)
        after(stage, signs, 5.0)
        eventually(lambda: signs.wakes.vain == 1, "the touch was in vain")
        after(stage, signs, 5.0)
        stage.view.behind = None
        after(stage, signs, 0.3)
        eventually(lambda: count(stage) == 2, "it is touched again")
        eventually(lambda: signs.wakes.outbox.sent == 2, "that is answered")
        assert stage.annotation(POD) != "long ago"
        assert signs.wakes.vain == 1

    def test_a_touch_that_does_not_get_through_is_tried_again(
        self, stage: Stage, signs: Signs
    ) -> None:
        """After a pause, and only that pod's."""
        stage.wait(POD)
        stage.api.faults["write"].append(refuses(500, "etcd is slow"))
        signs.on_fleet(BAD, WELL, ALL)
        after(stage, signs, 1.0)
        eventually(lambda: signs.wakes.outbox.failed == 1, "the touch failed")
        after(stage, signs, 15.0)
        assert eventually_touched(stage, POD)


class TestLeaders:
    """Who touches, and what a new leader makes up for."""

    def test_who_does_not_lead_or_only_observes_touches_nobody(self, stage: Stage) -> None:
        """A standby, a leader that lost its lease, and one that observes."""
        stage.wait(POD)
        standby, observer, former = stage.signs(), stage.signs(mode=Mode.OBSERVE), stage.signs()
        for each in (standby, observer, former):
            each.start()
        led(observer)
        led(former).rest()
        for each in (standby, observer, former):
            each.on_fleet(BAD, WELL, ALL)
            after(stage, each, 3.0)
            each.close()
        assert not stage.api.writes

    def test_a_new_leader_touches_whom_the_change_helped_meanwhile(self, stage: Stage) -> None:
        """Nobody led when the node recovered: who could go there now is called, once more later."""
        stage.wait(POD, Waiter(name="small", need=SINGLE_1))
        found = stage.signs()
        found.start()
        found.on_fleet(BAD, WELL, ALL)
        found.lead(8)
        assert woken(stage, found, *stage.view.waiting)
        found.close()

    def test_a_new_leader_lets_those_sleep_whom_nothing_helps(self, stage: Stage) -> None:
        """The node is bad still."""
        stage.wait(POD)
        found = led(stage.signs())
        found.start()
        after(stage, found, 3.0)
        found.close()
        assert stage.annotation(POD) is None

    def test_a_picture_of_another_cache_is_looked_at_whole(
        self, stage: Stage, signs: Signs
    ) -> None:
        """After a reload nobody knows what changed, also for those who met no snapshot."""
        lost = Waiter(message=f"0/1 nodes are available: 1 {Reason.NO_SNAPSHOT.text}.")
        stage.wait(lost)
        signs.on_fleet(WELL, WELL, None)
        assert woken(stage, signs, lost)
