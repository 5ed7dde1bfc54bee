"""How causes open and clear: each kind by its own rule."""

from __future__ import annotations

import dataclasses

import pytest
from health_days import CLEAN, POLL_S, QUIET, Day, sampled

from scoring.health.causes import CATALOGUE, SPECS, Clear, clear_of
from scoring.health.findings import Finding
from scoring.health.fold import Change, Poll, fold, fold_all, observe
from scoring.health.pattern import of_jobs
from scoring.health.record import GpuRecord, open_causes, state_of
from scoring.model import Health, Scope
from scoring.policy import DEFAULT, Policy
from scoring.signals.catalogue import Signal
from scoring.signals.sampling import Sample
from scoring.signals.thresholds import THRESHOLDS, Entry
from scoring.xid.catalogue import Pattern

HOT = sampled({Signal.CLOCK_EVENTS: 64.0})


def test_a_gpu_is_new_until_its_first_full_sample() -> None:
    """A record that nothing was folded into is NEW, and the first full sample ends that."""
    day = Day(healthy=False)
    assert day.state is Health.NEW
    assert day.poll(None) is Health.NEW
    assert day.poll(QUIET) is Health.HEALTHY


def test_new_without_a_full_sample_becomes_unknown() -> None:
    """The grace of a new GPU runs out."""
    day = Day(healthy=False)
    assert day.poll(sampled(missing=[Signal.ECC_DBE]), times=40) is Health.NEW
    assert day.poll(sampled(missing=[Signal.ECC_DBE])) is Health.UNKNOWN
    assert day.poll(QUIET) is Health.HEALTHY


@pytest.mark.parametrize(
    ("levels", "state"),
    [
        ({Signal.REMAP_PENDING: 1}, Health.DEGRADED),
        ({Signal.REMAP_FAILED: 1}, Health.FAILED),
        ({Signal.SRAM_THRESHOLD: 1}, Health.FAILED),
        ({Signal.MEMORY_UNREPAIRABLE: 1}, Health.FAILED),
        ({Signal.ECC_DBE: 2}, Health.RESET_REQUIRED),
        ({Signal.RECOVERY_ACTION: 1}, Health.RESET_REQUIRED),
        ({Signal.RECOVERY_ACTION: 2}, Health.REBOOT_REQUIRED),
        ({Signal.RECOVERY_ACTION: 3}, Health.DEGRADED),
        ({Signal.RECOVERY_ACTION: 4}, Health.RESET_REQUIRED),
        ({Signal.RECOVERY_ACTION: 5}, Health.DEGRADED),
        ({Signal.RECOVERY_ACTION: 6}, Health.RESET_REQUIRED),
        ({Signal.RECOVERY_ACTION: 7}, Health.REBOOT_REQUIRED),
        ({Signal.RECOVERY_ACTION: 99}, Health.RESET_REQUIRED),
        ({Signal.FABRIC_SUMMARY: 2}, Health.DEGRADED),
        ({Signal.FABRIC_SUMMARY: 3}, Health.SUSPECT),
        ({Signal.FABRIC_MASK: 0b01_10_10_10}, Health.SUSPECT),
        ({Signal.FABRIC_MASK: 0b10_01_10_10}, Health.DEGRADED),
        ({Signal.FABRIC_MASK: 0b0010_10_10_10_10}, Health.DEGRADED),
        ({Signal.HEALTH_WATCH: 20}, Health.DEGRADED),
        ({Signal.HEALTH_WATCH: 10}, Health.SUSPECT),
    ],
)
def test_flags_open_at_once(levels: dict[Signal, float], state: Health) -> None:
    """One sample is enough for a flag and for the driver's recovery action."""
    assert Day().poll(sampled(levels)) is state


