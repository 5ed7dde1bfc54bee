"""POST /explain of a gang's pod: the gang first, then the nodes as /filter judges them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from asking import pod
from gang_records import UID, led, plan
from machines import dgx_h100
from replicas import Replica, cause, fleet_of

from scoring.gangs.record import GangPlan, GangState
from scoring.gangs.rules import GangRules, Hold
from scoring.model import Convention, Health
from scoring.planning.outcome import Lack

MEMBER = pod(8, gang="sweep")
FLEET = fleet_of(
    *(dgx_h100(name=name) for name in "abc"),
    dgx_h100(name="d", causes={3: cause(Health.RESET_REQUIRED, "xid.48")}),
)
ON_C = plan({UID: "c", "uid-rank-1": "b"})
MISSING = plan(
    {UID: None},
    GangState.WAITING,
    lack=Lack.MEMBERS_MISSING,
    summary="1 of 2 pods exist; rank-1 is missing.",
    nearest="1 of 2 members fit in the cluster; d would do if GPU 3 were reset",
)
UNLED = "No controller leads, so the pods of its gang are judged one by one."


def shown(*plans: GangPlan, silent_s: float | None = 1.0) -> Replica:
    """A replica with these records."""
    return Replica(led(FLEET, *plans, silent_s=silent_s))


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (ON_C, "Planned on c with its gang (2 of 2 seated)."),
        (
            plan({UID: "c", "uid-rank-1": None}),
            "Planned on c with its gang (1 of 2 seated).",
        ),
        (
            plan({UID: "c", "uid-rank-1": "b"}, GangState.RUNNING, bound=frozenset({UID})),
            "Bound on c with its gang (1 of 2 bound).",
        ),
        (
            plan({"uid-rank-1": "b"}),
            "Its gang is planned, with no node for this pod (1 of 1 seated).",
        ),
        (MISSING, "1 of 2 pods exist; rank-1 is missing."),
        (
            plan(
                {UID: None, "uid-rank-1": "b"}, GangState.PARTIAL, bound=frozenset({"uid-rank-1"})
            ),
            "1 of 2 pods are bound, the rest has no plan.",
        ),
    ],
    ids=["planned", "half seated", "bound", "new member", "waiting", "partial"],
)
def test_the_summary_names_the_gangs_state_first(record: GangPlan, sentence: str) -> None:
    """Then it tells of the nodes, as for any pod."""
    summary = shown(record).explain(MEMBER)["summary"]
    assert summary.startswith(f"{sentence} ")
    assert " of 4 nodes fit" in summary
    assert UNLED not in summary


def test_nodes_of_no_plan_are_vetoed_with_their_evidence() -> None:
    """What speaks against a node is told, whatever the plan says of it."""
    told = shown(ON_C).explain(MEMBER)
    assert told["counts"] == {"PlannedElsewhere": 3}
    assert {name: node["verdict"] for name, node in told["nodes"].items()} == {
        "a": "veto", "b": "veto", "c": "pass", "d": "veto",
    }  # fmt: skip
    assert told["nodes"]["a"]["rank"] is None
    assert [each["cause"] for each in told["nodes"]["d"]["evidence"]] == ["xid.48"]


def test_a_planned_node_that_turned_bad_is_the_nearest() -> None:
    """Other sick nodes would not help this pod."""
    told = shown(plan({UID: "d"})).explain(MEMBER)
    assert told["counts"] == {"PlannedElsewhere": 3, "ResetRequired": 1}
    assert told["nearest"] == ["d would do if GPU 3 were reset"]


def test_a_gang_that_waits_tells_what_came_nearest() -> None:
    """For the gang, not for this pod: all nodes are refused alike."""
    told = shown(MISSING).explain(MEMBER)
    assert (told["counts"], told["nearest"]) == ({"GangIncomplete": 4}, [MISSING.nearest])
    bare = shown(replace(MISSING, nearest="")).explain(MEMBER)
    assert bare["nearest"] == []


def test_a_preferred_node_comes_first_of_those_that_fit() -> None:
    """None is refused for the plan."""
    told = shown(replace(ON_C, hold=Hold.PREFER)).explain(MEMBER)
    assert (list(told["nodes"]), told["counts"]) == (["d", "c", "a", "b"], {"ResetRequired": 1})
    assert "the best is c" in told["summary"]


def test_before_the_first_plan_it_says_so() -> None:
    """A moment after the pod was made."""
    told = shown().explain(MEMBER)
    assert told["summary"].startswith("Its gang has no plan yet. None of 4 nodes fits")
    assert told["counts"] == {"GangUnplanned": 4}


@pytest.mark.parametrize("silent_s", [61.0, None])
def test_a_gang_without_a_controller_is_told_so(silent_s: float | None) -> None:
    """Its pods are judged one by one, and nobody should look for a plan."""
    told = shown(silent_s=silent_s).explain(MEMBER)
    assert told["summary"].startswith("3 of 4 nodes fit a gang pod")
    assert told["summary"].endswith(UNLED)


def test_a_plan_whose_leader_fell_silent_is_told_with_that() -> None:
    """It says where the pod would go first, and binds nobody."""
    summary = shown(ON_C, silent_s=61.0).explain(MEMBER)["summary"]
    assert summary.startswith("Planned on c with its gang (2 of 2 seated). 3 of 4 nodes fit")
    assert summary.endswith(UNLED)
    assert UNLED not in shown(ON_C, silent_s=None).explain(MEMBER)["summary"]


def test_a_pod_whose_gang_is_not_planned_is_told_of_nodes_only() -> None:
    """A single pod, and a convention that is off."""
    off = GangRules(plan={Convention.SUREFOOT: Hold.OFF})
    of_gang = Replica(led(FLEET, silent_s=None), gangs=off).explain(MEMBER)["summary"]
    single = shown(ON_C, silent_s=None).explain(pod(8))["summary"]
    assert of_gang.startswith("3 of 4 nodes fit a gang pod")
    assert single.startswith("3 of 4 nodes fit a single pod")
    assert UNLED not in of_gang + single
