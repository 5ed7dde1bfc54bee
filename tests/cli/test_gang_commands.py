"""`surefoot get gangs` and `surefoot explain --gang`: what the leader says of gangs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml
from commands import Surefoot
from gang_records import led, plan
from strategies import NOW_S, fleet

from extender.store import fleets
from scoring.gangs.record import GangPlan, GangState
from scoring.model import Convention, GangKey
from scoring.planning.outcome import Lack

RUNS = plan(
    {"uid-worker-0": "a", "uid-worker-1": "b"},
    GangState.RUNNING,
    key="lab/runs",
    bound=frozenset({"uid-worker-0"}),
    since_s=NOW_S - 90.0,
)
WAITS = plan(
    {"uid-worker-0": None, "uid-worker-1": None, "uid-worker-3": None},
    GangState.WAITING,
    key="ml/waits",
    min=4,
    lack=Lack.MEMBERS_MISSING,
    summary="3 of 4 pods exist; worker-2 is missing.",
    counts={"ResetRequired": 2, "CpuShort": 1, "OfANewerVersion": 3},
    nearest="4 of 5 members fit in clique c3; n17 would do if GPU 3 were reset",
    unblock=("create worker-2",),
    since_s=NOW_S - 5.0,
)
TWIN = replace(RUNS, gang=GangKey("lab/runs~jobset"), convention=Convention.JOBSET)

Show = Callable[..., None]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Show:
    """Have the cache hold these records."""

    def shown(*plans: GangPlan, silent_s: float | None = 1.0) -> None:
        found = led(fleet(), *plans, silent_s=silent_s)
        monkeypatch.setattr(fleets, "look", lambda _: (found, None))

    return shown


class TestGet:
    """All gangs, as a table or for tools."""

    def test_a_line_says_how_far_a_gang_is(self, offline: Surefoot, show: Show) -> None:
        """By key, with the sentence last."""
        show(WAITS, RUNS)
        head, *lines = offline("get", "gangs").stdout.splitlines()
        assert head.split() == [
            "KEY",
            "STATE",
            "BOUND",
            "SEATED",
            "EXISTING",
            "MIN",
            "AGE",
            "SUMMARY",
        ]
        assert lines[0].split(maxsplit=7) == [
            "lab/runs", "running", "1", "2", "2", "2", "1m30s", "Runs: 1 of 2 pods are bound.",
        ]  # fmt: skip
        assert lines[1].split(maxsplit=7)[-1] == "3 of 4 pods exist; worker-2 is missing."
        wide = offline("get", "gangs", "-o", "wide").stdout.splitlines()[0]
        assert wide.split()[-4:] == ["SIZE", "DOMAIN", "CONVENTION", "HOLD"]

    def test_states_and_names_choose(self, offline: Surefoot, show: Show) -> None:
        """As JSON the rows are those of /gangs."""
        show(WAITS, RUNS)
        for words in (("--state", "waiting"), ("ml/waits",)):
            (row,) = json.loads(offline("get", "gangs", *words, "-o", "json").stdout)
            assert (row["key"], row["existing"], row["min"]) == ("ml/waits", 3, 4)
        assert (
            json.loads(
                offline("get", "gangs", "lab/runs", "--state", "waiting", "-o", "json").stdout
            )
            == []
        )

    def test_a_gang_that_is_missing_is_an_error_for_all(
        self, offline: Surefoot, show: Show
    ) -> None:
        """Exit code 1 and a sentence for each."""
        show(RUNS, silent_s=90.0)
        result = offline("get", "gangs", "lab/runs", "lab/gone")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "error: no gang lab/gone has a plan, and no controller leads\n"

    def test_a_state_that_is_none_is_usage(self, offline: Surefoot) -> None:
        """Exit code 2."""
        assert offline("get", "gangs", "--state", "lost").exit_code == 2


class TestExplain:
    """One gang: a sentence, what keeps it waiting, and its members."""

    def test_people_get_a_sentence_then_what_blocks_and_what_helps(
        self, offline: Surefoot, show: Show
    ) -> None:
        """Reasons and obstacles in words, members as a table; exit code 4: it has no plan."""
        show(WAITS)
        result = offline("explain", "--gang", "ml/waits")
        assert (result.exit_code, result.stderr) == (4, "")
        assert result.stdout.splitlines() == [
            "3 of 4 pods exist; worker-2 is missing.",
            "  waiting for 5s: 3 pods, 4 needed, 0 with a node, 0 bound",
            "  2 nodes: a GPU that the pod may get needs a reset",
            "  1 nodes: too little cpu",
            "  3 nodes: OfANewerVersion",
            "  nearest: 4 of 5 members fit in clique c3; n17 would do if GPU 3 were reset",
            "  unblock: create worker-2",
            "POD        NODE   BOUND",
            "worker-0   -      no",
            "worker-1   -      no",
            "worker-3   -      no",
        ]

    def test_a_gang_with_a_plan_is_exit_code_0(self, offline: Surefoot, show: Show) -> None:
        """With its nodes, and a note where its leader is gone."""
        show(RUNS, silent_s=90.0)
        result = offline("explain", "--gang", "lab/runs")
        assert result.exit_code == 0
        assert "  note: no controller leads, this is the last one's word" in result.stdout
        assert result.stdout.splitlines()[-2:] == [
            "worker-0   a      yes",
            "worker-1   b      no",
        ]

    @pytest.mark.parametrize("words", [("--json",), ("-o", "json"), ("-o", "yaml")])
    def test_tools_get_the_shape_of_the_webhooks_page(
        self, offline: Surefoot, show: Show, words: tuple[str, ...]
    ) -> None:
        """The same keys."""
        show(WAITS)
        text = offline("explain", "--gang", "ml/waits", *words).stdout
        told = yaml.safe_load(text)  # JSON is YAML
        assert (told["state"], told["lack"]) == ("waiting", "MembersMissing")
        assert [each["pod"] for each in told["members"]] == ["worker-0", "worker-1", "worker-3"]

    def test_a_convention_tells_two_of_one_name_apart(self, offline: Surefoot, show: Show) -> None:
        """Else the first in the detector's order is told."""
        show(RUNS, TWIN)
        for words, expected in (((), "surefoot"), (("--convention", "jobset"), "jobset")):
            result = offline("explain", "--gang", "lab/runs", "--json", *words)
            assert json.loads(result.stdout)["convention"] == expected

    @pytest.mark.parametrize(
        "words",
        [
            ("--gang", "lab/a", "--pod", "-"),
            ("--gang", "lab/a", "gpu-17"),
            ("--pod", "-", "--convention", "lws"),
            ("--gang", "lab/a", "--convention", "slurm"),
            (),
        ],
    )
    def test_a_pod_or_a_gang_and_nothing_mixed(
        self, offline: Surefoot, words: tuple[str, ...]
    ) -> None:
        """Exit code 2 before anything is read."""
        assert offline("explain", *words).exit_code == 2


class TestCache:
    """On a real cache."""

    @pytest.mark.parametrize("words", [("explain", "--gang"), ("get", "gangs")])
    def test_where_no_controller_ever_led_it_says_so(
        self, surefoot: Surefoot, words: tuple[str, ...]
    ) -> None:
        """Exit code 1: 4 would be read as a verdict."""
        result = surefoot(*words, "lab/sweep")
        assert (result.exit_code, result.stdout) == (1, "")
        expected = "error: no gang lab/sweep has a plan: no controller ever led here\n"
        assert result.stderr == expected

    @pytest.mark.parametrize("words", [("explain", "--gang", "lab/sweep"), ("get", "gangs")])
    def test_a_cache_that_does_not_answer_is_exit_code_1(
        self, offline: Surefoot, words: tuple[str, ...]
    ) -> None:
        """One sentence."""
        result = offline(*words)
        assert (result.exit_code, "the cache at" in result.stderr) == (1, True)

    def test_no_gang_is_an_empty_answer(self, surefoot: Surefoot) -> None:
        """An empty list."""
        assert json.loads(surefoot("get", "gangs", "-o", "json").stdout) == []