@pytest.mark.parametrize(
    "levels",
    [
        {Signal.CLOCK_EVENTS: 0x1 | 0x2 | 0x4 | 0x10 | 0x100},
        {Signal.FABRIC_MASK: 0b0001_10_10_10_10},
        {Signal.FABRIC_MASK: 0},
        {Signal.FABRIC_STATE: 3, Signal.REMAPPED_ROWS: 12, Signal.RETIRED_PAGES: 3},
        {Signal.PCIE_WIDTH: 16, Signal.PCIE_WIDTH_MAX: 16},
        {Signal.TEMP_MARGIN_C: 3, Signal.SLOWDOWN_MARGIN_C: -2},
    ],
)
def test_ordinary_values_are_no_fault(levels: dict[Signal, float]) -> None:
    """Idle and power-cap clocks, a mask that says "no fault", a margin above the limit."""
    assert Day().poll(sampled(levels), times=10) is Health.HEALTHY


def test_a_level_without_its_limit_is_not_judged() -> None:
    """Eight lanes say nothing while nobody says how many there should be, good or bad."""
    day = Day()
    narrow = {Signal.PCIE_WIDTH: 8.0}
    assert day.poll(sampled(narrow, missing=[Signal.PCIE_WIDTH_MAX]), times=3) is Health.HEALTHY
    day.poll(sampled(narrow), times=3)
    day.poll(Sample(levels={**narrow, Signal.GPU_TEMP_C: 40.0}), times=100)
    assert day.open == {"pcie.width"}


@pytest.mark.parametrize(
    ("levels", "rates", "cause"),
    [
        ({Signal.CLOCK_EVENTS: 0x40}, {}, "throttle.thermal"),
        ({Signal.CLOCK_EVENTS: 0x80}, {}, "throttle.hw"),
        ({Signal.NVLINKS_ACTIVE: 17}, {}, "nvlink.down"),
        ({Signal.PCIE_WIDTH: 8, Signal.PCIE_WIDTH_MAX: 16}, {}, "pcie.width"),
        ({Signal.TEMP_MARGIN_C: -3, Signal.SLOWDOWN_MARGIN_C: -2}, {}, "thermal"),
        ({Signal.FABRIC_STATE: 2}, {}, "fabric.state"),
        ({}, {Signal.NVLINK_REPLAYS: 1.0}, "nvlink.errors"),
        ({}, {Signal.HW_THERMAL_S: 0.2}, "throttle.thermal"),
        ({}, {Signal.ECC_SBE: 5000.0}, "ecc.sbe_rate"),
    ],
)
def test_levels_and_rates_open_after_entry_polls(
    levels: dict[Signal, float], rates: dict[Signal, float], cause: str
) -> None:
    """Two bad polls are noise; the third in a row opens the cause."""
    day = Day()
    bad = sampled(levels, rates)
    assert day.poll(bad, times=2) is Health.HEALTHY
    assert day.poll(QUIET) is Health.HEALTHY
    day.poll(bad, times=2)
    assert day.open == set()
    day.poll(bad)
    assert day.open == {cause}


def test_a_missing_measurement_neither_confirms_nor_ends_a_streak() -> None:
    """A poll that does not speak of a level leaves its streak as it is."""
    day = Day()
    down = sampled({Signal.NVLINKS_ACTIVE: 17})
    day.poll(down, times=2)
    day.poll(sampled(missing=[Signal.NVLINKS_ACTIVE]))
    assert day.open == set()
    day.poll(down)
    assert day.open == {"nvlink.down"}


def test_a_level_closes_after_clean_polls_that_span_the_exit_delay() -> None:
    """Five clean polls and five minutes."""
    day = Day()
    day.poll(HOT, times=3)
    assert day.quiet_for(DEFAULT.flap.exit_delay_s) is Health.DEGRADED
    assert day.poll() is Health.HEALTHY


def test_one_bad_poll_starts_the_clean_time_again() -> None:
    """A level that returns within its exit delay never closed."""
    day = Day()
    day.poll(HOT, times=3)
    day.quiet_for(240)
    day.poll(HOT)
    assert day.quiet_for(DEFAULT.flap.exit_delay_s) is Health.DEGRADED


