"""What holds for any pods."""

from __future__ import annotations

from dataclasses import replace

from gang_pods import ALL, JOB, group, many, pod
from hypothesis import given
from hypothesis import strategies as st

from scoring.gangs.gathering import Crew, gang_of, gather
from scoring.gangs.rules import GATE
from scoring.gangs.values import GangPod, Gathered
from scoring.model import Convention

GROUPS = {**group("a", min=3, size=4), **group("b", Convention.KUEUE, min=2)}
CREWS = {JOB.uid: Crew(uid=JOB.uid, parallelism=3, completions=4)}


def gangs(pods: list[GangPod]) -> tuple[Gathered, ...]:
    """What comes of them, with some groups and owners known."""
    return gather(pods, GROUPS, CREWS, ALL)


@given(many(), st.randoms(use_true_random=False))
def test_independent_of_the_order_of_pods(pods: list[GangPod], random: st.DataObject) -> None:
    """The same pods are the same gangs, in whatever order they come."""
    shuffled = list(pods)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert gangs(shuffled) == gangs(pods)


@given(many(), st.sampled_from(["a", "b"]), st.sampled_from(["kueue.x-k8s.io/topology", "any"]))
def test_a_pod_at_another_gate_changes_nothing(pods: list[GangPod], gang: str, gate: str) -> None:
    """It neither counts nor reserves, as long as somebody else holds it."""
    held = pod("held", gang=gang, least=7, size=9, created_s=500.0, gates=frozenset({GATE, gate}))

    def counted(found: tuple[Gathered, ...]) -> list[Gathered]:
        return [replace(each, pods=each.members) for each in found if each.members]

    assert counted(gangs([*pods, held])) == counted(gangs(pods))


@given(many())
def test_a_finished_pod_never_reserves(pods: list[GangPod]) -> None:
    """Nor one that is being deleted: planning is given members that count, and all of them."""
    for gang in gangs(pods):
        if gang.pending is not None:
            counting = {each.member.uid for each in gang.pods if each.counts}
            assert {member.uid for member in gang.pending.members} == counting
            assert any(member.bound is None for member in gang.pending.members)


@given(many())
def test_no_pod_is_in_two_gangs(pods: list[GangPod]) -> None:
    """And each is in the one that it names."""
    found = [each for gang in gangs(pods) for each in gang.pods]
    assert sorted(each.member.uid for each in found) == sorted(each.member.uid for each in pods)
    for gang in gangs(pods):
        assert len({gang_of(each) for each in gang.pods}) == 1


@given(many())
def test_no_two_gangs_have_one_key(pods: list[GangPod]) -> None:
    """Even where a name looks like one that was made to tell two apart."""
    keys = [gang.key for gang in gangs(pods)]
    assert len(set(keys)) == len(keys)
    for gang in gangs(pods):
        assert gang.pending is None or gang.pending.key == gang.key


@given(many())
def test_fewer_are_never_needed_than_are_there_of_the_minimum(pods: list[GangPod]) -> None:
    """Members that are done free nobody who is there, up to what was stated."""
    for gang in gangs(pods):
        stated = [each.gang.min for each in gang.members if each.gang.min is not None]
        if gang.convention is not Convention.SUREFOOT and stated and gang.min is not None:
            assert gang.min >= min(len(gang.members), *stated)
