"""A dcgm-exporter page as raw values of each GPU.

Knows the names before and since DCGM 4.6 and those of the exporter's first major version, the forms
of its labels, series that are repeated for pods and MIG instances, and rows of switches and CPUs,
which are none of a GPU. Sources: dcgm_fields.py of NVIDIA/DCGM (renamed fields), render_metrics.go
and default-counters.csv of NVIDIA/dcgm-exporter.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from extender.inspect.prom_text import Row, rows
from scoring.signals.blanks import value_of
from scoring.signals.catalogue import Signal
from scoring.xid.events import Xid

ROW_STALE_AFTER_S: Final = 600.0
"""A series this much older than the newest of its page is not of now."""

_NAMES: Final[Mapping[Signal, tuple[str, ...]]] = {
    Signal.GPU_TEMP_C: ("GPU_TEMP", "GPU_TEMP_CELSIUS", "dcgm_gpu_temp"),
    Signal.MEMORY_TEMP_C: ("MEMORY_TEMP", "MEMORY_TEMP_CELSIUS", "dcgm_memory_temp"),
    Signal.TEMP_MARGIN_C: ("GPU_TEMP_LIMIT", "GPU_TEMP_MARGIN_CELSIUS"),
    Signal.POWER_W: ("POWER_USAGE", "BOARD_POWER_WATTS", "dcgm_power_usage"),
    Signal.SM_CLOCK_MHZ: ("SM_CLOCK", "dcgm_sm_clock"),
    Signal.MEMORY_USED_MIB: ("FB_USED", "dcgm_fb_used"),
    Signal.CLOCK_EVENTS: ("CLOCK_THROTTLE_REASONS", "CLOCKS_EVENT_REASONS"),
    Signal.SW_THERMAL_S: ("CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",),
    Signal.HW_THERMAL_S: ("CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",),
    Signal.POWER_BRAKE_S: ("CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",),
    Signal.ECC_DBE: ("ECC_DBE_VOL_TOTAL", "dcgm_ecc_dbe_volatile_total"),
    Signal.ECC_SBE: ("ECC_SBE_VOL_TOTAL", "dcgm_ecc_sbe_volatile_total"),
    Signal.SRAM_THRESHOLD: ("THRESHOLD_SRM", "SRAM_EXCEEDED"),
    Signal.MEMORY_UNREPAIRABLE: ("MEMORY_UNREPAIRABLE_FLAG", "MEMORY_UNREPAIRABLE"),
    Signal.REMAP_PENDING: ("ROW_REMAP_PENDING", "dcgm_row_remap_pending"),
    Signal.REMAP_FAILED: ("ROW_REMAP_FAILURE", "ROW_REMAP_FAILED", "dcgm_row_remap_failure"),
    Signal.REMAPPED_ROWS: (
        "UNCORRECTABLE_REMAPPED_ROWS",
        "ROW_REMAP_UNCORRECTABLE_TOTAL",
        "dcgm_uncorrectable_remapped_rows",
    ),
    Signal.BANKS_EXHAUSTED: ("BANKS_REMAP_ROWS_AVAIL_NONE", "BANK_REMAP_AVAIL_NONE"),
    Signal.PAGES_PENDING: (
        "RETIRED_PENDING",
        "PAGE_RETIRED_PENDING",
        "dcgm_retired_pages_pending",
    ),
    Signal.RETIRED_PAGES: (
        "RETIRED_SBE",
        "RETIRED_DBE",
        "PAGE_RETIRED_SBE_TOTAL",
        "PAGE_RETIRED_DBE_TOTAL",
        "dcgm_retired_pages_sbe",
        "dcgm_retired_pages_dbe",
    ),
    Signal.RECOVERY_ACTION: ("GET_GPU_RECOVERY_ACTION", "GPU_RECOVERY_ACTION"),
    Signal.PCIE_WIDTH: ("PCIE_LINK_WIDTH",),
    Signal.PCIE_WIDTH_MAX: ("PCIE_MAX_LINK_WIDTH",),
    Signal.PCIE_GENERATION: ("PCIE_MAX_LINK_GEN",),
    Signal.PCIE_REPLAYS: ("PCIE_REPLAY_COUNTER", "PCIE_REPLAY_TOTAL", "dcgm_pcie_replay_counter"),
    Signal.NVLINK_CRC_ERRORS: (
        "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "NVLINK_CRC_FLIT_ERROR_TOTAL",
        "NVLINK_CRC_DATA_ERROR_TOTAL",
        "dcgm_nvlink_flit_crc_error_count_total",
        "dcgm_nvlink_data_crc_error_count_total",
    ),
    Signal.NVLINK_REPLAYS: (
        "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "NVLINK_REPLAY_ERROR_TOTAL",
        "dcgm_nvlink_replay_error_count_total",
    ),
    Signal.NVLINK_RECOVERIES: (
        "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "NVLINK_RECOVERY_ERROR_TOTAL",
        "dcgm_nvlink_recovery_error_count_total",
    ),
    Signal.NVLINK_RECOVERY_FAILURES: (
        "NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS",
        "NVLINK_RECOVERY_FAILED_TOTAL",
    ),
    Signal.NVLINK_BER: ("NVLINK_COUNT_EFFECTIVE_BER_FLOAT", "NVLINK_EFFECTIVE_BER_RATIO"),
    Signal.FABRIC_STATE: ("FABRIC_MANAGER_STATUS",),
    Signal.FABRIC_SUMMARY: ("FABRIC_HEALTH_SUMMARY",),
    Signal.FABRIC_MASK: ("FABRIC_HEALTH_MASK",),
}
SIGNAL_OF: Final[Mapping[str, Signal]] = {
    name if name.startswith("dcgm_") else f"DCGM_FI_DEV_{name}": signal
    for signal, names in _NAMES.items()
    for name in names
}
_HEALTH_STATUS: Final = "DCGM_EXP_GPU_HEALTH_STATUS"
_WATCH: Final[Mapping[str, Signal]] = {
    "NVLINK": Signal.HEALTH_WATCH_LINKS,
    "NVSWITCH_NONFATAL": Signal.HEALTH_WATCH_LINKS,
    "NVSWITCH_FATAL": Signal.HEALTH_WATCH_LINKS,
    "THERMAL": Signal.HEALTH_WATCH_LEVELS,
    "POWER": Signal.HEALTH_WATCH_LEVELS,
}
_XID_COUNT: Final = "DCGM_EXP_XID_ERRORS_COUNT"
_XID_LAST: Final = frozenset({"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "dcgm_xid_errors"})

_NS: Final = frozenset({Signal.SW_THERMAL_S, Signal.HW_THERMAL_S, Signal.POWER_BRAKE_S})
_SUMMED: Final = frozenset({Signal.NVLINK_CRC_ERRORS, Signal.RETIRED_PAGES})
"""Signals that are the sum of different metrics."""
_LESS_IS_WORSE: Final = frozenset({Signal.TEMP_MARGIN_C, Signal.PCIE_WIDTH})
_FM_CANNOT_SAY: Final = frozenset({5.0, 6.0})
"""Fabric manager states that tell of a mismatch of versions, not of the fabric."""

_UUID_LABELS: Final = ("UUID", "uuid", "gpu_uuid", "GPU_UUID")
_INDEX_LABELS: Final = ("gpu", "gpu_id", "GPU")
_MODEL_LABELS: Final = ("modelName", "model_name", "modelname")
_MIG_LABELS: Final = ("GPU_I_ID", "gpu_i_id", "GPU_I_PROFILE", "gpu_i_profile")
_DRIVER_LABELS: Final = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPage:
    """What one page says of one GPU."""

    uuid: str
    index: int | None
    model: str | None
    mig: bool
    branch: int | None
    """The driver's branch: 580 of 580.105.08."""
    values: Mapping[Signal, float]
    """Measurements; blanks are absent."""
    xids: tuple[Xid, ...] = ()
    """Seen in the exporter's window."""
    last_xid: Xid | None = None
    """The gauge of the last XID since the exporter started; None where the page counts XIDs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, GPU by GPU, in the order of their indices."""

    gpus: tuple[GpuPage, ...]
    tail: Signal | None
    """The signal of the last family, which a cut page may show for some GPUs only."""


