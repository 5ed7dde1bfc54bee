"""What holds of every plan, whatever the cluster and the gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from hypothesis import given, settings
from sites import Case, cases

from scoring import picture, verdict
from scoring.model import NodeName
from scoring.planning.order import missing, ordered
from scoring.planning.outcome import Plan, Shortfall
from scoring.planning.values import Member

K = TypeVar("K")
V = TypeVar("V")


def _backwards(found: Mapping[K, V]) -> dict[K, V]:
    return dict(list(found.items())[::-1])


def _placed(case: Case) -> list[tuple[Member, NodeName]]:
    """Every member that plans or holds put on a node, running ones left out."""
    members = {member.uid: member for gang in case.gangs for member in gang.members}
    found = []
    for outcome in case.cluster.planned(*case.gangs):
        places = outcome.places if isinstance(outcome, Plan) else outcome.held
        found += [(members[uid], node) for uid, node in places.items()]
    return [(member, node) for member, node in found if member.bound is None]


@settings(max_examples=120, deadline=None)
@given(cases())
def test_no_plan_uses_a_node_that_is_vetoed_for_a_member(case: Case) -> None:
    """Each member by itself would pass on the node it is planned for."""
    found = picture.picture(case.cluster.fleet, case.cluster.policy)
    for member, node in _placed(case):
        judged = verdict.judge(found.candidates[node], member.shape.need, found.policy)
        assert judged.fits
        assert not found.fleet.cluster[node].unschedulable
        assert not found.fleet.cluster[node].taints


@settings(max_examples=120, deadline=None)
@given(cases())
def test_plans_never_overlap_nor_use_more_than_is_free(case: Case) -> None:
    """All plans and holds together fit into what is free of GPUs, cpu, pods and host ports."""
    found = picture.picture(case.cluster.fleet, case.cluster.policy)
    gpus, cpu_m, pods, ports = Counter[NodeName](), Counter[NodeName](), Counter[NodeName](), []
    for member, node in _placed(case):
        gpus[node] += member.shape.gpus
        cpu_m[node] += member.shape.amounts.cpu_m
        pods[node] += 1
        ports += [(node, port) for port in member.shape.ports]
    for node in pods:
        candidate, room = found.candidates[node], case.cluster.site.rooms[node]
        assert gpus[node] <= candidate.free.bit_count() - candidate.nameless
        if cpu_m[node]:
            assert cpu_m[node] <= room.allocatable.cpu_m - room.held.cpu_m
        assert pods[node] <= room.pods - room.held_pods
        taken = [port for where, port in ports if where == node]
        assert len(set(taken)) == len(taken)
        assert not room.ports.intersection(taken)


@settings(max_examples=120, deadline=None)
@given(cases())
def test_a_gang_has_a_complete_plan_or_a_shortfall(case: Case) -> None:
    """With a plan at least the minimum has nodes, and who has none waits; with a shortfall there is
    a sentence.
    """
    gangs = {gang.key: gang for gang in case.gangs}
    outcomes = case.cluster.planned(*case.gangs)
    assert {outcome.gang for outcome in outcomes} == gangs.keys()
    for outcome in outcomes:
        gang = gangs[outcome.gang]
        if isinstance(outcome, Shortfall):
            assert outcome.constraint
            continue
        uids = {member.uid for member in gang.members}
        assert len(outcome.places) >= (gang.min or 0)
        assert outcome.places.keys().isdisjoint(outcome.waiting)
        assert {*outcome.places, *outcome.waiting} == uids


@settings(max_examples=120, deadline=None)
@given(cases())
def test_no_order_of_anything_changes_a_plan(case: Case) -> None:
    """Gangs, members, nodes and rooms in another order give the same outcomes."""
    fleet, site = case.cluster.fleet, case.cluster.site
    other = replace(
        case.cluster,
        fleet=replace(
            fleet,
            nodes=_backwards(fleet.nodes),
            cluster=_backwards(fleet.cluster),
            allocations={name: held[::-1] for name, held in _backwards(fleet.allocations).items()},
        ),
        site=replace(site, rooms=_backwards(site.rooms)),
    )
    gangs = [
        replace(case.gangs[place], members=case.gangs[place].members[::-1]) for place in case.order
    ]
    assert other.planned(*gangs) == case.cluster.planned(*case.gangs)


@settings(max_examples=120, deadline=None)
@given(cases(nominations=False))
def test_a_gang_never_changes_the_plan_of_those_before_it(case: Case) -> None:
    """Without the last gang all others get what they get with it."""
    order = ordered(case.gangs)
    assert case.cluster.planned(*order[:-1]) == case.cluster.planned(*order)[:-1]


@settings(max_examples=120, deadline=None)
@given(cases(nominations=False))
def test_a_half_placed_gang_is_completed_before_a_new_one_starts(case: Case) -> None:
    """A half-placed gang that fits when it is alone has a plan whatever new gangs there are."""
    half = [gang for gang in ordered(case.gangs) if missing(gang)]
    new = [gang for gang in case.gangs if not missing(gang)]
    for gang in half[:1]:
        assert case.cluster.planned(gang)[0] == case.cluster.planned(gang, *new)[0]


@settings(max_examples=120, deadline=None)
@given(cases())
def test_the_required_level_is_honoured(case: Case) -> None:
    """With a member that is newly placed, all members share one domain of the level that their gang
    requires.
    """
    found = picture.picture(case.cluster.fleet, case.cluster.policy)
    gangs = {gang.key: gang for gang in case.gangs}
    for outcome in case.cluster.planned(*case.gangs):
        required = gangs[outcome.gang].topology.required
        if (
            isinstance(outcome, Shortfall)
            or required is None
            or len(outcome.kept) == len(outcome.places)
        ):
            continue
        shared = set()
        for node in outcome.places.values():
            levels = {str(domain.level): domain.name for domain in found.candidates[node].domains}
            labels = found.fleet.cluster[node].labels
            shared.add(levels.get(str(required)) or labels[required])
        assert len(shared) == 1
