"""Whole days, with Surefoot's judgement in process: what the demo promises holds for its seeds."""

from __future__ import annotations

import pytest
from surefoot_in_process import InProcess

from extender.demo.day import Day, NoReports
from extender.demo.faults import HOUR_S
from extender.demo.scenario import scenario
from extender.demo.tally import Glance


@pytest.mark.untraced  # traced, it takes three times as long
@pytest.mark.parametrize("seed", [1])  # seed 7 is README's, held by tests/docs
def test_no_gang_starts_on_a_degraded_gpu_and_nothing_else_gets_worse(seed: int) -> None:
    """With Surefoot: no gang on a degraded GPU, as many gangs but for 5 %, links and losses at
    least as good.
    """
    plan = scenario(48, seed)
    surefoot = InProcess(plan)
    found = Day(plan, surefoot, surefoot).run()
    without = Day(plan, None, NoReports()).run()
    assert found.gangs_on_degraded == found.gangs_on_impaired == 0
    assert without.gangs_on_degraded >= without.gangs_on_impaired > 0
    assert found.gangs_started >= 0.95 * without.gangs_started
    assert found.slowest_link_gbps_mean >= without.slowest_link_gbps_mean
    assert found.gpu_hours_lost <= without.gpu_hours_lost
    assert 0.55 <= found.utilisation_ratio <= without.utilisation_ratio + 0.05 <= 0.8


def test_a_run_is_repeatable() -> None:
    """The same scenario twice comes to the same figures."""
    plan = scenario(8, 3, 3 * HOUR_S)
    assert Day(plan, None, NoReports()).run() == Day(plan, None, NoReports()).run()


def test_whoever_watches_sees_the_day_go_by() -> None:
    """A glance each round, with figures that only grow where they count."""
    plan = scenario(8, 3, 3 * HOUR_S)
    seen: list[Glance] = []
    outcome = Day(plan, None, NoReports()).run(seen.append)
    assert [glance.time_s for glance in seen] == [120.0 * n for n in range(1, 91)]
    started = [glance.gangs_started for glance in seen]
    assert started == sorted(started)
    assert started[-1] == outcome.gangs_started
