"""`surefoot gates`: what our gate holds, and how a person lets it go, without cache or controller."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from commands import Surefoot
from kubes import ApiServer, Call, Fault, Json, refuses

OURS = {"name": "surefoot.dev/gang"}
KUEUE = {"name": "kueue.x-k8s.io/admission"}
Gates = Callable[..., Result]


@pytest.fixture
def gates(offline: Surefoot, api: ApiServer, tmp_path: Path) -> Gates:
    """The command, on the API server and with a cache that nobody runs."""
    kubeconfig = str(api.settings(tmp_path).kubeconfig)

    def run(*words: str) -> Result:
        return offline("gates", *words, "--kubeconfig", kubeconfig)

    return run


@pytest.fixture
def held(api: ApiServer) -> None:
    """Two gangs behind our gate, one of them behind Kueue's too, and pods that are none of ours."""
    api.set("pods", pod("train-0", "train", OURS))
    api.set("pods", pod("train-1", "train", KUEUE, OURS))
    api.set("pods", pod("other", "other", OURS, age_s=90))
    api.set("pods", pod("kueued", "train", KUEUE))
    api.set("pods", pod("free", "train"))
    api.set("pods", {"metadata": {"name": "bare", "namespace": "lab"}})


def pod(name: str, gang: str, *gates: dict[str, str], age_s: int = 5) -> Json:
    """One of a gang of Surefoot's own."""
    created = datetime.now(UTC) - timedelta(seconds=age_s)
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "labels": {"surefoot.dev/gang": gang},
            "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "spec": {"schedulingGates": list(gates)} if gates else {},
    }


def left(api: ApiServer, name: str) -> list[dict[str, str]]:
    """The gates of a pod."""
    found = api.get("pods", f"lab/{name}")
    assert found is not None
    gates: list[dict[str, str]] = found["spec"].get("schedulingGates", [])
    return gates


