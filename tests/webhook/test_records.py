"""Decision records: enough to say later what was asked, what was known, and what was answered."""

from __future__ import annotations

import json
from datetime import datetime

from asking import pod
from machines import dgx_h100, pcie_l40s4
from replicas import Replica, cause, fleet_of

from extender.webhook.records import names_digest
from scoring.model import Health, NodeName
from scoring.policy import DEFAULT, digest

GANG_4 = pod(4, gang="sweep", annotations={"surefoot.dev/allow": "SUSPECT"})
FLEET = fleet_of(
    dgx_h100(name="sick", causes={0: cause(Health.FAILED)}),
    dgx_h100(name="b"),
    dgx_h100(name="a"),
    pcie_l40s4(name="slow"),
)


def record_of(one: Replica) -> dict[str, object]:
    """The last record as it is shipped."""
    found: dict[str, object] = json.loads(one.records[-1].encode())
    return found


def test_a_filter_that_passed_records_best_and_runner_up() -> None:
    """Every field that a replay or a reader of the log needs."""
    one = Replica(FLEET)
    one.filter(GANG_4, ["sick", "slow", "b", "a"])
    record = record_of(one)
    assert record.keys() == {
        "id", "at", "verb", "mode", "verdict", "ask", "names", "namesDigest", "passed",
        "generation", "now", "policy", "counts", "best", "runnerUp", "tookMs",
    }  # fmt: skip
    told = {key: record[key] for key in ("verb", "mode", "verdict", "names", "passed", "counts")}
    assert told == {
        "verb": "filter",
        "mode": "enforce",
        "verdict": "pass",
        "names": 4,
        "passed": 3,
        "counts": {"GpuFailed": 1},
    }
    assert (record["generation"], record["now"]) == (1, FLEET.now_s)
    assert record["policy"] == digest(DEFAULT)
    ranked = [record["best"], record["runnerUp"]]
    assert [each["node"] for each in ranked if isinstance(each, dict)] == ["a", "b"]
    assert datetime.fromisoformat(str(record["at"])).tzinfo is not None
    assert isinstance(record["tookMs"], float)


def test_the_ask_is_recorded_with_its_gang_and_its_words() -> None:
    """Who asked, for what, as a member of what, accepting what."""
    one = Replica(FLEET)
    one.filter(GANG_4, ["a"])
    assert record_of(one)["ask"] == {
        "namespace": "lab",
        "pod": "rank-0",
        "uid": "uid-rank-0",
        "work": "gang",
        "resource": "nvidia.com/gpu",
        "kind": "whole",
        "count": 4,
        "gang": {"key": "lab/sweep", "convention": "surefoot", "min": 2},
        "allow": ["SUSPECT"],
        "deny": [],
        "preemptible": False,
        "narrowable": True,
        "nominated": None,
        "notes": [],
    }


def test_a_veto_records_how_many_nodes_each_reason_refused() -> None:
    """No best, no runner-up."""
    one = Replica(FLEET)
    one.filter(GANG_4, ["sick", "u1", "u2"])
    record = record_of(one)
    assert (record["verdict"], record["best"], record["runnerUp"]) == ("veto", None, None)
    assert record["counts"] == {"NodeUnreported": 2, "GpuFailed": 1}


def test_every_verb_but_explain_is_recorded() -> None:
    """One record a call."""
    one = Replica(FLEET)
    one.filter(GANG_4, ["a"])
    one.prioritize(GANG_4, ["a", "b"])
    one.preempt(GANG_4, {"a": ["v"]})
    one.explain(GANG_4)
    assert [record.verb for record in one.records] == ["filter", "prioritize", "preempt"]
    assert len({record.id for record in one.records}) == 3


def test_without_a_snapshot_there_is_a_record_too() -> None:
    """Which decisions were made blindly must be known afterwards."""
    one = Replica(failurePolicy="open")
    one.filter(GANG_4, ["a"])
    record = record_of(one)
    assert (record["verdict"], record["generation"], record["now"]) == ("open", None, None)


def test_the_digest_of_names_knows_no_order() -> None:
    """The same offer is the same, and one node more is another."""
    a, b, ab = NodeName("a"), NodeName("b"), NodeName("ab")
    offers = [frozenset(each) for each in ((a, b), (a,), (ab,), ())]
    assert names_digest(offers[0]) == names_digest(frozenset((b, a)))
    assert len({names_digest(each) for each in offers}) == 4
