"""The synthetic agents: what they make of faults through the real signals, XID table and fold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.demo import readings
from extender.demo.agents import health_of
from extender.demo.faults import DAY_S, HOUR_S, ROUND_S, Fault, Kind, script
from extender.demo.fleet import PRODUCTS, fleet, machine
from extender.demo.truth import Truth
from scoring.health.fold import Poll, fold
from scoring.health.record import GpuRecord, open_causes
from scoring.model import Health, worst
from scoring.policy import DEFAULT
from scoring.signals.models import expected
from scoring.signals.sampling import Reading, sample

H100 = machine(PRODUCTS[0], 0)

OPENS = {
    Kind.BUS_LOSS: ("xid.79", Health.REBOOT_REQUIRED),
    Kind.MEMORY_ERROR: ("xid.48", Health.RESET_REQUIRED),
    Kind.LINK_ERROR: ("xid.74", Health.RESET_REQUIRED),
    Kind.REMAP_PENDING: ("remap.pending", Health.DEGRADED),
    Kind.LINKS_DOWN: ("nvlink.down", Health.DEGRADED),
    Kind.THERMAL: ("throttle.thermal", Health.DEGRADED),
}
AFTERWARDS = {
    Kind.BUS_LOSS: Health.PROBATION,
    Kind.MEMORY_ERROR: Health.PROBATION,
    Kind.LINK_ERROR: Health.PROBATION,
    Kind.REMAP_PENDING: Health.HEALTHY,
    Kind.LINKS_DOWN: Health.HEALTHY,
    Kind.THERMAL: Health.HEALTHY,
}


def fault(kind: Kind) -> Fault:
    """Two hours of one fault, from 02:00:44 on: the latest onset of a round."""
    return Fault(kind=kind, node=H100.name, gpu=5, start_s=7244.0, end_s=4 * HOUR_S + 44.0)


@pytest.mark.parametrize("kind", list(OPENS))
def test_a_fault_opens_its_cause_before_the_placements_of_the_round(kind: Kind) -> None:
    """Events at once, levels after three polls: both within the round of the onset."""
    history = health_of([H100], [fault(kind)], DAY_S)[H100.name, 5]
    cause, state = OPENS[kind]
    assert history.at(7243.0) == ()
    found = {each.id: each for each in history.at(7200.0 + ROUND_S)}
    assert cause in found
    assert worst(each.state for each in found.values()) is state
    assert found[cause].evidence


@pytest.mark.parametrize("kind", list(AFTERWARDS))
def test_a_repair_is_followed_by_probation_and_then_by_health(kind: Kind) -> None:
    """What asked for a reset or reboot serves its probation; the rest is fine once it is clean."""
    history = health_of([H100], [fault(kind)], DAY_S)[H100.name, 5]
    later_s = fault(kind).end_s + 15 * 60.0
    assert worst(each.state for each in history.at(later_s)) is AFTERWARDS[kind]
    assert history.at(fault(kind).end_s + DEFAULT.probation_s + 15 * 60.0) == ()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_no_gpu_with_a_fault_of_the_script_is_healthy(seed: int) -> None:
    """At the end of every round in which a fault is active, a cause is open on its GPU, unless the
    node reboots: then nothing is placed there, and its agent looks again afterwards.
    """
    machines = fleet(6)
    day_s = 2 * HOUR_S
    faults = script(machines, seed, day_s)
    health = health_of(machines, faults, day_s)
    truth = Truth(faults, health)
    for round_ in range(1, int(day_s / ROUND_S)):
        time_s = round_ * ROUND_S
        for each in faults:
            up = each.node not in truth.down(time_s)
            if each.gpu is not None and each.active(time_s) and up:
                assert health[each.node, each.gpu].at(time_s), (each, time_s)


def test_leaving_out_quiet_polls_changes_nothing() -> None:
    """A GPU that is polled all day long has the same causes at the same times."""
    kind = Kind.THERMAL
    changes: list[tuple[float, tuple[str, ...]]] = []
    record, baseline = GpuRecord(), None
    for poll in range(int(6 * HOUR_S / DEFAULT.poll_s)):
        time_s = poll * DEFAULT.poll_s
        active = fault(kind) if fault(kind).active(time_s) else None
        reading = Reading(
            time_s=time_s,
            boot_id="boot-0",
            values=readings.faulty(H100, 5, active) or {},
            model=H100.product.model,
        )
        asked = expected(H100.product.model, frozenset(readings.healthy(H100, 5)))
        found, baseline = sample(reading, asked, baseline)
        record, _ = fold(record, Poll(time_s=time_s, boot_id="boot-0", sample=found))
        ids = tuple(cause.id for cause in open_causes(record))
        if ids != (changes[-1][1] if changes else ()):
            changes.append((time_s, ids))
    history = health_of([H100], [fault(kind)], 6 * HOUR_S)[H100.name, 5]
    told = [tuple(cause.id for cause in causes) for causes in history.causes]
    assert list(zip(history.times_s, told, strict=True)) == changes
    assert [ids for _, ids in changes] == [("throttle.thermal",), ()]
