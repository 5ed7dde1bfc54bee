"""When a round makes plans, and when it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rehearsal import Rehearsal, rehearsal
from servers import eventually
from structlog.testing import CapturingLogger

from extender.controller.planning.loop import EVICT_S, READ_S, REPLAN_S, REST_RATIO
from extender.kube.fence import Fence
from extender.store.schema import Kind
from scoring.gangs import planning
from scoring.gangs.record import GangState
from scoring.gangs.steps import Verb
from scoring.model import GangKey, NodeName, Rejection

__all__ = ["rehearsal"]

TRAIN = GangKey("lab/train")
REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def test_nothing_new_costs_no_plan(rehearsal: Rehearsal) -> None:
    """However many rounds there are."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    rehearsal.gang("train")
    assert rehearsal.plans() == 1
    assert rehearsal.plans(5) == 0


def test_gangs_that_all_run_cost_no_plan(rehearsal: Rehearsal) -> None:
    """Nor does one of them that loses a pod, or ends."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    names = rehearsal.gang("train")
    for name, node in zip(names, ("n0", "n1"), strict=True):
        rehearsal.show(name, node=node)
    assert rehearsal.plans(2) == 0
    assert rehearsal.planning.records[TRAIN].state is GangState.RUNNING
    rehearsal.gone(names[0])
    assert rehearsal.plans() == 0
    rehearsal.gone(names[1])
    assert rehearsal.plans() == 0
    assert rehearsal.planning.records == {}


def test_a_gang_that_waits_is_planned_when_something_changed(rehearsal: Rehearsal) -> None:
    """And now and then even if nothing did."""
    rehearsal.node("n0")
    rehearsal.gang("train")
    assert rehearsal.plans() == 1
    assert rehearsal.plans(3) == 0
    rehearsal.clock.pass_s(REPLAN_S)
    assert rehearsal.plans(3) == 1
    rehearsal.node("n1")
    assert rehearsal.plans(3) == 1
    assert set(rehearsal.places().values()) == {"n0", "n1"}


def test_members_that_take_their_seats_make_no_plan(rehearsal: Rehearsal) -> None:
    """Nor does the cache when it hears of them, nor one that shares its node with others."""
    rehearsal.node("n0")
    names = rehearsal.gang("train", 2, gpus=2)
    others = rehearsal.gang("other", 2, gpus=2)
    assert rehearsal.plans() == 1
    for name in (names[0], *others, names[1]):
        rehearsal.show(name, node="n0")
        assert rehearsal.plans() == 0
        rehearsal.hear("n0")
        assert rehearsal.plans() == 0


def test_a_stranger_on_a_planned_node_makes_another_plan(rehearsal: Rehearsal) -> None:
    """The room may be gone."""
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    rehearsal.gang("train")
    rehearsal.plans()
    taken = str(rehearsal.places()["train-0"])
    rehearsal.member("stranger-0", size=1, nodeName=taken)
    assert rehearsal.plans() == 1
    assert taken not in rehearsal.places().values()


def test_a_planned_node_that_turns_bad_makes_another_plan(rehearsal: Rehearsal) -> None:
    """Others that do so make none, as nothing could become better."""
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    rehearsal.gang("train")
    rehearsal.plans()
    bad = str(rehearsal.places()["train-0"])
    rehearsal.node(bad, sick=True)
    assert rehearsal.plans() == 1
    assert bad not in rehearsal.places().values()
    rehearsal.node(bad, sick=True)
    assert rehearsal.plans() == 0


def test_a_planned_node_that_is_gone_makes_another_plan(rehearsal: Rehearsal) -> None:
    """Though the cache, which is away, still has it."""
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    rehearsal.gang("train")
    rehearsal.plans()
    lost = rehearsal.places()["train-0"]
    assert lost is not None
    rehearsal.view.put_node(lost, None)
    assert rehearsal.plans() == 1
    assert lost not in rehearsal.places().values()
    assert rehearsal.plans(3) == 0


def test_a_planned_node_that_failed_another_pod_makes_another_plan(rehearsal: Rehearsal) -> None:
    """Its suspicion may tell against it."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    rehearsal.gang("train")
    rehearsal.plans()
    said = Rejection(node=NodeName("n0"), owner="lab/x", reason="OutOfpods", at_s=0.0, name="x")
    rehearsal.hear("n0", rejections={NodeName("n0"): (said,)})
    assert rehearsal.plans() == 1


def test_planning_rests_three_times_as_long_as_it_took(rehearsal: Rehearsal) -> None:
    """So it takes a quarter of the time at most, however much changes."""
    rehearsal.node("n0")
    rehearsal.gang("train")
    rehearsal.plan_s = 0.1
    began_s = rehearsal.clock()
    for number in range(200):
        rehearsal.member(f"busy-{number}", size=300)
        rehearsal.planning.round()
        rehearsal.clock.pass_s(0.01)
    tally = rehearsal.planning.tally
    assert tally.plan_s == pytest.approx(0.1 * tally.plans)
    took_s = rehearsal.clock() - began_s
    assert 0.2 <= tally.plan_s / took_s <= 1 / (1 + REST_RATIO) + 0.05


