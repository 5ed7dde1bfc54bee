"""From which value a signal is a fault, and of what cause: one table.

Sources, by row: NVIDIA "GPU error recovery and response flags" (recovery action, row remapping),
NVML's constants (clock event reasons, fabric fields), the health watches of DCGM 4.6 (NVLink, PCIe,
retired pages), NVSentinel #1668 (levels need several polls). Rows marked "ours" rest on no official
figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scoring.model import Health, Scope
from scoring.signals.catalogue import Signal


class Entry(StrEnum):
    """How a cause opens: events and flags at once, levels and rates after `entryPolls` polls."""

    EVENT = "event"
    FLAG = "flag"
    LEVEL = "level"
    RATE = "rate"


class Comparison(StrEnum):
    """How a value is compared with the trip level."""

    AT_LEAST = "at_least"
    ABOVE = "above"
    BELOW = "below"
    ANY_BIT = "any_bit"
    ONE_OF = "one_of"


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A signal's value that means trouble. A RATE is per second, everything else is the value."""

    signal: Signal
    test: Comparison
    trip: float | Signal | frozenset[int]
    """A level, the signal that holds the level, or the codes of ONE_OF."""
    cause: str
    entry: Entry
    state: Health | None = None
    """None: that of the cause."""
    scope: Scope | None = None
    shift: int = 0
    """With `mask`: the field of a packed value that is compared."""
    mask: int | None = None


HW_SLOWDOWN: Final = 0x8
SW_THERMAL: Final = 0x20
HW_THERMAL: Final = 0x40
POWER_BRAKE: Final = 0x80

WARN, FAIL = 10.0, 20.0
"""Of DCGM's health watch."""

NVLINK_CRC_FAIL_PER_S: Final = 100.0
NVLINK_EVENT_PER_S: Final = 1 / 60
"""One replay or recovery a minute; DCGM fails on any within its window, a poll apart is enough."""
NVLINK_BER_MAX: Final = 1e-12
SBE_PER_S: Final = 10.0
"""Ours: three orders below the storm of NVSentinel #1748, far above a healthy board."""
SLOWED_SHARE: Final = 0.05
"""Ours: the share of time slowed by heat or power brake."""
REMAPPED_ROWS_MAX: Final = 512.0
RETIRED_PAGES_MAX: Final = 63.0
UNKNOWN_ACTION: Final = 8.0
"""Recovery actions from here on are not known: fail closed."""


def _flag(
    signal: Signal,
    cause: str,
    at_least: float = 1.0,
    *,
    state: Health | None = None,
    scope: Scope | None = None,
) -> Threshold:
    return Threshold(
        signal=signal,
        test=Comparison.AT_LEAST,
        trip=at_least,
        cause=cause,
        entry=Entry.FLAG,
        state=state,
        scope=scope,
    )


def _code(
    signal: Signal,
    codes: set[int],
    cause: str,
    *,
    state: Health | None = None,
    scope: Scope | None = None,
    shift: int = 0,
    mask: int | None = None,
) -> Threshold:
    return Threshold(
        signal=signal,
        test=Comparison.ONE_OF,
        trip=frozenset(codes),
        cause=cause,
        entry=Entry.FLAG,
        state=state,
        scope=scope,
        shift=shift,
        mask=mask,
    )


def _level(signal: Signal, test: Comparison, trip: float | Signal, cause: str) -> Threshold:
    return Threshold(signal=signal, test=test, trip=trip, cause=cause, entry=Entry.LEVEL)


def _rate(signal: Signal, test: Comparison, trip: float | Signal, cause: str) -> Threshold:
    return Threshold(signal=signal, test=test, trip=trip, cause=cause, entry=Entry.RATE)


_RESET, _REBOOT = Health.RESET_REQUIRED, Health.REBOOT_REQUIRED
_ACTION: Final = Signal.RECOVERY_ACTION
_MASK: Final = Signal.FABRIC_MASK

