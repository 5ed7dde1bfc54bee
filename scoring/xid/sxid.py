"""The SXID table: errors of an NVSwitch (DGX and HGX boards up to Hopper).

Source: NVIDIA Fabric Manager user guide, appendix on SXIDs. Later boards report switch trouble as
XID 144-150 of the GPUs. The driver prints how bad it took an error; for codes that the guide calls
fatal only in some places, and for codes it lacks, that word decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from scoring.model import Health, Scope


class SxidClass(StrEnum):
    """How the guide ranks a code."""

    CORRECTED = "corrected"
    PORT = "port"
    """Hurts one port or board; each code has its own state."""
    THERMAL = "thermal"
    POTENTIALLY_FATAL = "potentially-fatal"
    """Fatal for the GPU behind an access port, or for all partitions over a trunk port."""
    ALWAYS_FATAL = "always-fatal"
    """Fatal for the whole fabric."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SxidEntry:
    """One code. `state` is what it makes of the node's fabric; None: record only."""

    code: int
    kind: SxidClass
    meaning: str
    state: Health | None = None
    scope: Scope = Scope.FABRIC
    clears: frozenset[int] = frozenset()


_CORRECTED: Final[Mapping[str, tuple[int, ...]]] = {
    "corrected ECC error": (
        *(11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011),
        *(19049, 19055, 19057, 19059, 19062, 19065, 19068, 19071, 24001, 24002, 24003),
    ),
    "packets sent again": (20001,),
    "short errors received": (20009,),
    "request of the link controller": (22013,),
}
_POTENTIALLY_FATAL: Final[Mapping[str, tuple[int, ...]]] = {
    "host interface error": (10001, 10002),
    "invalid packet at an ingress port": (11001, 11009),
    "uncorrectable ECC error at an ingress port": (11013, 11018, 11019),
    "parity error at an ingress port": (11020,),
    "overflow or wrong route at an egress port": (12001, 12002, 12025),
    "uncorrectable ECC error at an egress port": (12022, 12024),
    "wrong request or response at an egress port": (12026, 12027, 12032),
    "parity error at an egress port": (12030, 12031),
    "a transaction timed out": (14017, 24007),
    "buffer error of the router": (15001, 15006),
    "uncorrectable ECC or parity error of the router": (15009, 15010, 15012, 15013),
    "uncorrectable ECC error of memory inside the switch": (
        *(19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063, 19064, 19066, 19067),
        *(19069, 19070),
    ),
    "an NVLink went down": (20034,),
    "uncorrectable error of the source tracker": (24004, 24005, 24006),
}
_ALWAYS_FATAL: Final[Mapping[str, tuple[int, ...]]] = {
    "unhandled interrupt of the host interface": (10003,),
    "packets out of sequence": (12020,),
    "the link controller halted": (22003, 22011),
    "the crossbar broke its protocol": tuple(range(23001, 23018)),
}
_SPECIAL: Final[tuple[SxidEntry, ...]] = (
    SxidEntry(code=10004, kind=SxidClass.THERMAL, meaning="the NVSwitch slows down: too hot", state=Health.SUSPECT),
    SxidEntry(code=10005, kind=SxidClass.THERMAL, meaning="the NVSwitch has cooled down", clears=frozenset((10004,))),
    SxidEntry(code=11004, kind=SxidClass.PORT, meaning="access between partitions refused: check the partitions", state=Health.SUSPECT),
    SxidEntry(code=12028, kind=SxidClass.PORT, meaning="traffic of the GPU at one port is stuck until its guest restarts", state=Health.DEGRADED),
    SxidEntry(code=19084, kind=SxidClass.PORT, meaning="heartbeat lost: all GPUs and NVSwitches must be reset", state=Health.RESET_REQUIRED, scope=Scope.NODE),
    SxidEntry(code=20012, kind=SxidClass.PORT, meaning="broken connection: a cable, or one side shut down alone", state=Health.DEGRADED),
)  # fmt: skip

SXIDS: Final[Mapping[int, SxidEntry]] = {
    entry.code: entry
    for entry in (
        *_SPECIAL,
        *(
            SxidEntry(code=code, kind=kind, meaning=meaning, state=state, scope=scope)
            for kind, state, scope, table in (
                (SxidClass.CORRECTED, None, Scope.FABRIC, _CORRECTED),
                (
                    SxidClass.POTENTIALLY_FATAL,
                    Health.RESET_REQUIRED,
                    Scope.FABRIC,
                    _POTENTIALLY_FATAL,
                ),
                (SxidClass.ALWAYS_FATAL, Health.REBOOT_REQUIRED, Scope.NODE, _ALWAYS_FATAL),
            )
            for meaning, codes in table.items()
            for code in codes
        ),
    )
}
"""Every code of the guide."""


def sxid_entry_of(code: int) -> SxidEntry:
    """The entry of a code; one that the guide lacks makes the fabric SUSPECT."""
    return SXIDS.get(code) or SxidEntry(
        code=code,
        kind=SxidClass.UNKNOWN,
        meaning=f"unknown SXID {code}",
        state=Health.SUSPECT,
    )


def state_of(entry: SxidEntry, *, fatal: bool | None) -> Health | None:
    """The state that one error of this code leads to, given the driver's own word for it."""
    if entry.kind is SxidClass.POTENTIALLY_FATAL and fatal is False:
        return Health.SUSPECT
    if entry.kind in (SxidClass.CORRECTED, SxidClass.UNKNOWN, SxidClass.PORT) and fatal:
        return max(entry.state or Health.HEALTHY, Health.RESET_REQUIRED)
    return entry.state
