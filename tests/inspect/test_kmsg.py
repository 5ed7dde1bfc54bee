"""`inspect kmsg`: from the bytes of a log to a verdict for each GPU and for the node."""

from __future__ import annotations

import json
from typing import Any

import pytest

from extender.inspect.kmsg import render, report
from scoring.xid.rules import rules_of

UUID = "GPU-5ad0c0de-1234-4a5b-8c6d-00c0ffee0001"


def log(*messages: str) -> bytes:
    """A dmesg text of these messages, a millisecond apart."""
    return "".join(f"[  100.{i:03}000] {text}\n" for i, text in enumerate(messages)).encode()


def xid(bus: str, code: int, text: str = "words") -> str:
    """An XID of the GPU on this bus."""
    return f"NVRM: Xid (PCI:0000:{bus}:00): {code}, pid=7, name=train, {text}"


def verdicts(data: bytes) -> dict[str, tuple[str, list[str], list[str]]]:
    """State, causes and recorded codes by bus."""
    found = report(data)
    assert found is not None
    devices: dict[str, Any] = found["devices"]
    return {
        pci[5:7]: (verdict["state"], verdict["causes"], verdict["recorded"])
        for pci, verdict in devices.items()
    }


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\x00\x01\xff", b"[ 1.0] usb 1-1: new device\n"])
def test_a_log_without_the_nvidia_driver_is_not_usable(data: bytes) -> None:
    """It says nothing of GPUs, so neither do we: no data is not health."""
    assert report(data) is None


def test_a_log_in_which_the_driver_reports_no_fault_is_usable() -> None:
    """The driver was there and complained of nothing."""
    found = report(log("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64"))
    assert found is not None
    assert found["devices"] == {}
    assert found["nodes"]["state"] == "HEALTHY"
    assert "no fault" in render(found)


def test_each_gpu_is_judged_alone() -> None:
    """A storm of application faults on one does not hide a fault of another."""
    data = log(*[xid("1b", 31)] * 40, xid("43", 64), *[xid("1b", 45)] * 40, xid("52", 94))
    assert verdicts(data) == {
        "1b": ("HEALTHY", [], ["xid.31", "xid.45"]),
        "43": ("RESET_REQUIRED", ["xid.64"], []),
        "52": ("DEGRADED", ["xid.94"], []),
    }


def test_causes_come_worst_first_with_evidence() -> None:
    """For people: what was printed, and what it means."""
    found = report(log(xid("1b", 94), xid("1b", 154, "action changed from 0x0 (a) to 0x2 (b)")))
    assert found is not None
    (verdict,) = found["devices"].values()
    assert verdict["causes"] == ["xid.154", "xid.94"]
    assert "rebooted" in verdict["evidence"]["xid.154"]
    assert json.loads(json.dumps(found)) == found


def test_a_sympathetic_link_error_is_explained_by_a_peer() -> None:
    """The GPU that lost the bus took the link down; its peer is innocent."""
    echo = "NVLink: fatal error detected on link 2(0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
    assert verdicts(log(xid("1b", 74, echo)))["1b"][0] == "SUSPECT"
    both = verdicts(log(xid("43", 79), xid("1b", 74, echo)))
    assert both["1b"] == ("HEALTHY", [], ["xid.74"])


def test_switch_errors_and_faults_without_an_address_are_the_nodes() -> None:
    """No GPU is named, so none is blamed."""
    found = report(
        log(
            "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 63 LTSSM Fault Up",
            "NVRM: Xid: 48, an old form",
        )
    )
    assert found is not None
    assert found["devices"] == {}
    assert found["nodes"]["state"] == "RESET_REQUIRED"
    assert set(found["nodes"]["causes"]) == {"sxid.20034", "xid.48"}


def test_the_uuid_is_shown_where_the_log_has_it() -> None:
    """For joining with what NVML says."""
    found = report(log(f"NVRM: GPU at PCI:0000:1b:00: {UUID}", xid("1b", 46)))
    assert found is not None
    assert found["devices"]["0000:1b:00.0"]["uuid"] == UUID
    assert UUID in render(found)


def test_the_report_for_people_names_states_causes_and_what_was_recorded() -> None:
    """One line for a device, its evidence below."""
    found = report(
        log(xid("1b", 46), xid("1b", 13), "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 10004, hot")
    )
    assert found is not None
    text = render(found)
    assert "0000:1b:00.0  RESET_REQUIRED  (recorded: xid.13)" in text
    assert "  xid.46  " in text
    assert "node  SUSPECT" in text


def test_site_rules_reach_the_report() -> None:
    """The same log under other rules."""
    found = report(log(xid("1b", 63)), rules_of({"xid.63": "DEGRADED"}))
    assert found is not None
    assert found["devices"]["0000:1b:00.0"]["causes"] == ["xid.63"]


def test_a_large_log_is_read_in_a_breath() -> None:
    """Twenty megabytes of other lines, one fault at the end."""
    other = b"[ 5000.000000] usb 1-1: a line of the kernel that is of no interest to anyone here\n"
    assert verdicts(other * 250_000 + log(xid("1b", 46)))["1b"][0] == "RESET_REQUIRED"
