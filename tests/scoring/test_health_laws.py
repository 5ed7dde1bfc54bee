"""The laws of the fold, for any history (invariants 2 and 3)."""

from __future__ import annotations

import dataclasses

from health_days import QUIET, sampled
from hypothesis import given
from hypothesis import strategies as st

from scoring.health.findings import Finding
from scoring.health.fold import Poll, fold, fold_all, observe
from scoring.health.record import GpuRecord, open_causes, state_of
from scoring.model import Health, Scope
from scoring.policy import FlapPolicy, Policy
from scoring.signals.catalogue import Signal
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


@given(history())
def test_law_events_of_a_poll_may_come_in_any_order_and_ahead_of_it(polls: list[Poll]) -> None:
    """A follower of the kernel log and a poll that brings the same events agree on the causes and
    their states; the time at which a penalty opened `flap` may differ by the events' order.
    """
    record = GpuRecord()
    for poll in polls:
        whole, _ = fold(record, poll, QUICK)
        backwards = dataclasses.replace(poll, findings=poll.findings[::-1])
        assert fold(record, backwards, QUICK)[0] == whole
        if poll.boot_id == record.boot_id:
            ahead, _ = observe(record, poll.findings, QUICK)
            after, _ = fold(ahead, dataclasses.replace(poll, findings=()), QUICK)
            assert _judged(after) == _judged(whole)
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
