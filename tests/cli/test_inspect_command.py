"""`surefoot inspect`: one text of each kind, as JSON and for people, and what is no such text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import topo_printer
from commands import Surefoot

KINDS = {
    "topology": topo_printer.tabs(topo_printer.table(2, {(0, 1): "NV18"})),
    "kmsg": "[  12.5] NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus.\n",
    "metrics": "".join(
        f'{name}{{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3"}} {value}\n'
        for name, value in (("DCGM_FI_DEV_GPU_TEMP", 41), ("DCGM_FI_DEV_ROW_REMAP_FAILURE", 1))
    ),
    "pod": "kind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}\n",
}
TELLS = {
    "topology": ("links", "NV18"),
    "kmsg": ("devices", "xid.79"),
    "metrics": ("devices", "GPU-1"),
    "pod": ("gpus", "8"),
}


@pytest.fixture
def surefoot(offline: Surefoot) -> Surefoot:
    """`inspect` needs no cache."""
    return offline


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_read_as_json(surefoot: Surefoot, tmp_path: Path, kind: str) -> None:
    """One document on one line."""
    file = tmp_path / "text"
    file.write_text(KINDS[kind])
    result = surefoot("inspect", kind, str(file), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("\n") == 1
    key, word = TELLS[kind]
    assert key in json.loads(result.stdout)
    assert word in result.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_standard_input_is_read_for_people(surefoot: Surefoot, kind: str) -> None:
    """The same facts, no JSON."""
    result = surefoot("inspect", kind, "-", stdin=KINDS[kind])
    assert (result.exit_code, result.stderr) == (0, "")
    assert TELLS[kind][1] in result.stdout
    assert not result.stdout.startswith("{")


@pytest.mark.parametrize(
    "text", [b"", b"hello\n", bytes(range(256)) * 20], ids=["", "text", "bytes"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_usable_is_exit_code_3_with_a_sentence(
    surefoot: Surefoot, kind: str, text: bytes
) -> None:
    """Not an empty success: no data is not health."""
    result = surefoot("inspect", kind, "-", "--json", stdin=text)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("error: -: nothing usable")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_not_there_is_exit_code_2(surefoot: Surefoot, kind: str) -> None:
    """Usage, like a missing argument."""
    assert surefoot("inspect", kind, "nowhere").exit_code == 2
    assert surefoot("inspect", kind).exit_code == 2


def test_a_directory_and_a_file_without_end_are_refused(surefoot: Surefoot, tmp_path: Path) -> None:
    """Reading is bounded."""
    assert surefoot("inspect", "kmsg", str(tmp_path)).exit_code == 2
    result = surefoot("inspect", "kmsg", "/dev/zero")
    assert (result.exit_code, "larger than 64 MiB" in result.stderr) == (2, True)


def test_an_unknown_kind_is_exit_code_2(surefoot: Surefoot) -> None:
    """With its name."""
    result = surefoot("inspect", "weather", "-")
    assert (result.exit_code, "weather" in result.stderr) == (2, True)


def test_each_kind_explains_itself(surefoot: Surefoot) -> None:
    """What it reads, its exit codes, an example."""
    for kind in KINDS:
        told = surefoot("inspect", kind, "--help").stdout
        assert "Exit code 0: usable. 3: nothing usable" in told
        assert f"surefoot inspect {kind} FILE --json" in told


def test_a_file_that_cannot_be_read_is_one_sentence(surefoot: Surefoot) -> None:
    """An error of the system, with the file's name."""
    result = surefoot("inspect", "kmsg", "/proc/self/mem")
    assert (result.exit_code, result.stderr) == (2, "error: /proc/self/mem: Input/output error\n")


def test_the_sites_configuration_counts(surefoot: Surefoot, tmp_path: Path) -> None:
    """A site may change what an XID means to it."""
    file = tmp_path / "surefoot.yaml"
    log = KINDS["kmsg"].replace(": 79", ": 31")
    for word, state in (("RECORD", "HEALTHY"), ("FAILED", "FAILED")):
        file.write_text(f"xid: {{xid.31: {word}}}\n")
        result = surefoot("inspect", "kmsg", "-", "--json", "--config", str(file), stdin=log)
        assert json.loads(result.stdout)["devices"]["0000:1b:00.0"]["state"] == state
