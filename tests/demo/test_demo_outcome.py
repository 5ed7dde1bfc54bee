"""What a run is measured by: the load, GPU hours lost, links, latencies, the line of JSON."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.demo.cluster import Placement
from extender.demo.faults import DAY_S, HOUR_S, MINUTE_S, Fault, Kind
from extender.demo.fleet import PRODUCTS, fleet, machine
from extender.demo.jobs import GANG_LOAD, SINGLE_LOAD, Job, arrivals
from extender.demo.losses import CHECKPOINT_S, RESTART_S, killed, slowed
from extender.demo.outcome import Outcome, json_line, percentile_ms, slowest_link_gbps

H100 = machine(PRODUCTS[0], 0)
V100 = machine(PRODUCTS[2], 0)
GANG = Job(name="g", members=2, gpus=8, arrival_s=0.0, duration_s=3 * HOUR_S)
SINGLE = Job(name="s", members=1, gpus=1, arrival_s=0.0, duration_s=HOUR_S)


def slow(kind: Kind, start_h: float, end_h: float) -> Fault:
    """One fault of GPU 0."""
    return Fault(kind=kind, node=H100.name, gpu=0, start_s=start_h * HOUR_S, end_s=end_h * HOUR_S)


@given(st.integers(0, 1000))
def test_the_load_is_what_was_designed(seed: int) -> None:
    """Jobs ask for their share of the GPU hours, and for a job's length more at most."""
    machines = fleet(48)
    gpus = sum(each.product.gpus for each in machines)
    jobs = arrivals(machines, seed)
    asked = sum(job.total_gpus * job.duration_s for job in jobs) / (gpus * DAY_S)
    assert GANG_LOAD + SINGLE_LOAD <= asked <= GANG_LOAD + SINGLE_LOAD + 0.05
    assert all(job.product is not None for job in jobs if job.is_gang)
    assert len({job.name for job in jobs}) == len(jobs)
    assert list(jobs) == sorted(jobs, key=lambda job: (job.arrival_s, job.name))


def test_a_killed_gang_loses_what_came_after_its_last_checkpoint() -> None:
    """All of its GPUs lose it, and the restart; the rest is left to do."""
    lost_h, left = killed(GANG, 40 * MINUTE_S)
    assert lost_h == pytest.approx((10 + 10) / 60 * 16)
    assert left.duration_s == GANG.duration_s - CHECKPOINT_S + RESTART_S
    assert left.name == GANG.name


def test_a_slow_gpu_slows_its_whole_gang_while_both_last() -> None:
    """Heat at 0.6 of full speed for two of the gang's three hours, on 16 GPUs."""
    faults = [slow(Kind.THERMAL, 1.0, 9.0)]
    assert slowed(GANG, faults, 0.0, 3 * HOUR_S) == pytest.approx(2 * 0.4 * 16)


def test_a_gang_is_as_slow_as_its_slowest_gpu() -> None:
    """Two slow GPUs at a time cost no more than the slower one."""
    faults = [slow(Kind.THERMAL, 0.0, 2.0), slow(Kind.LINKS_DOWN, 1.0, 3.0)]
    assert slowed(GANG, faults, 0.0, 3 * HOUR_S) == pytest.approx((2 * 0.4 + 1 * 0.3) * 16)


def test_a_pod_of_one_gpu_does_not_feel_its_links() -> None:
    """Nor does anybody feel a fault that makes nothing slow."""
    assert slowed(SINGLE, [slow(Kind.LINKS_DOWN, 0.0, 9.0)], 0.0, HOUR_S) == 0.0
    assert slowed(GANG, [slow(Kind.REMAP_PENDING, 0.0, 9.0)], 0.0, HOUR_S) == 0.0


def test_the_slowest_link_is_that_of_the_worst_member() -> None:
    """Within each node the best ring counts; a GPU whose NVLinks are down has PCIe left."""
    machines = {H100.name: H100, V100.name: V100}
    switched = Placement(member=0, node=H100.name, gpus=(0, 1, 5))
    mesh = Placement(member=1, node=V100.name, gpus=(0, 1, 2, 3))
    assert slowest_link_gbps(machines, {}, [switched]) == pytest.approx(370.8)
    assert slowest_link_gbps(machines, {}, [switched, mesh]) == pytest.approx(20.0)
    cut = {H100.name: frozenset({5})}
    assert slowest_link_gbps(machines, cut, [switched, mesh]) == pytest.approx(10.0)
    alone = Placement(member=0, node=H100.name, gpus=(5,))
    assert slowest_link_gbps(machines, cut, [alone]) == math.inf


@given(st.lists(st.floats(0.0, 10.0), min_size=1), st.floats(0.01, 1.0))
def test_a_percentile_is_one_of_the_latencies_and_enough_are_below(
    latencies_s: list[float], share: float
) -> None:
    """The nearest-rank percentile."""
    found_ms = percentile_ms(latencies_s, share)
    assert found_ms in [1000.0 * each for each in latencies_s]
    below = sum(1000.0 * each <= found_ms for each in latencies_s)
    assert below >= share * len(latencies_s) - 1e-9


def test_the_line_of_json_has_the_agreed_keys() -> None:
    """Scripts read it."""
    outcome = Outcome(
        gangs_started=3,
        gangs_on_degraded=1,
        gangs_on_impaired=1,
        slowest_link_gbps_mean=20.6049,
        gpu_hours_lost=7.0,
        singles_started=4,
        gangs_killed=0,
        utilisation_ratio=0.5,
    )
    figures = {
        "gangs_started": 3,
        "gangs_on_degraded": 1,
        "slowest_link_gbps_mean": 20.6,
        "gpu_hours_lost": 7.0,
    }
    assert json_line(outcome, outcome, [0.001, 0.003]) == {
        "with": figures,
        "without": figures,
        "filter_ms": {"p50": 1.0, "p99": 3.0},
    }
    assert json_line(outcome, outcome, [])["filter_ms"] == {"p50": 0.0, "p99": 0.0}
