"""Which gangs there are, how many members each needs, and which pods are members."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gang_pods import ALL, JOB, gathered, group, only, pod, pods

from scoring.gangs.gathering import Crew, GangId, gather
from scoring.gangs.rules import GATE, GangRules, Hold, OnShortfall
from scoring.gangs.values import GangPod, Gathered, Owner
from scoring.model import Convention, GangKey, PodUid
from scoring.planning.values import NO_TOPOLOGY, Topology
from scoring.topology import Level


def numbers(gang: Gathered) -> tuple[int | None, int | None]:
    """Its minimum and its size, which planning is given too."""
    if gang.pending is not None:
        assert (gang.pending.min, gang.pending.size) == (gang.min, gang.size)
    return gang.min, gang.size


def names(gang: Gathered) -> list[str]:
    """Of the members that are planned."""
    assert gang.pending is not None
    return sorted(member.name for member in gang.pending.members)


# --- how many members ----------------------------------------------------------------------------


def test_what_pods_say_of_themselves_counts_first() -> None:
    """Before the object of their group, and before their owner."""
    crews = {JOB.uid: Crew(uid=JOB.uid, parallelism=2)}
    found = gathered(*pods(3, least=3, size=4, owner=JOB), crews=crews)
    assert numbers(found) == (3, 4)
    koordinator = Convention.KOORDINATOR
    found = gathered(
        *pods(3, least=3, convention=koordinator), groups=group(convention=koordinator, min=2)
    )
    assert numbers(found) == (3, None)


def test_the_youngest_pod_speaks() -> None:
    """A gang was scaled: pods that came later know."""
    old, young = pod("a", least=8, size=8), pod("b", least=4, size=4, created_s=200.0)
    assert numbers(gathered(old, young)) == (4, 4)


def test_the_object_of_the_group_says_the_rest() -> None:
    """Its uid tells the gang from an earlier one of the same name."""
    members = pods(3, convention=Convention.COSCHEDULING)
    found = gathered(*members, groups=group(min=3, size=5))
    assert (numbers(found), found.uid) == ((3, 5), "group-train")


def test_a_group_that_is_not_there_yet_has_no_known_minimum() -> None:
    """It may come a moment later. No number is never 1."""
    found = gathered(*pods(3, convention=Convention.COSCHEDULING))
    assert numbers(found) == (None, None)
    assert found.pending is not None


def test_a_gang_of_surefoots_own_is_as_large_as_its_owner() -> None:
    """Where no label tells its size."""
    crews = {JOB.uid: Crew(uid=JOB.uid, parallelism=4, completions=4)}
    found = gathered(*pods(3, owner=JOB), crews=crews)
    assert (numbers(found), found.uid) == ((4, 4), JOB.uid)
    assert numbers(gathered(*pods(3, owner=JOB))) == (None, None), "the Job is not known yet"


def test_pods_of_several_owners_do_not_tell_their_number() -> None:
    """More Jobs of the gang may be to come, so the sum of those that are there is no size."""
    other = replace(JOB, name="other", uid="other")
    crews = {uid: Crew(uid=uid, parallelism=2) for uid in (JOB.uid, other.uid)}
    found = gathered(pod("a", owner=JOB), pod("b", owner=other), crews=crews)
    assert (numbers(found), found.uid) == ((None, None), "")


def test_a_native_gang_takes_only_its_size_from_the_job() -> None:
    """Its minimum stands in the PodGroup, or nowhere."""
    crews = {JOB.uid: Crew(uid=JOB.uid, parallelism=4)}
    members = pods(3, convention=Convention.NATIVE, owner=JOB)
    assert numbers(gathered(*members, crews=crews)) == (None, 4)
    said = group(convention=Convention.NATIVE, min=2)
    assert numbers(gathered(*members, crews=crews, groups=said)) == (2, 4)


def test_other_conventions_take_nothing_from_owners() -> None:
    """They have objects of their own to say it."""
    crews = {JOB.uid: Crew(uid=JOB.uid, parallelism=4)}
    members = pods(3, convention=Convention.COSCHEDULING, owner=JOB)
    assert numbers(gathered(*members, crews=crews)) == (None, None)


def test_replicas_of_a_workloads_group_share_its_word() -> None:
    """Each is a gang of its own."""
    said = group("llm/ranks", Convention.WORKLOAD, min=2)
    members = [
        pod(f"{replica}-{index}", gang=f"llm/ranks/{replica}", convention=Convention.WORKLOAD)
        for replica in "ab"
        for index in range(2)
    ]
    found = gather(members, said, {}, ALL)
    assert [(gang.key, gang.min) for gang in found] == [
        ("ml/llm/ranks/a", 2),
        ("ml/llm/ranks/b", 2),
    ]


# --- members that are done, gone, or come anew ---------------------------------------------------


def done(*members: GangPod) -> list[GangPod]:
    """The same when they succeeded."""
    return [replace(each, finished=True, succeeded=True) for each in members]


def test_members_that_succeeded_are_needed_no_more() -> None:
    """A gang of 8 of which 3 are done needs the other 5."""
    members = pods(8, least=8, size=8)
    found = gathered(*done(*members[:3]), *members[3:])
    assert numbers(found) == (5, 5)
    found = gathered(*done(*members[:3]), *members[3:7])
    assert numbers(found) == (5, 5), "one of the rest is missing"


def test_members_that_are_there_are_needed_though_others_are_done() -> None:
    """A queue of work replaces those that succeed: as many run as before."""
    members = pods(4, least=4)
    late = [
        replace(each, member=replace(each.member, uid=PodUid(f"late-{each.member.uid}")))
        for each in members
    ]
    assert numbers(gathered(*done(*members), *late)) == (4, None)


def test_a_job_says_itself_how_many_are_left() -> None:
    """By its completions, whether or not its count of those that are done is up to date."""
    members = pods(8, owner=JOB)
    for counted in (0, 2, 3):
        crew = Crew(uid=JOB.uid, parallelism=8, completions=8, succeeded=counted)
        found = gathered(*done(*members[:3]), *members[3:7], crews={JOB.uid: crew})
        assert numbers(found) == (5, 5)
    crew = Crew(uid=JOB.uid, parallelism=4, completions=100, succeeded=3)
    found = gathered(*done(*members[:3]), *members[3:7], crews={JOB.uid: crew})
    assert numbers(found) == (4, 4)


def test_what_failed_must_come_again() -> None:
    """A failed member is no member, and still needed."""
    members = pods(4, least=4)
    found = gathered(replace(members[0], finished=True), *members[1:])
    assert (numbers(found), names(found)) == ((4, None), ["train-1", "train-2", "train-3"])


@pytest.mark.parametrize("end", [{"leaving": True}, {"finished": True}])
def test_a_member_that_was_created_anew_joins(end: dict[str, Any]) -> None:
    """As soon as the one whose place it takes is failed or being deleted."""
    old, *others = pods(3, least=3, bound="n1", gates=frozenset())
    new = pod("train-0-x7k2p", index=0, least=3, created_s=300.0)
    found = gathered(replace(old, **end), *others, new)
    assert names(found) == ["train-0-x7k2p", "train-1", "train-2"]
    assert len(found.pods) == 4


def test_done_members_of_an_earlier_owner_do_not_count() -> None:
    """A Job that was deleted and created again starts from nothing."""
    members = pods(4, least=4, owner=JOB)
    earlier = [
        replace(
            each,
            owner=replace(JOB, uid="earlier"),
            member=replace(each.member, uid=PodUid(f"e{n}")),
        )
        for n, each in enumerate(members)
    ]
    assert numbers(gathered(*done(*earlier), *members[:3])) == (4, None)


def test_done_members_that_are_being_deleted_do_not_count() -> None:
    """They go with the gang that they were of."""
    members = pods(4, least=4)
    going = [replace(each, leaving=True) for each in done(*members[:1])]
    assert numbers(gathered(*going, *members[1:])) == (4, None)


def test_other_owners_of_the_same_gang_may_be_done() -> None:
    """Of a JobSet one Job may end before the others."""
    launcher = pod("launcher", least=4, owner=Owner(kind="Job", name="launcher", uid="l"))
    assert numbers(gathered(*done(launcher), *pods(3, least=4, owner=JOB))) == (3, None)


def test_surplus_members_belong_to_the_gang() -> None:
    """It was scaled, or its label was never changed."""
    found = gathered(*pods(6, least=4, size=4))
    assert (numbers(found), len(names(found))) == ((4, 4), 6)


def test_a_gang_whose_members_all_have_nodes_is_not_pending() -> None:
    """It is known all the same."""
    found = gathered(*pods(2, least=2, bound="n1"))
    assert (found.pending, len(found.members)) == (None, 2)


def test_bound_and_nominated_members_are_planned_with_the_rest() -> None:
    """What has a node is a pin."""
    found = gathered(*pods(2, least=4, bound="n1"), pod("train-2", nominated="n2"), pod("train-3"))
    assert found.pending is not None
    assert len(found.pending.members) == 4


def test_indices_that_repeat_tell_nothing() -> None:
    """Tasks of two kinds, or two Jobs, count from 0 each. Names give the order then."""
    found = gathered(pod("ps-0", index=0), pod("w-0", index=0), pod("w-1", index=1))
    assert found.pending is not None
    assert {member.index for member in found.pending.members} == {None}


def test_indices_do_not_call_a_member_missing_that_is_done() -> None:
    """Who is missing is told by indices that are not there."""
    members = pods(3, least=3)
    found = gathered(*done(members[0]), *members[1:])
    assert found.pending is not None
    assert {member.index for member in found.pending.members} == {None}


def test_numbers_in_names_tell_who_is_missing_where_no_index_does() -> None:
    """Plain pods: `train-2` is the one that is not there."""
    found = gathered(*(pod(f"train-{number}", least=4) for number in (0, 1, 3)))
    assert found.pending is not None
    assert {member.name: member.index for member in found.pending.members} == {
        "train-0": 0,
        "train-1": 1,
        "train-3": 3,
    }


@pytest.mark.parametrize(
    "names",
    [
        ("train-1", "train-2"),
        ("ps-0", "worker-1"),
        ("train-0", "train-x7k2p"),
        ("train-0", "train-00"),
        ("first", "second"),
    ],
)
def test_names_that_do_not_tell_who_is_missing_are_no_indices(names: tuple[str, ...]) -> None:
    """They count from 1, are of several kinds, or have no numbers."""
    found = gathered(*(pod(name, least=3) for name in names))
    assert found.pending is not None
    assert {member.index for member in found.pending.members} == {None}


# --- what else a gang is -------------------------------------------------------------------------


def test_a_gang_is_as_strong_as_its_weakest_member() -> None:
    """Whoever outranks that one may take its room. It is as old as its first member."""
    found = gathered(pod("a", priority=5, created_s=7.0), pod("b", priority=3))
    assert found.pending is not None
    assert (found.pending.priority, found.pending.since_s) == (3, 7.0)


RACK = Topology(required=Level.RACK)
ZONE = Topology(required=Level.ZONE, preferred=Level.RACK)


@pytest.mark.parametrize(
    ("asked", "group_asks", "comes"),
    [
        ([RACK, RACK], ZONE, RACK),
        ([NO_TOPOLOGY, RACK], ZONE, RACK),
        ([RACK, ZONE], NO_TOPOLOGY, NO_TOPOLOGY),
        ([NO_TOPOLOGY, NO_TOPOLOGY], ZONE, ZONE),
        ([NO_TOPOLOGY, NO_TOPOLOGY], NO_TOPOLOGY, NO_TOPOLOGY),
    ],
)
def test_pods_say_how_near_they_must_be(
    asked: list[Topology], group_asks: Topology, comes: Topology
) -> None:
    """Else their group does. Where they differ nothing is asked of the gang as a whole."""
    members = [
        pod(f"w-{index}", topology=each, convention=Convention.COSCHEDULING)
        for index, each in enumerate(asked)
    ]
    found = gathered(*members, groups=group(min=2, topology=group_asks))
    assert found.pending is not None
    assert found.pending.topology == comes


def test_pods_choose_what_becomes_of_a_shortfall() -> None:
    """Else the site does."""
    rules = replace(ALL, on_shortfall=OnShortfall.AUTOSCALE)
    assert gathered(pod("a"), rules=rules).on_shortfall is OnShortfall.AUTOSCALE
    found = gathered(pod("a"), pod("b", on_shortfall=OnShortfall.PREEMPT), rules=rules)
    assert found.on_shortfall is OnShortfall.PREEMPT


def test_conventions_that_are_off_are_not_gathered() -> None:
    """By default all but Surefoot's own."""
    found = gather([pod("a"), pod("b", convention=Convention.KUEUE)], {}, {}, GangRules())
    assert [gang.convention for gang in found] == [Convention.SUREFOOT]


