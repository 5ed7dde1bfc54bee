"""Learning from rejection: what refused pods say of a node, for their owner and for everybody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import strategies as own
from hypothesis import assume, given
from hypothesis import strategies as st
from machines import dgx_h100
from strategies import NOW_S

from scoring import explain, picture, ranking, rejections
from scoring.candidate import candidate
from scoring.gangs.rules import GangRules
from scoring.model import (
    Ask,
    Fleet,
    Health,
    Need,
    Node,
    NodeName,
    Override,
    OverrideVerdict,
    PodUid,
    Rejection,
    Scope,
    WorkClass,
)
from scoring.policy import DEFAULT, Policy, PolicyError, RejectionPolicy
from scoring.reasons import Reason
from scoring.verdict import judge

NODE = NodeName("node-0")
OWNERS = ("lab/Job/train", "lab/ranks", "web/ReplicaSet/api-5d4f")
TRAIN, RANKS, API = OWNERS
MINUTE_S = 60.0
GANG = Need(work=WorkClass.GANG, count=8)
SINGLE = Need(work=WorkClass.SINGLE, count=1)


def rejection(
    owner: str = TRAIN, age_s: float = 0.0, reason: str = "UnexpectedAdmissionError", name: str = ""
) -> Rejection:
    """A pod of `owner` that the node refused so long ago."""
    return Rejection(node=NODE, owner=owner, reason=reason, at_s=NOW_S - age_s, name=name)


REJECTIONS = st.lists(
    st.builds(
        rejection,
        owner=st.sampled_from(OWNERS),
        age_s=st.floats(-100.0, 10_000.0),
        reason=st.sampled_from(["UnexpectedAdmissionError", "OutOfnvidia.com/gpu"]),
    ),
    max_size=12,
)


def fleet_of(node: Node, *found: Rejection, now_s: float = NOW_S) -> Fleet:
    """A fleet of one fresh node with these rejections."""
    return replace(own.fleet(node, now_s=now_s), rejections={node.name: found})


def reason_of(need: Need, *found: Rejection, now_s: float = NOW_S) -> Reason | None:
    """Why a sound machine with these rejections is refused."""
    node = dgx_h100()
    return judge(
        candidate(fleet_of(node, *found, now_s=now_s), node, DEFAULT), need, DEFAULT
    ).reason


def suspected(found: Sequence[Rejection], policy: Policy = DEFAULT, now_s: float = NOW_S) -> bool:
    """Whether the node is SUSPECT for these rejections."""
    return rejections.suspicion(found, now_s, policy)[0] is not None


class TestOwner:
    """What a rejection counts for the next pod of the same owner."""

    @pytest.mark.parametrize(
        ("ages_min", "ratio"),
        [((), 0.0), ((0,), 1.0), ((15,), 0.5), ((30,), 0.25), ((15, 30), 0.75), ((0, 15), 1.0)],
        ids=["none", "fresh", "a half-life", "two", "they add up", "to 1 at most"],
    )
    def test_a_rejection_halves_with_each_half_life(
        self, ages_min: tuple[int, ...], ratio: float
    ) -> None:
        """Fresh it counts 1, and several count together, 1 at most."""
        found = [rejection(age_s=age * MINUTE_S) for age in ages_min]
        assert rejections.penalty_ratio(found, TRAIN, NOW_S, DEFAULT) == pytest.approx(ratio)

    def test_only_the_owner_pays(self) -> None:
        """Pods of somebody else lose nothing by one workload's trouble."""
        found = [rejection(TRAIN)]
        assert rejections.penalty_ratio(found, RANKS, NOW_S, DEFAULT) == 0.0

    def test_it_counts_for_nothing_after_its_time(self) -> None:
        """At `keep` it is over, a moment before it is not."""
        keep_s = DEFAULT.rejection.keep_s
        assert rejections.penalty_ratio([rejection(age_s=keep_s)], TRAIN, NOW_S, DEFAULT) == 0.0
        assert rejections.penalty_ratio([rejection(age_s=keep_s - 1)], TRAIN, NOW_S, DEFAULT) > 0.0

    def test_a_time_ahead_of_us_counts_as_now(self) -> None:
        """Another clock runs ahead: no reason to count the rejection more, or not at all."""
        ahead = [rejection(age_s=-30.0)]
        assert rejections.penalty_ratio(ahead, TRAIN, NOW_S, DEFAULT) == 1.0

    def test_the_few_nodes_that_refused_an_owner_are_told(self) -> None:
        """By name, with the part of the rank that is lost; other nodes and other owners are absent."""
        nodes = [dgx_h100(name=name) for name in ("a", "b", "c")]
        there = {
            NodeName("a"): (rejection(TRAIN), rejection(RANKS)),
            NodeName("b"): (rejection(TRAIN, age_s=15 * MINUTE_S),),
            NodeName("c"): (rejection(RANKS), rejection(TRAIN, age_s=1e6)),
        }
        fleet = replace(own.fleet(*nodes), rejections=there)
        assert rejections.by_node(fleet, TRAIN, DEFAULT) == {
            NodeName("a"): pytest.approx(0.8),
            NodeName("b"): pytest.approx(0.4),
        }
        assert rejections.by_node(fleet, "", DEFAULT) == {}
        assert rejections.by_node(own.fleet(*nodes), TRAIN, DEFAULT) == {}
        off = replace(DEFAULT, rejection=RejectionPolicy(weight=0.0))
        assert rejections.by_node(fleet, TRAIN, off) == {}

    def test_they_are_told_by_reason_the_latest_first(self) -> None:
        """Reason, count and the last time, of one owner."""
        found = [
            rejection(age_s=300.0, reason="OutOfnvidia.com/gpu"),
            rejection(age_s=60.0),
            rejection(age_s=240.0),
            rejection(RANKS),
        ]
        first, second = rejections.tallies(found, TRAIN, NOW_S, DEFAULT)
        assert (first.reason, first.count, first.last_s) == (
            "UnexpectedAdmissionError",
            2,
            NOW_S - 60.0,
        )
        assert (second.reason, second.count) == ("OutOfnvidia.com/gpu", 1)