def test_a_rate_closes_only_well_below_its_trip_level() -> None:
    """Hysteresis: above half the trip level nothing clears, below it ten minutes do."""
    day = Day()
    day.poll(sampled({}, {Signal.ECC_SBE: 50.0}), times=3)
    assert day.poll(sampled({}, {Signal.ECC_SBE: 7.0}), times=100) is Health.SUSPECT
    low = sampled({}, {Signal.ECC_SBE: 1.0})
    assert day.poll(low, times=40) is Health.SUSPECT
    assert day.poll(low) is Health.HEALTHY


def test_a_pending_remap_ends_with_its_flag() -> None:
    """The flag is the authority: down means done."""
    day = Day()
    assert day.poll(sampled({Signal.REMAP_PENDING: 1}), times=3) is Health.DEGRADED
    assert day.poll() is Health.HEALTHY


@pytest.mark.parametrize(
    "signal", [Signal.REMAP_FAILED, Signal.SRAM_THRESHOLD, Signal.MEMORY_UNREPAIRABLE]
)
def test_what_calls_for_a_new_board_never_clears(signal: Signal) -> None:
    """Neither a reboot nor a quiet day heals broken memory."""
    day = Day()
    day.poll(sampled({signal: 1}))
    day.reboot()
    assert day.quiet_for(86_400) is Health.FAILED


def test_an_event_clears_by_reboot_and_clean_polls_into_probation() -> None:
    """XID 79: a new boot, three clean polls, four hours of probation, healthy."""
    day = Day()
    assert day.poll(None, day.event("xid.79", Health.REBOOT_REQUIRED)) is Health.REBOOT_REQUIRED
    assert day.quiet_for(3600) is Health.REBOOT_REQUIRED
    day.reboot()
    assert day.poll(times=2) is Health.REBOOT_REQUIRED
    assert day.poll() is Health.PROBATION
    assert day.quiet_for(DEFAULT.probation_s - POLL_S) is Health.PROBATION
    assert day.poll() is Health.HEALTHY


def test_a_reset_repairs_what_asks_for_a_reset_and_no_more() -> None:
    """A GPU reset cures XID 48 and not XID 79; an older reset cures nothing."""
    day = Day()
    day.poll(
        QUIET,
        day.event("xid.48", Health.RESET_REQUIRED),
        day.event("xid.79", Health.REBOOT_REQUIRED),
    )
    assert day.poll(QUIET, times=5, reset_s=1.0) is Health.REBOOT_REQUIRED
    assert "xid.48" in day.open
    day.poll(QUIET, times=3, reset_s=day.time_s)
    assert day.open == {"xid.79", "probation"}


def test_a_fallen_counter_is_a_reset() -> None:
    """Where nobody tells of the reset, the counters do."""
    day = Day()
    day.poll(QUIET, day.event("xid.95", Health.RESET_REQUIRED))
    day.poll(sampled(was_reset=True))
    assert day.poll(times=2) is Health.PROBATION


def test_a_new_event_undoes_the_repair() -> None:
    """The cause that came back after the reset waits for the next one."""
    day = Day()
    day.poll(QUIET, day.event("xid.48", Health.RESET_REQUIRED))
    day.poll(QUIET, reset_s=day.time_s + 1)
    day.poll(QUIET, day.event("xid.48", Health.RESET_REQUIRED))
    assert day.quiet_for(600) is Health.RESET_REQUIRED
    (cause,) = open_causes(day.record)
    assert cause.count == 2


def test_no_recovery_asked_lowers_a_linked_event() -> None:
    """The driver links the XID to its recovery action and asks for none: SUSPECT, then probation."""
    day = Day()
    calm = sampled({Signal.RECOVERY_ACTION: 0})
    linked = day.event("xid.48", Health.RESET_REQUIRED, linked=True)
    assert day.poll(calm, linked) is Health.SUSPECT
    assert day.poll(calm, times=2) is Health.PROBATION