def test_a_group_that_is_no_gang_is_judged_pod_by_pod() -> None:
    """`basic`, or a minimum of 1: nothing is planned, and whoever holds its pods may let go."""
    members = pods(2, convention=Convention.COSCHEDULING)
    found = gathered(*members, groups=group(min=1, gang=False))
    assert (found.hold, found.pending) == (Hold.OFF, None)


def test_two_conventions_may_use_one_name() -> None:
    """The later one in the detector's order is told apart by its convention."""
    both = [pod("b", convention=Convention.KUEUE), pod("a")]
    first, second = gather(both, {}, {}, ALL)
    assert (first.key, first.convention) == ("ml/train", Convention.SUREFOOT)
    assert (second.key, second.convention) == ("ml/train~kueue", Convention.KUEUE)
    assert second.pending is not None
    assert second.pending.key == second.key
    assert only(gather(both[:1], {}, {}, ALL)).key == "ml/train"


def test_the_gate_of_another_keeps_a_pod_out() -> None:
    """Our own does not."""
    foreign = pod("b", gates=frozenset({GATE, "kueue.x-k8s.io/admission"}))
    assert names(gathered(pod("a"), foreign)) == ["a"]


def test_a_group_is_looked_up_by_convention() -> None:
    """Objects of one convention say nothing of another's gangs."""
    said = {GangId(GangKey("ml/train"), Convention.KAI): group(min=3).popitem()[1]}
    assert numbers(gathered(*pods(2, convention=Convention.COSCHEDULING), groups=said))[0] is None
