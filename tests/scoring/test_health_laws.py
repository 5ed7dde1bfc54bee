"""The laws of the fold, for any history (invariants 2 and 3)."""

from __future__ import annotations

import dataclasses

from health_days import QUIET, sampled
from hypothesis import example, given
from hypothesis import strategies as st

from scoring.health.findings import Finding
from scoring.health.fold import Poll, fold, fold_all, observe
from scoring.health.record import GpuRecord, open_causes, state_of
from scoring.model import Health, Scope
from scoring.policy import FlapPolicy, Policy
from scoring.signals.catalogue import Signal
from scoring.signals.sampling import Sample
from scoring.xid.catalogue import Pattern

QUICK = Policy(
    probation_s=60,
    clean_polls=2,
    event_clean_polls=2,
    entry_polls=2,
    new_grace_s=60,
    rate_clear_s=30,
    flap=FlapPolicy(exit_delay_s=30, exit_delay_max_s=60, probation_for_s=120),
)
"""Short terms, so that short histories reach every rule."""

FADING = {"gpu.new", "pattern"}
"""What time alone ends: NEW becomes UNKNOWN, a pattern leaves its window."""

SAMPLES = st.sampled_from(
    [
        QUIET,
        QUIET,
        QUIET,
        None,
        sampled(missing=[Signal.GPU_TEMP_C]),
        sampled({Signal.CLOCK_EVENTS: 0x48}),
        sampled({Signal.REMAP_PENDING: 1}),
        sampled({Signal.REMAP_FAILED: 1}),
        sampled({Signal.ECC_DBE: 1}),
        sampled({Signal.RECOVERY_ACTION: 0}),
        sampled({Signal.RECOVERY_ACTION: 2}),
        sampled({}, {Signal.NVLINK_REPLAYS: 1.0}),
        sampled(was_reset=True),
    ]
)
EVENTS = st.sampled_from(
    [
        ("xid.48", Health.RESET_REQUIRED, None),
        ("xid.79", Health.REBOOT_REQUIRED, None),
        ("xid.94", Health.DEGRADED, None),
        ("xid.31", Health.HEALTHY, Pattern.WORKLOADS),
        ("xid.44", Health.HEALTHY, Pattern.REPEAT),
    ]
)


@st.composite
def finding(draw: st.DrawFn, time_s: float, boot: str) -> Finding:
    """An event shortly before a poll."""
    cause, state, pattern = draw(EVENTS)
    return Finding(
        cause=cause,
        state=state,
        time_s=time_s - draw(st.sampled_from([0.0, 1.0, 9.0, 40.0])),
        boot_id=draw(st.sampled_from([boot, None])),
        linked=draw(st.booleans()),
        pattern=pattern,
        workload=draw(st.sampled_from(["a", "b", None])),
    )


@st.composite
def history(draw: st.DrawFn, max_size: int = 30) -> list[Poll]:
    """The polls of one GPU in order, through a few boots."""
    time_s, boot, polls = 0.0, 1, []
    for _ in range(draw(st.integers(1, max_size))):
        time_s += draw(st.sampled_from([15.0, 15.0, 15.0, 30.0, 400.0]))
        boot += draw(st.sampled_from([0] * 9 + [1]))
        name = f"boot-{boot}"
        polls.append(
            Poll(
                time_s=time_s,
                boot_id=name,
                sample=draw(SAMPLES),
                findings=tuple(draw(st.lists(finding(time_s, name), max_size=2))),
                lost=draw(st.sampled_from([False] * 9 + [True])),
            )
        )
    return polls


@given(history(), st.data())
def test_law_any_split_into_batches_gives_the_same_record(
    polls: list[Poll], data: st.DataObject
) -> None:
    """An agent that restarts from its stored record goes on as if it had never stopped."""
    cut = data.draw(st.integers(0, len(polls)))
    whole, changes = fold_all(GpuRecord(), polls, QUICK)
    first, early = fold_all(GpuRecord(), polls[:cut], QUICK)
    second, late = fold_all(first, polls[cut:], QUICK)
    assert second == whole
    assert early + late == changes


def _fault(time_s: float, workload: str) -> Finding:
    return Finding(
        cause="xid.31",
        state=Health.HEALTHY,
        time_s=time_s,
        pattern=Pattern.WORKLOADS,
        workload=workload,
    )


def _poll(time_s: float, *findings: Finding, sample: Sample = QUIET) -> Poll:
    return Poll(time_s=time_s, boot_id="boot-1", sample=sample, findings=findings)


PATTERN_BEFORE_FLAG = [
    _poll(15),
    _poll(195, Finding(cause="xid.48", state=Health.RESET_REQUIRED, time_s=195), _fault(195, "a")),
    _poll(595, _fault(595, "a")),
    _poll(995, _fault(995, "a")),
    _poll(1010, Finding(cause="xid.79", state=Health.REBOOT_REQUIRED, time_s=1010)),
    _poll(1040, _fault(1040, "b")),
    _poll(1440, _fault(1439, "a"), sample=sampled({Signal.REMAP_PENDING: 1})),
]
"""The last poll shows a flag; an event just before it, in an earlier slot of the penalty, makes the
pattern DEGRADED."""
PATTERN_THEN_ONE_MORE = [
    *PATTERN_BEFORE_FLAG[:-1],
    _poll(1445, _fault(1439, "a"), _fault(1441, "a"), sample=sampled({Signal.REMAP_PENDING: 1})),
]
"""The pattern is DEGRADED one slot before the newest event that belongs to it."""