class TestList:
    """Who waits."""

    def test_each_pod_is_a_row(self, gates: Gates, held: None) -> None:
        """With its gang and age."""
        result = gates("list")
        assert result.exit_code == 0
        rows = [line.split() for line in result.stdout.splitlines()]
        assert rows[0] == ["POD", "GANG", "AGE"]
        assert [row[:2] for row in rows[1:]] == [
            ["lab/other", "lab/other"],
            ["lab/train-0", "lab/train"],
            ["lab/train-1", "lab/train"],
        ]
        assert rows[1][2].startswith("1m3")

    def test_programs_get_json(self, gates: Gates, held: None) -> None:
        """With all gates of the pod."""
        found = json.loads(gates("list", "-o", "json").stdout)
        assert [row["gates"] for row in found][-1] == [KUEUE["name"], OURS["name"]]

    def test_gangs_of_other_conventions_have_names_too(self, gates: Gates, api: ApiServer) -> None:
        """The gate stands in pod templates of any kind; a pod of no gang has none."""
        one = pod("a", "x", OURS)
        one["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "pg"}
        two = pod("b", "x", OURS)
        two["metadata"]["labels"] = None
        two["metadata"]["creationTimestamp"] = "yesterday"
        for each in (one, two):
            api.set("pods", each)
        assert "lab/a   lab/pg" in gates("list").stdout
        assert "lab/b   -        -" in gates("list").stdout

    def test_many_pods_come_in_pages(self, gates: Gates, api: ApiServer) -> None:
        """All of them are found."""
        api.page_size = 3
        for number in range(10):
            api.set("pods", pod(f"p{number}", "big", OURS))
        assert len(gates("list").stdout.splitlines()) == 11

    def test_a_list_that_took_too_long_is_begun_anew(
        self, gates: Gates, held: None, api: ApiServer
    ) -> None:
        """410 in the middle of it."""
        api.faults["list"].append(refuses(410, "the continue parameter is too old"))
        assert len(gates("list").stdout.splitlines()) == 4

    def test_nothing_is_a_table_without_rows(self, gates: Gates, api: ApiServer) -> None:
        """And exit code 0."""
        result = gates("list")
        assert (result.exit_code, result.stdout) == (0, "POD   GANG   AGE\n")

    def test_an_api_server_that_fails_is_told(self, gates: Gates, api: ApiServer) -> None:
        """Exit code 1."""
        api.faults["list"].append(refuses(403, "pods is forbidden"))
        result = gates("list")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "answered 403: pods is forbidden" in result.stderr

    def test_a_kubeconfig_that_is_none_is_told(self, offline: Surefoot) -> None:
        """By its name."""
        result = offline("gates", "list", "--kubeconfig", "/nowhere/config")
        assert (result.exit_code, result.stderr[:24]) == (1, "error: /nowhere/config: ")


class TestRelease:
    """A person lets pods go."""

    def test_all_are_let_go(self, gates: Gates, held: None, api: ApiServer) -> None:
        """Gates of others stay where they are."""
        result = gates("release", "--all")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout == (
            "lab/other released\nlab/train-0 released\nlab/train-1 released\n3 pods released\n"
        )
        assert [left(api, name) for name in ("other", "train-0", "train-1")] == [[], [], [KUEUE]]
        assert left(api, "kueued") == [KUEUE]
        assert gates("release", "--all").stdout == "0 pods released\n"

    def test_one_gang_is_let_go(self, gates: Gates, held: None, api: ApiServer) -> None:
        """The others wait on."""
        assert gates("release", "--gang", "lab/other").stdout.endswith("\n1 pod released\n")
        assert left(api, "other") == []
        assert left(api, "train-0") == [OURS]

    def test_a_dry_run_changes_nothing(self, gates: Gates, held: None, api: ApiServer) -> None:
        """And says what would."""
        result = gates("release", "--gang", "lab/train", "--dry-run")
        assert result.exit_code == 0
        assert result.stdout == (
            "lab/train-0 would be released\nlab/train-1 would be released\n"
            "2 pods would be released\n"
        )
        assert api.writes == []

    def test_a_pod_that_changed_in_between_is_read_again(
        self, gates: Gates, held: None, api: ApiServer
    ) -> None:
        """Another took its gate away first, so that ours stands elsewhere."""
        api.faults["write"].append(
            first(api, lambda: api.set("pods", pod("train-1", "train", OURS)))
        )
        assert gates("release", "--gang", "lab/train").exit_code == 0
        assert left(api, "train-1") == []

    @pytest.mark.parametrize("what", ["freed", "gone", "another"])
    def test_a_pod_that_needs_nothing_any_more_is_no_failure(
        self, gates: Gates, api: ApiServer, what: str
    ) -> None:
        """Another was quicker; a new pod of the same name is another pod."""
        api.set("pods", pod("a", "x", OURS))

        def meanwhile() -> None:
            api.delete("pods", "lab/a")
            if what == "freed":
                api.set("pods", pod("a", "x"))
            elif what == "another":
                api.set("pods", {**pod("a", "x", OURS), **named("a", "uid-new")})

        api.faults["write"].append(first(api, meanwhile))
        result = gates("release", "--all")
        assert (result.exit_code, result.stdout) == (0, "lab/a is free already\n0 pods released\n")
        if what == "another":
            assert left(api, "a") == [OURS]

    def test_one_that_cannot_be_freed_hinders_no_other(
        self, gates: Gates, held: None, api: ApiServer
    ) -> None:
        """It is told, and the exit code is 1."""
        api.faults["write"].append(refuses(403, "may not patch"))
        result = gates("release", "--all")
        assert result.exit_code == 1
        assert result.stdout.endswith("\n2 pods released\n")
        assert "lab/other: the API server at" in result.stderr
        assert result.stderr.endswith("error: 1 pod could not be released\n")

    def test_one_that_changes_all_the_time_is_given_up(self, gates: Gates, api: ApiServer) -> None:
        """After a handful of tries."""
        api.set("pods", pod("a", "x", OURS))
        api.faults["write"].extend([refuses(409, "modified")] * 100)
        result = gates("release", "--all")
        assert result.exit_code == 1
        assert len(api.faults["write"]) == 95

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ((), "say either --all or --gang"),
            (("--all", "--gang", "lab/x"), "say either --all or --gang"),
            (("--gang", "train"), "--gang train: must be NAMESPACE/NAME"),
            (("--gang", "/x"), "--gang /x: must be NAMESPACE/NAME"),
        ],
    )
    def test_what_is_meant_must_be_said(
        self, gates: Gates, held: None, api: ApiServer, words: tuple[str, ...], told: str
    ) -> None:
        """Exit code 2, and nothing is touched."""
        result = gates("release", *words)
        assert (result.exit_code, told in result.stderr) == (2, True)
        assert api.writes == []


def named(name: str, uid: str) -> Json:
    """The metadata of another pod of the same name."""
    return {"metadata": {"name": name, "namespace": "lab", "uid": uid}}


def first(api: ApiServer, act: Callable[[], Any]) -> Fault:
    """A write before which something else happens."""

    def fault(call: Call) -> None:
        act()
        api.write(call)

    return fault