def test_no_recovery_asked_proves_nothing_for_an_event_that_is_not_linked() -> None:
    """46, 119, 140 and 151 stand, whatever the recovery action reads; an early reading waits."""
    day = Day()
    calm = sampled({Signal.RECOVERY_ACTION: 0})
    assert day.poll(calm, day.event("xid.119", Health.RESET_REQUIRED)) is Health.RESET_REQUIRED
    assert day.poll(calm, times=50) is Health.RESET_REQUIRED
    other = Day()
    late = other.event("xid.48", Health.RESET_REQUIRED, linked=True, time_s=other.time_s + 14)
    assert other.poll(calm, late) is Health.RESET_REQUIRED


def test_the_recovery_action_raises_whatever_the_event_said() -> None:
    """A recorded XID 31 with "reboot" in the recovery action is a reboot."""
    day = Day()
    asked = sampled({Signal.RECOVERY_ACTION: 2})
    assert day.poll(asked, day.event("xid.31", Health.HEALTHY)) is Health.REBOOT_REQUIRED
    assert day.poll(sampled({Signal.RECOVERY_ACTION: 0}), times=3) is Health.PROBATION


def test_draining_peers_is_over_when_the_driver_says_so() -> None:
    """Peer-to-peer drain concerns links only and leaves no probation."""
    day = Day()
    day.poll(sampled({Signal.RECOVERY_ACTION: 3}))
    assert [cause.scope for cause in open_causes(day.record)] == [Scope.LINK]
    assert day.poll(sampled({Signal.RECOVERY_ACTION: 0}), times=3) is Health.HEALTHY


def test_a_double_bit_error_ends_when_its_counter_starts_again() -> None:
    """The volatile counter stands until the next reset; probation follows."""
    day = Day()
    day.poll(sampled({Signal.ECC_DBE: 1}), times=20)
    day.reboot()
    assert day.poll(times=2) is Health.RESET_REQUIRED
    assert day.poll() is Health.PROBATION


def test_a_suspect_event_fades_with_its_window() -> None:
    """An unknown code is suspect for a day."""
    day = Day()
    day.poll(QUIET, day.event("xid.999", Health.SUSPECT))
    assert day.quiet_for(DEFAULT.pattern.window_s - 60) is Health.SUSPECT
    assert day.quiet_for(120) is Health.HEALTHY


def test_the_fabric_clears_after_three_clean_polls() -> None:
    """Fabric state and summary recover without probation."""
    day = Day()
    day.poll(sampled({Signal.FABRIC_SUMMARY: 2}))
    assert day.poll(times=2) is Health.DEGRADED
    assert day.poll() is Health.HEALTHY


def test_a_lost_gpu_comes_back_on_probation() -> None:
    """The driver lists fewer GPUs: reboot at once; back on the bus it must prove itself."""
    day = Day()
    assert day.poll(None, lost=True) is Health.REBOOT_REQUIRED
    day.poll(None, lost=True, times=10)
    assert day.poll(times=2) is Health.REBOOT_REQUIRED
    assert day.poll() is Health.PROBATION


def test_probation_needs_clean_time() -> None:
    """Trouble during probation begins it anew; silence does not count as clean."""
    day = Day()
    day.poll(sampled({Signal.ECC_DBE: 1}))
    day.poll(times=3)
    assert day.quiet_for(DEFAULT.probation_s - 600) is Health.PROBATION
    day.time_s += 3600
    assert day.quiet_for(300) is Health.PROBATION
    day.poll(HOT, times=3)
    day.quiet_for(1200)
    assert day.quiet_for(DEFAULT.probation_s - 1200) is Health.PROBATION
    assert day.quiet_for(1200) is Health.HEALTHY