def page(text: str) -> Page:
    """Read a page. One that is of something else has no GPUs."""
    found = [row for row in rows(text) if row.name[:5] in ("DCGM_", "dcgm_")]
    newest_s = max((row.time_s for row in found if row.time_s is not None), default=math.inf)
    by_gpu: defaultdict[str, list[Row]] = defaultdict(list)
    for row in found:
        uuid = _label(row, _UUID_LABELS)
        if uuid and not {"nvswitch", "cpu"} & row.labels.keys():
            by_gpu[uuid].append(row)
    counts = any(row.name == _XID_COUNT for row in found)
    gpus = [_gpu(uuid, each, newest_s, counts=counts) for uuid, each in by_gpu.items()]
    return Page(
        gpus=tuple(sorted(gpus, key=lambda gpu: (gpu.index is None, gpu.index or 0, gpu.uuid))),
        tail=_signal(found[-1]) if found else None,
    )


def _gpu(uuid: str, found: list[Row], newest_s: float, *, counts: bool) -> GpuPage:
    fresh = [r for r in found if r.time_s is None or newest_s - r.time_s < ROW_STALE_AFTER_S]
    index = _first(found, _INDEX_LABELS)
    driver = re.match(r"\d{1,4}(?=\.)", _first(found, _DRIVER_LABELS) or "")
    last = max((_code(str(row.value)) for row in fresh if row.name in _XID_LAST), default=0)
    codes = {
        _code(row.labels.get("xid", ""))
        for row in fresh
        if row.name == _XID_COUNT and row.value > 0
    }
    return GpuPage(
        uuid=uuid,
        index=int(index) if index and re.fullmatch(r"\d{1,6}", index) else None,
        model=_first(found, _MODEL_LABELS),
        mig=any(_label(row, _MIG_LABELS) for row in found),
        branch=int(driver[0]) if driver else None,
        values=_values(fresh),
        xids=tuple(Xid(pci=None, code=code) for code in sorted(codes - {0})),
        last_xid=Xid(pci=None, code=last) if last and not counts else None,
    )