class TestNode:
    """When rejections speak against the node itself."""

    @pytest.mark.parametrize(
        ("found", "is_suspect"),
        [
            ([rejection(TRAIN), rejection(RANKS, 60.0), rejection(TRAIN, 899.0)], True),
            ([rejection(TRAIN), rejection(RANKS, 60.0)], False),
            ([rejection(TRAIN, age) for age in (0.0, 60.0, 120.0, 180.0)], False),
            ([rejection(TRAIN), rejection(RANKS, 60.0), rejection(TRAIN, 900.0)], False),
            ([rejection(TRAIN, 0.0, name=name) for name in "ab"] + [rejection(API)], True),
            ([rejection(owner, 3_599.0) for owner in OWNERS], True),
            ([rejection(owner, 3_600.0) for owner in OWNERS], False),
            ([], False),
        ],
        ids=[
            "three of two within a window", "two pods", "one workload", "beyond a window",
            "at the same time", "for an hour", "no longer", "none",
        ],
    )  # fmt: skip
    def test_pods_of_several_workloads_make_the_node_suspect(
        self, found: list[Rejection], is_suspect: bool
    ) -> None:
        """Three pods of two workloads within 15 minutes; for an hour after the last of them."""
        assert suspected(found) is is_suspect

    def test_later_rejections_of_one_workload_alone_prolong_nothing(self) -> None:
        """The hour begins with the last window that proves something of the node."""
        proof = [rejection(owner, 50 * MINUTE_S) for owner in OWNERS]
        later = [rejection(TRAIN, age_s) for age_s in (0.0, 1.0, 2.0)]
        _, ends_s = rejections.suspicion([*proof, *later], NOW_S, DEFAULT)
        assert ends_s == NOW_S + 10 * MINUTE_S

    def test_the_cause_says_what_was_seen(self) -> None:
        """SUSPECT, of the node, with count, times and reasons."""
        found = [
            rejection(TRAIN, 100.0),
            rejection(RANKS, 40.0, reason="OutOfnvidia.com/gpu"),
            rejection(TRAIN, 10.0),
        ]
        cause, ends_s = rejections.suspicion(found, NOW_S, DEFAULT)
        assert cause is not None
        assert (cause.id, cause.state, cause.scope) == (
            "pods.rejected",
            Health.SUSPECT,
            Scope.NODE,
        )
        assert (cause.first_s, cause.last_s, cause.count) == (NOW_S - 100.0, NOW_S - 10.0, 3)
        assert ends_s == NOW_S - 10.0 + 3_600.0
        assert cause.evidence == (
            "3 pods of 2 workloads rejected within 90 s: OutOfnvidia.com/gpu,"
            " UnexpectedAdmissionError"
        )

    def test_a_flood_of_long_reasons_stays_a_sentence(self) -> None:
        """Evidence is for people, whatever the kubelet wrote."""
        found = [rejection(OWNERS[i % 3], reason=f"{i}" + "x" * 500) for i in range(16)]
        cause, _ = rejections.suspicion(found, NOW_S, DEFAULT)
        assert cause is not None
        assert "and 13 more" in cause.evidence
        assert len(cause.evidence) < 350

    def test_gangs_leave_a_suspect_node_and_single_pods_come_last(self) -> None:
        """As with any other SUSPECT cause, on every GPU of the node."""
        black_hole = [rejection(owner) for owner in OWNERS]
        assert reason_of(GANG) is None
        assert reason_of(GANG, *black_hole) is Reason.GPU_SUSPECT
        assert reason_of(SINGLE, *black_hole) is None

    def test_it_is_judged_anew_when_the_suspicion_ends(self) -> None:
        """Time alone lifts it: the candidate says when, and `due` names the node then."""
        node = dgx_h100()
        found = [rejection(owner) for owner in OWNERS]
        fleet = replace(fleet_of(node, *found), seen_s={node.name: NOW_S + 1e9})
        ready = candidate(fleet, node, DEFAULT)
        assert ready.changes_at_s == NOW_S + DEFAULT.rejection.suspect_for_s
        before = picture.picture(fleet, DEFAULT)
        after = replace(fleet, now_s=ready.changes_at_s)
        assert picture.due(before, replace(fleet, now_s=ready.changes_at_s - 1.0)) == set()
        assert picture.due(before, after) == {node.name}
        assert judge(candidate(after, node, DEFAULT), GANG, DEFAULT).fits

    def test_an_operator_may_allow_it_all_the_same(self) -> None:
        """An override beats it, as it beats telemetry."""
        node = dgx_h100()
        word = Override(
            target=f"node/{node.name}",
            verdict=OverrideVerdict.ALLOW,
            who="ada",
            why="was the image",
        )
        fleet = fleet_of(node, *(rejection(owner) for owner in OWNERS))
        fleet = replace(fleet, overrides={word.target: word})
        assert judge(candidate(fleet, node, DEFAULT), GANG, DEFAULT).fits

    def test_a_node_without_gpus_may_be_suspect_too(self) -> None:
        """There is nothing to hang the cause on, and nothing breaks."""
        node = replace(dgx_h100(), gpus=(), links=type(dgx_h100().links)((), ()))
        fleet = fleet_of(node, *(rejection(owner) for owner in OWNERS))
        assert candidate(fleet, node, DEFAULT).causes == ()


