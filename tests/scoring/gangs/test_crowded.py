"""Whether members that are still to come find room beside GPUs where they are planned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gang_pods import SHAPE, gathered, pod

from scoring.gangs import recording
from scoring.gangs.rules import OnShortfall
from scoring.gangs.settling import crowded
from scoring.gangs.values import Gathered
from scoring.model import NodeName
from scoring.planning.outcome import Objective, Plan
from scoring.planning.values import Amounts, HostPort, Room

N0 = NodeName("n0")
PORT = frozenset({HostPort(80)})
ROOM = Room(allocatable=Amounts(cpu_m=4000, memory_bytes=100, storage_bytes=10), pods=4)


def two(*, bound: str | None = None, **shape: Any) -> Gathered:
    """A gang whose members ask two cores each; both are planned for n0."""
    asked = replace(SHAPE, **{"amounts": Amounts(cpu_m=2000), **shape})
    pods = (pod(name, least=2, bound=at) for name, at in (("a", bound), ("b", None)))
    return gathered(*(replace(each, member=replace(each.member, shape=asked)) for each in pods))


def finds(gang: Gathered, room: Room | None) -> bool:
    """Whether the members that come find room."""
    places = {each.member.uid: N0 for each in gang.members}
    objective = Objective(
        zones=1, blocks=1, racks=1, cliques=1, nodes=1, suspect_gpus=0, stranded_gpus=0
    )
    plan = Plan(
        gang=gang.key, uid=gang.uid, places=places, kept=frozenset(), domain=None,
        objective=objective,
    )  # fmt: skip
    record = recording.record(gang, plan, None, term=1, now_s=0.0)
    return not crowded([gang], {gang.key: record}, {N0: room} if room else {})


@pytest.mark.parametrize(
    ("gang", "room"),
    [
        (two(), replace(ROOM, held=Amounts(cpu_m=1))),
        (two(), replace(ROOM, allocatable=Amounts(cpu_m=3999))),
        (two(amounts=Amounts(memory_bytes=50)), replace(ROOM, held=Amounts(memory_bytes=1))),
        (two(amounts=Amounts(storage_bytes=5)), replace(ROOM, held=Amounts(storage_bytes=1))),
        (two(), replace(ROOM, held_pods=3)),
        (two(bound="n0", ports=PORT), replace(ROOM, ports=PORT)),
        (two(), None),
        (replace(two(), on_shortfall=OnShortfall.PREEMPT), None),
    ],
    ids=["cpu", "less-of-it", "memory", "storage", "pods", "port", "gone", "gone-while-evicting"],
)
def test_who_took_the_room_crowds_them_out(gang: Gathered, room: Room | None) -> None:
    """Be it a DaemonSet's pod, or the node itself that has less."""
    assert finds(gang, ROOM)
    assert not finds(gang, room)


def test_members_that_have_come_crowd_nobody() -> None:
    """Their room is held now, and the others' is left."""
    half = replace(ROOM, held=Amounts(cpu_m=2000), held_pods=1)
    assert finds(two(bound="n0"), half)
    assert not finds(two(), half)


def test_who_asks_nothing_of_a_kind_minds_no_lack_of_it() -> None:
    """As kube-scheduler: a node may be overbooked."""
    assert finds(two(), replace(ROOM, held=Amounts(memory_bytes=200)))


def test_a_gang_that_evicts_is_planned_for_room_that_is_not_there_yet() -> None:
    """It makes that room itself."""
    evicts = replace(two(), on_shortfall=OnShortfall.PREEMPT)
    assert finds(evicts, replace(ROOM, held=Amounts(cpu_m=4000), held_pods=4))
