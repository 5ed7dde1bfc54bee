"""Trouble that returns costs more each time."""

from __future__ import annotations

import pytest
from health_days import QUIET, Day, sampled
from hypothesis import given
from hypothesis import strategies as st

from scoring.health.damping import FIRST, History, Penalty, escalated, exit_delay_s
from scoring.health.record import open_causes
from scoring.model import Health
from scoring.policy import DEFAULT, AttemptPolicy, FlapPolicy, Policy
from scoring.signals.catalogue import Signal

HOT = sampled({Signal.CLOCK_EVENTS: 64.0})
DAY_S = 86_400.0


def heat_wave(day: Day) -> None:
    """One entry into DEGRADED, and out again."""
    day.poll(HOT, times=3)
    while "throttle.thermal" in day.open:
        day.poll()


def test_the_exit_delay_doubles_with_each_return() -> None:
    """Five minutes, ten, twenty, up to six hours."""
    delays = [exit_delay_s(History(entries=n), DEFAULT) for n in (0, 1, 2, 3, 4, 40)]
    assert delays == [300, 300, 600, 1200, 2400, 21_600]
    day = Day()
    lengths = []
    for _ in range(3):
        start_s = day.time_s
        heat_wave(day)
        lengths.append(day.time_s - start_s)
    assert lengths[1] - lengths[0] == 300
    assert lengths[2] - lengths[1] == 600


def test_a_cause_that_stayed_away_starts_afresh() -> None:
    """After a half-life without it, the exit delay is the first one again."""
    day = Day()
    heat_wave(day)
    day.quiet_for(DEFAULT.flap.half_life_s + 60)
    start_s = day.time_s
    heat_wave(day)
    assert day.time_s - start_s < 400


def test_returning_trouble_ends_on_probation_then_as_failed() -> None:
    """The least state becomes PROBATION, and at last the GPU needs an inspection."""
    day = Day(Policy(flap=FlapPolicy(probation_at=2.5, failed_at=4.5)))
    seen = []
    for _ in range(5):
        heat_wave(day)
        seen.append(day.state)
        day.poll(times=4)
    assert seen == [Health.HEALTHY] * 2 + [Health.PROBATION] * 2 + [Health.FAILED]
    assert day.quiet_for(2 * DAY_S) is Health.FAILED


def test_the_probation_of_a_flapping_gpu_ends_by_itself() -> None:
    """A day without trouble."""
    day = Day(Policy(flap=FlapPolicy(probation_at=1.0)))
    heat_wave(day)
    assert day.open == {"flap"}
    assert day.quiet_for(DAY_S) is Health.HEALTHY


def test_one_incident_counts_once_however_many_symptoms_it_has() -> None:
    """An XID, its counter and its flag are one piece of trouble."""
    day = Day()
    day.time_s = 180.0 * 1000
    day.poll(QUIET)
    day.poll(
        sampled({Signal.ECC_DBE: 1, Signal.REMAP_PENDING: 1}),
        day.event("xid.48", Health.RESET_REQUIRED),
    )
    assert len(day.record.ledger.penalty.slots) == 1


def test_silence_and_probation_are_no_flapping() -> None:
    """A GPU whose agent restarts often is not worn out."""
    day = Day()
    for _ in range(10):
        day.poll(None, times=60)
        day.poll(times=30)
    assert day.record.ledger.penalty == Penalty()


def test_the_penalty_halves_in_a_half_life() -> None:
    """Three slots at a time are half as much a day later; before their time they count nothing."""
    penalty = Penalty(slots=(998, 999, 1000))
    time_s = 1000 * DEFAULT.incident_gap_s
    now = penalty.at(time_s, DEFAULT)
    assert now == pytest.approx(3.0, rel=0.01)
    assert penalty.at(time_s + DAY_S, DEFAULT) == pytest.approx(now / 2)
    assert penalty.at(time_s - 1, DEFAULT) < 2
    assert penalty.at(0.0, DEFAULT) == Penalty().at(5.0, DEFAULT) == 0.0


def test_a_penalty_remembers_no_more_than_counts() -> None:
    """After ten half-lives an entry is forgotten, whatever follows it."""
    penalty = Penalty().grown(0.0, DEFAULT)
    assert penalty.at(10 * DAY_S - 1, DEFAULT) > 0.0
    assert penalty.at(10 * DAY_S, DEFAULT) == 0.0
    assert penalty.grown(10 * DAY_S, DEFAULT) == Penalty(slots=(4800,))


