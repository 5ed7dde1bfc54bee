"""What the cache keeps of a gang."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest
from members import KEY, NOW_S, gang, pod

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.recording import holds_good, record
from scoring.gangs.rules import GATE
from scoring.gangs.values import Gathered
from scoring.model import NodeName, PodUid
from scoring.planning.obstacles import Obstacle
from scoring.planning.outcome import Lack, Miss, Objective, Outcome, Plan, Shortfall
from scoring.topology import Domain, Level

COST = Objective(zones=1, blocks=1, racks=1, cliques=1, nodes=2, suspect_gpus=0, stranded_gpus=0)


def plan(of: Gathered, *nodes: str, domain: Domain | None = None) -> Plan:
    """A plan that seats the first members of a gang."""
    places = {
        each.member.uid: NodeName(node) for each, node in zip(of.members, nodes, strict=False)
    }
    return Plan(
        gang=KEY,
        uid="",
        places=MappingProxyType(places),
        kept=frozenset[PodUid](),
        domain=domain,
        objective=COST,
    )


def shortfall(lack: Lack = Lack.NO_ROOM) -> Shortfall:
    """No plan."""
    return Shortfall(
        gang=KEY,
        uid="",
        lack=lack,
        constraint="2 members need a node, and there is room for 1",
        counts=MappingProxyType({Obstacle.GPUS_HELD: 3}),
        nearest=Miss(
            domain="clique c3", placed=1, needed=2, cures=("n7 would do if GPU 3 were reset",)
        ),
        unblock=("free a node",),
    )


def kept(
    of: Gathered, outcome: Outcome | None, before: GangPlan | None = None, now_s: float = NOW_S
) -> GangPlan:
    """The record of a gang."""
    return record(of, outcome, before, term=7, now_s=now_s)


def test_a_plan_gives_every_member_its_seat() -> None:
    """Bound ones where they are bound."""
    of = gang(pod(0, bound="n0"), pod(1))
    found = kept(of, plan(of, "n0", "n1", domain=Domain(Level.CLIQUE, "c3")))
    assert found.state is GangState.PLANNED
    assert [(seat.pod, seat.node, seat.bound) for seat in found.seats.values()] == [
        ("train-0", "n0", True),
        ("train-1", "n1", False),
    ]
    assert found.summary == "2 of 2 members have a node in clique c3, 1 of them run"
    assert (found.term, found.domain) == (7, "clique c3")


@pytest.mark.parametrize(
    ("bound", "state"), [(0, GangState.WAITING), (1, GangState.PARTIAL), (2, GangState.RUNNING)]
)
def test_the_state_of_a_gang_without_a_plan_is_told_by_its_members(
    bound: int, state: GangState
) -> None:
    """None runs, some run, as many run as it needs."""
    pods = [pod(at, bound=f"n{at}") if at < bound else pod(at) for at in range(3)]
    assert kept(gang(*pods, min=2), shortfall()).state is state


def test_a_shortfall_is_told_whole() -> None:
    """What cannot be met, what came nearest, what would help."""
    found = kept(gang(pod(0), pod(1)), shortfall())
    assert found.lack == "NoRoom"
    assert found.summary == (
        "2 members need a node, and there is room for 1. Nearest: 1 of 2 members fit in clique c3;"
        " n7 would do if GPU 3 were reset."
    )
    assert found.nearest == "1 of 2 members fit in clique c3; n7 would do if GPU 3 were reset"
    assert dict(found.counts) == {"GpusHeld": 3}
    assert found.unblock == ("free a node",)


def test_a_gang_that_runs_needs_no_plan() -> None:
    """Nothing of it is to be planned, and it is shown all the same."""
    found = kept(gang(pod(0, bound="n0"), pod(1, bound="n1")), None)
    assert (found.state, found.summary) == (GangState.RUNNING, "2 of 2 members run")


def test_time_counts_on_while_the_state_lasts() -> None:
    """Through other plans and other leaders, and begins anew for another gang of the name."""
    of = gang(pod(0))
    first = kept(of, shortfall())
    assert kept(of, shortfall(), first, NOW_S + 50).since_s == NOW_S
    assert kept(of, plan(of, "n0"), first, NOW_S + 50).since_s == NOW_S + 50
    other = replace(of, uid="another")
    assert kept(other, shortfall(), first, NOW_S + 50).since_s == NOW_S + 50


def test_a_gang_runs_in_part_from_its_first_member_on() -> None:
    """However long its plan stood before: victims may have taken their time to go."""
    waits = gang(pod(0), pod(1))
    first = kept(waits, plan(waits, "n0", "n1"))
    part = gang(pod(0, bound="n0"), pod(1))
    later = kept(part, None, first, NOW_S + 900)
    assert (later.state, later.since_s) == (GangState.PLANNED, NOW_S + 900)
    assert kept(part, None, later, NOW_S + 950).since_s == NOW_S + 900


def test_of_a_gang_without_members_nothing_stands() -> None:
    """What it lacked was a matter of those that were."""
    before = kept(gang(pod(0), pod(1)), shortfall())
    gone = kept(gang(pod(0, leaving=True), pod(1, finished=True), min=2), None, before)
    assert (gone.lack, gone.nearest, gone.summary) == ("", "", "no pod of it is left")


def test_a_gang_at_the_gate_of_another_is_told_so() -> None:
    """Its pods are there, and do not count yet."""
    gates = frozenset({GATE, "kueue.x-k8s.io/admission"})
    held = gang(pod(0, gates=gates), pod(1, gates=gates), pod(2, leaving=True), min=2)
    assert kept(held, None).summary == "2 pods of it wait at the gate of another"
    assert (
        kept(gang(pod(0, gates=gates)), None).summary == "1 pod of it waits at the gate of another"
    )


def test_waiting_for_members_is_no_waiting_for_room() -> None:
    """Autoscalers are called for the second only, so its time is its own."""
    of = gang(pod(0))
    early = kept(of, shortfall(Lack.MEMBERS_MISSING))
    assert kept(of, shortfall(Lack.NO_ROOM), early, NOW_S + 50).since_s == NOW_S + 50


def test_what_was_planned_stands_until_it_is_planned_anew() -> None:
    """Members that were bound since are so in the record."""
    of = gang(pod(0), pod(1))
    first = kept(of, plan(of, "n0", "n1", domain=Domain(Level.RACK, "r1")))
    later = gang(pod(0, bound="n0"), pod(1))
    found = kept(later, None, first)
    assert [seat.bound for seat in found.seats.values()] == [True, False]
    assert found.summary == "2 of 2 members have a node in rack r1, 1 of them run"
    waits = kept(of, shortfall())
    assert replace(kept(of, None, waits), since_s=0.0) == replace(waits, since_s=0.0)


def test_nothing_stands_of_an_earlier_gang_of_the_same_name() -> None:
    """Names are used again; uids are not."""
    of = gang(pod(0))
    first = kept(of, plan(of, "n0"))
    assert kept(replace(of, uid="another"), None, first).state is GangState.WAITING


@pytest.mark.parametrize(
    ("now", "good"),
    [
        (gang(pod(0), pod(1)), True),
        (gang(pod(0, bound="n0"), pod(1, nominated="n9")), True),
        (gang(pod(0, bound="n9"), pod(1)), False),
        (gang(pod(0)), False),
        (gang(pod(0), pod(2)), False),
        (gang(pod(0), pod(1), pod(2)), False),
        (gang(pod(0), pod(1), min=1), False),
        (gang(pod(0), pod(1), uid="another"), False),
    ],
)
def test_a_record_holds_good_while_the_gang_is_what_it_was(now: Gathered, good: bool) -> None:
    """The same members, none of them elsewhere than planned, as many needed."""
    of = gang(pod(0), pod(1))
    assert holds_good(now, kept(of, plan(of, "n0", "n1"))) is good
