"""What the kernel log said of GPUs and NVSwitches, one value per message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVIDENCE_MAX: Final = 200
"""Characters of a log line that are kept as evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """What every message has in common."""

    pci: str | None
    """`0000:3b:00.0`, lower case; None: the message names no device."""
    line: str = ""
    """The message as printed, without the prefix of the log."""
    unix_s: float | None = None
    """When it was printed, Unix time; None: the log does not say, or not with its time zone."""
    clock_s: float | None = None
    """The same on the log's own clock (since boot, or local time): only differences mean anything."""
    count: int = 1
    """How often; above 1 where the log folded repeats."""

    @property
    def evidence(self) -> str:
        """The message, short enough to show."""
        return (
            self.line if len(self.line) <= EVIDENCE_MAX else f"{self.line[: EVIDENCE_MAX - 3]}..."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid(KernelEvent):
    """One `NVRM: Xid` message."""

    code: int
    text: str = ""
    """What follows the code."""
    gpu_instance: int | None = None
    compute_instance: int | None = None
    """The MIG instances that the message names, where it names any."""

    @property
    def id(self) -> str:
        """The name of the code: `xid.79`."""
        return f"xid.{self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost(KernelEvent):
    """The driver says that a GPU has fallen off the bus, in a message without an XID."""

    @property
    def id(self) -> str:
        """The name of the fault."""
        return "gpu.lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sxid(KernelEvent):
    """One error of an NVSwitch; `pci` is the switch's. Its detail lines are folded into it."""

    code: int
    text: str = ""
    fatal: bool | None = None
    """The driver's own word; None: it gave none."""
    link: int | None = None

    @property
    def id(self) -> str:
        """The name of the code: `sxid.20034`."""
        return f"sxid.{self.code}"


GpuEvent = Xid | Lost
