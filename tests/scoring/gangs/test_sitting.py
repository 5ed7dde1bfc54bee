"""Where a member of a gang may go, by its plan, its nomination and the site's rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gang_records import KEY, UID, led, plan
from hypothesis import given
from hypothesis import strategies as st
from strategies import fleet

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.sitting import FREE, Sitting, plan_of, sitting
from scoring.model import Ask, Convention, GangKey, GangRef, Need, NodeName, PodUid, WorkClass
from scoring.planning.outcome import Lack
from scoring.policy import DEFAULT, GangPolicy
from scoring.reasons import Reason

A, B, C = NodeName("a"), NodeName("b"), NodeName("c")
NEED = Need(work=WorkClass.GANG, count=8)
SINGLE = Ask(namespace="lab", name="p", uid=PodUid(UID), need=NEED)
MEMBER = replace(SINGLE, gang=GangRef(key=GangKey(KEY), convention=Convention.SUREFOOT))
SEATED = plan({UID: "a", "uid-rank-1": "b"})
ELSEWHERE = Reason.PLANNED_ELSEWHERE
RULES = GangRules()


def placed(*plans: GangPlan, ask: Ask = MEMBER, silent_s: float | None = 1.0) -> Sitting:
    """Where `ask` may go in an empty fleet with these records."""
    return sitting(led(fleet(), *plans, silent_s=silent_s), ask, RULES, DEFAULT)


def nominated(node: NodeName) -> Ask:
    """The member with a nomination of its own."""
    return replace(MEMBER, nominated=node)


class TestRequired:
    """A plan that binds."""

    def test_a_member_sits_on_its_seat(self) -> None:
        """And is refused everywhere else."""
        found = placed(SEATED)
        assert (found.nodes, found.refuses(A), found.refuses(B)) == ((A,), None, ELSEWHERE)

    def test_a_nomination_counts_beside_the_seat(self) -> None:
        """The cache may be a moment behind the pod, or ahead of it; the seat comes first."""
        found = placed(SEATED, ask=nominated(C))
        assert (found.nodes, found.refuses(C), found.refuses(B)) == ((A, C), None, ELSEWHERE)

    def test_nobody_is_evicted_for_a_nomination_alone(self) -> None:
        """It may be left from an earlier plan."""
        found = placed(SEATED, ask=nominated(C))
        assert (found.spares(A), found.spares(C)) == (None, ELSEWHERE)

    @pytest.mark.parametrize("seats", [{}, {UID: None}], ids=["unknown", "beyond the minimum"])
    def test_a_member_without_a_seat_goes_nowhere(self, seats: dict[str, str | None]) -> None:
        """Until it is planned; its gang may run."""
        for state in (GangState.PLANNED, GangState.RUNNING):
            found = placed(plan(seats, state))
            assert found == Sitting(refusal=Reason.MEMBER_UNPLANNED)

    @pytest.mark.parametrize("state", [GangState.WAITING, GangState.PARTIAL])
    @pytest.mark.parametrize(
        ("lack", "reason"),
        [
            ("", Reason.GANG_UNPLANNED),
            (Lack.MEMBERS_MISSING, Reason.GANG_INCOMPLETE),
            (Lack.SIZE_UNKNOWN, Reason.GANG_INCOMPLETE),
            (Lack.KIND_UNREADABLE, Reason.GANG_UNPLANNED),
            (Lack.WRITE_REFUSED, Reason.GANG_UNPLANNED),
            (Lack.INTERNAL_ERROR, Reason.GANG_UNPLANNED),
            (Lack.NO_ROOM, Reason.GANG_SHORT),
            ("OfANewerVersion", Reason.GANG_SHORT),
        ],
    )
    def test_a_gang_without_a_plan_goes_nowhere(
        self, state: GangState, lack: str, reason: Reason
    ) -> None:
        """Whatever its members were nominated to: that is void with the shortfall."""
        found = placed(plan({UID: "a"}, state, lack=lack), ask=nominated(B))
        assert found == Sitting(refusal=reason)

    def test_without_a_record_the_nomination_speaks_else_it_waits(self) -> None:
        """The leader nominates only what it planned; this replica may be behind."""
        assert placed() == Sitting(refusal=Reason.GANG_UNPLANNED)
        assert placed(ask=nominated(B)) == Sitting(nominated=B, refusal=ELSEWHERE)


class TestPreferred:
    """A plan that only says who comes first."""

    def test_the_seat_comes_first_and_none_is_refused(self) -> None:
        """Gangs with an atomicity of their own."""
        found = placed(replace(SEATED, hold=Hold.PREFER))
        assert (found.seat, found.refuses(B), found.spares(B)) == (A, None, None)

    @pytest.mark.parametrize("state", [GangState.WAITING, GangState.PARTIAL])
    def test_a_gang_without_a_plan_is_free(self, state: GangState) -> None:
        """As if nobody planned."""
        assert placed(plan({UID: "a"}, state, Hold.PREFER)) == FREE

    @given(st.sampled_from([A, B]), st.floats(0, 1), st.floats(0, 1))
    def test_nothing_is_worth_as_much_as_the_seat_and_others_keep_their_order(
        self, other: NodeName, one: float, two: float
    ) -> None:
        """At least a whole point of kube-scheduler's ten lies between."""
        found = Sitting(seat=C)
        assert found.worth(C, one) == 1.0
        low, high = sorted((one, two))
        assert found.worth(other, low) <= found.worth(other, high) <= 0.9


