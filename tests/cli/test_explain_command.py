"""`surefoot explain`: one pod, the fleet of a real cache, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from asking import pod
from commands import Surefoot
from papers import node_paper, paper
from redis import Redis

from extender.store.writer import Writer

GANG_8 = {"apiVersion": "v1", "kind": "Pod", **pod(8, gang="sweep")}
SINGLE = {"apiVersion": "v1", "kind": "Pod", **pod(8)}


@pytest.fixture(autouse=True)
def fleet(writer: Writer) -> None:
    """One healthy node, one with a GPU to reset, one with a degraded GPU, one denied."""
    writer.put(
        [
            node_paper("well"),
            node_paper("sick", sick={3: "RESET_REQUIRED"}),
            node_paper("worn", sick={5: "DEGRADED"}),
            node_paper("denied"),
            paper("Override", target="node/denied", verdict="deny", who="oncall", why="burns"),
        ]
    )


def explained(surefoot: Surefoot, asker: Any, *words: str) -> tuple[int, Any]:
    """Exit code, and the answer as JSON."""
    result = surefoot("explain", "--pod", "-", "-o", "json", *words, stdin=json.dumps(asker))
    assert result.stderr == ""
    return result.exit_code, json.loads(result.stdout)


def test_people_get_a_sentence_then_each_node_vetoed_ones_first(
    surefoot: Surefoot, tmp_path: Path
) -> None:
    """With evidence under each."""
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(GANG_8))
    result = surefoot("explain", "--pod", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    first, *lines = result.stdout.splitlines()
    assert first.startswith("1 of 4 nodes fit a gang pod asking for 8 nvidia.com/gpu")
    heads = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert heads == ["denied", "sick", "worn", "well"]
    assert "sick: a GPU that the pod may get needs a reset" in lines
    assert "    GPU-sick-3 xid.48: double-bit error" in lines
    assert "denied by oncall: burns" in result.stdout


def test_a_word_on_a_node_is_told_once(surefoot: Surefoot, writer: Writer) -> None:
    """It is one word, whatever the number of GPUs; a word on one GPU names that."""
    word = {"verdict": "deny", "who": "lab", "why": "loan"}
    writer.put([paper("Override", target="gpu/GPU-denied-2", **word)])
    _, told = explained(surefoot, GANG_8, "denied")
    words = [(each["gpu"], each["value"]) for each in told["nodes"]["denied"]["evidence"]]
    assert words == [
        (None, "denied by oncall: burns"),
        ("GPU-denied-2", "denied by lab: loan"),
    ]


def test_ages_are_told_as_get_tells_them(surefoot: Surefoot, writer: Writer) -> None:
    """Hours and minutes, no thousands of seconds."""
    writer.put([node_paper("quiet")], sampled_s_ago=5191)
    result = surefoot("explain", "--pod", "-", "quiet", stdin=json.dumps(GANG_8))
    assert re.search(r"telemetry: last full sample, 1h26m3\ds ago$", result.stdout, re.MULTILINE)


def test_tools_get_the_shape_of_the_webhooks_explain(surefoot: Surefoot) -> None:
    """The same keys and reasons."""
    code, told = explained(surefoot, GANG_8)
    assert code == 0
    assert told["counts"] == {"OverrideDenied": 1, "ResetRequired": 1, "GpuDegraded": 1}
    assert told["ask"]["gang"]["key"] == "lab/sweep"
    assert told["nodes"]["well"]["verdict"] == "pass"
    assert told["nodes"]["sick"]["evidence"][0]["gpu"] == "GPU-sick-3"
    as_yaml = surefoot("explain", "--pod", "-", "-o", "yaml", stdin=json.dumps(GANG_8))
    assert yaml.safe_load(as_yaml.stdout)["counts"] == told["counts"]


def test_names_choose_and_unknown_ones_are_judged_as_unknown(surefoot: Surefoot) -> None:
    """As kube-scheduler's request would be."""
    code, told = explained(surefoot, GANG_8, "well", "nobody")
    assert (code, told["counts"]) == (0, {"NodeUnreported": 1})
    code, told = explained(surefoot, SINGLE, "nobody")
    assert (code, told["nodes"]["nobody"]["verdict"]) == (0, "pass")


def test_exit_code_4_where_no_node_fits_with_what_would_help(surefoot: Surefoot) -> None:
    """Scripts can ask "would it run?"."""
    result = surefoot("explain", "--pod", "-", "sick", "worn", stdin=json.dumps(GANG_8))
    assert result.exit_code == 4
    assert result.stdout.startswith("None of 2 nodes fits")
    assert "nearest: sick would do if GPU 3 were reset" in result.stdout


def test_limit_bounds_what_is_told_in_full(surefoot: Surefoot) -> None:
    """Counts and exit code are of all nodes."""
    code, told = explained(surefoot, GANG_8, "--limit", "1")
    assert (code, list(told["nodes"])) == (0, ["denied"])
    assert sum(told["counts"].values()) == 3
    assert surefoot("explain", "--pod", "-", "--limit", "-1").exit_code == 2


def test_notes_say_what_could_not_be_judged(surefoot: Surefoot) -> None:
    """MIG devices are judged on health only, and people must know."""
    asker = {"kind": "Pod", **pod(1, resource="nvidia.com/mig-1g.10gb")}
    result = surefoot("explain", "--pod", "-", stdin=json.dumps(asker))
    assert "  note: MIG devices are judged on health only" in result.stdout


def test_the_configuration_counts(surefoot: Surefoot) -> None:
    """Unknown nodes and policy are those of `serve`."""
    result = surefoot(
        "explain", "--pod", "-", "nobody",
        stdin=json.dumps(GANG_8),
        WEBHOOK__UNKNOWN_NODES="pass",
    )  # fmt: skip
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "one Pod is expected, found nothing"),
        ("kind: Node\nmetadata: {name: x}", "one Pod is expected, found Node"),
        ("a: [", "neither JSON nor YAML"),
        ("kind: Pod\nspec: []", "the Pod is malformed"),
        (json.dumps({"kind": "Pod", **pod("-1")}), "is negative"),
    ],
    ids=["empty", "node", "broken", "malformed", "negative"],
)
def test_what_is_no_pod_is_one_sentence_and_exit_code_2(
    surefoot: Surefoot, text: str, sentence: str
) -> None:
    """It names the file."""
    result = surefoot("explain", "--pod", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: -: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_cache_that_does_not_answer_is_exit_code_1(offline: Surefoot) -> None:
    """The pod was fine; 4 would be read as a verdict."""
    result = offline("explain", "--pod", "-", stdin=json.dumps(GANG_8))
    assert (result.exit_code, "the cache at" in result.stderr) == (1, True)


def test_without_a_pod_it_is_usage(offline: Surefoot) -> None:
    """Exit code 2 before anything is read."""
    result = offline("explain")
    assert (result.exit_code, "--pod" in result.stderr) == (2, True)


def test_an_empty_cache_fits_nothing(surefoot: Surefoot, client: Redis) -> None:
    """And says so."""
    client.flushall()
    code, told = explained(surefoot, GANG_8)
    assert code == 4
    assert told["summary"].startswith("No node was offered")
