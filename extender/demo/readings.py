"""What a GPU's driver would say: raw readings, and the kernel's lines when it fails."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from extender.demo.faults import Fault, Kind
from extender.demo.fleet import Machine, Product
from scoring.signals.catalogue import Signal

_ALL: Final[Mapping[Signal, float]] = MappingProxyType(
    {
        Signal.GPU_TEMP_C: 58.0,
        Signal.POWER_W: 310.0,
        Signal.SM_CLOCK_MHZ: 1755.0,
        Signal.MEMORY_USED_MIB: 61_440.0,
        Signal.CLOCK_EVENTS: 0.0,
        Signal.ECC_DBE: 0.0,
        Signal.ECC_SBE: 0.0,
        Signal.RECOVERY_ACTION: 0.0,
        Signal.PCIE_WIDTH: 16.0,
        Signal.PCIE_WIDTH_MAX: 16.0,
    }
)
"""A healthy GPU, where every product reports the same."""

_REMAP: Final[Mapping[Signal, float]] = MappingProxyType(
    {Signal.REMAP_PENDING: 0.0, Signal.REMAP_FAILED: 0.0}
)
_PAGES: Final[Mapping[Signal, float]] = MappingProxyType({Signal.PAGES_PENDING: 0.0})

_FAULTY: Final[Mapping[Kind, Mapping[Signal, float]]] = MappingProxyType(
    {
        Kind.MEMORY_ERROR: {Signal.ECC_DBE: 1.0, Signal.RECOVERY_ACTION: 1.0},
        Kind.LINK_ERROR: {Signal.RECOVERY_ACTION: 1.0},
        Kind.REMAP_PENDING: {Signal.REMAP_PENDING: 1.0},
        Kind.LINKS_DOWN: {Signal.NVLINKS_ACTIVE: 0.0},
        Kind.THERMAL: {
            Signal.GPU_TEMP_C: 91.0,
            Signal.SM_CLOCK_MHZ: 1050.0,
            Signal.CLOCK_EVENTS: float(0x40),  # NVML: hardware thermal slowdown
        },
    }
)
"""What a fault changes in the readings."""

_LINES: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.BUS_LOSS: "79, pid=4121, name=python, GPU has fallen off the bus.",
        Kind.MEMORY_ERROR: (
            "48, pid=4121, name=python, An uncorrectable double bit error (DBE) has been detected"
            " on GPU in the framebuffer at partition 3, subpartition 0."
        ),
        Kind.LINK_ERROR: (
            "74, pid=4121, name=python, NVLink: fatal error detected on link 6"
            "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"
        ),
    }
)


def healthy(machine: Machine, gpu: int) -> dict[Signal, float | None]:
    """The readings of a GPU without a fault."""
    values: dict[Signal, float | None] = {**_ALL, **_memory(machine.product)}
    if machine.product.nvlinks:
        values[Signal.NVLINKS_ACTIVE] = float(machine.links_active(gpu))
    return values


def _memory(product: Product) -> Mapping[Signal, float]:
    """Pages are retired on Volta; rows are remapped from Ampere on."""
    return _PAGES if product.key == "v100" else _REMAP


def faulty(machine: Machine, gpu: int, fault: Fault | None) -> dict[Signal, float | None] | None:
    """The readings of a GPU with this fault; None: the driver has lost the GPU."""
    if fault is None:
        return healthy(machine, gpu)
    if fault.kind is Kind.BUS_LOSS:
        return None
    return {**healthy(machine, gpu), **_FAULTY[fault.kind]}


def kernel_lines(machine: Machine, fault: Fault) -> str:
    """What the kernel prints when the fault begins; empty: nothing."""
    if fault.gpu is None or fault.kind not in _LINES:
        return ""
    bus = machine.pci(fault.gpu).rpartition(".")[0]
    return f"[{fault.start_s:12.6f}] NVRM: Xid (PCI:{bus}): {_LINES[fault.kind]}\n"