def test_an_old_sample_is_stale_then_unknown() -> None:
    """Sixty seconds without a full sample: unmonitored; ten minutes: unknown; one sample heals."""
    day = Day()
    assert day.poll(None, times=3) is Health.HEALTHY
    assert day.poll(None) is Health.UNMONITORED
    assert day.poll(None, times=36) is Health.UNKNOWN
    assert day.poll() is Health.HEALTHY


def test_after_long_silence_two_samples_are_needed() -> None:
    """UNKNOWN for more than an hour ends with two full samples in a row, polled or not."""
    polled, off = Day(), Day()
    polled.poll(None, times=300)
    off.time_s += 4500
    for day in (polled, off):
        assert day.poll() is Health.UNKNOWN
        assert day.poll() is Health.HEALTHY


def test_silence_never_hides_worse() -> None:
    """FAILED, then silence, stays FAILED."""
    day = Day()
    day.poll(sampled({Signal.REMAP_FAILED: 1}))
    assert day.poll(None, times=100) is Health.FAILED


def test_a_sample_with_gaps_opens_and_never_clears() -> None:
    """What it does measure counts against the GPU, and nothing for it."""
    day = Day()
    gap = [Signal.GPU_TEMP_C]
    assert day.poll(sampled({Signal.REMAP_PENDING: 1}, missing=gap)) is Health.DEGRADED
    assert "remap.pending" in day.open
    day.poll(sampled(missing=gap), times=2)
    assert "remap.pending" in day.open


def test_events_of_another_boot_and_older_than_the_last_clear_are_stale() -> None:
    """Replayed logs open nothing (NVSentinel #1280, #450, #1347)."""
    day = Day()
    old = day.event("xid.48", Health.RESET_REQUIRED)
    day.poll(QUIET, old)
    day.poll(QUIET, reset_s=day.time_s + 1)
    day.poll(times=3)
    assert day.state is Health.PROBATION
    day.poll(QUIET, dataclasses.replace(old, boot_id=None))
    assert day.open == {"probation"}
    day.reboot()
    day.poll(QUIET, dataclasses.replace(old, time_s=day.time_s + 1))
    assert day.open == {"probation"}


def test_polls_of_an_earlier_boot_change_nothing() -> None:
    """What was queued before the reboot is worthless after it, whatever its time says."""
    day = Day()
    day.reboot()
    day.poll()
    before = day.record
    late = Poll(time_s=day.time_s + 99, boot_id="boot-1", sample=sampled({Signal.REMAP_FAILED: 1}))
    assert fold(before, late) == (before, ())


def test_162_ends_163_and_nothing_else() -> None:
    """An event closes another cause only where it is declared to be its end."""
    day = Day()
    day.poll(
        QUIET,
        day.event("xid.163", Health.DEGRADED),
        day.event("xid.95", Health.RESET_REQUIRED),
    )
    end = day.event("xid.162", Health.HEALTHY, clears=("xid.163",))
    day.poll(QUIET, end, end)
    assert day.open == {"xid.95"}


def test_the_worst_event_of_a_code_speaks_for_it() -> None:
    """Two lines of one code at one time: the order of the lines does not matter."""
    day, other = Day(), Day()
    mild = day.event("xid.74", Health.SUSPECT, scope=Scope.LINK)
    grave = day.event("xid.74", Health.RESET_REQUIRED, scope=Scope.GPU)
    day.poll(QUIET, mild, grave)
    other.poll(QUIET, grave, mild)
    assert day.record == other.record
    assert day.state is Health.RESET_REQUIRED


def test_a_milder_event_of_an_open_code_changes_no_state() -> None:
    """The cause stays as grave as its worst event."""
    day = Day()
    day.poll(QUIET, day.event("xid.74", Health.RESET_REQUIRED))
    assert day.poll(QUIET, day.event("xid.74", Health.SUSPECT)) is Health.RESET_REQUIRED


