"""Raw readings become samples: blanks dropped, counters made into rates, gaps named."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.signals.blanks import measured, value_of
from scoring.signals.catalogue import COUNTERS, HEARTBEATS, Signal
from scoring.signals.models import NEVER_ASKED, PROFILES, expected, profile
from scoring.signals.sampling import Baseline, Reading, pcie_replay_limit, sample

H100 = "NVIDIA H100 80GB HBM3"


def reading(
    time_s: float, values: dict[Signal, float | None], *, boot: str = "a", model: str = H100
) -> Reading:
    """One reading of an H100."""
    return Reading(time_s=time_s, boot_id=boot, values=values, model=model)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        math.nan,
        math.inf,
        -math.inf,
        0x7FFFFFF0,
        0x7FFFFFF2,
        0x7FFFFFFF,
        0x7FFFFFFFFFFFFFF0,
        0x7FFFFFFFFFFFFFF2,
        140_737_488_355_328.0,
        140_737_488_355_330.0,
        -1,
    ],
)
def test_a_blank_is_no_measurement(raw: float | None) -> None:
    """Each sentinel of DCGM and NVML, NaN, infinity and a negative count become None, not 0."""
    assert value_of(Signal.ECC_DBE, raw) is None
    assert dict(measured({Signal.ECC_DBE: raw})) == {}


def test_zero_degrees_of_memory_is_no_sensor() -> None:
    """Boards with GDDR report 0 for a memory temperature that they do not measure."""
    assert value_of(Signal.MEMORY_TEMP_C, 0) is None
    assert value_of(Signal.MEMORY_TEMP_C, 45) == 45
    assert value_of(Signal.GPU_TEMP_C, 0) == 0


def test_a_margin_may_be_negative_and_minus_zero_is_zero() -> None:
    """A temperature beyond its limit is a measurement."""
    assert value_of(Signal.TEMP_MARGIN_C, -4) == -4
    assert math.copysign(1, value_of(Signal.ECC_SBE, -0.0) or 0.0) == 1


@given(st.sampled_from(sorted(Signal)), st.floats() | st.integers() | st.none())
def test_law_a_measurement_is_finite_and_both_ways_of_reading_agree(
    signal: Signal, raw: float | None
) -> None:
    """Whatever a source sends, a measurement is a finite number below every blank."""
    value = value_of(signal, raw)
    assert dict(measured({signal: raw})) == ({} if value is None else {signal: value})
    assert value is None or (math.isfinite(value) and value < 2**47)


def test_a_counter_becomes_a_rate_between_two_readings_of_one_boot() -> None:
    """Thirty more replays in fifteen seconds are two a second; the first reading has no rate."""
    first, base = sample(reading(100, {Signal.PCIE_REPLAYS: 1000}), frozenset())
    second, _ = sample(reading(115, {Signal.PCIE_REPLAYS: 1030}), frozenset(), base)
    assert first.rates == {}
    assert second.rates == {Signal.PCIE_REPLAYS: 2.0}


def test_a_new_boot_is_a_new_baseline() -> None:
    """Counters of another boot are never subtracted from one another."""
    _, base = sample(reading(100, {Signal.ECC_SBE: 5}), frozenset())
    after, base = sample(reading(115, {Signal.ECC_SBE: 90}, boot="b"), frozenset(), base)
    assert after.rates == {}
    assert not after.was_reset
    assert base.boot_id == "b"


def test_a_falling_counter_means_a_reset() -> None:
    """A counter that fell within one boot shows a GPU reset, and no rate is made from it."""
    _, base = sample(reading(100, {Signal.ECC_SBE: 50, Signal.PCIE_REPLAYS: 3}), frozenset())
    after, base = sample(
        reading(115, {Signal.ECC_SBE: 0, Signal.PCIE_REPLAYS: 3}), frozenset(), base
    )
    assert after.was_reset
    assert after.rates == {}
    later, _ = sample(reading(130, {Signal.ECC_SBE: 3}), frozenset(), base)
    assert later.rates == {Signal.ECC_SBE: 0.2}


def test_a_reading_that_is_not_newer_makes_no_rate_and_leaves_the_baseline() -> None:
    """A late or repeated reading cannot spoil the rate of the next one."""
    _, base = sample(reading(100, {Signal.ECC_SBE: 5}), frozenset())
    late, kept = sample(reading(90, {Signal.ECC_SBE: 4}), frozenset(), base)
    again, same = sample(reading(100, {Signal.ECC_SBE: 5}), frozenset(), base)
    assert late.rates == again.rates == {}
    assert kept == same == base


def test_a_counter_that_was_blank_needs_two_readings_again() -> None:
    """The increase over a gap is not divided by the time of one poll."""
    _, base = sample(reading(100, {Signal.ECC_SBE: 0}), frozenset())
    _, base = sample(reading(115, {Signal.ECC_SBE: None}), frozenset(), base)
    after, _ = sample(reading(130, {Signal.ECC_SBE: 3000}), frozenset(), base)
    assert after.rates == {}


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 1000)), min_size=1, max_size=20))
def test_law_a_rate_is_never_negative(steps: list[tuple[int, int]]) -> None:
    """Whatever a counter does, its rate is 0 or more."""
    time_s, base = 0.0, Baseline()
    for gap_s, value in steps:
        time_s += gap_s
        made, base = sample(reading(time_s, {Signal.ECC_SBE: value}), frozenset(), base)
        assert all(rate >= 0 for rate in made.rates.values())


def test_a_sample_names_what_it_misses() -> None:
    """An expected signal that is blank or absent makes the sample less than full."""
    wanted = frozenset({Signal.ECC_DBE, Signal.REMAP_PENDING, Signal.GPU_TEMP_C})
    made, _ = sample(reading(0, {Signal.ECC_DBE: math.nan, Signal.GPU_TEMP_C: 40}), wanted)
    assert made.missing == {Signal.ECC_DBE, Signal.REMAP_PENDING}
    assert not made.full


def test_a_gpu_of_which_nothing_is_said_has_no_full_sample() -> None:
    """Even where nothing is known to be expected, silence misses the signs of life."""
    made, _ = sample(reading(0, {Signal.ECC_DBE: None}), frozenset())
    assert made.missing == HEARTBEATS
    assert not made.full


def test_figures_of_the_product_stand_in_for_what_the_source_does_not_say() -> None:
    """An H100 has 18 NVLinks; a source that says otherwise is believed."""
    made, _ = sample(reading(0, {Signal.NVLINKS_ACTIVE: 17}), frozenset())
    told, _ = sample(
        reading(0, {Signal.NVLINKS_ACTIVE: 17, Signal.NVLINKS_EXPECTED: 17}), frozenset()
    )
    assert made.levels[Signal.NVLINKS_EXPECTED] == 18
    assert told.levels[Signal.NVLINKS_EXPECTED] == 17


def test_the_replay_limit_follows_width_and_generation() -> None:
    """Generation 5 x16: 31 a minute (DCGM); what is unknown counts as the fastest link."""
    assert pcie_replay_limit(5, 16) * 60 == pytest.approx(31)
    assert pcie_replay_limit(3, 8) * 60 == pytest.approx(4)
    assert pcie_replay_limit(None, None) * 60 == pytest.approx(62)
    assert pcie_replay_limit(9, 16) * 60 == pytest.approx(62)


@pytest.mark.parametrize(
    ("model", "signal", "supported"),
    [
        (H100, Signal.REMAP_PENDING, True),
        (H100, Signal.FABRIC_SUMMARY, True),
        (H100, Signal.PAGES_PENDING, False),
        ("NVIDIA H100 PCIe", Signal.FABRIC_SUMMARY, False),
        ("NVIDIA A100-SXM4-40GB", Signal.NVLINK_REPLAYS, True),
        ("Tesla T4", Signal.REMAP_PENDING, False),
        ("Tesla V100-SXM2-32GB", Signal.PAGES_PENDING, True),
        ("Tesla V100-PCIE-16GB", Signal.NVLINKS_ACTIVE, False),
        ("NVIDIA L40S", Signal.NVLINKS_ACTIVE, False),
        ("GRID A100-10C", Signal.GPU_TEMP_C, False),
        ("NVIDIA A10-24Q", Signal.POWER_W, False),
        ("Some GPU of next year", Signal.REMAP_PENDING, True),
        (None, Signal.REMAP_PENDING, True),
    ],
)
def test_what_a_model_cannot_report_is_never_expected(
    model: str | None, signal: Signal, *, supported: bool
) -> None:
    """A signal that the model does not have is neither a fault nor a gap."""
    assert (signal in expected(model, frozenset(Signal))) is supported


def test_mig_hides_row_remapping() -> None:
    """NVML answers nothing about remapped rows while a GPU has instances."""
    learned = frozenset({Signal.REMAP_PENDING, Signal.GPU_TEMP_C})
    assert expected(H100, learned, mig=True) == {Signal.GPU_TEMP_C}


def test_only_what_was_seen_is_expected() -> None:
    """A source with a short list of metrics is held to that list."""
    assert expected(H100, frozenset({Signal.GPU_TEMP_C})) == {Signal.GPU_TEMP_C}
    assert not expected(H100, NEVER_ASKED)


def test_every_profile_is_reached_by_some_name() -> None:
    """No row of the table is hidden by one before it."""
    names = [
        "GRID V100D-8Q", "NVIDIA B200", "NVIDIA H100 PCIe", "NVIDIA H200", "NVIDIA A100 80GB PCIe",
        "NVIDIA A100-SXM4-80GB", "NVIDIA L4", "NVIDIA A40", "Tesla V100-PCIE-16GB",
        "Tesla V100-SXM2-16GB", "Tesla P100-SXM2-16GB", "Tesla T4",
    ]  # fmt: skip
    assert [profile(name) for name in names] == list(PROFILES)


def test_counters_are_named_as_totals_of_their_own() -> None:
    """The judged flags are no counters, so that no rate can hide them."""
    assert Signal.REMAP_PENDING not in COUNTERS
    assert Signal.ECC_DBE in COUNTERS
