"""Decode of XID 144-150, the NVLink errors of Blackwell.

Source: NVIDIA's XID catalogue, sheet "XID 144-150 Decode". The message names a unit and ends in
`(intrInfo errorStatus ...)`; those two words decide, not the number of the XID. Drivers before R575
keep the unit in intrInfo[9:5] and the family in [4:0]; later ones keep one unit number in [6:0].
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final


class Resolution(IntEnum):
    """What to do; the number is its weight, so `max` picks what decides."""

    IGNORE = 0
    FOLLOW_154 = 1
    """Do what an XID 154 says; without one only the application restarts."""
    RESET = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One unit of the link logic, by its number in both layouts, and the meaning of its status."""

    xid: int
    name: str
    before_r575: int
    since_r575: tuple[int, ...]
    ignore: frozenset[int] = frozenset()
    follow_154: frozenset[int] = frozenset()
    reset: frozenset[int] = frozenset()
    promoted: frozenset[int] = frozenset()
    """Values that count as `reset` where the bit above the unit says that they were made fatal."""
    keyed_by_reason: bool = False
    """The values are of intrInfo[25:20], not of errorStatus."""
    always: Resolution | None = None
    """The resolution whatever the status is."""
    is_mask: bool = True
    """Each bit of the status is an error of its own; False: the status is one number."""


def _mask(*bits: int) -> frozenset[int]:
    return frozenset(1 << bit for bit in bits)


_REASONS_TO_RESET: Final = frozenset(
    (0, 1, 2, 4, 10, 15, 16, 17, 18, 21, 22, 32, 33, 34, 35, 36, 37, 42, 43)
)
_PIPE_IGNORE: Final = _mask(0, 1, 31)
_PIPE_RESET: Final = _mask(2)

UNITS: Final[tuple[Unit, ...]] = (
    Unit(xid=144, name="SAW_MVB", before_r575=1, since_r575=(1,), ignore=_mask(0, 2, 3, 5), reset=_mask(1, 4)),
    Unit(xid=145, name="RLW_CTRL", before_r575=3, since_r575=(3,), ignore=_mask(31)),
    Unit(xid=145, name="RLW_REMAP", before_r575=4, since_r575=(4,), ignore=_mask(8, 9, 31), follow_154=_mask(0, 1, 2, 3, 4, 5), reset=_mask(6, 7)),
    Unit(xid=145, name="RLW_RSPCOL", before_r575=5, since_r575=(5,), ignore=_mask(0, 31), reset=_mask(1)),
    Unit(xid=145, name="RLW_RXPIPE", before_r575=6, since_r575=(6,), ignore=_mask(0, 1, 2, 3, 31), promoted=_mask(0, 1, 2)),
    Unit(xid=145, name="RLW_SRC_TRACK", before_r575=7, since_r575=(7,), ignore=_mask(1, 31), follow_154=_mask(2, 3), reset=_mask(0, 4, 5)),
    Unit(xid=145, name="RLW_TAGSTATE", before_r575=8, since_r575=(8,), ignore=_mask(0, 16, 31), reset=_mask(1, 17, 20)),
    Unit(xid=146, name="TLW_CTRL", before_r575=9, since_r575=(9,), ignore=_mask(0, 1, 31), reset=_mask(2)),
    Unit(xid=146, name="TLW_RX", before_r575=10, since_r575=(10, 11), ignore=_PIPE_IGNORE, reset=_PIPE_RESET),
    Unit(xid=146, name="TLW_TX", before_r575=11, since_r575=(12, 13), ignore=_PIPE_IGNORE, reset=_PIPE_RESET),
    Unit(xid=147, name="TREX", before_r575=12, since_r575=(14,), ignore=_mask(0, 31)),
    Unit(xid=148, name="NVLPW", before_r575=0, since_r575=(15,), ignore=_mask(31)),
    Unit(xid=149, name="NETIR_INT", before_r575=0, since_r575=(24,), always=Resolution.RESET),
    Unit(xid=149, name="NETIR_LINK_DOWN", before_r575=14, since_r575=(17,), ignore=frozenset((38, 40)), reset=_REASONS_TO_RESET, keyed_by_reason=True, is_mask=False),
    Unit(xid=149, name="NETIR_BER_EVENT", before_r575=17, since_r575=(19,), ignore=frozenset((0, 1, 2, 3)), is_mask=False),
    Unit(xid=149, name="NETIR_MFDE_EVENT", before_r575=18, since_r575=(20,), ignore=frozenset((3,)), reset=frozenset((1, 4, 5, 7)), is_mask=False),
    Unit(xid=150, name="MSE", before_r575=0, since_r575=(0,), reset=frozenset((0, 0xFFFF_FFFF)), is_mask=False),
)  # fmt: skip