class TestExplained:
    """What a person sees."""

    @staticmethod
    def _evidence(need: Need, *found: Rejection) -> list[tuple[str | None, str, str, float | None]]:
        seen = picture.picture(fleet_of(dgx_h100(), *found), DEFAULT)
        ask = Ask(namespace="lab", name="p", uid=PodUid("u"), need=need, owner=TRAIN)
        (told,) = explain.account(seen, ask, [NODE], None, 1, GangRules()).nodes
        return [(each.gpu, each.cause, each.value, each.age_s) for each in told.evidence]

    def test_the_owner_sees_its_own_rejections(self) -> None:
        """Reason, count and age, of the node; of a node that fits too."""
        assert self._evidence(SINGLE, rejection(age_s=30.0), rejection(age_s=20.0)) == [
            (None, "owner.rejected", "UnexpectedAdmissionError, 2 of lab/Job/train", 20.0)
        ]

    def test_everybody_sees_a_suspect_node_once(self) -> None:
        """One cause of the node is one piece of evidence, not one for each of eight GPUs."""
        found = [rejection(owner, 5.0) for owner in (RANKS, API, API)]
        ((gpu, cause, value, age_s),) = self._evidence(GANG, *found)
        assert (gpu, cause, age_s) == (None, "pods.rejected", 5.0)
        assert value.startswith("3 pods of 2 workloads rejected within 0 s")


# --- laws ----------------------------------------------------------------------------------------


@given(found=REJECTIONS, one=st.builds(rejection, owner=st.sampled_from(OWNERS)))
def test_one_more_rejection_never_lowers_a_penalty(found: list[Rejection], one: Rejection) -> None:
    """For whatever owner."""
    for owner in OWNERS:
        before = rejections.penalty_ratio(found, owner, NOW_S, DEFAULT)
        assert (
            0.0 <= before <= rejections.penalty_ratio([*found, one], owner, NOW_S, DEFAULT) <= 1.0
        )