class TestLeader:
    """Who does not live binds nobody."""

    def test_a_silent_leaders_plan_is_a_preference(self) -> None:
        """So that gates that were lifted by hand free a gang."""
        assert placed(SEATED, silent_s=60.0) == Sitting(seat=A)
        assert placed(plan(state=GangState.WAITING), silent_s=60.0) == FREE
        assert placed(silent_s=60.0) == FREE

    def test_where_no_leader_ever_was_a_plan_binds_and_nobody_waits_for_one(self) -> None:
        """Somebody put it there, and takes it away."""
        assert placed(SEATED, silent_s=None).refusal is ELSEWHERE
        waits = placed(plan(state=GangState.WAITING), silent_s=None)
        assert waits.refusal is Reason.GANG_UNPLANNED
        assert placed(silent_s=None) == FREE

    def test_the_silence_is_a_setting(self) -> None:
        """To the second, and a change of the leader is no silence."""
        policy = replace(DEFAULT, gang=GangPolicy(leader_silence_s=300.0))
        for silent_s, refusal in ((299.0, ELSEWHERE), (300.0, None)):
            found = led(fleet(), SEATED, silent_s=silent_s)
            assert sitting(found, MEMBER, RULES, policy).refusal is refusal
        assert placed(SEATED, silent_s=59.9).refusal is ELSEWHERE


class TestRules:
    """Which gangs are planned at all."""

    def test_a_pod_of_no_gang_is_free(self) -> None:
        """Whatever stands in the cache, and whoever nominated it."""
        assert placed(SEATED, ask=replace(SINGLE, nominated=B)) is FREE

    def test_a_convention_that_is_off_is_free_until_a_record_says_otherwise(self) -> None:
        """The record is the leader's word."""
        jobset = replace(MEMBER, gang=GangRef(key=GangKey(KEY), convention=Convention.JOBSET))
        assert placed(ask=jobset) is FREE
        ours = replace(SEATED, convention=Convention.JOBSET)
        assert placed(ours, ask=jobset).refusal is ELSEWHERE

    def test_a_record_that_holds_nobody_frees(self) -> None:
        """A group that says it is no gang, though its convention is planned."""
        assert placed(replace(SEATED, hold=Hold.OFF)) is FREE

    def test_without_a_record_only_what_is_required_waits(self) -> None:
        """Under `prefer` nothing is lost by going on."""
        rules = GangRules(plan={Convention.SUREFOOT: Hold.PREFER})
        assert sitting(led(fleet()), MEMBER, rules, DEFAULT) is FREE

    def test_two_conventions_may_use_one_name(self) -> None:
        """The later one in the detector's order is kept under a longer key."""
        first = plan()
        second = replace(first, gang=GangKey(f"{KEY}~jobset"), convention=Convention.JOBSET)
        plans = {each.gang: each for each in (first, second)}
        key = GangKey(KEY)
        assert plan_of(plans, key, Convention.SUREFOOT) is first
        assert plan_of(plans, key, Convention.JOBSET) is second
        assert plan_of(plans, key, Convention.LWS) is None
        assert plan_of({second.gang: second}, key, Convention.SUREFOOT) is None
