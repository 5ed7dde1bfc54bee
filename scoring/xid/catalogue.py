"""The XID table: what each code means, how bad it is, and what it follows.

Codes, driver branches and actions are NVIDIA's (XID catalogue of docs.nvidia.com/deploy/xid-errors,
header nverror.h of the open kernel modules). States are Surefoot's reading of them
(docs/adr/0004): an application's fault is recorded, never held against the GPU by itself; where
NVIDIA gives no action the state is the cautious one. 74 and 144-150 are decoded and 154 is read
before this table is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scoring.model import Health, Scope


class XidClass(StrEnum):
    """Whose fault it is, as a rule."""

    APPLICATION = "application"
    DRIVER = "driver"
    MEMORY = "memory"
    LINK = "link"
    HARDWARE = "hardware"
    INFORMATION = "information"
    RETIRED = "retired"
    """No longer printed by data-centre drivers: seen today, it is a reason to look."""
    UNKNOWN = "unknown"
    """Not in this table."""


class Pattern(StrEnum):
    """When a recorded code says something about the GPU after all (`PatternPolicy`)."""

    WORKLOADS = "workloads"
    """Several workloads met it on one GPU."""
    REPEAT = "repeat"
    """It came back in another incident within the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One code."""

    code: int
    kind: XidClass
    meaning: str
    state: Health | None = None
    """The state it puts the GPU in; None: record only."""
    scope: Scope = Scope.GPU
    linked_from: int | None = None
    """First driver branch in which it moves the recovery action, 0: each that has the code, None:
    no link is documented, so an action of none proves nothing for it."""
    pattern: Pattern | None = None
    follows: frozenset[int] = frozenset()
    """Codes that drag this one along: after one of them in an incident, this one says nothing."""
    detail_of: int | None = None
    """The code of which this one only tells more, before or after it."""
    clears: frozenset[int] = frozenset()
    """Codes whose trouble ends with this one."""
    per_instance: bool = False
    """Contained in the MIG instance that the message names."""


_RESET: Final = Health.RESET_REQUIRED
_REBOOT: Final = Health.REBOOT_REQUIRED
_SUSPECT: Final = Health.SUSPECT
_DEGRADED: Final = Health.DEGRADED

_NVLINK5: Final = frozenset(range(144, 150))
_MEMORY_FAULTS: Final = frozenset((48, 94, 95))

_ENGINES: Final[Mapping[str, tuple[int, ...]]] = {
    "a copy engine raised an exception": (
        *(39, 40, 41, 70, 71, 72, 75, 76, 77, 85),
        *range(126, 136),
    ),
    "a video decoder raised an exception": (68, 83, 84, 88, 89, 96, 97, 98),
    "a JPEG decoder raised an exception": (82, *range(99, 106)),
    "the optical-flow engine raised an exception": (86, 139),
}
"""Codes that differ only in the number of the engine."""

_APPLICATION: Final[Mapping[int, str]] = {
    8: "a channel sat idle too long",
    11: "a push buffer was broken or asked for hardware that is not there",
    13: "a compute or graphics kernel raised an exception, mostly an illegal access or instruction",
    25: "a push buffer held an illegal command",
    31: "a kernel touched an address that is not mapped",
    32: "a push buffer reached the GPU corrupted",
    43: "a channel was reset after an error of its application",
    60: "a video or security engine raised an exception",
    69: "a kernel used a graphics class wrongly",
    137: "a peer used NVLink for an illegal access",
}

_RETIRED: Final[Mapping[str, tuple[int, ...]]] = {
    "retired: bad push buffer": (1, 2, 3, 4, 6, 20, 21, 22),
    "retired: bad address in a push buffer": (7,),
    "retired: the driver programmed the GPU wrongly": (9, 12),
    "retired: display engine error": (16, 19, 56, 81, *range(111, 119)),
    "retired: bus mastering is off": (18,),
    "retired: semaphore time-out or access error": (24, 30),
    "retired: framebuffer time-out": (26,),
    "retired: video engine exception": (27, 28, 29, 34, 35, 36, 42, 47, 65, 73),
    "retired: micro-controller error": (33, 59, 61),
    "retired: video memory interface cannot be programmed or is unstable": (57, 58),
    "retired: InfoROM flash cannot be read, written or erased": (122, 123, 124, 125),
    "reserved, never printed by a released driver": (
        *(5, 10, 15, 17, 23, 49, 50, 51, 52, 53, 55, 87, 90, 91, 138),
    ),
}

_ENTRIES: Final[tuple[Entry, ...]] = (
    Entry(code=14, kind=XidClass.INFORMATION, meaning="an error injected from user space"),
    Entry(code=37, kind=XidClass.DRIVER, meaning="firmware met a method it does not know"),
    Entry(code=38, kind=XidClass.DRIVER, meaning="the watchdog of a firmware ran out", pattern=Pattern.REPEAT),
    Entry(code=44, kind=XidClass.DRIVER, meaning="a fault during a context switch", pattern=Pattern.REPEAT),
    Entry(code=45, kind=XidClass.INFORMATION, meaning="channels torn down: the job was killed or another fault came first", pattern=Pattern.WORKLOADS, follows=_MEMORY_FAULTS | _NVLINK5),
    Entry(code=46, kind=XidClass.HARDWARE, meaning="the GPU stopped processing", state=_RESET),
    Entry(code=48, kind=XidClass.MEMORY, meaning="uncorrectable ECC error", state=_RESET, linked_from=565, follows=_NVLINK5),
    Entry(code=54, kind=XidClass.HARDWARE, meaning="auxiliary power is not connected", state=Health.FAILED),
    Entry(code=62, kind=XidClass.HARDWARE, meaning="the power-management controller halted", state=_RESET, linked_from=565),
    Entry(code=63, kind=XidClass.MEMORY, meaning="a memory row or page was noted for replacement; its flags say what is pending", linked_from=565),
    Entry(code=64, kind=XidClass.MEMORY, meaning="a memory row or page could not be noted for replacement", state=_RESET, linked_from=565),
    Entry(code=66, kind=XidClass.DRIVER, meaning="the driver accessed a register illegally"),
    Entry(code=67, kind=XidClass.DRIVER, meaning="the driver broke a rule of the firmware"),
    Entry(code=74, kind=XidClass.LINK, meaning="NVLink error", state=_RESET, scope=Scope.LINK, linked_from=565),
    Entry(code=78, kind=XidClass.DRIVER, meaning="a vGPU cannot start with this configuration"),
    Entry(code=79, kind=XidClass.LINK, meaning="the GPU fell off the PCIe bus", state=_REBOOT, linked_from=565),
    Entry(code=80, kind=XidClass.APPLICATION, meaning="a push buffer failed its checksum", pattern=Pattern.REPEAT),
    Entry(code=92, kind=XidClass.MEMORY, meaning="many corrected ECC errors", state=_SUSPECT),
    Entry(code=93, kind=XidClass.HARDWARE, meaning="the InfoROM wears out"),
    Entry(code=94, kind=XidClass.MEMORY, meaning="memory error contained in one application; reset when convenient", state=_DEGRADED, linked_from=565, per_instance=True),
    Entry(code=95, kind=XidClass.MEMORY, meaning="memory error that no application contains", state=_RESET, linked_from=565),
    Entry(code=106, kind=XidClass.INFORMATION, meaning="test message of the management bus"),
    Entry(code=107, kind=XidClass.INFORMATION, meaning="silent test message of the management bus"),
    Entry(code=108, kind=XidClass.INFORMATION, meaning="an address of a peer could not be translated"),
    Entry(code=109, kind=XidClass.DRIVER, meaning="context switch timed out; only the recovery action tells how bad", state=_SUSPECT, linked_from=570),
    Entry(code=110, kind=XidClass.DRIVER, meaning="security fault", state=_RESET, linked_from=565),
    Entry(code=119, kind=XidClass.DRIVER, meaning="the GPU system processor does not answer", state=_RESET, follows=frozenset((79,))),
    Entry(code=120, kind=XidClass.DRIVER, meaning="the GPU system processor failed", state=_RESET, linked_from=565),
    Entry(code=121, kind=XidClass.LINK, meaning="corrected errors of the chip-to-chip link", pattern=Pattern.REPEAT),
    Entry(code=136, kind=XidClass.LINK, meaning="NVLink training failed", state=_RESET, scope=Scope.FABRIC, linked_from=565),
    Entry(code=140, kind=XidClass.MEMORY, meaning="uncorrectable ECC error that replacement did not catch", state=_RESET),
    Entry(code=141, kind=XidClass.DRIVER, meaning="error of the CUDA fast path"),
    Entry(code=142, kind=XidClass.HARDWARE, meaning="a video encoder failed (some lists read it as an unrecovered ECC error)", state=_SUSPECT),
    Entry(code=143, kind=XidClass.DRIVER, meaning="the GPU could not be initialised", state=_RESET, linked_from=575),
    Entry(code=151, kind=XidClass.DRIVER, meaning="key rotation failed; the virtual machine has to restart", state=_REBOOT),
    Entry(code=152, kind=XidClass.INFORMATION, meaning="memory fault of an accelerator that data-centre GPUs lack"),
    Entry(code=153, kind=XidClass.INFORMATION, meaning="time-out of an accelerator that data-centre GPUs lack"),
    Entry(code=154, kind=XidClass.INFORMATION, meaning="the recovery action changed, to what is not readable", state=_SUSPECT, linked_from=0),
    Entry(code=155, kind=XidClass.LINK, meaning="an NVLink was taken down by software", state=_RESET, linked_from=565),
    Entry(code=156, kind=XidClass.MEMORY, meaning="a faulty unit was retired; reset when convenient", state=_DEGRADED, linked_from=565),
    Entry(code=157, kind=XidClass.MEMORY, meaning="a faulty unit could not be retired, no spare is left", state=_DEGRADED),
    Entry(code=158, kind=XidClass.DRIVER, meaning="fatal time-out of the GPU", state=_RESET, linked_from=0),
    Entry(code=159, kind=XidClass.DRIVER, meaning="chip-to-chip protocol error; a reset is needed only under unified memory or vGPU", state=_SUSPECT, linked_from=0),
    Entry(code=160, kind=XidClass.MEMORY, meaning="a channel was retired", linked_from=575),
    Entry(code=161, kind=XidClass.MEMORY, meaning="a channel could not be retired", linked_from=575, pattern=Pattern.REPEAT),
    Entry(code=162, kind=XidClass.HARDWARE, meaning="power smoothing is on again", clears=frozenset((163,))),
    Entry(code=163, kind=XidClass.HARDWARE, meaning="power smoothing is off"),
    Entry(code=164, kind=XidClass.HARDWARE, meaning="power smoothing wears out"),
    Entry(code=165, kind=XidClass.HARDWARE, meaning="power smoothing is worn out"),
    Entry(code=166, kind=XidClass.INFORMATION, meaning="confidential traffic before the link was encrypted"),
    Entry(code=167, kind=XidClass.LINK, meaning="fatal time-out on PCIe", state=_REBOOT),
    Entry(code=168, kind=XidClass.MEMORY, meaning="part of the memory is not usable", state=_DEGRADED),
    Entry(code=169, kind=XidClass.HARDWARE, meaning="a security controller halted", state=_RESET),
    Entry(code=170, kind=XidClass.INFORMATION, meaning="NVLink interrupt of confidential computing"),
    Entry(code=171, kind=XidClass.MEMORY, meaning="uncorrectable error in memory chips", state=_RESET, detail_of=48),
    Entry(code=172, kind=XidClass.MEMORY, meaning="uncorrectable error in on-chip memory", state=_RESET, detail_of=48),
    Entry(code=173, kind=XidClass.LINK, meaning="the chip-to-chip link failed", state=_REBOOT),
)  # fmt: skip


def _all() -> Iterator[Entry]:
    yield from _ENTRIES
    for code in sorted(_NVLINK5 | {150}):
        yield Entry(
            code=code,
            kind=XidClass.LINK,
            meaning="NVLink 5 error, not decodable",
            state=_SUSPECT,
            linked_from=565,
        )
    for meaning, codes in (
        *_ENGINES.items(),
        *((text, (code,)) for code, text in _APPLICATION.items()),
    ):
        for code in codes:
            yield Entry(
                code=code,
                kind=XidClass.APPLICATION,
                meaning=meaning,
                pattern=Pattern.WORKLOADS,
            )
    for meaning, codes in _RETIRED.items():
        for code in codes:
            yield Entry(code=code, kind=XidClass.RETIRED, meaning=meaning, state=_SUSPECT)


CATALOGUE: Final[Mapping[int, Entry]] = {entry.code: entry for entry in _all()}
"""Every code of the catalogue, 1 to 173."""


def entry_of(code: int) -> Entry:
    """The entry of a code; one that is not in the table makes the GPU SUSPECT."""
    return CATALOGUE.get(code) or Entry(
        code=code, kind=XidClass.UNKNOWN, meaning=f"unknown XID {code}", state=_SUSPECT
    )
