"""The invariants of the design that an answer to kube-scheduler shows, each named after it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from asking import Json, by_names, pod, preemption, refused, scores
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import dgx_h100, hgx_a100, pcie_l40s4
from replicas import Replica, cause, fleet_of
from strategies import NOW_S, fleet, fleets

from scoring.model import Allocation, Fleet, Health, Node, NodeName, PodUid
from scoring.reasons import OF_STATE, Reason

FAILED_CYCLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
GANG_8 = pod(8, gang="sweep")
few = settings(max_examples=25, deadline=None)


def many(count: int, **options: Any) -> tuple[Node, ...]:
    """Healthy nodes whose names sort as they count."""
    return tuple(dgx_h100(name=f"node-{i:03}", **options) for i in range(count))


def names_of(found: Fleet) -> list[str]:
    """The names of a fleet's nodes, and one that it lacks."""
    return [*found.nodes, "nobody-reports-me"]


def holder(node: Node, *positions: int, uid: str = "victim") -> Allocation:
    """A pod that holds these GPUs of a node."""
    return Allocation(
        node=node.name,
        uid=PodUid(uid),
        namespace="lab",
        pod=uid,
        resource="nvidia.com/gpu",
        count=len(positions),
        gpus=frozenset(node.gpus[position].uuid for position in positions),
    )


class TestInvariant1:
    """/filter, /prioritize and /preempt change nothing: the same question has the same answer."""

    @few
    @given(found=fleets(), order=st.randoms(use_true_random=False))
    def test_invariant_1_same_snapshot_and_request_same_answer_in_any_order(
        self, found: Fleet, order: Any
    ) -> None:
        """Two replicas are asked the same calls in different orders: each call has one answer."""
        calls = [
            (verb, json.dumps(body).encode())
            for asker in (pod(1), pod(2, gang="bound"), pod(4, gang="a"))
            for verb, body in (
                ("filter", by_names(asker, names_of(found))),
                ("prioritize", by_names(asker, names_of(found))),
                ("preempt", preemption(asker, {name: ["v"] for name in names_of(found)})),
            )
        ]
        shuffled = calls * 2
        order.shuffle(shuffled)
        one, other = Replica(found, narrow=2), Replica(found, narrow=2)
        expected = {call: one.post(*call).body for call in calls}
        assert all(other.post(*call).body == expected[call] for call in shuffled)

    @few
    @given(found=fleets(), order=st.randoms(use_true_random=False))
    def test_invariant_1_the_order_of_names_changes_no_verdict(
        self, found: Fleet, order: Any
    ) -> None:
        """The same nodes in another order: the same ones pass, are refused, and score the same."""
        names = names_of(found)
        shuffled = order.sample(names, len(names))
        one = Replica(found, narrow=2)
        for asker in (pod(1), pod(2, gang="a")):
            first, second = one.filter(asker, names), one.filter(asker, shuffled)
            assert first["NodeNames"] == second["NodeNames"]
            assert refused(first) == refused(second)
            assert scores(one.prioritize(asker, names)) == scores(one.prioritize(asker, shuffled))


class TestInvariant4:
    """Hard rules live in /filter; /prioritize only orders."""

    @few
    @given(found=fleets())
    def test_invariant_4_prioritize_names_every_node_with_a_score_of_0_to_10(
        self, found: Fleet
    ) -> None:
        """No node is left out, whatever is wrong with it, and no score is beyond the protocol."""
        names = names_of(found)
        answer = Replica(found).prioritize(pod(2, gang="a"), names)
        assert [each["Host"] for each in answer] == names
        assert all(type(each["Score"]) is int and 0 <= each["Score"] <= 10 for each in answer)

    def test_invariant_4_what_filter_refuses_is_refused_whatever_it_scored(self) -> None:
        """/filter alone keeps a gang off a sick node; asking /prioritize first changes nothing."""
        sick = dgx_h100(name="sick", causes={3: cause(Health.FAILED)})
        one = Replica(fleet_of(sick, dgx_h100(name="well")))
        assert scores(one.prioritize(GANG_8, ["sick", "well"]))["sick"] == 0
        assert one.filter(GANG_8, ["sick", "well"])["NodeNames"] == ["well"]
        assert one.filter(GANG_8, ["sick"])["NodeNames"] == []

    def test_invariant_4_better_nodes_score_higher(self) -> None:
        """Healthy beats degraded, and the order of scores is that in which /filter narrows."""
        worse = dgx_h100(name="a-worse", causes={0: cause(Health.DEGRADED)})
        one = Replica(fleet_of(worse, dgx_h100(name="b-better")))
        names = ["a-worse", "b-better"]
        given_scores = scores(one.prioritize(pod(8), names))
        assert given_scores["b-better"] > given_scores["a-worse"]
        assert one.filter(pod(8), names)["NodeNames"] == ["b-better", "a-worse"]