def test_a_gpu_that_failed_by_flapping_is_counted_no_more() -> None:
    """What is remembered of it stays small, however long it goes on."""
    day = Day(Policy(flap=FlapPolicy(probation_at=1.0, failed_at=1.0)))
    heat_wave(day)
    counted = day.record.ledger.penalty
    heat_wave(day)
    assert day.record.ledger.penalty == counted
    assert "flap.failed" in day.open


LEVELS = st.sampled_from([1.0, 2.0, 2.9, 4.0])


@given(st.lists(st.floats(0, 9 * DAY_S), min_size=1, max_size=10), st.data())
def test_law_the_order_of_entries_does_not_matter(
    entries: list[float], data: st.DataObject
) -> None:
    """A late entry leaves the same penalty, and each level is reached at the same time."""

    def lived(times_s: list[float], level: float) -> tuple[Penalty, float | None]:
        penalty, newest_s = Penalty(), None
        for time_s in times_s:
            penalty = penalty.grown(time_s, DEFAULT)
            reached_s = penalty.reached_s(level, time_s, DEFAULT)
            newest_s = max(
                (each for each in (newest_s, reached_s) if each is not None), default=None
            )
        return penalty, newest_s

    level = data.draw(LEVELS)
    shuffled = data.draw(st.permutations(entries))
    assert lived(shuffled, level) == lived(sorted(entries), level)


@given(
    st.lists(st.floats(0, 1e6), max_size=30),
    st.lists(st.floats(0, 1e6), max_size=10),
)
def test_law_more_entries_never_make_the_penalty_smaller(
    entries: list[float], more: list[float]
) -> None:
    """Whatever else goes wrong, and when, the GPU is not better off."""

    def grown(times_s: list[float]) -> float:
        penalty = Penalty()
        for time_s in times_s:
            penalty = penalty.grown(time_s, DEFAULT)
        return penalty.at(1e6, DEFAULT)

    assert grown([*more, *entries]) >= grown(entries) - 1e-9


def test_resets_that_do_not_last_ask_for_a_reboot_then_for_an_inspection() -> None:
    """Two resets, one reboot, FAILED; and FAILED does not clear."""
    day = Day()
    seen = []
    for _ in range(3):
        seen.append(day.poll(QUIET, day.event("xid.119", Health.RESET_REQUIRED)))
        if seen[-1] is Health.REBOOT_REQUIRED:
            day.reboot()
            day.poll(times=3)
        else:
            day.poll(QUIET, times=3, reset_s=day.time_s + 1)
    seen.append(day.poll(QUIET, day.event("xid.119", Health.RESET_REQUIRED)))
    assert seen == [
        Health.RESET_REQUIRED,
        Health.RESET_REQUIRED,
        Health.REBOOT_REQUIRED,
        Health.FAILED,
    ]
    day.reboot()
    assert day.quiet_for(DAY_S) is Health.FAILED


def test_a_repair_that_changed_nothing_escalates_too() -> None:
    """The driver still asks for a reset after two of them: reboot."""
    day = Day()
    asked = sampled({Signal.RECOVERY_ACTION: 1})
    day.poll(asked)
    for _ in range(2):
        day.poll(asked, reset_s=day.time_s + 1)
    assert day.poll(asked) is Health.REBOOT_REQUIRED


def test_repairs_are_forgotten_after_a_week_without_the_cause() -> None:
    """A reset long ago does not turn the next one into a reboot."""
    day = Day(Policy(attempts=AttemptPolicy(resets=1)))
    day.poll(QUIET, day.event("xid.119", Health.RESET_REQUIRED))
    day.poll(QUIET, times=3, reset_s=day.time_s + 1)
    day.time_s += 8 * DAY_S
    day.poll(times=2)
    again = day.event("xid.119", Health.RESET_REQUIRED)
    day.poll(QUIET, again)
    causes = {cause.id: cause.state for cause in open_causes(day.record)}
    assert causes["xid.119"] is Health.RESET_REQUIRED


def test_only_cures_are_escalated() -> None:
    """DEGRADED stays DEGRADED, however often it was repaired."""
    tried = History(resets=9, reboots=9)
    assert escalated(Health.DEGRADED, tried, DEFAULT) is Health.DEGRADED
    assert escalated(Health.RESET_REQUIRED, FIRST, DEFAULT) is Health.RESET_REQUIRED
