"""What each GPU model can report, and what it is built with.

A signal that a model cannot report is not supported: its absence is no fault and no health either.
A signal that it can report is *expected* only once the same source was seen to report it for this
model, since an exporter's list of metrics may be cut to any size.
Sources: NVIDIA A100 memory error management (row remapping on GA100, GA10x, Ada, GH100, GB10x; page
retirement before), NVML documentation (no remap counters on a GPU with MIG instances), NVLink counts
of the NVIDIA data sheets, T.Limit offsets of NVSentinel's thermal design.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from scoring.signals.catalogue import Signal

_REMAP: Final = frozenset(
    {Signal.REMAP_PENDING, Signal.REMAP_FAILED, Signal.REMAPPED_ROWS, Signal.BANKS_EXHAUSTED}
)
_PAGES: Final = frozenset({Signal.PAGES_PENDING, Signal.RETIRED_PAGES})
_NVLINK: Final = frozenset(
    {
        Signal.NVLINKS_ACTIVE,
        Signal.NVLINK_CRC_ERRORS,
        Signal.NVLINK_REPLAYS,
        Signal.NVLINK_RECOVERIES,
        Signal.NVLINK_RECOVERY_FAILURES,
        Signal.NVLINK_BER,
    }
)
_FABRIC: Final = frozenset({Signal.FABRIC_STATE, Signal.FABRIC_SUMMARY, Signal.FABRIC_MASK})
_HIDDEN_BY_VGPU: Final = frozenset(Signal) - {
    Signal.SM_CLOCK_MHZ,
    Signal.MEMORY_USED_MIB,
}
_HIDDEN_BY_MIG: Final = _REMAP | _NVLINK


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one family of GPUs reports and is built with."""

    pattern: str
    """Matched anywhere in the product name; the first profile that matches counts."""
    unsupported: frozenset[Signal] = frozenset()
    built: Mapping[Signal, float] = field(default_factory=lambda: MappingProxyType({}))
    """Figures of the product that stand in where the source does not report them."""


def _built(
    nvlinks: int | None = None, slowdown_margin_c: float | None = None
) -> Mapping[Signal, float]:
    figures = {
        Signal.NVLINKS_EXPECTED: nvlinks,
        Signal.SLOWDOWN_MARGIN_C: slowdown_margin_c,
    }
    return MappingProxyType({s: float(v) for s, v in figures.items() if v is not None})


PROFILES: Final[tuple[Profile, ...]] = (
    Profile(pattern=r"^GRID\b|-\d+[ABCQ]$", unsupported=_HIDDEN_BY_VGPU),
    Profile(pattern=r"B200|B300|B100", unsupported=_PAGES, built=_built(18, -3)),
    Profile(
        pattern=r"H100 PCIe|H100 NVL|H200 NVL|H800 PCIe",
        unsupported=_PAGES | _FABRIC,
        built=_built(None, -2),
    ),
    Profile(pattern=r"H100|H200|H800|H20\b|GH200", unsupported=_PAGES, built=_built(18, -2)),
    Profile(pattern=r"A100.*PCI|A800.*PCI|A30\b", unsupported=_PAGES | _FABRIC),
    Profile(pattern=r"A100|A800", unsupported=_PAGES | _FABRIC, built=_built(12)),
    Profile(
        pattern=r"\bL40S?\b|\bL4\b|\bL20\b|\bL2\b|RTX \d+ Ada|RTX 40",
        unsupported=_PAGES | _NVLINK | _FABRIC,
        built=_built(None, -2),
    ),
    Profile(pattern=r"A40\b|A10G?\b|A16\b|A2\b|A[456]000|RTX 30", unsupported=_PAGES | _FABRIC),
    Profile(pattern=r"V100.*PCI", unsupported=_REMAP | _NVLINK | _FABRIC),
    Profile(pattern=r"V100", unsupported=_REMAP | _FABRIC, built=_built(6)),
    Profile(pattern=r"P100", unsupported=_REMAP | _FABRIC, built=_built(4)),
    Profile(pattern=r"T4\b|P4\b|P40\b|K80", unsupported=_REMAP | _NVLINK | _FABRIC),
)

UNLISTED: Final = Profile(pattern="")
"""A model that the table does not know: anything may be supported, nothing is built in."""


@lru_cache(maxsize=256)
def profile(model: str | None) -> Profile:
    """The profile of a product name as NVML prints it."""
    for each in PROFILES:
        if model and re.search(each.pattern, model):
            return each
    return UNLISTED


def expected(
    model: str | None, learned: frozenset[Signal], *, mig: bool = False
) -> frozenset[Signal]:
    """The signals that a full sample of this model holds.

    `learned`: what this source was seen to report for this model. A GPU split by MIG is not asked
    for what NVML hides then. What is derived or built in is never asked for.
    """
    hidden = _HIDDEN_BY_MIG if mig else frozenset()
    return learned - profile(model).unsupported - hidden - NEVER_ASKED


NEVER_ASKED: Final = frozenset(
    {
        Signal.SLOWDOWN_MARGIN_C,
        Signal.NVLINKS_EXPECTED,
        Signal.PCIE_REPLAY_LIMIT,
        Signal.MEMORY_TEMP_C,
    }
)
