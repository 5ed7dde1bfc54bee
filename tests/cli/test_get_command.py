"""`surefoot get`: nodes and GPUs of a real cache, for people and for tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from commands import Surefoot
from papers import node_body, node_paper, paper
from redis import Redis

from extender.store import documents, keys
from extender.store.writer import Writer


@pytest.fixture(autouse=True)
def fleet(writer: Writer) -> None:
    """A healthy node with a pod, a sick one with an operator's word, a stale one, a silent one."""
    held = ["GPU-well-0", "GPU-well-1"]
    pod = {"node": "well", "pod": "p", "uid": "u", "namespace": "lab"}
    word = {"verdict": "deny", "who": "oncall", "why": "burns"}
    writer.put(
        [
            node_paper("well"),
            node_paper("sick", gpus=4, sick={2: "RESET_REQUIRED"}),
            paper("Allocation", resource="nvidia.com/gpu", count=2, gpus=held, **pod),
            paper("Override", target="gpu/GPU-sick-1", **word),
            paper("Override", target="node/sick", **{**word, "verdict": "allow"}),
        ]
    )
    writer.put([node_paper("stale")], sampled_s_ago=90)
    writer.put([node_paper("silent")], sampled_s_ago=700)
    writer.put([node_paper("never", gpus=1)], sampled_s_ago=None)


def rows(text: str) -> dict[str, list[str]]:
    """A table's lines by their first cell."""
    lines = [line.split("   ") for line in text.splitlines()]
    return {line[0].strip(): [cell.strip() for cell in line if cell.strip()] for line in lines}


def test_nodes_are_a_table_with_a_head(surefoot: Surefoot) -> None:
    """One line a node, sorted, with state, free GPUs and the age of the data."""
    result = surefoot("get", "nodes")
    assert (result.exit_code, result.stderr) == (0, "")
    found = rows(result.stdout)
    assert list(found) == ["NAME", "never", "sick", "silent", "stale", "well"]
    assert found["NAME"] == ["NAME", "STATE", "GPUS", "FREE", "SEEN", "CAUSES"]
    assert found["well"][1:4] == ["HEALTHY", "8", "6"]
    assert found["sick"][1:3] == ["RESET_REQUIRED", "4"]
    assert found["sick"][-1] == "xid.48"
    assert found["well"][-1] == "-"


def test_old_data_is_marked(surefoot: Surefoot) -> None:
    """Stale after a minute, silent and UNKNOWN after ten, and never is never."""
    found = rows(surefoot("get", "nodes").stdout)
    assert found["stale"][1] == "HEALTHY"
    assert found["stale"][4].startswith("1m3")
    assert found["stale"][4].endswith("ago (stale)")
    assert found["silent"][1] == "UNKNOWN"
    assert found["silent"][4].endswith("ago (silent)")
    assert (found["never"][1], found["never"][4]) == ("UNKNOWN", "never")
    assert "(" not in found["well"][4]


def test_wide_adds_columns(surefoot: Surefoot) -> None:
    """Mode, islands, the operator's word, epoch and seq."""
    head, *lines = surefoot("get", "nodes", "-o", "wide").stdout.splitlines()
    assert head.split()[-5:] == ["MODE", "ISLANDS", "OVERRIDE", "EPOCH", "SEQ"]
    assert any("allowed by oncall: burns" in line for line in lines)


def test_names_choose(surefoot: Surefoot) -> None:
    """Only those that are named, and one that is missing is an error for all."""
    found = rows(surefoot("get", "nodes", "well", "sick").stdout)
    assert list(found) == ["NAME", "sick", "well"]
    missing = surefoot("get", "nodes", "well", "gone", "lost")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr == (
        "error: node gone is not in the cache\nerror: node lost is not in the cache\n"
    )


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_tools_get_every_field(surefoot: Surefoot, form: str) -> None:
    """The same rows as JSON and as YAML."""
    result = surefoot("get", "nodes", "well", "sick", "-o", form)
    found: Any = json.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout)
    assert [each["name"] for each in found] == ["sick", "well"]
    sick = found[0]
    assert (sick["state"], sick["gpus"], sick["free"]) == ("RESET_REQUIRED", 4, 4)
    assert (sick["causes"], sick["mode"], sick["islands"]) == (["xid.48"], "unknown", 1)
    assert sick["override"] == "allowed by oncall: burns"


