"""Laws of every answer on random fleets with random records of gangs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from asking import Json, by_names, pod, preemption, scores
from gang_records import UID, led, plan
from hypothesis import given, settings
from hypothesis import strategies as st
from replicas import Replica
from strategies import fleets

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import Hold
from scoring.model import Fleet, PodUid
from scoring.planning.outcome import Lack
from scoring.reasons import Reason

NODES = [f"node-{i}" for i in range(6)]
SOME_NODE = st.sampled_from(NODES)
FAILED_CYCLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
TEXT = {reason.value: reason.text for reason in Reason}
some = settings(max_examples=60, deadline=None)

ASKERS = st.builds(
    pod,
    st.integers(1, 4),
    gang=st.just("sweep"),
    nominated=st.none() | SOME_NODE,
    conditions=st.sampled_from([(), (FAILED_CYCLE,)]),
)
PLANS = st.builds(
    plan,
    st.dictionaries(st.sampled_from([UID, "uid-rank-1"]), st.none() | SOME_NODE),
    st.sampled_from(list(GangState)),
    st.sampled_from(list(Hold)),
    lack=st.sampled_from(["", *Lack]),
)


def names_of(found: Fleet) -> list[str]:
    """The names of a fleet's nodes, and one that it lacks."""
    return [*found.nodes, "stranger"]


def answers(one: Replica, asker: Json, names: list[str]) -> list[bytes]:
    """What kube-scheduler is told by each verb."""
    bodies = {
        "filter": by_names(asker, names),
        "prioritize": by_names(asker, names),
        "preempt": preemption(asker, {name: ["v"] for name in names}),
    }
    return [one.post(verb, body).body for verb, body in bodies.items()]


@some
@given(found=fleets(), record=PLANS, asker=ASKERS, narrow=st.integers(0, 3))
def test_filter_of_a_planned_member_returns_its_seat_or_nomination_or_nothing(
    found: Fleet, record: GangPlan, asker: Json, narrow: int
) -> None:
    """Whatever else is fit, however wide the answer might have been; and no node without a plan."""
    one = Replica(led(found, replace(record, hold=Hold.REQUIRE)), narrow=narrow)
    names = names_of(found)
    passed = one.filter(asker, names)["NodeNames"]
    planned = record.state in (GangState.PLANNED, GangState.RUNNING)
    allowed: set[str | None] = {record.seat(PodUid(UID))}
    allowed.add(asker["status"].get("nominatedNodeName"))
    assert set(passed) <= (allowed if planned else set())
    assert len(passed) <= 1
    bare = Replica(found, narrow=0).filter(asker, names)["NodeNames"]
    assert set(passed) <= set(bare), "a plan never beats a verdict"
    assert not planned or bool(passed) == bool(allowed & set(bare))


@some
@given(found=fleets(), record=PLANS, asker=ASKERS, narrow=st.integers(0, 3))
def test_answers_agree_between_filter_prioritize_preempt_and_explain(
    found: Fleet, record: GangPlan, asker: Json, narrow: int
) -> None:
    """Who passes scores as told, who is refused scores 0, and nobody is evicted for a refused node."""
    one = Replica(led(found, record), narrow=narrow)
    names = names_of(found)
    told = one.explain(asker, names)
    fits = {name for name in names if told["nodes"][name]["verdict"] == "pass"}
    answer = one.filter(asker, names)
    passed = answer["NodeNames"]
    assert set(passed) <= fits
    assert bool(passed) == bool(fits)
    given_scores = scores(one.prioritize(asker, names))
    assert all(given_scores[name] == 0 for name in names if name not in fits)
    assert set(one.preempt(asker, {name: [] for name in names})) <= fits
    narrowed = narrow > 0 and one.records[-1].ask.narrowable
    if fits and narrowed and record.hold is not Hold.REQUIRE:
        assert given_scores[passed[0]] == max(given_scores[name] for name in fits)
    if not fits:
        refusals = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
        assert refusals == {name: TEXT[told["nodes"][name]["reason"]] for name in names}
    one.filter(asker, names)
    assert one.records[-1].fields()["counts"] == told["counts"]


@some
@given(found=fleets(), record=PLANS, asker=ASKERS, order=st.randoms(use_true_random=False))
def test_same_snapshot_and_same_request_same_answer(
    found: Fleet, record: GangPlan, asker: Json, order: Any
) -> None:
    """On every replica, asked as often as anyone likes, and whatever was asked in between."""
    shown, names = led(found, record), names_of(found)
    one, other = Replica(shown, narrow=2), Replica(shown, narrow=2)
    expected = answers(one, asker, names)
    for _ in range(2):
        answers(other, order.choice([pod(1), pod(2, gang="sweep"), pod(2, gang="x")]), names)
        assert answers(other, asker, names) == expected
    shuffled = order.sample(names, len(names))
    first, second = (json.loads(answers(one, asker, each)[0]) for each in (names, shuffled))
    assert set(first["NodeNames"]) == set(second["NodeNames"])


@some
@given(found=fleets(), record=PLANS, gang=st.sampled_from([None, "other", "sweep-2"]))
def test_a_record_never_changes_the_answer_for_a_pod_of_another_gang(
    found: Fleet, record: GangPlan, gang: str | None
) -> None:
    """Nor for a single pod, even one of the same name and uid."""
    names, asker = names_of(found), pod(2, gang=gang)
    theirs = plan({UID: "node-0"}, hold=Hold.PREFER, key=f"lab/{gang}")
    with_it, without = Replica(led(found, record, theirs)), Replica(led(found, theirs))
    assert answers(with_it, asker, names) == answers(without, asker, names)


@some
@given(found=fleets(), record=PLANS, asker=ASKERS)
def test_under_prefer_the_same_nodes_pass_as_without_a_plan(
    found: Fleet, record: GangPlan, asker: Json
) -> None:
    """Only the order is the plan's."""
    names = names_of(found)
    one = Replica(led(found, replace(record, hold=Hold.PREFER)), narrow=32)
    bare = Replica(found, narrow=32)
    passed, all_fit = (each.filter(asker, names)["NodeNames"] for each in (one, bare))
    assert set(passed) == set(all_fit)
    kept = [set(each.preempt(asker, {name: ["v"] for name in names})) for each in (one, bare)]
    assert kept[0] == kept[1]
