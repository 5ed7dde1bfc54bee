"""The invariants of the design that concern whole gangs, each named after it: the webhook's side."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from asking import pod, scores
from gang_records import UID, led, plan
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import dgx_h100
from replicas import Replica, fleet_of
from strategies import fleets

from scoring.gangs.record import GangPlan, GangState
from scoring.model import Fleet
from scoring.planning.outcome import Lack

NAMES = ["a", "b", "c"]
FLEET = fleet_of(*(dgx_h100(name=name) for name in NAMES))
MEMBER = pod(8, gang="sweep")
FAILED_CYCLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
UNPLANNED = st.builds(
    plan,
    st.dictionaries(st.sampled_from([UID, "uid-rank-1"]), st.none()),
    st.sampled_from([GangState.WAITING, GangState.PARTIAL]),
    lack=st.sampled_from(["", *Lack]),
)


class TestInvariant6:
    """No running pod is evicted in vain."""

    @pytest.mark.parametrize("seat", ["a", None])
    def test_invariant_6_preempt_strikes_what_is_in_no_plan(self, seat: str | None) -> None:
        """A gang that is planned evicts on its own nodes only, one that is not on none."""
        state = GangState.PLANNED if seat else GangState.WAITING
        one = Replica(led(FLEET, plan({UID: seat}, state)))
        kept = one.preempt(MEMBER, {name: ["v"] for name in NAMES})
        assert set(kept) == ({seat} if seat else set())


class TestInvariant8:
    """An answer is as narrow as is safe."""

    def test_invariant_8_a_planned_member_gets_its_node_even_after_a_failed_cycle(self) -> None:
        """A wider answer would split its gang: that is not safe."""
        one = Replica(led(FLEET, plan({UID: "b"})))
        for conditions in ((), (FAILED_CYCLE,)):
            asker = pod(8, gang="sweep", conditions=conditions)
            assert one.filter(asker, NAMES)["NodeNames"] == ["b"]


class TestInvariant11:
    """All or nothing: a gang that cannot fit whole gets no node, and a reason."""

    @settings(max_examples=40, deadline=None)
    @given(found=fleets(), record=UNPLANNED, gpus=st.integers(1, 4))
    def test_invariant_11_no_member_of_a_gang_without_a_plan_gets_a_node(
        self, found: Fleet, record: GangPlan, gpus: int
    ) -> None:
        """However many nodes would take it alone; each is refused with a reason, for good."""
        one, names = Replica(led(found, record)), [*found.nodes]
        asker = pod(gpus, gang="sweep", nominated=names[0])
        answer = one.filter(asker, names)
        assert (answer["NodeNames"], answer["FailedNodes"]) == ([], {})
        assert answer["FailedAndUnresolvableNodes"].keys() == set(names)
        assert all(answer["FailedAndUnresolvableNodes"].values())
        assert one.preempt(asker, {name: ["v"] for name in names}) == {}
        assert set(scores(one.prioritize(asker, names)).values()) == {0}

    def test_invariant_11_no_member_gets_a_node_before_the_first_plan(self) -> None:
        """The gang was made a moment ago: nobody knows whether it fits."""
        assert Replica(led(FLEET)).filter(MEMBER, NAMES)["NodeNames"] == []

    def test_invariant_11_members_of_one_plan_get_its_nodes_and_no_others(self) -> None:
        """Asked in any order, all of them have a place."""
        record = plan({f"uid-{name}": name for name in NAMES})
        one = Replica(led(FLEET, record))
        for name in NAMES:
            asker = pod(8, gang="sweep")
            asker["metadata"]["uid"] = f"uid-{name}"
            assert one.filter(asker, NAMES)["NodeNames"] == [name]


class TestInvariant13:
    """One planner: the webhook judges by the leader's word, and has none of its own."""

    def test_invariant_13_the_webhook_has_no_planner(self) -> None:
        """A server that has all it answers with never loads one."""
        code = (
            "import sys, extender.webhook.app; sys.exit('scoring.planning.planner' in sys.modules)"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_invariant_13_two_gangs_on_one_seat_are_both_believed(self) -> None:
        """Whoever is right, the leader says it; kube-scheduler counts what is left."""
        other = plan({"uid-other": "a"}, key="lab/other")
        one = Replica(led(FLEET, plan({UID: "a"}), other))
        theirs = pod(8, gang="other")
        theirs["metadata"]["uid"] = "uid-other"
        assert one.filter(MEMBER, NAMES)["NodeNames"] == ["a"]
        assert one.filter(theirs, NAMES)["NodeNames"] == ["a"]

    def test_invariant_13_a_later_word_replaces_an_earlier_one(self) -> None:
        """The replica keeps nothing of what it was told before."""
        one = Replica(led(FLEET, plan({UID: "a"})))
        assert one.filter(MEMBER, NAMES)["NodeNames"] == ["a"]
        moved = replace(plan({UID: "c"}), term=2)
        one.show(led(FLEET, moved), frozenset())
        assert one.filter(MEMBER, NAMES)["NodeNames"] == ["c"]