def test_gpus_show_state_causes_holder_and_word(surefoot: Surefoot) -> None:
    """One line a GPU, in order; whatever an operator said, the state of telemetry is shown too."""
    found = json.loads(surefoot("get", "gpus", "sick", "well", "-o", "json").stdout)
    assert [(each["node"], each["index"]) for each in found] == [
        *(("sick", index) for index in range(4)),
        *(("well", index) for index in range(8)),
    ]
    bad, denied = found[2], found[1]
    assert (bad["state"], bad["causes"]) == ("RESET_REQUIRED", ["xid.48"])
    assert bad["evidence"] == ["double-bit error"]
    assert (denied["state"], denied["override"]) == ("HEALTHY", "denied by oncall: burns")
    assert [each["index"] for each in found if each["held"]] == [0, 1]


def test_gpus_are_a_table_too(surefoot: Surefoot) -> None:
    """Narrow by default; evidence and models when wide."""
    narrow = surefoot("get", "gpus", "well").stdout.splitlines()
    assert narrow[0].split() == ["NODE", "INDEX", "STATE", "CAUSES", "HELD", "UUID"]
    assert [line.split()[4] for line in narrow[1:]] == ["yes"] * 2 + ["no"] * 6
    wide = surefoot("get", "gpus", "sick", "-o", "wide").stdout
    assert "MIG" in wide.splitlines()[0].split()
    assert "double-bit error" in wide
    assert "denied by oncall: burns" in wide


def test_a_gpu_that_is_split_shows_it(surefoot: Surefoot, writer: Writer) -> None:
    """It is no whole GPU, whatever its state."""
    gpus = [{"uuid": f"GPU-{i}", "index": i, "mig": i == 1} for i in range(2)]
    writer.put([documents.check({**node_body("split"), "gpus": gpus, "links": {}})])
    head, *lines = surefoot("get", "gpus", "split", "-o", "wide").stdout.splitlines()
    at = head.index("MIG")
    assert [line[at:].split()[0] for line in lines] == ["no", "yes"]


def test_what_is_in_quarantine_is_told_beside_the_answer(surefoot: Surefoot, client: Redis) -> None:
    """On standard error, so that tools read on."""
    client.hset(keys.NODES.name, "junk", "{}")
    result = surefoot("get", "nodes", "-o", "json")
    assert result.exit_code == 0
    assert len(json.loads(result.stdout)) == 5
    assert result.stderr.startswith("quarantined: Node/junk: ")


def test_thresholds_come_from_the_configuration(surefoot: Surefoot) -> None:
    """What is stale here is what `serve` would call stale."""
    found = rows(surefoot("get", "nodes", POLICY__STALE_AFTER="2m").stdout)
    assert "(" not in found["stale"][4]


def test_an_empty_cache_is_an_empty_answer(surefoot: Surefoot, client: Redis) -> None:
    """A head alone, or an empty list."""
    client.flushall()
    assert surefoot("get", "nodes").stdout.split() == [
        "NAME", "STATE", "GPUS", "FREE", "SEEN", "CAUSES",
    ]  # fmt: skip
    assert json.loads(surefoot("get", "gpus", "-o", "json").stdout) == []


@pytest.mark.parametrize("what", ["nodes", "gpus"])
def test_a_cache_that_does_not_answer_is_exit_code_1(offline: Surefoot, what: str) -> None:
    """One sentence that names the server."""
    result = offline("get", what)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: the cache at redis://127.0.0.1:1/0 failed")


def test_an_unknown_form_is_usage(surefoot: Surefoot) -> None:
    """Exit code 2, with what is allowed."""
    result = surefoot("get", "nodes", "-o", "xml")
    assert (result.exit_code, "wide" in result.stderr) == (2, True)
