"""What the configuration of the webhook changes: mode, schedulers, failure policy, unknown nodes."""

from __future__ import annotations

import pytest
from asking import Json, pod, refused, scores
from machines import dgx_h100
from replicas import Replica, cause, fleet_of

from scoring.model import Health
from scoring.reasons import Reason

GANG_8 = pod(8, gang="sweep")
NAMES = ["sick", "well", "unreported"]
VICTIMS = {"sick": ["a"], "well": ["b"], "unreported": []}
FLEET = fleet_of(
    dgx_h100(name="well"), dgx_h100(name="sick", causes={0: cause(Health.RESET_REQUIRED)})
)


def passes_all(one: Replica, asker: Json) -> bool:
    """Whether Surefoot changes nothing for this pod: names as they came, scores 0, victims stay."""
    answer = one.filter(asker, NAMES)
    return (
        answer["NodeNames"] == NAMES
        and refused(answer) == {}
        and scores(one.prioritize(asker, NAMES)) == dict.fromkeys(NAMES, 0)
        and set(one.preempt(asker, VICTIMS)) == set(VICTIMS)
    )


class TestMode:
    """observe changes nothing and records what would have been; enforce counts."""

    def test_observe_is_the_default(self) -> None:
        """An operator adds Surefoot to a scheduler and watches first."""
        assert passes_all(Replica(FLEET, mode="observe"), GANG_8)

    def test_observe_records_what_would_have_been(self) -> None:
        """The same decisions as in enforce, marked as observed, in records and metrics."""
        observed, enforced = Replica(FLEET, mode="observe"), Replica(FLEET)
        for one in (observed, enforced):
            one.filter(GANG_8, ["sick"])
            one.filter(GANG_8, NAMES)
            one.preempt(GANG_8, VICTIMS)
        told = [record.fields() for record in observed.records]
        real = [record.fields() for record in enforced.records]
        same = ("verb", "verdict", "passed", "counts", "best", "runnerUp", "namesDigest")
        assert [[each[key] for key in same] for each in told] == [
            [each[key] for key in same] for each in real
        ]
        assert {each["mode"] for each in told} == {"observe"}
        assert told[0]["verdict"] == "veto"
        assert told[0]["counts"] == {"ResetRequired": 1}
        sample = 'surefoot_decisions_total{reason="ResetRequired",verb="filter",verdict="veto"}'
        assert observed.values()[sample] == enforced.values()[sample] == 1

    def test_enforce_counts(self) -> None:
        """The sick and the unreported node are refused to a gang, and struck from preemption."""
        one = Replica(FLEET)
        assert one.filter(GANG_8, NAMES)["NodeNames"] == ["well"]
        found = scores(one.prioritize(GANG_8, NAMES))
        assert found["well"] > found["sick"] == found["unreported"] == 0
        assert set(one.preempt(GANG_8, VICTIMS)) == {"well"}


class TestSchedulerNames:
    """kube-scheduler shares its extenders among all its profiles."""

    def test_others_pods_are_left_alone(self) -> None:
        """Every name back, score 0, victims unchanged; recorded as a bypass."""
        one = Replica(FLEET, schedulerNames=["surefoot", "batch"])
        assert passes_all(one, GANG_8)
        assert {record.decision.outcome.value for record in one.records} == {"bypass"}

    @pytest.mark.parametrize("name", ["surefoot", "batch"])
    def test_ours_are_judged(self, name: str) -> None:
        """Each scheduler of the list."""
        one = Replica(FLEET, schedulerNames=["surefoot", "batch"])
        asker = pod(8, gang="sweep", scheduler=name)
        assert one.filter(asker, NAMES)["NodeNames"] == ["well"]

    def test_a_pod_without_gpus_is_left_alone(self) -> None:
        """Whichever scheduler it is of."""
        assert passes_all(Replica(FLEET), pod(0))


class TestFailurePolicy:
    """Without a usable snapshot Surefoot says so, and passes all or none."""

    @pytest.mark.parametrize("mode", ["enforce", "observe"])
    def test_open_passes_all(self, mode: str) -> None:
        """Before the first snapshot."""
        one = Replica(failurePolicy="open", mode=mode)
        assert passes_all(one, GANG_8)
        assert {record.decision.outcome.value for record in one.records} == {"open"}

    def test_closed_refuses_all_and_says_why(self) -> None:
        """Unresolvable: no eviction brings a snapshot."""
        one = Replica(failurePolicy="closed")
        answer = one.filter(GANG_8, NAMES)
        assert answer["NodeNames"] == []
        assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(NAMES, Reason.NO_SNAPSHOT.text)
        assert scores(one.prioritize(GANG_8, NAMES)) == dict.fromkeys(NAMES, 0)
        assert one.preempt(GANG_8, VICTIMS) == {}

    def test_closed_leaves_pods_without_gpus_alone(self) -> None:
        """A cluster must be able to run its DNS while our cache is down."""
        assert passes_all(Replica(failurePolicy="closed"), pod(0))

    def test_observe_passes_all_even_when_closed(self) -> None:
        """Observe changes nothing, whatever else is configured."""
        one = Replica(failurePolicy="closed", mode="observe")
        assert passes_all(one, GANG_8)
        assert {record.decision.outcome.value for record in one.records} == {"closed"}

    @pytest.mark.parametrize("policy", ["open", "closed"])
    def test_the_last_snapshot_serves_until_it_is_too_old(self, policy: str) -> None:
        """To the second: five minutes are usable, more are not, and the next sign of life is."""
        one = Replica(FLEET, failurePolicy=policy, maxSnapshotAge="5m")
        one.now_s += 300
        assert one.filter(GANG_8, NAMES)["NodeNames"] == ["well"]
        one.now_s += 0.001
        expected = NAMES if policy == "open" else []
        assert one.filter(GANG_8, NAMES)["NodeNames"] == expected
        one.show(FLEET, frozenset())
        assert one.filter(GANG_8, NAMES)["NodeNames"] == ["well"]


class TestUnknownNodes:
    """Nodes without a document."""

    @pytest.mark.parametrize(
        ("setting", "single", "gang"),
        [("pass", True, True), ("single", True, False), ("veto", False, False)],
    )
    def test_who_may_use_nodes_that_nobody_reports(
        self, setting: str, single: bool, gang: bool
    ) -> None:
        """All, single pods only, or nobody: in /filter, /preempt and /explain alike."""
        one = Replica(FLEET, unknownNodes=setting)
        for asker, expected in ((pod(1), single), (GANG_8, gang)):
            answer = one.filter(asker, ["unreported"])
            assert bool(answer["NodeNames"]) is expected
            text = {} if expected else {"unreported": Reason.NODE_UNREPORTED.text}
            assert answer["FailedAndUnresolvableNodes"] == text
            assert bool(one.preempt(asker, {"unreported": ["v"]})) is expected
            told = one.explain(asker, ["unreported"])["nodes"]["unreported"]
            assert told["verdict"] == ("pass" if expected else "veto")
