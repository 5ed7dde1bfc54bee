"""Who is woken by a change: the pods that it helps, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from pools import fleet_of, of_state, seen
from strategies import NOW_S, fleets, needs
from verdicts import holding
from waiters import GANG_8, SINGLE_1, Waiter

from scoring import wakes
from scoring.candidate import Candidate
from scoring.model import (
    Breaker,
    BreakerState,
    Fleet,
    GangKey,
    Health,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    Taint,
    WorkClass,
)
from scoring.picture import Picture, picture
from scoring.planning.selection import Selection
from scoring.policy import DEFAULT
from scoring.verdict import judge

BAD, WELL = of_state("n0", Health.RESET_REQUIRED), of_state("n0")
SINGLES = frozenset({WorkClass.SINGLE})


def woken(old: Fleet, new: Fleet, *pods: Waiter) -> dict[str, bool]:
    """Which pods the change from one fleet to the other helps."""
    before = seen(old), seen(new)
    changed = before[0].names | before[1].names
    found = wakes.helped(wakes.before_change(*before, changed), before[1], pods, SINGLES)
    return {pod.name: found[pod.uid] for pod in pods if pod.uid in found}


class TestHelped:
    """Changes, and pods that wait."""

    def test_a_node_that_recovers_wakes_who_it_takes(self) -> None:
        """A reset cures the node: the pod that was refused for it is called."""
        assert woken(fleet_of(BAD), fleet_of(WELL), Waiter()) == {"train-0": False}

    @pytest.mark.parametrize(
        ("old", "new"), [(WELL, BAD), (BAD, BAD), (WELL, WELL)], ids=["worse", "bad", "well"]
    )
    def test_no_other_change_wakes(self, old: Node, new: Node) -> None:
        """What got worse, or stays as it was, helps nobody."""
        assert not woken(fleet_of(old), fleet_of(replace(new, seq=9)), Waiter())

    def test_a_pod_for_whom_nothing_changed_sleeps_on(self) -> None:
        """A single pod had the node before too: a verdict that was no veto wakes nobody."""
        old, new = of_state("n0", Health.DEGRADED), WELL
        assert woken(fleet_of(old), fleet_of(new), Waiter(), Waiter(name="one", need=SINGLE_1)) == {
            "train-0": False
        }

    def test_a_node_that_the_pod_may_not_use_wakes_it_not(self) -> None:
        """Selectors, taints and too few GPUs keep the pod off the node anyway."""
        old, new = fleet_of(BAD), fleet_of(WELL)
        elsewhere = Waiter(selection=Selection(selector=frozenset({("disk", "ssd")})))
        assert not woken(old, new, elsewhere)
        cordoned = {NodeName("n0"): replace(new.cluster[NodeName("n0")], unschedulable=True)}
        assert not woken(old, replace(new, cluster=cordoned), Waiter())
        taint = Taint(key="team", effect="NoSchedule", value="other")
        tainted = {NodeName("n0"): replace(new.cluster[NodeName("n0")], taints=(taint,))}
        assert not woken(old, replace(new, cluster=tainted), Waiter())
        small = {
            NodeName("n0"): replace(new.cluster[NodeName("n0")], allocatable={"nvidia.com/gpu": 7})
        }
        assert not woken(old, replace(new, cluster=small), Waiter())
        assert not woken(old, replace(new, cluster={}), Waiter())

    def test_held_gpus_keep_nobody_asleep(self) -> None:
        """Who preempts needs no free GPUs, and pods that go wake the others."""
        new = replace(fleet_of(WELL), allocations={NodeName("n0"): holding(WELL, *range(8))})
        assert woken(fleet_of(BAD), new, Waiter())

    def test_an_override_wakes(self) -> None:
        """An operator allowed the GPU: no document changed, so the pod is called twice."""
        word = Override(
            target="node/n0", verdict=OverrideVerdict.ALLOW, who="ann", why="tested", until_s=None
        )
        new = replace(fleet_of(BAD), overrides={word.target: word})
        assert woken(fleet_of(BAD), new, Waiter()) == {"train-0": True}

    def test_telemetry_that_is_back_wakes_twice(self) -> None:
        """Replicas read stamps every few seconds, so that some may refuse the pod once more."""
        old = fleet_of(WELL, ages_s={NodeName("n0"): 90.0})
        assert woken(old, fleet_of(WELL), Waiter()) == {"train-0": True}

    def test_a_breaker_that_opens_wakes(self) -> None:
        """A probation that keeps single pods away keeps them no longer."""
        old = fleet_of(of_state("n0", Health.PROBATION))
        word = Breaker(pool="NVIDIA-H100-80GB-HBM3", state=BreakerState.OPEN, until_s=NOW_S + 60)
        new = replace(old, breakers={word.pool: word})
        assert woken(old, new, Waiter(need=SINGLE_1), Waiter(name="gang")) == {"train-0": True}

    def test_a_first_document_wakes_those_who_want_one(self) -> None:
        """Gangs use no unreported node, single pods do and were not refused for it."""
        nobody = replace(fleet_of(), cluster=fleet_of(WELL).cluster)
        pods = (Waiter(), Waiter(name="one", need=SINGLE_1))
        assert woken(nobody, fleet_of(WELL), *pods) == {"train-0": False}

    @given(old=fleets(), new=fleets(), need=needs())
    def test_whoever_is_woken_had_no_such_node_before(
        self, old: Fleet, new: Fleet, need: object
    ) -> None:
        """A woken pod passes on some changed node now and was refused there before; else it sleeps."""
        pod = Waiter(need=need)  # type: ignore[arg-type]
        then, now = picture(old, DEFAULT), _within_cluster(picture(new, DEFAULT))

        def passes(found: Mapping[NodeName, Candidate], name: NodeName) -> bool:
            if name not in found:
                return pod.need.work is WorkClass.SINGLE
            return judge(found[name], pod.need, DEFAULT).fits

        helps = any(
            passes(now.candidates, name) and not passes(then.candidates, name)
            for name in then.names | now.names
            if name in now.fleet.cluster
        )
        before = wakes.before_change(then, now, then.names | now.names)
        assert bool(wakes.helped(before, now, [pod], SINGLES)) == helps


def _within_cluster(found: Picture) -> Picture:
    cluster = fleet_of(*found.fleet.nodes.values()).cluster
    return replace(found, fleet=replace(found.fleet, cluster=cluster))


class TestTouchable:
    """Whose message speaks of Surefoot."""

    def test_members_of_planned_gangs_are_left_to_the_planner(self) -> None:
        """They wait for a plan; members of other gangs are as any pod."""
        mine, other = Waiter(gang=GangKey("lab/a")), Waiter(name="b", gang=GangKey("lab/b"))
        none = Waiter(name="c", message="")
        assert wakes.touchable([mine, other, none], {GangKey("lab/a")}) == [other]


class TestPlaceable:
    """A leader's first look, which has no earlier one to compare with."""

    def test_who_could_go_somewhere_now_is_found(self) -> None:
        """A node that takes the pod, with room for it: nobody else will wake the pod."""
        assert wakes.placeable(seen(fleet_of(WELL)), [Waiter()], SINGLES) == {Waiter().uid}
        assert not wakes.placeable(seen(fleet_of(BAD)), [Waiter()], SINGLES)

    def test_a_full_node_is_no_reason(self) -> None:
        """Without a change a node without free GPUs is none that the pod missed."""
        full = replace(fleet_of(WELL), allocations={NodeName("n0"): holding(WELL, 0)})
        assert not wakes.placeable(seen(full), [Waiter()], SINGLES)
        assert wakes.placeable(seen(full), [Waiter(need=replace(GANG_8, count=7))], SINGLES)
