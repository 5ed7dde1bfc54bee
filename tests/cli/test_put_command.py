"""`surefoot put`: documents into a real cache, and each mistake by its place."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Surefoot
from papers import node_body
from redis import Redis
from servers import eventually

from extender.store import keys

ALLOCATION = {
    "apiVersion": "surefoot.dev/v1",
    "kind": "Allocation",
    "node": "gpu-1",
    "pod": "p",
    "uid": "u",
    "namespace": "lab",
    "resource": "nvidia.com/gpu",
    "count": 2,
}


def stored(client: Redis, name: str) -> Any:
    """A node's document as it is in the cache."""
    raw: Any = client.hget(keys.NODES.name, name)
    return json.loads(raw)


def age_s(client: Redis, name: str) -> float:
    """How long ago the cache says that the node was sampled."""
    seen: Any = client.hget(keys.SEEN.name, name)
    now: Any = client.time()
    return float(now[0] + now[1] / 1e6 - int(seen) / 1000)


def test_documents_of_a_file_are_stored_and_told(
    surefoot: Surefoot, client: Redis, tmp_path: Path
) -> None:
    """YAML, several documents, several kinds: one line for each."""
    file = tmp_path / "fleet.yaml"
    file.write_text(yaml.safe_dump_all([node_body("gpu-1"), ALLOCATION]))
    result = surefoot("put", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "Node gpu-1 stored\nAllocation u/nvidia.com/gpu stored\n"
    assert stored(client, "gpu-1")["metadata"]["name"] == "gpu-1"
    assert age_s(client, "gpu-1") < 5


def test_standard_input_takes_json_too(surefoot: Surefoot, client: Redis) -> None:
    """A dash, as everywhere."""
    result = surefoot("put", "-", stdin=json.dumps([node_body("a"), node_body("b")]))
    assert (result.exit_code, result.stdout) == (0, "Node a stored\nNode b stored\n")
    assert client.hlen(keys.NODES.name) == 2


def test_without_epoch_and_seq_each_put_is_newer(surefoot: Surefoot, client: Redis) -> None:
    """The stored epoch, and the next seq; an older one is told and changes nothing."""
    for _ in range(3):
        surefoot("put", "-", stdin=json.dumps(node_body("a")))
    assert stored(client, "a")["seq"] == 3
    old = surefoot("put", "-", stdin=json.dumps(node_body("a", epoch=0, seq=1, expected=4)))
    assert (old.exit_code, old.stdout) == (0, "Node a not newer\n")
    assert "expected" not in stored(client, "a")


def test_what_is_put_again_unchanged_says_so(surefoot: Surefoot) -> None:
    """Nothing depends on it, so no reader is woken."""
    surefoot("put", "-", stdin=json.dumps(ALLOCATION))
    again = surefoot("put", "-", stdin=json.dumps(ALLOCATION))
    assert again.stdout == "Allocation u/nvidia.com/gpu unchanged\n"


def test_seen_ago_backdates_the_stamp(surefoot: Surefoot, client: Redis) -> None:
    """To write a stale node into a test."""
    surefoot("put", "-", "--seen-ago", "1m30s", stdin=json.dumps(node_body("a")))
    assert age_s(client, "a") == pytest.approx(90, abs=5)
    bad = surefoot("put", "-", "--seen-ago", "ninety", stdin=json.dumps(node_body("a")))
    assert (bad.exit_code, "'ninety' is no duration" in bad.stderr) == (2, True)


def test_delete_removes_and_tells_what_was_not_there(surefoot: Surefoot, client: Redis) -> None:
    """By the same file that put it."""
    both = json.dumps([node_body("a"), ALLOCATION])
    surefoot("put", "-", stdin=both)
    gone = surefoot("put", "-", "--delete", stdin=both)
    assert gone.stdout == "Node a deleted\nAllocation u/nvidia.com/gpu deleted\n"
    assert client.hlen(keys.NODES.name) == client.hlen(keys.ALLOCATIONS.name) == 0
    again = surefoot("put", "-", "--delete", stdin=json.dumps(ALLOCATION))
    assert (again.exit_code, again.stdout) == (0, "Allocation u/nvidia.com/gpu not there\n")


def test_a_rejection_without_a_time_is_told_with_the_one_it_got(
    surefoot: Surefoot, client: Redis
) -> None:
    """The line names node, owner and time; each put is one more."""
    refused = {
        "apiVersion": "surefoot.dev/v1",
        "kind": "Rejection",
        "node": "gpu-1",
        "owner": "lab/Job/train",
        "reason": "UnexpectedAdmissionError",
    }
    results = [surefoot("put", "-", stdin=json.dumps(refused)) for _ in range(2)]
    assert [result.exit_code for result in results] == [0, 0]
    for result in results:
        assert re.fullmatch(r"Rejection gpu-1/lab/Job/train@\d{13} stored\n", result.stdout)
    assert client.hlen(keys.REJECTIONS.name) == 2


def spoiled(**fields: Any) -> str:
    """A fleet of a good node and one with these fields."""
    return yaml.safe_dump_all([node_body("good"), {**node_body("bad"), **fields}])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (spoiled(gpus=[{"index": 0}]), "document 2 (Node bad): gpus[0].uuid: missing"),
        (spoiled(gpus="many"), "document 2 (Node bad): gpus: expected a list, got text"),
        (spoiled(epoch=-1), "document 2 (Node bad): epoch:"),
        (spoiled(apiVersion="surefoot.dev/v2"), "apiVersion: surefoot.dev/v2 is newer"),
        (spoiled(kind="Pod"), "kind: 'Pod' is unknown, allowed: Node, Allocation"),
        ("a: [", "error: -"),
        ("just text", "error: - document 1"),
        (b"\xff\xfe\x00", "error: -"),
    ],
    ids=["missing", "type", "range", "newer", "kind", "no-yaml", "no-document", "no-text"],
)
def test_a_document_that_cannot_be_used_is_named_by_its_path_and_nothing_is_stored(
    surefoot: Surefoot, client: Redis, text: str | bytes, sentence: str
) -> None:
    """Exit code 2, one line, and not even the good document before it."""
    result = surefoot("put", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert client.hlen(keys.NODES.name) == 0


def test_nothing_to_put_is_no_error(surefoot: Surefoot) -> None:
    """An empty file is an empty fleet."""
    assert surefoot("put", "-", stdin="").exit_code == 0


def test_a_file_that_is_not_there_is_usage(surefoot: Surefoot) -> None:
    """Exit code 2, with its name."""
    result = surefoot("put", "nowhere.yaml")
    assert (result.exit_code, "nowhere.yaml" in result.stderr) == (2, True)


def test_a_cache_that_does_not_answer_is_exit_code_1(offline: Surefoot) -> None:
    """One sentence that names the server."""
    result = offline("put", "-", stdin=json.dumps(node_body("a")))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the cache at redis://127.0.0.1:1/0 failed")
    assert result.stderr.count("\n") == 1


def test_hold_stamps_until_ctrl_c(surefoot: Surefoot, client: Redis, tmp_path: Path) -> None:
    """Without an agent a node would be stale after a minute; Ctrl-C is the way out, exit code 0."""
    file = tmp_path / "node.json"
    file.write_text(json.dumps(node_body("a")))
    faster = "from extender.cli import put; put.STAMP_EVERY_S = 0.05"
    holding = surefoot.process("put", str(file), "--hold", "--seen-ago", "90s", code=faster)
    try:
        eventually(
            lambda: client.hexists(keys.SEEN.name, "a") and age_s(client, "a") < 5, "a stamp"
        )
        client.hset(keys.SEEN.name, "a", 0)
        eventually(lambda: age_s(client, "a") < 5, "another stamp")
        holding.send_signal(signal.SIGINT)
        told, errors = holding.communicate(timeout=10)
    finally:
        holding.kill()
        holding.wait()
    assert (holding.returncode, errors) == (0, "")
    assert "Ctrl-C ends it" in told


def test_a_hold_that_loses_its_cache_says_so(
    surefoot: Surefoot, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, as for any failure of the cache; what was not stamped is not claimed."""

    def spoilt(_seconds: float) -> None:
        client.delete(keys.SEEN.name)
        client.set(keys.SEEN.name, "junk")

    monkeypatch.setattr("extender.cli.put.time.sleep", spoilt)
    result = surefoot("put", "-", "--hold", stdin=json.dumps(node_body("a")))
    assert (result.exit_code, "the cache at" in result.stderr) == (1, True)


def test_hold_ends_in_this_process_too(surefoot: Surefoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two stamps is an orderly end."""

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("extender.cli.put.time.sleep", interrupted)
    result = surefoot("put", "-", "--hold", stdin=json.dumps(node_body("a")))
    assert (result.exit_code, result.stderr) == (0, "")