def test_faults_of_one_workload_are_the_workloads() -> None:
    """A storm of XID 31 and 45 from one job leaves the GPU healthy."""
    day = Day()
    for _ in range(50):
        fault = day.event(
            "xid.31", Health.HEALTHY, pattern=Pattern.WORKLOADS, workload="default/train"
        )
        assert day.poll(QUIET, fault) is Health.HEALTHY
        assert day.quiet_for(300) is Health.HEALTHY


def test_faults_of_several_workloads_point_at_the_gpu() -> None:
    """Two workloads in a day: SUSPECT; five incidents: DEGRADED; a quiet day ends it."""
    day = Day()
    states = []
    for workload in ("a", "b", "a", "b", "a"):
        fault = day.event("xid.13", Health.HEALTHY, pattern=Pattern.WORKLOADS, workload=workload)
        states.append(day.poll(QUIET, fault))
        day.quiet_for(300)
    assert states == [Health.HEALTHY, *[Health.SUSPECT] * 3, Health.DEGRADED]
    assert day.quiet_for(DEFAULT.pattern.window_s + 60) is Health.HEALTHY


def test_a_job_that_fails_everywhere_blames_no_gpu() -> None:
    """The same workload on several GPUs: it is the job, and the other one is left alone with it."""
    days = [Day(), Day()]
    for workload in ("a", "b"):
        for day in days[: 1 if workload == "b" else 2]:
            fault = day.event(
                "xid.13", Health.HEALTHY, pattern=Pattern.WORKLOADS, workload=workload
            )
            day.poll(QUIET, fault)
    jobs = of_jobs(day.record.ledger.incidents for day in days)
    assert jobs == {"a"}
    assert days[0].state is Health.SUSPECT
    assert days[0].poll(QUIET, job_faults=jobs) is Health.HEALTHY


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (sampled({Signal.REMAP_PENDING: 1}), "remap.pending"),
        (sampled({Signal.FABRIC_SUMMARY: 2, Signal.FABRIC_MASK: 0b01 << 4}), "fabric.unhealthy"),
        (sampled({}, {Signal.ECC_SBE: 50.0}), "ecc.sbe_rate"),
        (sampled({Signal.NVLINKS_ACTIVE: 17}), "nvlink.down"),
        (sampled({Signal.ECC_DBE: 1}), "ecc.dbe"),
        (sampled({Signal.CLOCK_EVENTS: 0x88}, {Signal.POWER_BRAKE_S: 0.5}), "throttle.hw"),
    ],
)
def test_a_sample_that_does_not_speak_of_a_cause_does_not_clear_it(bad: Sample, cause: str) -> None:
    """A source that stopped to report a signal, with nobody expecting it, heals nothing."""
    day = Day()
    day.poll(bad, times=3)
    day.poll(Sample(levels={Signal.GPU_TEMP_C: 40.0}), times=200)
    assert day.open == {cause}


def test_some_codes_are_suspect_when_they_come_back() -> None:
    """One XID 44 is recorded; another incident of it within a day is not."""
    day = Day()
    first = day.event("xid.44", Health.HEALTHY, pattern=Pattern.REPEAT)
    assert day.poll(QUIET, first, first) is Health.HEALTHY
    day.quiet_for(600)
    again = day.event("xid.44", Health.HEALTHY, pattern=Pattern.REPEAT)
    assert day.poll(QUIET, again) is Health.SUSPECT
    assert "xid.44" in open_causes(day.record)[0].evidence


def test_events_may_come_between_polls() -> None:
    """A follower of the kernel log need not wait for the next poll."""
    day = Day()
    record, changes = observe(day.record, [day.event("xid.79", Health.REBOOT_REQUIRED)])
    assert state_of(record) is Health.REBOOT_REQUIRED
    assert [(each.change, each.cause.id) for each in changes] == [(Change.OPENED, "xid.79")]