@given(history())
@example(PATTERN_BEFORE_FLAG)
@example(PATTERN_THEN_ONE_MORE)
def test_law_events_of_a_poll_may_come_in_any_order_and_ahead_of_it(polls: list[Poll]) -> None:
    """A follower of the kernel log, with all events at once or one by one, and a poll that brings
    them agree on the causes and their states.
    """
    record = GpuRecord()
    for poll in polls:
        whole, _ = fold(record, poll, QUICK)
        backwards = dataclasses.replace(poll, findings=poll.findings[::-1])
        assert fold(record, backwards, QUICK)[0] == whole
        if poll.boot_id == record.boot_id:
            bare = dataclasses.replace(poll, findings=())
            ahead, _ = observe(record, poll.findings, QUICK)
            assert _judged(fold(ahead, bare, QUICK)[0]) == _judged(whole)
            one_by_one = record
            for each in poll.findings:
                one_by_one, _ = observe(one_by_one, [each], QUICK)
            assert _judged(fold(one_by_one, bare, QUICK)[0]) == _judged(whole)
        record = whole


def _judged(record: GpuRecord) -> list[tuple[str, Health, Scope]]:
    """All of a record that a verdict depends on."""
    return [(cause.id, cause.state, cause.scope) for cause in open_causes(record)]


@given(history(), st.data())
def test_law_a_repeated_or_late_poll_changes_nothing(
    polls: list[Poll], data: st.DataObject
) -> None:
    """A poll that comes twice, or after newer ones, is dropped, and so are its events' repeats."""
    record, _ = fold_all(GpuRecord(), polls, QUICK)
    late = data.draw(st.sampled_from(polls))
    bare = dataclasses.replace(late, findings=())
    assert fold(record, bare, QUICK) == (record, ())
    assert fold(record, polls[-1], QUICK)[0] == record


@given(history())
def test_law_a_gpu_without_a_full_sample_is_never_healthy(polls: list[Poll]) -> None:
    """No sample is never health, however many polls say nothing bad."""
    gaps = sampled(missing=[Signal.ECC_DBE])
    silent = [
        dataclasses.replace(p, sample=gaps if p.sample is not None and p.sample.full else p.sample)
        for p in polls
    ]
    record = GpuRecord()
    for poll in silent:
        record, _ = fold(record, poll, QUICK)
        assert state_of(record) is not Health.HEALTHY


@given(history(), st.data())
def test_law_one_more_event_never_improves_the_state(
    polls: list[Poll], data: st.DataObject
) -> None:
    """Severity is the maximum over open causes, so adding a cause never helps, now or later."""
    at = data.draw(st.integers(0, len(polls) - 1))
    target = polls[at]
    extra = Finding(
        cause="xid.140",
        state=data.draw(st.sampled_from([Health.SUSPECT, Health.DEGRADED, Health.RESET_REQUIRED])),
        time_s=target.time_s,
        boot_id=target.boot_id,
    )
    richer = list(polls)
    richer[at] = dataclasses.replace(target, findings=(*target.findings, extra))
    with_, without = GpuRecord(), GpuRecord()
    for one, other in zip(richer, polls, strict=True):
        with_, _ = fold(with_, one, QUICK)
        without, _ = fold(without, other, QUICK)
        assert state_of(with_) >= state_of(without)


@given(history(), st.data())
def test_law_an_event_closes_only_its_own_cause(polls: list[Poll], data: st.DataObject) -> None:
    """After an event, every cause that was open is open, and no less severe."""
    record, _ = fold_all(GpuRecord(), polls, QUICK)
    before = {cause.id: cause.state for cause in open_causes(record)}
    last = polls[-1]
    event = data.draw(finding(record.time_s, last.boot_id or ""))
    after = {
        cause.id: cause.state
        for cause in open_causes(
            fold(record, dataclasses.replace(last, findings=(event,)), QUICK)[0]
        )
    }
    assert all(after.get(id_, Health.HEALTHY) >= state for id_, state in before.items())


@given(history(), st.sampled_from([15.0, 600.0, 80_000.0]))
def test_law_a_missing_sample_never_improves_the_state(polls: list[Poll], gap_s: float) -> None:
    """UNKNOWN never lowers a worse verdict: a poll without a sample closes nothing."""
    record, _ = fold_all(GpuRecord(), polls, QUICK)
    silent = Poll(time_s=record.time_s + gap_s, boot_id=record.boot_id, sample=None)
    after, _ = fold(record, silent, QUICK)
    before = {c.id: c.state for c in open_causes(record) if c.id not in FADING}
    now = {c.id: c.state for c in open_causes(after)}
    assert all(now.get(id_, Health.HEALTHY) >= state for id_, state in before.items())
    assert state_of(after) is not Health.HEALTHY or record.full_s is not None