CODES: Final = frozenset(unit.xid for unit in UNITS)

_FAMILY_OF_150: Final = 0
_WORD: Final = re.compile(r"0x([0-9a-f]{1,8})(?=[\s,)])", re.IGNORECASE)
_HEADER: Final = re.compile(r"\bi(?P<injected>[01])\s+Link\s+(?P<link>-?\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkError:
    """A decoded message."""

    unit: str | None = None
    """None: the two words name no unit of this XID, or are missing."""
    resolution: Resolution | None = None
    """None: not decodable, so nothing is known but that an error was reported."""
    link: int | None = None
    injected: bool = False
    """A test made the error on purpose; the link is as broken as by a real one."""
    words: tuple[int, ...] = field(default=())

    @property
    def meaning(self) -> str:
        """The error in words."""
        said = "not decodable" if self.resolution is None else self.resolution.name.lower()
        where = "" if self.link is None else f" on link {self.link}"
        return f"NVLink 5 {self.unit or 'error'}{where}: {said}{', injected' * self.injected}"


def decode(xid: int, text: str) -> LinkError:
    """Read the message of an XID 144-150. The layout of intrInfo is told by what it matches."""
    header = _HEADER.search(text)
    link = int(header["link"]) if header else None
    injected = header is not None and header["injected"] == "1"
    _, _, inside = text.partition("(")
    words = tuple(int(word, 16) for word in _WORD.findall(inside))
    if not words:
        return LinkError(link=link, injected=injected)
    unit, promoted = _unit(xid, words[0])
    return LinkError(
        unit=unit.name if unit else None,
        resolution=_resolve(unit, words, promoted=promoted) if unit else None,
        link=link,
        injected=injected,
        words=words,
    )


def _unit(xid: int, intr_info: int) -> tuple[Unit | None, bool]:
    """The unit, and whether the bit above its number is set. No word fits both layouts of a XID
    and differs in unit, which a test proves.
    """
    family = _FAMILY_OF_150 if xid == 150 else xid - 143
    for unit in UNITS:
        if unit.xid != xid:
            continue
        if intr_info & 0x1F == family and intr_info >> 5 & 0x1F == unit.before_r575:
            return unit, bool(intr_info >> 10 & 1)
        if intr_info & 0x7F in unit.since_r575:
            return unit, bool(intr_info >> 7 & 1)
    return None, False


def _resolve(unit: Unit, words: tuple[int, ...], *, promoted: bool) -> Resolution | None:
    reason = words[0] >> 20 & 0x3F
    if unit.keyed_by_reason:
        return _lookup(unit, (reason,), promoted=promoted)
    if reason:
        return None
    if unit.always is not None:
        return unit.always
    if len(words) < 2:
        return None
    status = words[1]
    if not unit.is_mask:
        return _lookup(unit, (status,), promoted=promoted)
    return _lookup(
        unit,
        [1 << bit for bit in range(status.bit_length()) if status >> bit & 1],
        promoted=promoted,
    )


def _lookup(unit: Unit, values: Iterable[int], *, promoted: bool) -> Resolution | None:
    found = [_resolution_of(unit, value, promoted=promoted) for value in values]
    known = [resolution for resolution in found if resolution is not None]
    # A value that nobody explains hides how bad the error is, unless another is as bad as can be.
    if len(known) < len(found) and Resolution.RESET not in known:
        return None
    return max(known, default=None)


def _resolution_of(unit: Unit, value: int, *, promoted: bool) -> Resolution | None:
    if value in unit.reset or (promoted and value in unit.promoted):
        return Resolution.RESET
    if value in unit.follow_154:
        return Resolution.FOLLOW_154
    return Resolution.IGNORE if value in unit.ignore else None
