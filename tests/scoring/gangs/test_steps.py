"""What is written to a gang's pods, and when."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from members import NOW_S, gang, pod, record

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.recording import UNJUDGED
from scoring.gangs.rules import GATE, GangRules, Hold, OnShortfall
from scoring.gangs.steps import Step, Verb, steps
from scoring.gangs.values import GangPod, Gathered
from scoring.model import NodeName
from scoring.planning.outcome import Lack

RULES = GangRules()
PLANNED, WAITING = GangState.PLANNED, GangState.WAITING


def verbs(found: tuple[Step, ...]) -> list[tuple[Verb, str, str | None]]:
    """The steps in short."""
    return [(step.verb, step.pod.member.name, step.node) for step in found]


def test_a_planned_gang_is_nominated_before_any_gate_is_lifted() -> None:
    """As long as one nomination is missing, nominations are all that is written."""
    some = gang(pod(0, nominated="n0"), pod(1))
    found = steps(some, record(some, PLANNED, "n0", "n1"), RULES, NOW_S)
    assert verbs(found) == [(Verb.NOMINATE, "train-1", "n1")]


def test_gates_are_lifted_once_every_nomination_is_observed() -> None:
    """Then all at once."""
    ready = gang(pod(0, nominated="n0"), pod(1, nominated="n1"))
    found = steps(ready, record(ready, PLANNED, "n0", "n1"), RULES, NOW_S)
    assert verbs(found) == [(Verb.LIFT, "train-0", None), (Verb.LIFT, "train-1", None)]


def test_a_cleared_nomination_is_written_again() -> None:
    """Whoever cleared it: an extender's error, a failed bind, a preemptor that went elsewhere."""
    free = gang(pod(0, gated=False), pod(1, bound="n1"))
    found = steps(free, record(free, PLANNED, "n0"), RULES, NOW_S)
    assert verbs(found) == [(Verb.NOMINATE, "train-0", "n0")]


def test_a_member_that_is_planned_elsewhere_now_is_nominated_there() -> None:
    """The next plan stands."""
    moved = gang(pod(0, gated=False, nominated="n0"))
    found = steps(moved, record(moved, PLANNED, "n7"), RULES, NOW_S)
    assert verbs(found) == [(Verb.NOMINATE, "train-0", "n7")]


def test_a_gang_without_a_plan_holds_no_room() -> None:
    """Its nominations are taken back, and its gates stay."""
    left = gang(pod(0, nominated="n0"), pod(1))
    found = steps(left, record(left, WAITING, lack=Lack.NO_ROOM), RULES, NOW_S + 1e6)
    assert verbs(found) == [(Verb.CLEAR, "train-0", None)]


def test_a_nomination_of_kube_scheduler_stays_where_plans_are_preferred_only() -> None:
    """It may be evicting for the pod there."""
    own = gang(pod(0, gated=False, nominated="n0"), hold=Hold.PREFER)
    assert steps(own, record(own, WAITING, lack=Lack.NO_ROOM), RULES, NOW_S) == ()


def test_a_nomination_behind_our_gate_is_ours_and_taken_back_whatever_the_hold() -> None:
    """No scheduler ever tried the pod, so it holds room for a plan that is gone."""
    left = gang(pod(0, nominated="n0"), hold=Hold.PREFER)
    found = steps(left, record(left, WAITING, lack=Lack.NO_ROOM), RULES, NOW_S)
    assert verbs(found) == [(Verb.CLEAR, "train-0", None)]


def test_seats_of_a_plan_for_fewer_members_lift_no_gate() -> None:
    """The gang has grown since, and the next plan is yet to be made."""
    grown = gang(pod(0, nominated="n0"), pod(1, nominated="n1"), pod(2))
    assert steps(grown, record(grown, WAITING, "n0", "n1"), RULES, NOW_S + 1e6) == ()


def test_the_pods_of_what_is_no_gang_are_let_go() -> None:
    """Their group says so: `basic`, or a minimum of 1."""
    single = gang(pod(0, nominated="n9"), pod(1, gated=False), hold=Hold.OFF)
    found = steps(single, record(single, WAITING), RULES, NOW_S)
    assert verbs(found) == [(Verb.LIFT, "train-0", None)]


def test_pods_that_do_not_count_are_left_alone() -> None:
    """Finished, leaving, and held by another's gate."""
    others = (
        pod(1, finished=True, gated=False),
        pod(2, leaving=True),
        pod(3, gates=frozenset({GATE, "kueue.x-k8s.io/admission"})),
    )
    some = gang(pod(0, nominated="n0"), *others)
    found = steps(some, record(some, PLANNED, "n0"), RULES, NOW_S)
    assert verbs(found) == [(Verb.LIFT, "train-0", None)]


def test_members_beyond_the_plan_stay_gated() -> None:
    """Those for which there is no node, where fewer than all suffice."""
    some = gang(pod(0, nominated="n0"), pod(1), min=1)
    found = steps(some, record(some, PLANNED, "n0", None), RULES, NOW_S)
    assert verbs(found) == [(Verb.LIFT, "train-0", None)]


def test_a_gang_that_may_evict_is_lifted_when_every_replica_knows_its_plan() -> None:
    """A victim that one of them does not know of yet would be spared, and not asked about again."""
    ready = gang(pod(0, nominated="n0"), on_shortfall=OnShortfall.PREEMPT)
    kept = record(ready, PLANNED, "n0")
    assert steps(ready, kept, RULES, NOW_S + 0.9) == ()
    assert verbs(steps(ready, kept, RULES, NOW_S + 1.0)) == [(Verb.LIFT, "train-0", None)]


