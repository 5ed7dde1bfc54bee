"""/filter, /prioritize and /preempt of a pod whose gang has a plan, or waits for one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from asking import Json, pod, refused, scores
from gang_records import UID, led, plan
from machines import dgx_h100
from replicas import Replica, cause, fleet_of
from strategies import fleet

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import Hold
from scoring.model import Allocation, Health, NodeName, PodUid
from scoring.planning.outcome import Lack
from scoring.reasons import Reason

NAMES = ["a", "b", "c", "d"]
MEMBER = pod(8, gang="sweep")
FAILED_CYCLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
AGAIN = pod(8, gang="sweep", conditions=[FAILED_CYCLE])
FLEET = fleet_of(
    *(dgx_h100(name=name) for name in "abc"),
    dgx_h100(name="d", causes={3: cause(Health.RESET_REQUIRED)}),
)
ON_C = plan({UID: "c", "uid-rank-1": "b"})
SHORT = plan({UID: None}, GangState.WAITING, lack=Lack.NO_ROOM)


def shown(*plans: GangPlan, silent_s: float | None = 1.0, **settings: Any) -> Replica:
    """A replica with these records."""
    return Replica(led(FLEET, *plans, silent_s=silent_s), **settings)


def preferred(one: GangPlan) -> GangPlan:
    """The same plan, which only says who comes first."""
    return replace(one, hold=Hold.PREFER)


class TestRequire:
    """One node, or none."""

    @pytest.mark.parametrize("asker", [MEMBER, AGAIN], ids=["first cycle", "after a failed one"])
    @pytest.mark.parametrize("narrow", [0, 32])
    def test_only_the_seat_passes(self, asker: Json, narrow: int) -> None:
        """Also for a pod that would get all nodes: elsewhere it would split its gang."""
        answer = shown(ON_C, narrow=narrow).filter(asker, NAMES)
        assert (answer["NodeNames"], refused(answer)) == (["c"], {})

    def test_a_seat_that_is_not_offered_leaves_nothing(self) -> None:
        """And no eviction can help."""
        answer = shown(ON_C).filter(MEMBER, ["a", "b"])
        text = Reason.PLANNED_ELSEWHERE.text
        assert (answer["NodeNames"], answer["FailedNodes"]) == ([], {})
        assert answer["FailedAndUnresolvableNodes"] == {"a": text, "b": text}

    def test_a_seat_that_turned_bad_is_refused_for_its_health(self) -> None:
        """The plan never beats the verdict; the next plan stands."""
        one = shown(plan({UID: "d"}))
        assert refused(one.filter(MEMBER, NAMES)) == {
            **dict.fromkeys("abc", Reason.PLANNED_ELSEWHERE.text),
            "d": Reason.RESET_REQUIRED.text,
        }
        assert one.preempt(MEMBER, {name: ["v"] for name in NAMES}) == {}

    def test_a_nomination_passes_where_the_seat_is_not_offered(self) -> None:
        """kube-scheduler tries a nominated pod on that one node first."""
        asker = pod(8, gang="sweep", nominated="a")
        one = shown(ON_C)
        assert one.filter(asker, ["a"])["NodeNames"] == ["a"]
        assert one.filter(asker, NAMES)["NodeNames"] == ["c"]
        assert one.filter(asker, ["b"])["NodeNames"] == []
        assert one.filter(pod(8, gang="sweep", nominated="d"), ["d"])["NodeNames"] == []

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            ([SHORT], Reason.GANG_SHORT),
            ([plan(state=GangState.WAITING, lack=Lack.MEMBERS_MISSING)], Reason.GANG_INCOMPLETE),
            ([plan({"uid-rank-1": "a"})], Reason.MEMBER_UNPLANNED),
            ([], Reason.GANG_UNPLANNED),
        ],
        ids=["too large", "below quorum", "new member", "no record"],
    )
    def test_who_has_no_seat_goes_nowhere_and_evicts_nobody(
        self, record: list[GangPlan], reason: Reason
    ) -> None:
        """Every node has the same reason, which kube-scheduler counts as one."""
        one = shown(*record)
        answer = one.filter(MEMBER, NAMES)
        assert answer["NodeNames"] == []
        assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(NAMES, reason.text)
        assert scores(one.prioritize(MEMBER, NAMES)) == dict.fromkeys(NAMES, 0)
        assert one.preempt(MEMBER, {name: ["v"] for name in NAMES}) == {}
        verdict = (
            f'surefoot_decisions_total{{reason="{reason.value}",verb="filter",verdict="veto"}}'
        )
        assert one.values()[verdict] == 1

    def test_preemption_is_for_the_seat_alone(self) -> None:
        """Where the victims' GPUs would do; a pod is evicted for no other node, nominated or not."""
        held: dict[NodeName, tuple[Allocation, ...]] = {
            NodeName(name): (
                Allocation(
                    node=NodeName(name), uid=PodUid(f"on-{name}"), namespace="lab", pod="v",
                    resource="nvidia.com/gpu", count=8,
                ),
            )
            for name in "abc"
        }  # fmt: skip
        one = Replica(led(fleet(*FLEET.nodes.values(), allocations=held), ON_C))
        asker = pod(8, gang="sweep", nominated="a")
        assert set(one.preempt(asker, {name: [f"on-{name}"] for name in "abc"})) == {"c"}
        assert one.records[-1].fields()["counts"] == {Reason.PLANNED_ELSEWHERE.value: 2}

    def test_the_seat_scores_as_any_node_and_others_nothing(self) -> None:
        """0 for what /filter would refuse."""
        found = scores(shown(ON_C).prioritize(MEMBER, NAMES))
        assert found["c"] == scores(Replica(FLEET).prioritize(MEMBER, NAMES))["c"] > 0
        assert found == {"a": 0, "b": 0, "c": found["c"], "d": 0}


