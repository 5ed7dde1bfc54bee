"""Short ways to write the days of one GPU, for the tests of health."""

from __future__ import annotations

from collections.abc import Iterable

from scoring.health.findings import Finding
from scoring.health.fold import Poll, fold
from scoring.health.record import GpuRecord, state_of
from scoring.model import Health
from scoring.policy import DEFAULT, Policy
from scoring.signals.catalogue import Signal
from scoring.signals.sampling import Sample

POLL_S = 15.0
CLEAN: dict[Signal, float] = {
    Signal.GPU_TEMP_C: 40.0,
    Signal.CLOCK_EVENTS: 0.0,
    Signal.ECC_DBE: 0.0,
    Signal.REMAP_PENDING: 0.0,
    Signal.REMAP_FAILED: 0.0,
    Signal.SRAM_THRESHOLD: 0.0,
    Signal.NVLINKS_ACTIVE: 18.0,
    Signal.NVLINKS_EXPECTED: 18.0,
    Signal.FABRIC_STATE: 3.0,
    Signal.FABRIC_SUMMARY: 1.0,
    Signal.PCIE_WIDTH: 16.0,
    Signal.PCIE_WIDTH_MAX: 16.0,
    Signal.TEMP_MARGIN_C: 40.0,
    Signal.SLOWDOWN_MARGIN_C: -2.0,
}
STILL: dict[Signal, float] = {
    Signal.HW_THERMAL_S: 0.0,
    Signal.ECC_SBE: 0.0,
    Signal.NVLINK_REPLAYS: 0.0,
}


def sampled(
    levels: dict[Signal, float] | None = None,
    rates: dict[Signal, float] | None = None,
    *,
    missing: Iterable[Signal] = (),
    was_reset: bool = False,
) -> Sample:
    """A full sample, healthy but for what is said."""
    kept = {**CLEAN, **(levels or {})}
    gaps = frozenset(missing)
    return Sample(
        levels={signal: value for signal, value in kept.items() if signal not in gaps},
        rates={**STILL, **(rates or {})},
        missing=gaps,
        was_reset=was_reset,
    )


QUIET = sampled()


class Day:
    """One GPU, polled every 15 s."""

    def __init__(self, policy: Policy = DEFAULT, *, healthy: bool = True) -> None:
        self.policy = policy
        self.record = GpuRecord()
        self.time_s = 0.0
        self.boot = "boot-1"
        if healthy:
            self.poll(QUIET)

    def poll(
        self,
        sample: Sample | None = QUIET,
        *findings: Finding,
        times: int = 1,
        lost: bool = False,
        reset_s: float | None = None,
        job_faults: frozenset[str] = frozenset(),
    ) -> Health:
        """Fold the next polls, each with this sample, and say what state the GPU is in."""
        for _ in range(times):
            self.time_s += POLL_S
            poll = Poll(
                time_s=self.time_s,
                boot_id=self.boot,
                sample=sample,
                findings=findings,
                lost=lost,
                reset_s=reset_s,
                job_faults=job_faults,
            )
            self.record, _ = fold(self.record, poll, self.policy)
        return self.state

    def quiet_for(self, duration_s: float) -> Health:
        """Healthy polls for this long."""
        return self.poll(times=round(duration_s / POLL_S))

    def reboot(self) -> None:
        """The next poll is of a new boot."""
        self.boot = f"boot-{int(self.boot.rsplit('-', 1)[1]) + 1}"

    def event(self, cause: str, state: Health, **more: object) -> Finding:
        """An event between the last poll and the next one."""
        kept: dict[str, object] = {"time_s": self.time_s + 2.0, "boot_id": self.boot, **more}
        return Finding(cause=cause, state=state, **kept)  # type: ignore[arg-type]

    @property
    def state(self) -> Health:
        """The state that the open causes make."""
        return state_of(self.record)

    @property
    def open(self) -> set[str]:
        """The ids of the open causes."""
        return set(self.record.ledger.open)