def test_transitions_tell_what_opened_changed_and_closed() -> None:
    """Logs and events are made from them; a quiet poll has none."""
    flagged, worse = sampled({Signal.RECOVERY_ACTION: 3}), sampled({Signal.RECOVERY_ACTION: 2})
    calm = sampled({Signal.RECOVERY_ACTION: 0})
    polls = [
        Poll(time_s=15.0 * i, boot_id="b", sample=sample)
        for i, sample in enumerate([QUIET, flagged, worse, calm, calm, calm, calm])
    ]
    _, changes = fold_all(GpuRecord(), polls)
    assert [(each.time_s, each.change, each.cause.id) for each in changes] == [
        (0.0, Change.CLOSED, "gpu.new"),
        (15.0, Change.OPENED, "recovery.action"),
        (30.0, Change.CHANGED, "recovery.action"),
        (75.0, Change.OPENED, "probation"),
        (75.0, Change.CLOSED, "recovery.action"),
    ]


def test_thresholds_come_from_the_policy() -> None:
    """A site that wants one poll for levels and a short probation gets them."""
    day = Day(Policy(entry_polls=1, probation_s=60, event_clean_polls=1))
    assert day.poll(HOT) is Health.DEGRADED
    other = Day(Policy(probation_s=60, event_clean_polls=1))
    other.poll(sampled({Signal.ECC_DBE: 1}))
    assert other.poll() is Health.PROBATION
    assert other.poll(times=4) is Health.HEALTHY


def test_evidence_names_the_value_and_its_limit() -> None:
    """People read what was measured."""
    day = Day()
    day.poll(sampled({Signal.NVLINKS_ACTIVE: 16}), times=3)
    (cause,) = open_causes(day.record)
    assert cause.evidence == "nvlinks_active 16, limit 18"
    assert (cause.first_s, cause.last_s, cause.scope) == (60.0, 60.0, Scope.LINK)


def test_every_threshold_names_a_cause_of_the_catalogue() -> None:
    """The two tables agree, and what samples open can be cleared by samples."""
    assert {threshold.cause for threshold in THRESHOLDS} <= set(CATALOGUE)
    by_samples = {spec.id for spec in SPECS if spec.entry is not Entry.EVENT}
    assert by_samples == {threshold.cause for threshold in THRESHOLDS}


def test_every_cause_says_what_it_means_and_what_to_do() -> None:
    """Whole sentences, for explanations."""
    for spec in SPECS:
        assert spec.meaning.endswith(".")
        assert spec.advice.endswith(".")
        assert spec.state is not Health.HEALTHY


def test_events_outside_the_catalogue_clear_by_their_severity() -> None:
    """A grave XID needs a repair, a weak one fades."""
    assert clear_of("xid.79", Health.REBOOT_REQUIRED) is Clear.REPAIR
    assert clear_of("xid.92", Health.SUSPECT) is Clear.WINDOW


def test_no_data_is_not_health() -> None:
    """Invariant 2: an empty sample, a missing one and a sentinel page never make HEALTHY."""
    for sample in (
        None,
        Sample(levels={}),
        Sample(levels=CLEAN, missing=frozenset({Signal.POWER_W})),
    ):
        assert Day(healthy=False).poll(sample, times=100) is Health.UNKNOWN


def test_a_repeated_event_does_not_undo_an_acquittal() -> None:
    """A linked XID 48 that the recovery action acquitted stays SUSPECT when it is told again."""
    levels = {Signal.RECOVERY_ACTION: 0.0}
    healthy = Sample(levels=levels, rates={}, missing=frozenset(), was_reset=False)
    event = Finding(
        cause="xid.48", time_s=6.0, state=Health.RESET_REQUIRED, boot_id="b", linked=True
    )
    poll = Poll(time_s=15.0, boot_id="b", sample=healthy, findings=(event,))
    once, _ = fold(GpuRecord(), poll)
    assert state_of(once) is Health.SUSPECT
    twice, transitions = fold(once, poll)
    assert twice == once
    assert transitions == ()