class TestInvariant5:
    """kube-scheduler owns counts, Surefoot owns fitness."""

    def test_invariant_5_a_full_healthy_node_that_is_offered_passes(self) -> None:
        """Our view has no free GPU there, and kube-scheduler knows better."""
        node = dgx_h100()
        found = fleet(node, allocations={node.name: (holder(node, *range(8)),)})
        assert Replica(found).filter(GANG_8, [node.name])["NodeNames"] == [node.name]

    def test_invariant_5_where_too_few_are_free_held_gpus_are_judged_too(self) -> None:
        """A sick GPU that a pod holds counts once our free ones are fewer than asked."""
        node = dgx_h100(causes={0: cause(Health.FAILED)})
        found = fleet(node, allocations={node.name: (holder(node, 0, 1),)})
        one = Replica(found)
        assert one.filter(pod(6, gang="a"), [node.name])["NodeNames"] == [node.name]
        assert one.filter(pod(7, gang="a"), [node.name])["NodeNames"] == []


class TestInvariant6:
    """No running pod is evicted in vain."""

    @pytest.mark.parametrize("state", sorted(OF_STATE))
    def test_invariant_6_a_health_veto_is_unresolvable(self, state: Health) -> None:
        """kube-scheduler must not try preemption on a node that stays sick without its pods."""
        node = dgx_h100(causes={3: cause(state)})
        answer = Replica(fleet_of(node)).filter(GANG_8, [node.name])
        assert answer["FailedAndUnresolvableNodes"] == {node.name: OF_STATE[state].text}
        assert answer["FailedNodes"] == {}

    def test_invariant_6_stale_and_unreported_nodes_are_unresolvable(self) -> None:
        """Eviction brings no telemetry."""
        node = dgx_h100()
        found = fleet(node, seen_s={node.name: NOW_S - 90})
        answer = Replica(found).filter(GANG_8, [node.name, "unreported"])
        assert answer["FailedAndUnresolvableNodes"] == {
            node.name: Reason.NODE_STALE.text,
            "unreported": Reason.NODE_UNREPORTED.text,
        }

    def test_invariant_6_healthy_gpus_that_others_hold_are_worth_a_preemption(self) -> None:
        """The only veto in FailedNodes: freeing the held GPUs would cure it."""
        node = dgx_h100(causes={0: cause(Health.FAILED)})
        found = fleet(node, allocations={node.name: (holder(node, *range(6)),)})
        answer = Replica(found).filter(pod(4, gang="a"), [node.name])
        assert answer["FailedNodes"] == {node.name: Reason.HEALTHY_GPUS_HELD.text}
        assert answer["FailedAndUnresolvableNodes"] == {}

    def test_invariant_6_preempt_strikes_what_filter_would_refuse_without_the_victims(self) -> None:
        """Sick nodes that /filter never saw are struck; healthy ones stay with their victims."""
        well, sick = dgx_h100(name="well"), dgx_h100(name="sick", causes={2: cause(Health.FAILED)})
        found = fleet(
            well,
            sick,
            allocations={node.name: (holder(node, *range(8)),) for node in (well, sick)},
        )
        victims = {"well": ["victim"], "sick": ["victim"], "unreported": ["victim"]}
        kept = Replica(found).preempt(GANG_8, victims)
        assert kept == {"well": {"Pods": [{"UID": "victim"}], "NumPDBViolations": 0}}

    def test_invariant_6_preempt_looks_at_the_gpus_that_the_victims_leave(self) -> None:
        """Evicting the pod on healthy GPUs helps; evicting the one that holds the sick GPU does not."""
        node = dgx_h100(causes={0: cause(Health.FAILED)})
        held = (holder(node, 0, 1, 2, 3, uid="on-sick"), holder(node, 4, 5, 6, 7, uid="on-well"))
        one = Replica(fleet(node, allocations={node.name: held}))
        four = pod(4, gang="a")
        assert set(one.preempt(four, {node.name: ["on-well"]})) == {node.name}
        assert one.preempt(four, {node.name: ["on-sick"]}) == {}