def test_autoscale_lifts_after_its_time_and_without_nominations() -> None:
    """So that autoscalers see pods that are Unschedulable, which they never do while gated."""
    waits = gang(pod(0), pod(1), on_shortfall=OnShortfall.AUTOSCALE)
    kept = record(waits, WAITING, lack=Lack.NO_ROOM)
    assert steps(waits, kept, RULES, NOW_S + 59.9) == ()
    found = steps(waits, kept, RULES, NOW_S + 60.0)
    assert [step.verb for step in found] == [Verb.LIFT, Verb.LIFT]


def test_autoscalers_see_the_members_beyond_the_minimum_too() -> None:
    """The gang runs without them, and would be larger with more nodes."""
    runs = gang(pod(0, bound="n0"), pod(1), min=1, on_shortfall=OnShortfall.AUTOSCALE)
    kept = record(runs, GangState.RUNNING)
    assert steps(runs, kept, RULES, NOW_S + 59.9) == ()
    assert verbs(steps(runs, kept, RULES, NOW_S + 60.0)) == [(Verb.LIFT, "train-1", None)]


def test_autoscale_lifts_no_gang_of_which_pods_are_missing() -> None:
    """No node would help it."""
    waits = gang(pod(0), min=2, on_shortfall=OnShortfall.AUTOSCALE)
    kept = record(waits, WAITING, lack=Lack.MEMBERS_MISSING)
    assert steps(waits, kept, RULES, NOW_S + 1e6) == ()


def test_a_refused_member_is_woken_at_its_new_seat_less_and_less_often() -> None:
    """kube-scheduler laid it aside, and a nomination alone does not wake it."""

    def at(now_s: float, woken_s: float | None) -> list[Verb]:
        laid = gang(pod(0, gated=False, refused=True, nominated="n0", woken_s=woken_s))
        return [step.verb for step in steps(laid, record(laid, PLANNED, "n0"), RULES, now_s)]

    assert at(NOW_S, None) == [Verb.WAKE]
    assert at(NOW_S + 9.9, NOW_S) == []
    assert at(NOW_S + 10.0, NOW_S) == [Verb.WAKE]
    assert at(NOW_S + 60.0, NOW_S + 40.0) == []
    assert at(NOW_S + 80.0, NOW_S + 40.0) == [Verb.WAKE]
    assert at(NOW_S, NOW_S + 1e6) == [Verb.WAKE], "another clock's word"


def test_members_of_a_partial_gang_are_evicted_only_where_that_is_allowed() -> None:
    """And only after its time."""
    some = gang(pod(0, bound="n0"), pod(1, gated=False))
    kept = record(some, GangState.PARTIAL, lack=Lack.NO_ROOM, partial_s=NOW_S)
    release = GangRules(release_partial=True)
    assert steps(some, kept, RULES, NOW_S + 1e6) == ()
    assert steps(some, kept, release, NOW_S + 599) == ()
    assert verbs(steps(some, kept, release, NOW_S + 600)) == [(Verb.EVICT, "train-0", None)]


@pytest.mark.parametrize("lack", sorted(UNJUDGED))
def test_nobody_is_evicted_from_a_gang_that_could_not_be_judged(lack: str) -> None:
    """What it lacks is not its own fault, and may be nothing."""
    some = gang(pod(0, bound="n0"), pod(1, gated=False))
    kept = record(some, GangState.PARTIAL, lack=lack, partial_s=NOW_S)
    assert steps(some, kept, GangRules(release_partial=True), NOW_S + 1e6) == ()


def observed(of: Gathered, step: Step) -> Gathered:
    """The gang once a step is done."""
    pods = tuple(_written(each, step) if each == step.pod else each for each in of.pods)
    return replace(of, pods=pods)


def _written(each: GangPod, step: Step) -> GangPod:
    match step.verb:
        case Verb.NOMINATE:
            return replace(each, member=replace(each.member, nominated=step.node))
        case Verb.CLEAR:
            return replace(each, member=replace(each.member, nominated=None))
        case Verb.LIFT:
            return replace(each, gates=each.gates - {GATE})
        case Verb.WAKE:
            return replace(each, woken_s=NOW_S)
        case Verb.EVICT:
            return replace(each, leaving=True)


nodes = st.sampled_from([None, "n0", "n1", "n2"])
members = st.lists(st.tuples(nodes, st.booleans()), min_size=1, max_size=5)


def started(made: list[tuple[str | None, bool]]) -> tuple[Gathered, GangPlan]:
    """A gang in any state that a leader may have left it in, and its record."""
    pods = [pod(at, nominated=node, gated=gated) for at, (node, gated) in enumerate(made)]
    of = gang(*pods)
    return of, record(of, PLANNED, *(f"n{at % 3}" for at in range(len(pods))))


@given(members, st.randoms(use_true_random=False))
def test_whoever_leads_ends_at_the_same_state_after_any_of_the_writes(
    made: list[tuple[str | None, bool]], chance: object
) -> None:
    """Law: from whatever state, one write at a time in any order, all are nominated and free."""
    of, kept = started(made)
    spent: Counter[str] = Counter()
    while found := steps(of, kept, RULES, NOW_S):
        step = chance.choice(found)  # type: ignore[attr-defined]
        spent[step.pod.member.uid] += 1
        of = observed(of, step)
    assert all(each.member.nominated == kept.seat(each.member.uid) for each in of.pods)
    assert not any(each.gated for each in of.pods)
    assert max(spent.values(), default=0) <= 2


@given(members)
def test_no_gate_is_lifted_before_all_are_nominated(made: list[tuple[str | None, bool]]) -> None:
    """Law: a lift among the steps means that every seat is nominated."""
    of, kept = started(made)
    if any(step.verb is Verb.LIFT for step in steps(of, kept, RULES, NOW_S)):
        for each in of.members:
            seat = kept.seat(each.member.uid)
            assert each.member.nominated == NodeName(seat or "")
