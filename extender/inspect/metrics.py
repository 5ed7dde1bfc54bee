"""`inspect metrics`: what one dcgm-exporter page says of each GPU.

One page is one poll: flags and events count, levels that need several polls and rates do not. What
the GPUs of one model show in common is expected of each of them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from extender.inspect.dcgm import GpuPage, Page, page
from scoring.health.findings import Finding
from scoring.health.fold import Poll, fold
from scoring.health.record import GpuRecord, open_causes, state_of
from scoring.health.xid_findings import findings
from scoring.model import Health
from scoring.policy import DEFAULT
from scoring.signals.catalogue import Signal
from scoring.signals.models import expected
from scoring.signals.sampling import Reading, Sample, sample
from scoring.xid.effect import effect
from scoring.xid.rules import NO_RULES, Rules

PAGE_POLICY: Final = replace(DEFAULT, new_grace_s=0.0)
"""A page has no second one to wait for: a GPU that it does not describe fully is UNKNOWN."""
_PAGE_S: Final = 0.0
_SEEN_S: Final = -60.0
"""When the page's XIDs fell, for all we know: before the recovery action was read."""


def report(data: bytes, rules: Rules = NO_RULES) -> dict[str, Any] | None:
    """The verdict on each GPU of a page, as the JSON of docs/inspect.md; None where it shows none.

    `devices` by uuid, each with `index`, `model`, `state`, `causes`, `recorded` (XIDs that say
    nothing against it), `evidence` by cause, and `missing`: what the other GPUs of its model show.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    read = page(text)
    if not read.gpus:
        return None
    learned = _learned(read)
    return {
        "devices": {
            gpu.uuid: _device(gpu, learned.get((gpu.model, gpu.mig), frozenset()), rules)
            for gpu in read.gpus
        }
    }


def render(found: Mapping[str, Any]) -> str:
    """The report for people: a line per GPU and the evidence under it."""
    return "\n".join(
        line for uuid, device in found["devices"].items() for line in _lines(uuid, device)
    )


def _lines(uuid: str, device: Mapping[str, Any]) -> list[str]:
    index = "?" if device["index"] is None else device["index"]
    recorded = f"  (recorded: {', '.join(device['recorded'])})" if device["recorded"] else ""
    head = f"GPU {index}  {device['state']}  {device['model'] or 'unknown model'}  {uuid}{recorded}"
    missing = [f"  missing  {', '.join(device['missing'])}"] if device["missing"] else []
    return [head, *(f"  {id_}  {text}" for id_, text in device["evidence"].items()), *missing]


def _learned(read: Page) -> Mapping[tuple[str | None, bool], frozenset[Signal]]:
    """What at least half of the GPUs of a model report, but for the family that may be cut."""
    gpus = Counter((gpu.model, gpu.mig) for gpu in read.gpus)
    shown: defaultdict[tuple[str | None, bool], Counter[Signal]] = defaultdict(Counter)
    for gpu in read.gpus:
        shown[gpu.model, gpu.mig].update(gpu.values.keys())
    return {
        kind: frozenset(
            signal
            for signal, count in counts.items()
            if count >= math.ceil(gpus[kind] / 2) and signal is not read.tail
        )
        for kind, counts in shown.items()
    }


def _device(gpu: GpuPage, learned: frozenset[Signal], rules: Rules) -> dict[str, Any]:
    reading = Reading(time_s=_PAGE_S, boot_id=None, values=gpu.values, model=gpu.model)
    made, _ = sample(reading, expected(gpu.model, learned, mig=gpu.mig))
    record, _ = fold(GpuRecord(), _poll(gpu, made, rules), PAGE_POLICY)
    causes = open_causes(record)
    return {
        "index": gpu.index,
        "model": gpu.model,
        "state": state_of(record).name,
        "causes": [cause.id for cause in causes],
        "recorded": [xid.id for xid in gpu.xids if effect(xid, rules).state is None],
        "evidence": {cause.id: cause.evidence for cause in causes},
        "missing": sorted(made.missing),
    }


def _poll(gpu: GpuPage, made: Sample, rules: Rules) -> Poll:
    gravest_first = sorted(
        gpu.xids, key=lambda xid: (-(effect(xid, rules).state or Health.HEALTHY), xid.code)
    )
    found = findings(gravest_first, time_s=_SEEN_S, branch=gpu.branch, rules=rules)
    return Poll(time_s=_PAGE_S, boot_id=None, sample=made, findings=(*found, *_undated(gpu, rules)))


def _undated(gpu: GpuPage, rules: Rules) -> tuple[Finding, ...]:
    """The gauge of the last XID never falls and has no date: a grave code there is a suspicion.

    It may be older than the last repair (dcgm-exporter #500), so it is no more than that.
    """
    xid = gpu.last_xid
    if xid is None or effect(xid, rules).state is None:
        return ()
    evidence = f"XID {xid.code} was the last one since the exporter started, at an unknown time"
    return (Finding(cause=xid.id, time_s=_SEEN_S, state=Health.SUSPECT, evidence=evidence),)
