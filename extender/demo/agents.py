"""Synthetic agents: raw readings and kernel lines through the real signals, XID table and fold.

`health_of` is what an agent knows that never loses a poll. It depends on the faults alone, so it is
worked out once, before the scheduler's day: both runs are scored against it, and the run with
Surefoot publishes it (frozen where an agent is silent).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from extender.demo import readings
from extender.demo.faults import REBOOT_S, Fault, Repair
from extender.demo.fleet import Machine
from scoring import kernel_log
from scoring.health.findings import Finding
from scoring.health.fold import Poll, fold
from scoring.health.record import GpuRecord, open_causes
from scoring.health.xid_findings import findings
from scoring.model import Cause, NodeName
from scoring.policy import DEFAULT, Policy
from scoring.signals.models import expected
from scoring.signals.sampling import Baseline, Reading, Sample, sample
from scoring.xid.events import Lost, Xid

DRIVER_BRANCH: Final = 570

Causes = tuple[Cause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The open causes of one GPU through the day: the last entry not after a time holds then."""

    times_s: tuple[float, ...] = ()
    causes: tuple[Causes, ...] = ()

    def at(self, time_s: float) -> Causes:
        """What was open after the last poll not after `time_s`."""
        position = bisect_right(self.times_s, time_s)
        return self.causes[position - 1] if position else ()


Histories = Mapping[tuple[NodeName, int], History]
"""By node and index, of GPUs that ever had a cause."""


def health_of(
    machines: Sequence[Machine], faults: Sequence[Fault], day_s: float, policy: Policy = DEFAULT
) -> Histories:
    """What agents that never lose a poll know of every GPU that has a fault."""
    return {
        (machine.name, gpu): _Agent(machine, gpu, faults, policy).history(day_s)
        for machine in machines
        for gpu in sorted({f.gpu for f in faults if f.node == machine.name and f.gpu is not None})
    }


class _Agent:
    """The polls of one GPU."""

    def __init__(self, machine: Machine, gpu: int, faults: Sequence[Fault], policy: Policy) -> None:
        self._machine = machine
        self._gpu = gpu
        self._policy = policy
        self._own = sorted(
            (f for f in faults if (f.node, f.gpu) == (machine.name, gpu)), key=lambda f: f.start_s
        )
        self._reboots_s = sorted(f.end_s for f in faults if f.node == machine.name and f.rebooted)
        self._expected = expected(machine.product.model, frozenset(readings.healthy(machine, gpu)))
        self._baseline: Baseline | None = None

    def history(self, day_s: float) -> History:
        """The causes after each poll that changed one."""
        times_s: list[float] = []
        causes: list[Causes] = []
        for time_s, record in self._records(day_s):
            now = open_causes(record)
            if _key(now) != (_key(causes[-1]) if causes else ()):
                times_s.append(time_s)
                causes.append(now)
        return History(times_s=tuple(times_s), causes=tuple(causes))

    def _records(self, day_s: float) -> Iterator[tuple[float, GpuRecord]]:
        """The record after each poll; quiet polls of a quiet GPU, which change nothing, are left
        out.
        """
        step_s = self._policy.poll_s
        time_s, polled_s = 0.0, -math.inf
        record = GpuRecord()
        while time_s < day_s:
            if not self._down(time_s):
                record, _ = fold(record, self._poll(time_s, polled_s), self._policy)
                polled_s = time_s
                yield time_s, record
            if record.ledger.idle and self._fault(time_s) is None:
                next_s = min((f.start_s for f in self._own if f.start_s > time_s), default=day_s)
                skipped = math.floor(next_s / step_s) - 1 - round(time_s / step_s)
                if skipped > 0:
                    time_s += skipped * step_s
                    record = replace(record, time_s=time_s, full_s=time_s)
                    polled_s = time_s
            time_s += step_s

    def _poll(self, time_s: float, polled_s: float) -> Poll:
        fault = self._fault(time_s)
        values = readings.faulty(self._machine, self._gpu, fault)
        boot_id = f"boot-{bisect_right(self._reboots_s, time_s)}"
        found: Sample | None = None
        if values is not None:
            reading = Reading(
                time_s=time_s, boot_id=boot_id, values=values, model=self._machine.product.model
            )
            found, self._baseline = sample(reading, self._expected, self._baseline)
        began = [f for f in self._own if polled_s < f.start_s <= time_s]
        return Poll(
            time_s=time_s,
            boot_id=boot_id,
            sample=found,
            findings=tuple(each for f in began for each in self._found(f, boot_id)),
            lost=values is None,
            reset_s=max((f.end_s for f in self._own if _was_reset(f, time_s)), default=None),
        )

    def _found(self, fault: Fault, boot_id: str) -> tuple[Finding, ...]:
        log = kernel_log.parse(readings.kernel_lines(self._machine, fault))
        events = [event for event in log.events if isinstance(event, Xid | Lost)]
        return findings(events, time_s=fault.start_s, boot_id=boot_id, branch=DRIVER_BRANCH)

    def _fault(self, time_s: float) -> Fault | None:
        return next((f for f in self._own if f.active(time_s)), None)

    def _down(self, time_s: float) -> bool:
        return any(end_s - REBOOT_S <= time_s < end_s for end_s in self._reboots_s)


def _was_reset(fault: Fault, time_s: float) -> bool:
    return fault.repaired and fault.effect.repair is Repair.RESET and fault.end_s <= time_s


def _key(causes: Causes) -> tuple[tuple[str, int, str], ...]:
    """What makes a difference to a verdict."""
    return tuple((cause.id, cause.state.value, cause.scope.value) for cause in causes)
