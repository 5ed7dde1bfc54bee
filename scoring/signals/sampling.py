"""From a raw reading to a sample: blanks dropped, counters made into rates, gaps named.

Counters start again at boot and at a GPU reset, so a rate needs two readings of one boot in which
nothing fell (NVSentinel ADR 050). A lifetime total is never judged as if it had just happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from scoring.signals.blanks import measured
from scoring.signals.catalogue import COUNTERS, HEARTBEATS, Signal
from scoring.signals.models import profile

REPLAYS_A_LANE_MIN: Final = (0.15, 0.3, 0.48, 0.96, 1.92, 3.84)
"""PCIe replays a minute that one lane may show, for generation 1 to 6 (DCGM's PCIe health watch)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one source said of one GPU in one poll, unjudged."""

    time_s: float
    """When the source collected it, on the agent's line, which never goes back."""
    boot_id: str | None
    values: Mapping[Signal, float | None]
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The counters of the reading before, from which rates are taken."""

    time_s: float = -math.inf
    boot_id: str | None = None
    counters: Mapping[Signal, float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One poll of one GPU, ready to be judged. It is full when it misses nothing."""

    levels: Mapping[Signal, float]
    """What was measured, and the figures that the model is built with."""
    rates: Mapping[Signal, float] = field(default_factory=lambda: MappingProxyType({}))
    """Increase of counters, per second; a counter without a baseline is absent."""
    missing: frozenset[Signal] = frozenset()
    """Expected and not measured."""
    was_reset: bool = False
    """A counter fell within one boot: the GPU was reset since the reading before."""

    @property
    def full(self) -> bool:
        """Whether it can vouch for the GPU."""
        return not self.missing and bool(self.levels)


def sample(
    reading: Reading, expected: frozenset[Signal], baseline: Baseline | None = None
) -> tuple[Sample, Baseline]:
    """The sample that `reading` makes after `baseline`, and the baseline for the next one.

    A reading that is not newer than the baseline yields no rates and leaves the baseline alone.
    """
    measurements = dict(measured(reading.values))
    counters = {signal: value for signal, value in measurements.items() if signal in COUNTERS}
    before = baseline or Baseline()
    rates: dict[Signal, float] = {}
    was_reset = False
    elapsed_s = reading.time_s - before.time_s
    if before.boot_id == reading.boot_id and 0 < elapsed_s < math.inf:
        was_reset = any(value < before.counters.get(s, 0.0) for s, value in counters.items())
        if not was_reset:
            rates = {
                signal: (value - before.counters[signal]) / elapsed_s
                for signal, value in counters.items()
                if signal in before.counters
            }
    missing = expected.difference(measurements)
    if not measurements:
        missing |= HEARTBEATS
    after = before
    if elapsed_s > 0:
        after = Baseline(time_s=reading.time_s, boot_id=reading.boot_id, counters=counters)
    levels = _completed(measurements, reading.model)
    return Sample(levels=levels, rates=rates, missing=missing, was_reset=was_reset), after


def _completed(levels: dict[Signal, float], model: str | None) -> dict[Signal, float]:
    """`levels` with what follows from the model and from other levels; empty stays empty."""
    if not levels:
        return levels
    for signal, value in profile(model).built.items():
        levels.setdefault(signal, value)
    if Signal.PCIE_REPLAYS in levels:
        levels[Signal.PCIE_REPLAY_LIMIT] = pcie_replay_limit(
            levels.get(Signal.PCIE_GENERATION), levels.get(Signal.PCIE_WIDTH)
        )
    return levels


def pcie_replay_limit(generation: float | None, width: float | None) -> float:
    """Replays a second from which a PCIe link is bad; for an unknown link, that of the fastest."""
    last = len(REPLAYS_A_LANE_MIN)
    index = int(generation) if generation and 1 <= generation <= last else last
    return math.ceil(REPLAYS_A_LANE_MIN[index - 1] * (width or 16.0)) / 60.0
