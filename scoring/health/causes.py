"""The catalogue of causes other than XIDs: what each one means, and when it is over.

`docs/health.md` and the advice in explanations are made from it. XID and SXID causes come with their
own state and scope (`scoring.xid`) and clear as `CLEAR_OF_EVENT` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from scoring.model import Health, Scope
from scoring.signals.thresholds import Entry


class Clear(StrEnum):
    """When a cause is over. Only this closes it; nothing that concerns another cause does."""

    NEVER = "never"
    """Another board in the slot, or an operator's override."""
    REPAIR = "repair"
    """A reset or reboot, then `eventCleanPolls` polls; PROBATION follows."""
    COUNTER = "counter"
    """The counter starts again; PROBATION follows."""
    FLAG = "flag"
    """The flag is down in a full sample."""
    POLLS = "polls"
    """`eventCleanPolls` clean polls."""
    LEVEL = "level"
    """`cleanPolls` clean polls that span the exit delay of flap damping."""
    RATE = "rate"
    """Below `rateClearRatio` of the trip level for `rateClear`."""
    WINDOW = "window"
    """Nothing more in the pattern's window."""
    SAMPLE = "sample"
    """A full sample; two in a row after long silence."""
    TIME = "time"
    """Its term, in which silence does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseSpec:
    """One kind of cause."""

    id: str
    state: Health
    scope: Scope
    entry: Entry
    clear: Clear
    meaning: str
    advice: str
    counts: bool = True
    """Whether entering it adds to the flap penalty when it is DEGRADED or worse."""


def _spec(
    id_: str,
    state: Health,
    clear: Clear,
    entry: Entry,
    meaning: str,
    advice: str,
    *,
    scope: Scope = Scope.GPU,
    counts: bool = True,
) -> CauseSpec:
    return CauseSpec(
        id=id_,
        state=state,
        scope=scope,
        entry=entry,
        clear=clear,
        meaning=meaning,
        advice=advice,
        counts=counts,
    )


_RESET: Final = "Drain the GPU and reset it, or reboot the node."
_REPLACE: Final = "Run the vendor's field diagnosis and replace the board."
_COOL: Final = "Look at airflow, inlet temperature and fans."
_LINKS: Final = (
    "Look at `nvidia-smi nvlink -s` and the fabric manager; reset the GPU when convenient."
)
_FABRIC: Final = "Look at the fabric manager (or NMX) and `nvidia-smi -q` under Fabric."
_WAIT: Final = "Wait, or put an Override after a test of the GPU."

SPECS: Final[tuple[CauseSpec, ...]] = (
    _spec("recovery.action", Health.RESET_REQUIRED, Clear.REPAIR, Entry.FLAG, "The driver asks for a recovery action.", _RESET),
    _spec("ecc.dbe", Health.RESET_REQUIRED, Clear.COUNTER, Entry.FLAG, "An uncorrectable memory error since the driver was loaded.", _RESET),
    _spec("ecc.sbe_rate", Health.SUSPECT, Clear.RATE, Entry.RATE, "Correctable memory errors come in a storm.", "Watch the GPU; run a memory test when it is free."),
    _spec("ecc.sram_threshold", Health.FAILED, Clear.NEVER, Entry.FLAG, "On-chip memory had more errors than the vendor tolerates.", _REPLACE),
    _spec("memory.unrepairable", Health.FAILED, Clear.NEVER, Entry.FLAG, "Memory cannot be repaired any more.", _REPLACE),
    _spec("remap.pending", Health.DEGRADED, Clear.FLAG, Entry.FLAG, "A memory row waits for a reset to be replaced.", "Reset the GPU when convenient; it may be used meanwhile."),
    _spec("remap.failed", Health.FAILED, Clear.NEVER, Entry.FLAG, "A memory row could not be replaced.", _REPLACE),
    _spec("remap.rows", Health.SUSPECT, Clear.FLAG, Entry.FLAG, "Few or no spare memory rows are left.", "Plan to replace the board."),
    _spec("pages.pending", Health.DEGRADED, Clear.FLAG, Entry.FLAG, "A memory page waits for a reset to be retired.", "Reset the GPU when convenient; it may be used meanwhile."),
    _spec("pages.exhausted", Health.FAILED, Clear.NEVER, Entry.FLAG, "As many memory pages are retired as the vendor allows.", _REPLACE),
    _spec("throttle.hw", Health.DEGRADED, Clear.LEVEL, Entry.LEVEL, "The hardware slows the clocks, or the power brake is on.", "Look at the power supplies and the rack's power budget."),
    _spec("throttle.thermal", Health.DEGRADED, Clear.LEVEL, Entry.LEVEL, "The clocks are slowed for heat.", _COOL),
    _spec("thermal", Health.DEGRADED, Clear.LEVEL, Entry.LEVEL, "The GPU is hotter than its slowdown limit.", _COOL),
    _spec("pcie.width", Health.DEGRADED, Clear.LEVEL, Entry.LEVEL, "The PCIe link is narrower than the board can.", "Reseat the board or its riser; reboot."),
    _spec("pcie.replay", Health.SUSPECT, Clear.RATE, Entry.RATE, "The PCIe link repeats more than the vendor tolerates.", "Reseat the board or its riser."),
    _spec("nvlink.down", Health.DEGRADED, Clear.LEVEL, Entry.LEVEL, "NVLinks of the GPU are down.", _LINKS, scope=Scope.LINK),
    _spec("nvlink.errors", Health.DEGRADED, Clear.RATE, Entry.RATE, "NVLinks of the GPU repeat, recover or garble data.", _LINKS, scope=Scope.LINK),
    _spec("nvlink.crc", Health.SUSPECT, Clear.RATE, Entry.RATE, "NVLinks of the GPU see CRC errors.", _LINKS, scope=Scope.LINK),
    _spec("fabric.state", Health.DEGRADED, Clear.POLLS, Entry.LEVEL, "The GPU has not joined its NVLink fabric.", _FABRIC, scope=Scope.FABRIC),
    _spec("fabric.unhealthy", Health.DEGRADED, Clear.POLLS, Entry.FLAG, "The NVLink fabric of the GPU has a fault.", _FABRIC, scope=Scope.FABRIC),
    _spec("fabric.limited", Health.SUSPECT, Clear.POLLS, Entry.FLAG, "The NVLink fabric of the GPU works with less than its bandwidth.", _FABRIC, scope=Scope.FABRIC),
    _spec("dcgm.fail", Health.DEGRADED, Clear.POLLS, Entry.FLAG, "DCGM's health watch fails the GPU.", "Look at `dcgmi health --check`."),
    _spec("dcgm.warn", Health.SUSPECT, Clear.POLLS, Entry.FLAG, "DCGM's health watch warns of the GPU.", "Look at `dcgmi health --check`."),
    _spec("gpu.lost", Health.REBOOT_REQUIRED, Clear.REPAIR, Entry.EVENT, "The GPU is not on the bus any more.", "Drain and reboot the node; a power cycle if that does not help."),
    _spec("gpu.new", Health.NEW, Clear.SAMPLE, Entry.EVENT, "No full sample of the GPU has come yet.", "Wait for its first full sample.", counts=False),
    _spec("stale", Health.UNMONITORED, Clear.SAMPLE, Entry.EVENT, "The last full sample of the GPU is old.", "Look at the agent, the exporter and the driver on that node.", counts=False),
    _spec("pattern", Health.SUSPECT, Clear.WINDOW, Entry.EVENT, "Several workloads failed on this GPU with application faults.", "Run the vendor's diagnosis when the GPU is free."),
    _spec("probation", Health.PROBATION, Clear.TIME, Entry.EVENT, "The GPU just came back from a repair.", _WAIT, counts=False),
    _spec("flap", Health.PROBATION, Clear.TIME, Entry.EVENT, "The GPU keeps getting into trouble.", _WAIT, counts=False),
    _spec("flap.failed", Health.FAILED, Clear.NEVER, Entry.EVENT, "The GPU got into trouble so often that it needs an inspection.", _REPLACE, counts=False),
)  # fmt: skip

CATALOGUE: Final[Mapping[str, CauseSpec]] = MappingProxyType({spec.id: spec for spec in SPECS})


def clear_of(cause_id: str, state: Health) -> Clear:
    """When a cause is over; one that the catalogue does not list is an event (XID, SXID)."""
    spec = CATALOGUE.get(cause_id)
    if spec is not None:
        return spec.clear
    return Clear.WINDOW if state <= Health.SUSPECT else Clear.REPAIR


def counts_of(cause_id: str) -> bool:
    """Whether entering the cause is a sign of a flapping GPU."""
    spec = CATALOGUE.get(cause_id)
    return spec is None or spec.counts
