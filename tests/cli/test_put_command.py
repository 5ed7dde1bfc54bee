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
from servers import Cache, eventually

from extender.ending import Ending
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


def test_every_bad_document_of_a_file_is_told(surefoot: Surefoot, client: Redis) -> None:
    """One line each, so that a file is mended in one go."""
    text = yaml.safe_dump_all(
        [{**node_body("a"), "gpus": "many"}, node_body("b"), {**ALLOCATION, "count": -1}, "text"]
    )
    result = surefoot("put", "-", stdin=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert [line.partition(": ")[2] for line in result.stderr.splitlines()] == [
        "- document 1 (Node a): gpus: expected a list, got text",
        "- document 3 (Allocation): count: expected a whole number, 0 or more",
        "- document 4: expected a mapping, got text",
    ]
    assert client.hlen(keys.NODES.name) == 0


def test_a_name_is_enough_to_delete(surefoot: Surefoot, client: Redis) -> None:
    """Kind and name of a node; who lost the file need not write it again."""
    surefoot("put", "-", stdin=json.dumps(node_body("a")))
    least = "{apiVersion: surefoot.dev/v1, kind: Node, metadata: {name: a}}"
    gone = surefoot("put", "-", "--delete", stdin=least)
    assert (gone.exit_code, gone.stdout) == (0, "Node a deleted\n")
    assert client.hlen(keys.NODES.name) == 0


def test_to_hold_and_to_delete_is_usage(offline: Surefoot) -> None:
    """Nobody can mean both."""
    result = offline("put", "-", "--hold", "--delete", stdin=json.dumps(node_body("a")))
    assert (result.exit_code, "take one of them" in result.stderr) == (2, True)


def other(kind: str, **fields: Any) -> str:
    """A document of another kind."""
    return json.dumps({"apiVersion": "surefoot.dev/v1", "kind": kind, **fields})


WORD = {"target": "node/x", "verdict": "deny", "who": "me", "why": "smoke"}
PAST = "2020-01-01T00:00:00Z"
IDLE_CAUSE = [{"id": "xid.48", "state": "HEALTHY"}]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (other("Breaker", pool="a", state="frozen"), "Breaker a: frozen without until changes"),
        (other("Breaker", pool="a", state="open", until=PAST), "Breaker a: its until is past"),
        (other("Override", **WORD, until=PAST), "Override node/x: its until is past"),
        (json.dumps(node_body("a", causes=IDLE_CAUSE)), "Node a: cause xid.48 has state HEALTHY"),
        (json.dumps(node_body("a", links={"GPU0-GPU9": "NV18"})), "Node a: links name GPU9, which"),
        ("", "-: no document in it"),
    ],
    ids=["frozen", "breaker", "override", "healthy", "link", "empty"],
)
def test_what_changes_nothing_is_noted(surefoot: Surefoot, text: str, note: str) -> None:
    """It is stored, since it is allowed; on standard error stands why nothing will come of it."""
    result = surefoot("put", "-", stdin=text)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"note: {note}")
    assert result.stderr.count("\n") == 1


def test_what_means_something_is_not_noted(surefoot: Surefoot) -> None:
    """A good fleet is quiet."""
    text = "\n".join(
        [
            json.dumps(node_body("a", sick={1: "FAILED"})),
            other("Override", **WORD),
            other("Breaker", pool="a", state="frozen", until="2100-01-01T00:00:00Z"),
        ]
    )
    assert surefoot("put", "-", stdin=text).stderr == ""


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
    faster = "from extender.cli import hold; hold.EVERY_S = 0.05"
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


def test_a_hold_outlives_its_cache(cache: Cache, tmp_path: Path) -> None:
    """A cache that dies and comes back empty gets every document again; each turn is told once."""
    file = tmp_path / "node.json"
    file.write_text(f"{json.dumps(node_body('a'))}\n{json.dumps(ALLOCATION)}")
    faster = "from extender.cli import hold; hold.EVERY_S = hold.FIRST_RETRY_S = 0.05"
    with Redis(port=cache.port) as client:
        surefoot = Surefoot(f"redis://127.0.0.1:{cache.port}/0")
        holding = surefoot.process("put", str(file), "--hold", code=faster)
        assert holding.stderr is not None
        assert holding.stdout is not None
        try:
            # Not before it holds them: a cache that dies while they are put is an end, not a pause.
            told = [holding.stdout.readline() for _ in range(3)]
            assert told[-1].startswith("stamping 1 node")
            cache.kill()
            assert "trying again" in holding.stderr.readline()
            cache.start()
            assert holding.stderr.readline() == "the cache takes writes again\n"
            eventually(lambda: client.hlen(keys.ALLOCATIONS.name) == 1, "the documents again")
            assert age_s(client, "a") < 5
            assert [holding.stderr.readline() for _ in range(2)] == [
                "Node a was gone, stored again\n",
                "Allocation u/nvidia.com/gpu was gone, stored again\n",
            ]
            holding.send_signal(signal.SIGINT)
            assert holding.wait(10) == 0
            assert holding.stderr.read() == ""
        finally:
            holding.kill()
            holding.communicate()


def test_a_hold_brings_back_nothing_that_ends_by_itself(
    surefoot: Surefoot, client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An override that ran out stays out; pauses grow from a second to the usual one."""
    pauses: list[float] = []

    def within(_: Ending, seconds: float) -> bool:
        pauses.append(seconds)
        if len(pauses) == 1:
            client.delete(keys.NODES.name, keys.OVERRIDES.name)
            client.set(keys.SEEN.name, "junk")
        return len(pauses) == 8

    monkeypatch.setattr(Ending, "within", within)
    over = other("Override", **WORD, until="2100-01-01T00:00:00Z")
    result = surefoot("put", "-", "--hold", stdin=f"{json.dumps(node_body('a'))}\n{over}")
    assert result.exit_code == 0
    assert pauses == [15.0, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0]
    assert result.stderr.count("trying again") == 1
    assert (client.hlen(keys.NODES.name), client.hlen(keys.OVERRIDES.name)) == (1, 0)


def test_without_a_node_there_is_nothing_to_hold(surefoot: Surefoot) -> None:
    """It says so and ends."""
    result = surefoot("put", "-", "--hold", stdin=json.dumps(ALLOCATION))
    assert (result.exit_code, result.stderr) == (0, "note: no Node to hold\n")
