"""The signals that Surefoot judges a GPU by, whichever source reports them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Signal(StrEnum):
    """One measured quantity of one GPU. The unit ends the name; no unit: a flag, count or mask."""

    GPU_TEMP_C = "gpu_temp_c"
    MEMORY_TEMP_C = "memory_temp_c"
    TEMP_MARGIN_C = "temp_margin_c"
    """Distance to the temperature limit; negative beyond it."""
    SLOWDOWN_MARGIN_C = "slowdown_margin_c"
    """The margin below which the hardware slows down; -2 on H100."""
    POWER_W = "power_w"
    SM_CLOCK_MHZ = "sm_clock_mhz"
    MEMORY_USED_MIB = "memory_used_mib"

    CLOCK_EVENTS = "clock_events"
    """NVML's mask of reasons why the clocks are lower than asked."""
    SW_THERMAL_S = "sw_thermal_s"
    """Seconds slowed by software for heat, since boot; so the next two."""
    HW_THERMAL_S = "hw_thermal_s"
    POWER_BRAKE_S = "power_brake_s"

    ECC_DBE = "ecc_dbe"
    """Uncorrectable errors since the driver was loaded (volatile)."""
    ECC_SBE = "ecc_sbe"
    """Correctable ones."""
    SRAM_THRESHOLD = "sram_threshold"
    MEMORY_UNREPAIRABLE = "memory_unrepairable"
    REMAP_PENDING = "remap_pending"
    REMAP_FAILED = "remap_failed"
    REMAPPED_ROWS = "remapped_rows"
    """Rows remapped for uncorrectable errors, in the life of the board."""
    BANKS_EXHAUSTED = "banks_exhausted"
    """Memory banks without a spare row left."""
    PAGES_PENDING = "pages_pending"
    RETIRED_PAGES = "retired_pages"

    RECOVERY_ACTION = "recovery_action"
    """What the driver asks for (NVML field 230)."""
    HEALTH_WATCH = "health_watch"
    """DCGM's own verdict: 0 pass, 10 warn, 20 fail; the watches of links and levels apart."""
    HEALTH_WATCH_LINKS = "health_watch_links"
    HEALTH_WATCH_LEVELS = "health_watch_levels"

    PCIE_WIDTH = "pcie_width"
    PCIE_WIDTH_MAX = "pcie_width_max"
    PCIE_GENERATION = "pcie_generation"
    """The highest that the slot and the board reach together."""
    PCIE_REPLAYS = "pcie_replays"
    PCIE_REPLAY_LIMIT = "pcie_replay_limit"
    """Replays a second that a link of this width and generation may show; derived."""

    NVLINKS_ACTIVE = "nvlinks_active"
    NVLINKS_EXPECTED = "nvlinks_expected"
    NVLINK_CRC_ERRORS = "nvlink_crc_errors"
    NVLINK_REPLAYS = "nvlink_replays"
    NVLINK_RECOVERIES = "nvlink_recoveries"
    NVLINK_RECOVERY_FAILURES = "nvlink_recovery_failures"
    NVLINK_BER = "nvlink_ber"
    """Effective bit error ratio."""

    FABRIC_STATE = "fabric_state"
    """0 not supported, 1 not started, 2 in progress, 3 completed, 4 completed with an error."""
    FABRIC_SUMMARY = "fabric_summary"
    """1 healthy, 2 unhealthy, 3 limited capacity."""
    FABRIC_MASK = "fabric_mask"


COUNTERS: Final = frozenset(
    {
        Signal.SW_THERMAL_S,
        Signal.HW_THERMAL_S,
        Signal.POWER_BRAKE_S,
        Signal.ECC_DBE,
        Signal.ECC_SBE,
        Signal.PCIE_REPLAYS,
        Signal.NVLINK_CRC_ERRORS,
        Signal.NVLINK_REPLAYS,
        Signal.NVLINK_RECOVERIES,
        Signal.NVLINK_RECOVERY_FAILURES,
    }
)
"""Counted from boot, driver load or reset; judged by their rate (ECC_DBE by its value as well)."""

MAY_BE_NEGATIVE: Final = frozenset({Signal.TEMP_MARGIN_C, Signal.SLOWDOWN_MARGIN_C})

HEARTBEATS: Final = frozenset(
    {Signal.GPU_TEMP_C, Signal.POWER_W, Signal.SM_CLOCK_MHZ, Signal.MEMORY_USED_MIB}
)
"""What every source reports of a GPU that it can reach at all, if it reports anything."""