def test_what_is_put_off_is_made_after_the_rest(rehearsal: Rehearsal) -> None:
    """A node that turned bad meanwhile, though nothing is heard of it any more; and nobody waits
    longer than that.
    """
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    rehearsal.gang("train")
    rehearsal.plan_s = 0.1
    rehearsal.plans()
    bad = str(rehearsal.places()["train-0"])
    rehearsal.node(bad, sick=True)
    assert rehearsal.plans(3) == 0, "it rests"
    assert 0 < rehearsal.planning._patience_s() <= 0.3
    rehearsal.clock.pass_s(0.3)
    assert rehearsal.plans(3) == 1
    assert bad not in rehearsal.places().values()


def test_no_gate_is_lifted_by_a_plan_that_is_in_doubt(rehearsal: Rehearsal) -> None:
    """Its node turned bad while planning rests. Other gangs are let go all the same."""
    for node in ("n0", "n1", "n2", "n3", "n4"):
        rehearsal.node(node)
    names = [*rehearsal.gang("train"), *rehearsal.gang("other")]
    rehearsal.plan_s = 0.1
    rehearsal.plans()
    seats = {**rehearsal.places(), **rehearsal.places("other")}
    rehearsal.node(str(seats["train-0"]), sick=True)
    for name in names:
        rehearsal.show(name, gated=True, nominatedNodeName=str(seats[name]))
    rehearsal.clock.pass_s(READ_S)
    assert rehearsal.begun() == [Verb.LIFT, Verb.LIFT], "those of the other gang"
    rehearsal.clock.pass_s(0.3)
    assert Verb.NOMINATE in rehearsal.begun(), "the next plan"
    for name, seat in rehearsal.places().items():
        rehearsal.show(name, gated=True, nominatedNodeName=str(seat))
    assert rehearsal.begun() == [Verb.LIFT] * 4


def test_a_new_leader_lifts_no_gate_before_its_first_plan(rehearsal: Rehearsal) -> None:
    """Nobody heeded what changed meanwhile."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    names = rehearsal.gang("train")
    rehearsal.plans()
    seats, record = rehearsal.places(), rehearsal.planning.records[TRAIN]
    for name in names:
        rehearsal.show(name, gated=True, nominatedNodeName=str(seats[name]))
    rehearsal.plan_s = 0.5
    rehearsal.gang("other")
    rehearsal.plans()
    rehearsal.fence = None
    rehearsal.plans()
    rehearsal.hear(plans={TRAIN: record})
    rehearsal.fence = Fence(2)
    assert rehearsal.begun() == [], "it rests"
    rehearsal.clock.pass_s(1.5)
    assert rehearsal.begun() == [Verb.LIFT, Verb.LIFT]


def test_a_first_plan_that_is_put_off_leaves_no_record(rehearsal: Rehearsal) -> None:
    """Nobody knows yet what becomes of the gang."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    rehearsal.gang("other")
    rehearsal.plan_s = 0.1
    rehearsal.plans()
    rehearsal.gang("train")
    assert rehearsal.plans() == 0
    assert TRAIN not in rehearsal.planning.records
    rehearsal.clock.pass_s(0.3)
    assert rehearsal.plans() == 1
    assert rehearsal.planning.records[TRAIN].lack


def test_a_member_that_came_while_it_rested_is_planned(rehearsal: Rehearsal) -> None:
    """And so is a gang whose numbers changed."""
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    names = rehearsal.gang("train")
    rehearsal.plan_s = 0.1
    rehearsal.plans()
    rehearsal.gone(names[0])
    rehearsal.member("train-2", size=2)
    assert rehearsal.plans(2) == 0
    rehearsal.clock.pass_s(0.3)
    assert rehearsal.plans(2) == 1
    assert None not in rehearsal.places().values()


