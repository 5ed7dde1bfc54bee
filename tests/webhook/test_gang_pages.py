"""`GET /gangs` and `GET /gangs/{namespace}/{name}`: what the leader says of gangs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gang_records import led, plan
from replicas import Replica
from strategies import NOW_S, fleet

from scoring.gangs.record import GangPlan, GangState
from scoring.model import Convention, GangKey
from scoring.planning.outcome import Lack

RUNS = plan(
    {"uid-worker-1": "b", "uid-worker-0": "a"},
    GangState.RUNNING,
    key="lab/runs",
    bound=frozenset({"uid-worker-0", "uid-worker-1"}),
    domain="clique c3",
    since_s=NOW_S - 90.0,
)
WAITS = plan(
    {"uid-worker-0": None, "uid-worker-1": None, "uid-worker-3": None},
    GangState.WAITING,
    key="ml/waits",
    min=4,
    size=4,
    lack=Lack.MEMBERS_MISSING,
    summary="3 of 4 pods exist; worker-2 is missing.",
    counts={"ResetRequired": 2, "CpuShort": 1},
    nearest="4 of 5 members fit in clique c3; n17 would do if GPU 3 were reset",
    unblock=("create worker-2", "lower the minimum to 3"),
    since_s=NOW_S - 5.0,
)
TWIN = replace(RUNS, gang=GangKey("lab/runs~jobset"), convention=Convention.JOBSET)


def shown(*plans: GangPlan, silent_s: float | None = 2.0) -> Replica:
    """A replica with these records."""
    return Replica(led(fleet(), *plans, silent_s=silent_s))


class TestList:
    """Every gang in short, by key."""

    def test_a_row_says_how_far_a_gang_is(self) -> None:
        """With the age of its state, and one sentence."""
        told = shown(WAITS, RUNS).get("/gangs").json
        assert (told["generation"], told["leader"]) == (1, {"live": True, "age_s": 2.0})
        assert told["gangs"] == [
            {
                "key": "lab/runs", "convention": "surefoot", "hold": "require", "state": "running",
                "bound": 2, "seated": 2, "existing": 2, "min": 2, "size": 2, "domain": "clique c3",
                "summary": "Runs in clique c3: 2 of 2 pods are bound.", "age_s": 90.0,
            },
            {
                "key": "ml/waits", "convention": "surefoot", "hold": "require", "state": "waiting",
                "bound": 0, "seated": 0, "existing": 3, "min": 4, "size": 4, "domain": None,
                "summary": "3 of 4 pods exist; worker-2 is missing.", "age_s": 5.0,
            },
        ]  # fmt: skip

    def test_a_state_chooses(self) -> None:
        """`?state=waiting` is what an on-call engineer asks for."""
        one = shown(WAITS, RUNS)
        assert [each["key"] for each in one.get("/gangs?state=waiting").json["gangs"]] == [
            "ml/waits"
        ]
        assert one.get("/gangs?state=partial").json["gangs"] == []

    @pytest.mark.parametrize(
        "path", ["/gangs?state=lost", "/gangs?state=", "/gangs/lab/runs?convention=slurm"]
    )
    def test_an_unknown_word_is_a_400(self, path: str) -> None:
        """One sentence with those that are known."""
        answer = shown(RUNS).get(path)
        assert (answer.status, "is unknown, allowed: " in answer.json["error"]) == (400, True)

    def test_without_a_leader_it_says_so(self) -> None:
        """The list is then the last one's word, or nobody's."""
        assert shown(RUNS, silent_s=75.0).get("/gangs").json["leader"] == {
            "live": False, "age_s": 75.0,
        }  # fmt: skip
        assert shown(silent_s=None).get("/gangs").json == {
            "generation": 1, "leader": {"live": False, "age_s": None}, "gangs": [],
        }  # fmt: skip


class TestOne:
    """All that a record says."""

    def test_what_blocks_it_and_what_would_help(self) -> None:
        """Constraint, counts, nearest miss, unblock, and each member by name."""
        told = shown(WAITS, RUNS).get("/gangs/ml/waits").json
        (row,) = shown(WAITS).get("/gangs").json["gangs"]
        assert told == {
            "generation": 1,
            "leader": {"live": True, "age_s": 2.0},
            **row,
            "uid": None,
            "term": 1,
            "lack": "MembersMissing",
            "counts": {"ResetRequired": 2, "CpuShort": 1},
            "nearest": "4 of 5 members fit in clique c3; n17 would do if GPU 3 were reset",
            "unblock": ["create worker-2", "lower the minimum to 3"],
            "members": [
                {"pod": f"worker-{i}", "uid": f"uid-worker-{i}", "node": None, "bound": False}
                for i in (0, 1, 3)
            ],
        }

    def test_members_have_their_nodes(self) -> None:
        """By name, whatever order they came in."""
        members = shown(RUNS).get("/gangs/lab/runs").json["members"]
        assert [(each["pod"], each["node"], each["bound"]) for each in members] == [
            ("worker-0", "a", True),
            ("worker-1", "b", True),
        ]

    def test_a_name_may_hold_slashes(self) -> None:
        """A native Workload's does."""
        key = "lab/flow/workers/0"
        answer = shown(plan(key=key)).get(f"/gangs/{key}")
        assert answer.json["key"] == key

    def test_a_convention_tells_two_of_one_name_apart(self) -> None:
        """Without it the first in the detector's order is told."""
        one = shown(RUNS, TWIN)
        for query, expected in (("", "surefoot"), ("?convention=jobset", "jobset")):
            assert one.get(f"/gangs/lab/runs{query}").json["convention"] == expected
        assert shown(TWIN).get("/gangs/lab/runs").json["convention"] == "jobset"
        assert one.get("/gangs/lab/runs?convention=lws").status == 404

    @pytest.mark.parametrize(
        ("silent_s", "sentence"),
        [
            (1.0, "no gang lab/gone is known to the controller that leads"),
            (90.0, "no gang lab/gone has a plan, and no controller leads"),
            (None, "no gang lab/gone has a plan: no controller ever led here"),
        ],
    )
    def test_a_gang_that_nobody_knows_is_a_404_with_the_reason(
        self, silent_s: float | None, sentence: str
    ) -> None:
        """A pending gang without a controller must not look like a slip of the pen."""
        answer = shown(RUNS, silent_s=silent_s).get("/gangs/lab/gone")
        assert (answer.status, answer.json) == (404, {"Error": sentence, "error": sentence})


@pytest.mark.parametrize("path", ["/gangs", "/gangs/lab/runs"])
def test_without_a_snapshot_there_is_nothing_to_tell(path: str) -> None:
    """503, as /explain."""
    answer = Replica().get(path)
    assert (answer.status, "no snapshot" in answer.json["error"]) == (503, True)


@pytest.mark.parametrize("path", ["/gangs", "/gangs/lab/runs"])
def test_they_are_read_only(path: str) -> None:
    """Another method is a 405, and nothing is recorded."""
    one = shown(RUNS)
    assert one.post(path.lstrip("/"), b"{}").status == 405
    one.get(path)
    assert one.records == []


def test_an_old_snapshot_is_told_too() -> None:
    """Better than none when a person asks."""
    one = shown(RUNS)
    one.now_s += 10_000
    assert one.get("/gangs/lab/runs").status == 200