class TestPrefer:
    """The seat first, and every fit node after it."""

    def test_the_seat_comes_first(self) -> None:
        """Then the others in their order, as many as are narrowed to."""
        assert shown(preferred(ON_C)).filter(MEMBER, NAMES)["NodeNames"] == ["c", "a", "b"]
        assert shown(preferred(ON_C), narrow=2).filter(MEMBER, NAMES)["NodeNames"] == ["c", "a"]
        assert shown(preferred(ON_C), narrow=1).filter(MEMBER, NAMES)["NodeNames"] == ["c"]

    def test_a_seat_of_low_rank_is_among_the_narrowed(self) -> None:
        """Ranks alone would have left it out."""
        worn = dgx_h100(name="z", causes={0: cause(Health.SUSPECT)})
        found = led(fleet_of(*FLEET.nodes.values(), worn), preferred(plan({UID: "z"})))
        asker = pod(8, gang="sweep", annotations={"surefoot.dev/allow": "SUSPECT"})
        assert Replica(found, narrow=2).filter(asker, [*NAMES, "z"])["NodeNames"] == ["z", "a"]

    @pytest.mark.parametrize("seat", ["d", "gone"])
    def test_a_seat_that_is_unfit_or_not_offered_changes_nothing(self, seat: str) -> None:
        """The rest pass as if there were no plan."""
        one, bare = shown(preferred(plan({UID: seat}))), Replica(FLEET)
        assert one.filter(MEMBER, NAMES) == bare.filter(MEMBER, NAMES)
        assert one.preempt(MEMBER, {"a": ["v"]}).keys() == {"a"}
        assert scores(one.prioritize(MEMBER, NAMES))["d"] == 0

    def test_a_pod_that_could_starve_gets_all(self) -> None:
        """Other plugins have their say; the score still says who is first."""
        one = shown(preferred(ON_C))
        assert one.filter(AGAIN, NAMES)["NodeNames"] == ["a", "b", "c"]
        found = scores(one.prioritize(AGAIN, NAMES))
        assert found["c"] == 10 > found["a"] >= found["b"] > found["d"] == 0


class TestOthers:
    """Whom plans do not concern."""

    def test_observe_changes_nothing_and_records_what_would_have_been(self) -> None:
        """As for every other rule."""
        observed, enforced = shown(SHORT, mode="observe"), shown(SHORT)
        for one in (observed, enforced):
            one.filter(MEMBER, NAMES)
            one.preempt(MEMBER, {"a": ["v"]})
        assert observed.filter(MEMBER, NAMES)["NodeNames"] == NAMES
        assert observed.preempt(MEMBER, {"a": ["v"]}).keys() == {"a"}
        for told, real in zip(observed.records, enforced.records, strict=False):
            assert told.fields()["counts"] == real.fields()["counts"] != {}
            assert told.fields()["verdict"] == "veto"

    def test_without_a_living_leader_members_are_judged_call_by_call(self) -> None:
        """The plan is a preference then, and who has none waits for nothing."""
        assert shown(ON_C, silent_s=61.0).filter(MEMBER, NAMES)["NodeNames"] == [*"cab"]
        for one in (shown(SHORT, silent_s=61.0), shown(silent_s=61.0), shown(silent_s=None)):
            assert one.filter(MEMBER, NAMES)["NodeNames"] == [*"abc"]

    def test_a_plan_put_by_hand_binds_where_no_leader_ever_was(self) -> None:
        """Another planner may use the cache as its own."""
        assert shown(ON_C, silent_s=None).filter(MEMBER, NAMES)["NodeNames"] == ["c"]

    def test_another_schedulers_pod_and_one_without_gpus_pass(self) -> None:
        """They are not ours, whatever gang they are of."""
        one = shown(SHORT, schedulerNames=["surefoot"])
        assert one.filter(MEMBER, NAMES)["NodeNames"] == NAMES
        assert shown(SHORT).filter(pod(0, gang="sweep"), NAMES)["NodeNames"] == NAMES

    def test_a_plan_reaches_the_next_request(self) -> None:
        """It changes no node, so no verdict is made anew for it."""
        one = shown(SHORT)
        assert one.filter(MEMBER, NAMES)["NodeNames"] == []
        one.show(led(FLEET, ON_C), frozenset())
        assert one.filter(MEMBER, NAMES)["NodeNames"] == ["c"]