def test_a_new_term_plans_once_and_keeps_what_stands(rehearsal: Rehearsal) -> None:
    """What changed between two leaders nobody has heeded."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    names = rehearsal.gang("train")
    rehearsal.plans()
    places, record = rehearsal.places(), rehearsal.planning.records[TRAIN]
    rehearsal.fence = None
    assert rehearsal.plans(2) == 0
    assert rehearsal.planning.records == {}
    rehearsal.hear(plans={TRAIN: replace(record, since_s=record.since_s + 5.0)}, ahead_s=5.0)
    rehearsal.fence = Fence(2)
    rehearsal.clock.pass_s(1.0)
    assert rehearsal.plans(2) == 1
    again = rehearsal.planning.records[TRAIN]
    assert rehearsal.places() == places
    assert (again.term, again.since_s) == (2, record.since_s)
    assert names


def test_nothing_is_planned_before_everything_was_heard(rehearsal: Rehearsal) -> None:
    """Neither before the cache spoke."""
    rehearsal.gang("train")
    assert rehearsal.plans() == 0
    rehearsal.ready = False
    rehearsal.node("n0")
    rehearsal.node("n1")
    assert rehearsal.plans() == 0
    rehearsal.ready = True
    assert rehearsal.plans() == 1


def test_a_seat_that_was_denied_twice_is_planned_without(rehearsal: Rehearsal) -> None:
    """At once, and in the round in which the second denial is seen."""
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    names = rehearsal.gang("train")
    rehearsal.plans()
    seat = str(rehearsal.places()["train-0"])
    rehearsal.show(names[1], node=str(rehearsal.places()["train-1"]))
    for _ in range(2):
        rehearsal.show(names[0], nominatedNodeName=seat)
        assert rehearsal.plans() == 0
        rehearsal.show(names[0], conditions=[REFUSED])
        made = rehearsal.plans()
    assert made == 1
    assert rehearsal.places()["train-0"] not in (None, seat)


def test_a_round_that_failed_is_made_up_for(
    rehearsal: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread goes on, says why, and loses no record."""
    for node in ("n0", "n1", "n2"):
        rehearsal.node(node)
    rehearsal.gang("train")
    loop = rehearsal.planning
    rehearsal.plans()
    records = dict(loop.records)
    bad = str(rehearsal.places()["train-0"])

    def stumbles(*_: object) -> None:
        raise ArithmeticError("a mistake")

    log = CapturingLogger()
    monkeypatch.setattr("extender.controller.planning.loop._log", log)
    with monkeypatch.context() as patch:
        patch.setattr(planning, "outcomes", stumbles)
        rehearsal.node(bad, sick=True)
        loop.start()
        eventually(lambda: loop.tally.problem, "it fails")
        assert loop.tally.problem == "ArithmeticError: a mistake"
        assert loop.records == records
        assert loop.alive
    assert log.calls[0].args == ("planning_failed",)
    eventually(lambda: bad not in rehearsal.places().values(), "it is planned anew")
    eventually(lambda: loop.tally.problem is None, "it works again")


def test_records_are_said_once(rehearsal: Rehearsal) -> None:
    """As documents of the term, and again when one changed."""
    rehearsal.node("n0")
    rehearsal.node("n1")
    names = rehearsal.gang("train")
    rehearsal.plans()
    assert rehearsal.wanted.count(Kind.PLAN) == rehearsal.wanted.count(Kind.GANG) == 1
    assert len(rehearsal.wanted.take(10)) == 2
    rehearsal.wanted.done()
    rehearsal.plans(3)
    assert rehearsal.wanted.pending() == 0
    rehearsal.show(names[0], node=str(rehearsal.places()["train-0"]))
    rehearsal.plans()
    (wish,) = rehearsal.wanted.take(10)
    assert (wish.kind, wish.id) == (Kind.PLAN, "lab/train")


def test_of_partial_gangs_one_at_a_time_is_evicted(rehearsal: Rehearsal) -> None:
    """The first may make the room that the second needs."""
    rehearsal.node("n0")
    for gang in ("one", "two"):
        rehearsal.member(f"{gang}-0", gpus=4, nodeName="n0")
        rehearsal.member(f"{gang}-1")
    loop = rehearsal.planning
    loop._rules = replace(rehearsal.rules, release_partial=True)
    rehearsal.plans()
    rehearsal.clock.pass_s(rehearsal.rules.partial_after_s)

    def evicted() -> list[str]:
        return [step.pod.member.name for step in loop._steps(rehearsal.view.gangs())]

    assert evicted() == evicted() == ["one-0"]
    rehearsal.gone("one-0")
    rehearsal.plans()
    assert evicted() == []
    rehearsal.clock.pass_s(EVICT_S)
    assert evicted() == ["two-0"]


def test_no_gate_is_lifted_before_the_cache_has_the_plan(rehearsal: Rehearsal) -> None:
    """A replica that still knows that the gang waits would refuse its first members."""
    rehearsal.node("n0")
    names = rehearsal.gang("train", 2, gpus=2)
    rehearsal.plans()
    for name in names:
        rehearsal.show(name, gated=True, nominatedNodeName="n0")
    endings = rehearsal.planning._actor.endings
    rehearsal.plans(2)
    eventually(lambda: not rehearsal.planning._actor._busy, "nothing is on its way")
    assert {verb for verb, _ in endings} <= {Verb.NOMINATE}
    rehearsal.wanted.take(100)
    rehearsal.wanted.done()
    assert rehearsal.begun() == [], "it is not read yet"
    rehearsal.clock.pass_s(READ_S)
    rehearsal.plans()
    eventually(lambda: Verb.LIFT in {verb for verb, _ in endings}, "the lifts")