def _values(found: Iterable[Row]) -> dict[Signal, float]:
    """One value for each signal: repeats for pods and instances give the worst, links their sum."""
    series: dict[tuple[Signal, str, str], float] = {}
    for row in found:
        signal = _signal(row)
        value = None if signal is None else value_of(signal, row.value)
        if signal is None or value is None:
            continue
        if signal is Signal.FABRIC_STATE and value in _FM_CANNOT_SAY:
            continue
        key = (signal, row.name, row.labels.get("nvlink", ""))
        series[key] = _worse(signal)(series[key], value) if key in series else value
    families: dict[tuple[Signal, str], float] = {}
    for (signal, name, _), value in sorted(series.items()):
        families[signal, name] = families.get((signal, name), 0.0) + value
    values: dict[Signal, float] = {}
    for (signal, _), value in families.items():
        scaled = value / 1e9 if signal in _NS else value
        if signal not in values:
            values[signal] = scaled
        elif signal in _SUMMED:
            values[signal] += scaled
        else:
            values[signal] = _worse(signal)(values[signal], scaled)
    return values


def _worse(signal: Signal) -> Callable[[float, float], float]:
    if signal is Signal.CLOCK_EVENTS:
        return lambda a, b: float(int(a) | int(b))
    return min if signal in _LESS_IS_WORSE else max


def _signal(row: Row) -> Signal | None:
    if row.name == _HEALTH_STATUS:
        return _WATCH.get(row.labels.get("health_watch", "").upper(), Signal.HEALTH_WATCH)
    return SIGNAL_OF.get(row.name)


def _label(row: Row, names: Iterable[str]) -> str | None:
    return next((row.labels[name] for name in names if row.labels.get(name)), None)


def _first(found: Iterable[Row], names: tuple[str, ...]) -> str | None:
    return next((text for row in found if (text := _label(row, names))), None)


def _code(text: str) -> int:
    """An XID from a label or from the value of the gauge; 0: none."""
    try:
        number = float(text)
    except ValueError:
        return 0
    return int(number) if 0 < number < 1_000_000 and number == int(number) else 0