class TestInvariant7:
    """Reason texts are few and short."""

    @pytest.mark.parametrize("reason", list(Reason))
    def test_invariant_7_a_text_is_short_and_names_nothing(self, reason: Reason) -> None:
        """At most 60 characters without a digit, so that kube-scheduler counts equal ones."""
        assert 0 < len(reason.text) <= 60
        assert not re.search(r"\d", reason.text)
        assert reason.advice
        assert isinstance(reason.unresolvable, bool)

    def test_invariant_7_no_two_reasons_read_alike(self) -> None:
        """One text, one reason: what is counted together is the same."""
        assert len({reason.text for reason in Reason}) == len(Reason)

    @few
    @given(found=fleets())
    def test_invariant_7_answers_use_these_texts_only(self, found: Fleet) -> None:
        """What is sent is the enum's text: no node, no GPU, no number."""
        texts = refused(Replica(found).filter(pod(5, gang="a"), names_of(found))).values()
        assert set(texts) <= {reason.text for reason in Reason}


class TestInvariant8:
    """An answer is as narrow as is safe."""

    def test_invariant_8_only_the_best_32_come_back_by_rank_and_name(self) -> None:
        """40 healthy nodes, the last five better than the rest: those first, then by name."""
        plain = tuple(pcie_l40s4(name=f"a-{i:02}") for i in range(35))
        better = tuple(hgx_a100(name=f"b-{i:02}") for i in range(5))
        names = [node.name for node in (*plain, *better)]
        answer = Replica(fleet_of(*plain, *better)).filter(pod(4, gang="a"), reversed(names))
        assert answer["NodeNames"] == [*names[35:], *names[:27]]

    def test_invariant_8_no_reason_is_told_while_some_node_passes(self) -> None:
        """kube-scheduler reads them only when nothing passed."""
        sick = dgx_h100(name="sick", causes={0: cause(Health.FAILED)})
        answer = Replica(fleet_of(sick, *many(2))).filter(GANG_8, ["sick", "node-000", "node-001"])
        assert answer["NodeNames"] == ["node-000", "node-001"]
        assert refused(answer) == {}

    def test_invariant_8_when_none_passes_every_node_has_its_reason(self) -> None:
        """40 sick nodes and one unknown: 41 reasons."""
        sick = tuple(
            dgx_h100(name=f"sick-{i:02}", causes={0: cause(Health.FAILED)}) for i in range(40)
        )
        names = [*(node.name for node in sick), "unknown"]
        answer = Replica(fleet_of(*sick)).filter(GANG_8, names)
        assert answer["NodeNames"] == []
        assert set(refused(answer)) == set(names)

    @pytest.mark.parametrize(
        "asker",
        [
            pod(8, gang="a", conditions=[FAILED_CYCLE]),
            pod(8, gang="a", topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}]),
            *(
                pod(
                    8,
                    gang="a",
                    affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}},
                )
                for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")
            ),
        ],
        ids=["failed-cycle", "soft-spread", "node-affinity", "pod-affinity", "pod-anti-affinity"],
    )
    def test_invariant_8_a_pod_that_could_starve_gets_all(self, asker: Json) -> None:
        """Other plugins have a say for this pod, or have vetoed our favourites: all that fit."""
        names = [node.name for node in many(40)]
        assert Replica(fleet_of(*many(40))).filter(asker, names)["NodeNames"] == names

    @pytest.mark.parametrize(
        "asker",
        [
            pod(8, gang="a", conditions=[{**FAILED_CYCLE, "reason": "SchedulingGated"}]),
            pod(8, gang="a", topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}]),
        ],
        ids=["gate-just-lifted", "hard-spread"],
    )
    def test_invariant_8_hard_rules_of_others_do_not_widen(self, asker: Json) -> None:
        """kube-scheduler's own filters ran before we are asked; a gate is no failed cycle."""
        names = [node.name for node in many(40)]
        assert len(Replica(fleet_of(*many(40))).filter(asker, names)["NodeNames"]) == 32

    def test_invariant_8_narrowing_can_be_set_and_turned_off(self) -> None:
        """`narrow: 0` is for those who have another extender after us."""
        found, names = fleet_of(*many(40)), [f"node-{i:03}" for i in range(40)]
        assert Replica(found, narrow=0).filter(GANG_8, names)["NodeNames"] == names
        assert Replica(found, narrow=3).filter(GANG_8, names)["NodeNames"] == names[:3]

    def test_invariant_8_nodes_without_a_document_come_last(self) -> None:
        """A single pod may use them, after every node that is known to be fit."""
        names = ["a-unknown", *(NodeName(f"node-{i:03}") for i in range(3)), "b-unknown"]
        one = Replica(fleet_of(*many(3)), narrow=4)
        expected = ["node-000", "node-001", "node-002", "a-unknown"]
        assert one.filter(pod(8), names)["NodeNames"] == expected
