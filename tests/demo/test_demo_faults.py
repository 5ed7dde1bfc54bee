"""The script of the day."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.demo.faults import DAY_S, HOUR_S, ONSET_S, ROUND_S, Kind, Repair, script
from extender.demo.fleet import fleet

FLEET = fleet(48)
seeds = st.integers(0, 10_000)


@given(seeds)
def test_a_day_is_its_seed(seed: int) -> None:
    """The same seed is the same day, another one is another."""
    assert script(FLEET, seed) == script(FLEET, seed)
    assert script(FLEET, seed) != script(FLEET, seed + 1)


@given(seeds, st.integers(4, 60), st.floats(1.0, 30.0))
def test_every_day_has_every_kind_of_fault(seed: int, nodes: int, hours: float) -> None:
    """However small the fleet and however short the day."""
    machines = fleet(nodes)
    faults = script(machines, seed, hours * HOUR_S)
    assert {fault.kind for fault in faults} == set(Kind)
    known = {machine.name: machine.product.gpus for machine in machines}
    for fault in faults:
        assert 0.0 < fault.start_s < fault.end_s <= hours * HOUR_S
        assert (fault.gpu is None) == (fault.kind is Kind.SILENCE)
        assert fault.gpu is None or fault.gpu < known[fault.node]


@given(seeds)
def test_trouble_starts_and_ends_early_in_a_round(seed: int) -> None:
    """Three polls fit before the placements of the round, so that detection is never a race."""
    for fault in script(FLEET, seed):
        assert ONSET_S[0] <= fault.start_s % ROUND_S <= ONSET_S[1]
        assert fault.end_s == DAY_S or ONSET_S[0] <= fault.end_s % ROUND_S <= ONSET_S[1]


@given(seeds)
def test_a_gpu_has_one_fault_at_a_time(seed: int) -> None:
    """What follows a fault starts when it was repaired, or takes over."""
    faults = [fault for fault in script(FLEET, seed) if fault.gpu is not None]
    for one in faults:
        for other in faults:
            same = (one.node, one.gpu) == (other.node, other.gpu)
            if same and one.start_s < other.start_s:
                assert one.end_s <= other.start_s


@given(seeds)
def test_faults_exist_on_their_product(seed: int) -> None:
    """L40S has no NVLink to lose, V100 remaps no rows."""
    for fault in script(FLEET, seed):
        if fault.kind in (Kind.LINKS_DOWN, Kind.LINK_ERROR):
            assert not fault.node.startswith("l40s")
        if fault.kind is Kind.REMAP_PENDING:
            assert not fault.node.startswith("v100")


@pytest.mark.parametrize("seed", range(1, 4))
def test_only_a_repaired_bus_loss_reboots_the_node(seed: int) -> None:
    """A board that fell off the bus twice stays out; resets do not reboot."""
    for fault in script(FLEET, seed):
        assert fault.rebooted == (fault.kind is Kind.BUS_LOSS and fault.end_s < DAY_S)
        if fault.effect.repair is Repair.REBOOT and not fault.repaired:
            assert fault.end_s == DAY_S