@given(found=REJECTIONS, data=st.data())
def test_one_more_rejection_never_ends_a_suspicion(
    found: list[Rejection], data: st.DataObject
) -> None:
    """It may open one or prolong it, however old it is itself."""
    one = rejection(data.draw(st.sampled_from(OWNERS)), data.draw(st.floats(-100.0, 10_000.0)))
    cause, ends_s = rejections.suspicion(found, NOW_S, DEFAULT)
    after, ends_then_s = rejections.suspicion([*found, one], NOW_S, DEFAULT)
    assert cause is None or after is not None
    assert cause is None or ends_then_s >= ends_s


@given(
    fleet=own.fleets(most_nodes=1),
    need=own.needs(),
    found=REJECTIONS,
    one=REJECTIONS,
    seed=st.data(),
)
def test_adding_a_rejection_never_improves_a_verdict_or_a_rank(
    fleet: Fleet, need: Need, found: list[Rejection], one: list[Rejection], seed: st.DataObject
) -> None:
    """A node that refuses a pod still refuses it, and ranks no higher, with the penalty of its owner."""
    owner = seed.draw(st.sampled_from(OWNERS))

    def rank_with(them: list[Rejection]) -> float | None:
        given_them = replace(fleet, rejections={NODE: tuple(them)})
        made = picture.ranking_of(picture.picture(given_them, DEFAULT), need)
        lost = rejections.by_node(given_them, owner, DEFAULT).get(NODE, 0.0)
        return made.ranks[NODE] * (1.0 - lost) if NODE in made.ranks else None

    before, after = rank_with(found), rank_with([*found, *one])
    assert after is None or (before is not None and after <= before + 1e-12)


@given(found=REJECTIONS, later_s=st.floats(0.0, 10_000.0))
def test_a_penalty_only_falls_with_time(found: list[Rejection], later_s: float) -> None:
    """And a suspicion never opens by time alone."""
    for owner in OWNERS:
        before = rejections.penalty_ratio(found, owner, NOW_S, DEFAULT)
        after = rejections.penalty_ratio(found, owner, NOW_S + later_s, DEFAULT)
        assert after <= before + 1e-12
    assert suspected(found) or not suspected(found, now_s=NOW_S + later_s)


@given(found=REJECTIONS, data=st.data())
def test_the_order_of_rejections_never_matters(found: list[Rejection], data: st.DataObject) -> None:
    """Every replica says the same, to the last bit."""
    shuffled = data.draw(st.permutations(found))
    for owner in OWNERS:
        one = rejections.penalty_ratio(found, owner, NOW_S, DEFAULT)
        assert one == rejections.penalty_ratio(shuffled, owner, NOW_S, DEFAULT)
        assert rejections.tallies(found, owner, NOW_S, DEFAULT) == rejections.tallies(
            shuffled, owner, NOW_S, DEFAULT
        )
    assert rejections.suspicion(found, NOW_S, DEFAULT) == rejections.suspicion(
        shuffled, NOW_S, DEFAULT
    )


@given(found=REJECTIONS)
def test_a_suspicion_lasts_exactly_until_the_time_it_names(found: list[Rejection]) -> None:
    """Whoever keeps the verdict until then is never wrong."""
    cause, ends_s = rejections.suspicion(found, NOW_S, DEFAULT)
    assume(cause is not None)
    assert rejections.suspicion(found, math.nextafter(ends_s, 0.0), DEFAULT)[0] == cause
    assert rejections.suspicion(found, ends_s, DEFAULT) == (None, math.inf)


@given(found=REJECTIONS, need=own.needs())
def test_a_ranking_changed_in_steps_equals_one_made_anew(
    found: list[Rejection], need: Need
) -> None:
    """Rejections that arrive change their node as a fresh look would."""
    node = dgx_h100()
    old = picture.picture(fleet_of(node), DEFAULT)
    now = fleet_of(node, *found)
    stepped = picture.advanced(old, now, [node.name])
    kept = ranking.changed(picture.ranking_of(old, need), stepped.candidates, [node.name], DEFAULT)
    anew = picture.ranking_of(picture.picture(now, DEFAULT), need)
    assert (kept.ranks, kept.vetoes) == (anew.ranks, anew.vetoes)


def test_a_policy_that_forgets_too_early_is_refused() -> None:
    """A suspicion must not outlive the rejections that it rests on."""
    with pytest.raises(PolicyError, match=r"rejection\.keep_s: must not be shorter"):
        Policy(rejection=RejectionPolicy(keep_s=3_600.0))
