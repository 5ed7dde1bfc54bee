"""`surefoot inspect kmsg`: what a kernel log says about the health of GPUs and of the node.

A log tells what happened, not what is now: there is no recovery after it, and what it does not
mention is not known to be well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from scoring.kernel_log import KernelLog, decode, parse
from scoring.model import Cause, worst
from scoring.xid.effect import effect, is_link_fault
from scoring.xid.events import GpuEvent, Lost, Sxid, Xid
from scoring.xid.judge import Findings, fold_history, fold_switches, fold_unattributed
from scoring.xid.rules import NO_RULES, Rules


def report(data: bytes, rules: Rules = NO_RULES) -> dict[str, Any] | None:
    """The verdict on a kernel log, as the JSON of docs/inspect.md; None if it tells nothing of GPUs.

    `devices` by PCI address, each with `state`, `causes` (codes that determine it), `recorded`
    (codes that say nothing against it) and `evidence` by cause; `nodes` the same for the node.
    """
    log = parse(decode(data))
    if not log.messages:
        return None
    by_gpu: dict[str, list[GpuEvent]] = defaultdict(list)
    unattributed: list[GpuEvent] = []
    for event in log.events:
        if isinstance(event, Xid | Lost):
            (unattributed if event.pci is None else by_gpu[event.pci]).append(event)
    switches = fold_switches((e for e in log.events if isinstance(e, Sxid)), rules)
    return {
        "devices": _devices(log, by_gpu, switches, rules),
        "nodes": _node(switches, fold_unattributed(unattributed, rules)),
    }


def _devices(
    log: KernelLog,
    by_gpu: Mapping[str, list[GpuEvent]],
    switches: Findings,
    rules: Rules,
) -> dict[str, Any]:
    faulty = {
        pci
        for pci, events in by_gpu.items()
        if any(is_link_fault(effect(e, rules)) for e in events)
    }
    devices = {}
    for pci in sorted(by_gpu):
        peer_fault = bool(faulty - {pci} or switches.causes)
        findings = fold_history(by_gpu[pci], rules=rules, peer_fault=peer_fault)
        devices[pci] = {"uuid": log.uuids.get(pci), **_verdict(findings.causes, findings.recorded)}
    return devices


def _node(*findings: Findings) -> dict[str, Any]:
    causes = tuple(cause for found in findings for cause in found.causes)
    return _verdict(causes, tuple(code for found in findings for code in found.recorded))


def _verdict(causes: tuple[Cause, ...], recorded: tuple[str, ...]) -> dict[str, Any]:
    return {
        "state": worst(cause.state for cause in causes).name,
        "causes": [cause.id for cause in causes],
        "recorded": list(recorded),
        "evidence": {cause.id: cause.evidence for cause in causes},
    }


def render(found: Mapping[str, Any]) -> str:
    """The report for people: a line per device and the evidence under it, the worst first named."""
    devices: Mapping[str, Any] = found["devices"]
    lines = [line for pci, verdict in devices.items() for line in _lines(pci, verdict)]
    node = found["nodes"]
    if node["causes"] or node["recorded"]:
        lines += _lines("node", node)
    return "\n".join(lines or ["The NVIDIA driver speaks in this log, but reports no fault."])


def _lines(name: str, verdict: Mapping[str, Any]) -> list[str]:
    recorded = f"  (recorded: {', '.join(verdict['recorded'])})" if verdict["recorded"] else ""
    uuid = f"  {verdict['uuid']}" if verdict.get("uuid") else ""
    head = f"{name}  {verdict['state']}{uuid}{recorded}"
    return [head, *(f"  {code}  {text}" for code, text in verdict["evidence"].items())]