THRESHOLDS: Final[tuple[Threshold, ...]] = (
    _code(_ACTION, {1, 4, 6}, "recovery.action", state=_RESET),
    _code(_ACTION, {2, 7}, "recovery.action", state=_REBOOT),
    _code(_ACTION, {3}, "recovery.action", state=Health.DEGRADED, scope=Scope.LINK),
    _code(_ACTION, {5}, "recovery.action", state=Health.DEGRADED, scope=Scope.FABRIC),
    _flag(_ACTION, "recovery.action", UNKNOWN_ACTION, state=_RESET),
    _flag(Signal.ECC_DBE, "ecc.dbe"),
    _rate(Signal.ECC_SBE, Comparison.AT_LEAST, SBE_PER_S, "ecc.sbe_rate"),
    _flag(Signal.SRAM_THRESHOLD, "ecc.sram_threshold"),
    _flag(Signal.MEMORY_UNREPAIRABLE, "memory.unrepairable"),
    _flag(Signal.REMAP_PENDING, "remap.pending"),
    _flag(Signal.REMAP_FAILED, "remap.failed"),
    _flag(Signal.REMAPPED_ROWS, "remap.rows", REMAPPED_ROWS_MAX),
    _flag(Signal.BANKS_EXHAUSTED, "remap.rows"),
    _flag(Signal.PAGES_PENDING, "pages.pending"),
    _flag(Signal.RETIRED_PAGES, "pages.exhausted", RETIRED_PAGES_MAX),
    _level(Signal.CLOCK_EVENTS, Comparison.ANY_BIT, HW_SLOWDOWN | POWER_BRAKE, "throttle.hw"),
    _level(Signal.CLOCK_EVENTS, Comparison.ANY_BIT, SW_THERMAL | HW_THERMAL, "throttle.thermal"),
    _rate(Signal.POWER_BRAKE_S, Comparison.ABOVE, SLOWED_SHARE, "throttle.hw"),
    _rate(Signal.HW_THERMAL_S, Comparison.ABOVE, SLOWED_SHARE, "throttle.thermal"),
    _rate(Signal.SW_THERMAL_S, Comparison.ABOVE, SLOWED_SHARE, "throttle.thermal"),
    _level(Signal.TEMP_MARGIN_C, Comparison.BELOW, Signal.SLOWDOWN_MARGIN_C, "thermal"),
    _level(Signal.PCIE_WIDTH, Comparison.BELOW, Signal.PCIE_WIDTH_MAX, "pcie.width"),
    _rate(Signal.PCIE_REPLAYS, Comparison.ABOVE, Signal.PCIE_REPLAY_LIMIT, "pcie.replay"),
    _level(Signal.NVLINKS_ACTIVE, Comparison.BELOW, Signal.NVLINKS_EXPECTED, "nvlink.down"),
    _rate(Signal.NVLINK_CRC_ERRORS, Comparison.AT_LEAST, NVLINK_CRC_FAIL_PER_S, "nvlink.errors"),
    _rate(Signal.NVLINK_REPLAYS, Comparison.AT_LEAST, NVLINK_EVENT_PER_S, "nvlink.errors"),
    _rate(Signal.NVLINK_RECOVERIES, Comparison.AT_LEAST, NVLINK_EVENT_PER_S, "nvlink.errors"),
    _rate(Signal.NVLINK_RECOVERY_FAILURES, Comparison.ABOVE, 0.0, "nvlink.errors"),
    _level(Signal.NVLINK_BER, Comparison.ABOVE, NVLINK_BER_MAX, "nvlink.errors"),
    _rate(Signal.NVLINK_CRC_ERRORS, Comparison.ABOVE, 0.0, "nvlink.crc"),
    Threshold(
        signal=Signal.FABRIC_STATE,
        test=Comparison.ONE_OF,
        trip=frozenset({1, 2}),
        cause="fabric.state",
        entry=Entry.LEVEL,
    ),
    _code(Signal.FABRIC_STATE, {4}, "fabric.unhealthy"),
    _code(Signal.FABRIC_SUMMARY, {2}, "fabric.unhealthy"),
    _code(Signal.FABRIC_SUMMARY, {3}, "fabric.limited"),
    # NVML packs five subjects: bandwidth, route recovery, route health, access time-out recovery
    # (two bits each, 1 is a fault) and configuration (four bits, 1 is in order).
    _code(_MASK, {1}, "fabric.limited", shift=0, mask=0x3),
    _code(_MASK, {1}, "fabric.limited", shift=2, mask=0x3),
    _code(_MASK, {1}, "fabric.unhealthy", shift=4, mask=0x3),
    _code(_MASK, {1}, "fabric.limited", shift=6, mask=0x3),
    _code(_MASK, set(range(2, 16)), "fabric.unhealthy", shift=8, mask=0xF),
    _flag(Signal.HEALTH_WATCH, "dcgm.fail", FAIL),
    _flag(Signal.HEALTH_WATCH, "dcgm.warn", WARN),
    _flag(Signal.HEALTH_WATCH_LINKS, "dcgm.fail", FAIL, scope=Scope.LINK),
    _flag(Signal.HEALTH_WATCH_LINKS, "dcgm.warn", WARN, scope=Scope.LINK),
    _level(Signal.HEALTH_WATCH_LEVELS, Comparison.AT_LEAST, WARN, "dcgm.warn"),
)
