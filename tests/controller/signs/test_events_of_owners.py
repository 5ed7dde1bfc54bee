"""Events on what owns pods that wait, of which the planning loop tells nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pools import fleet_of, of_state, seen
from servers import eventually
from signing import Json, Stage, stage
from waiters import RESET, Waiter

from extender.config.model import Mode
from extender.controller.signs import owners
from extender.controller.signs.signs import Signs
from scoring.gangs.values import Owner
from scoring.model import GangKey, Health

__all__ = ["stage"]

BAD = seen(fleet_of(of_state("n0", Health.RESET_REQUIRED)))
JOB = Owner(kind="Job", name="train", uid="uid-job")
POD = Waiter(owner=JOB)


@pytest.fixture
def signs(stage: Stage) -> Iterator[Signs]:
    """Signs of a leader that has seen a bad node."""
    found = stage.signs()
    found.start()
    found.lead(7)
    found.on_fleet(None, BAD, None)
    yield found
    found.close()


def after(stage: Stage, signs: Signs, seconds: int) -> None:
    """Tick through some seconds."""
    for _ in range(seconds):
        stage.clock.pass_s(1.0)
        signs.tick()


def told(stage: Stage, signs: Signs) -> list[Json]:
    """Every event at the server that is on something of a namespace."""
    eventually(lambda: signs.events.outbox.pending == 0, "all events are sent")
    return [each for each in stage.events() if each["involvedObject"]["kind"] != "Node"]


def test_an_owner_hears_why_its_pods_wait(stage: Stage, signs: Signs) -> None:
    """With Surefoot's reason, and kube-scheduler's sentence on the first of them."""
    stage.wait(POD, Waiter(name="train-1", owner=JOB))
    after(stage, signs, 20)
    (found,) = told(stage, signs)
    assert found["involvedObject"] == {
        "kind": "Job",
        "namespace": "lab",
        "name": "train",
        "uid": "uid-job",
    }
    assert (found["type"], found["reason"]) == ("Warning", "ResetRequired")
    assert found["message"] == f"2 pods wait, first train-0: {RESET}"


def test_an_owner_has_one_event_a_minute_and_the_last_word_is_told(
    stage: Stage, signs: Signs
) -> None:
    """However often its pods' refusals change."""
    for count in range(1, 101):
        message = RESET.replace("0/3", f"0/{count}")
        stage.view.waiting = ()
        stage.wait(replace(POD, message=message))
        after(stage, signs, 1)
    after(stage, signs, 60)
    found = told(stage, signs)
    assert 2 <= len(found) <= 3
    assert found[-1]["message"].startswith("pod train-0 waits: 0/100 nodes")


def test_what_lasts_is_said_again_before_it_is_forgotten(stage: Stage, signs: Signs) -> None:
    """Once in half an hour, as the same event."""
    stage.wait(POD)
    for _ in range(24):
        stage.clock.pass_s(150.0)
        signs.tick()
    (found,) = told(stage, signs)
    assert found["count"] == 2


def test_pods_that_wait_a_moment_are_no_news(stage: Stage, signs: Signs) -> None:
    """They are placed by their next cycle, or gone."""
    stage.wait(POD)
    after(stage, signs, 8)
    stage.view.waiting = ()
    after(stage, signs, 30)
    assert told(stage, signs) == []


def test_gangs_that_the_planning_loop_tells_of_are_not_told_of_twice(
    stage: Stage, signs: Signs
) -> None:
    """Others are, as any pods."""
    mine, other = GangKey("lab/planned"), GangKey("lab/free")
    stage.told = {mine}
    stage.wait(replace(POD, gang=mine))
    stage.wait(Waiter(name="free-0", gang=other, owner=Owner(kind="Set", name="free", uid="u")))
    after(stage, signs, 20)
    assert [each["involvedObject"]["name"] for each in told(stage, signs)] == ["free"]


def test_who_only_observes_tells_nothing(stage: Stage) -> None:
    """Nor does who does not lead."""
    stage.wait(POD)
    observer, standby = stage.signs(mode=Mode.OBSERVE), stage.signs()
    observer.lead(7)
    for each in (observer, standby):
        each.start()
        each.on_fleet(None, BAD, None)
        after(stage, each, 30)
        each.close()
    assert stage.events() == []


def test_many_owners_are_told_in_turn(
    stage: Stage, signs: Signs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bounded number at a time, and none is forgotten."""
    monkeypatch.setattr(owners, "MOST_TOLD", 2)
    stage.wait(
        *(
            Waiter(name=f"p{at}", owner=Owner(kind="Job", name=f"job-{at}", uid=f"uid-{at}"))
            for at in range(5)
        )
    )
    after(stage, signs, 14)
    assert len(told(stage, signs)) <= 2
    after(stage, signs, 20)
    assert len({each["involvedObject"]["name"] for each in told(stage, signs)}) == 5
