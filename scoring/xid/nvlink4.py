"""Decode of XID 74, the NVLink error of Ampere and Hopper.

Source: NVIDIA's XID catalogue, bucket WORKFLOW_NVLINK_ERR. The message ends in seven registers; the
first, third, fourth and fifth carry meaning, bit by bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Sign(IntEnum):
    """What one bit says; the number is its weight, so `max` picks what decides."""

    HARMLESS = 0
    """May be ignored, or counts corrected errors only."""
    SYMPATHETIC = 1
    """The fault is elsewhere, as a rule; on its own it is a weak sign."""
    WATCH = 2
    """Parity, ECC or a rare event: act only when it comes back on the same link."""
    ACT = 3
    """Seating, cable, signal or silicon: the link is not usable before a reset."""
    FABRIC = 4
    """The whole fabric has to be reset."""


REGISTERS: Final = 7
REPEATS_TO_ACT: Final = 3
"""`WATCH` bits on one link within an incident from which they count as `ACT`."""

_ECC_OF_FIFTH: Final = (18, 19, 21, 22, 24, 25, 27, 28)
SIGNS: Final[Mapping[tuple[int, int], Sign]] = {
    (register, bit): sign
    for register, sign, bits in (
        (1, Sign.HARMLESS, (0, 23, 30)),
        (1, Sign.SYMPATHETIC, (1, 20)),
        (1, Sign.WATCH, (4, 5, 27, 29)),
        (1, Sign.ACT, (8, 9, 12, 16, 17, 21, 22, 24, 28)),
        (3, Sign.WATCH, (0, 1, 2, 6, 16, 17, 18, 19)),
        (3, Sign.ACT, (13,)),
        (4, Sign.SYMPATHETIC, (16, 17)),
        (4, Sign.FABRIC, (18,)),
        (5, Sign.WATCH, _ECC_OF_FIFTH),
        (5, Sign.HARMLESS, (20, 23, 26, 29)),
    )
    for bit in bits
}
"""Meaning by (register, bit), registers counted from 1. Any other bit acts: nobody explains it."""

_MESSAGE: Final = re.compile(r"\blink\s+(-?\d+)\s*(?:\(([0-9a-fx,\s]*)\))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkError:
    """A decoded XID 74."""

    sign: Sign
    link: int | None = None
    bits: tuple[tuple[int, int], ...] = ()
    """(register, bit) of every bit that was set; empty: the registers are missing or all zero."""

    @property
    def meaning(self) -> str:
        """The bits in words."""
        where = "NVLink" if self.link is None else f"NVLink {self.link}"
        if not self.bits:
            return f"{where} error, not decodable"
        bits = ", ".join(f"register {register} bit {bit}" for register, bit in self.bits)
        return f"{where} error, {self.sign.name.lower()}: {bits}"


def decode(text: str) -> LinkError:
    """Read the link and the registers of an XID 74 message; what cannot be read acts."""
    match = _MESSAGE.search(text)
    if match is None:
        return LinkError(sign=Sign.ACT)
    link = int(match[1])
    words = re.findall(r"0x[0-9a-f]+", match[2] or "", re.IGNORECASE)
    if len(words) != REGISTERS:
        return LinkError(sign=Sign.ACT, link=link)
    bits = tuple(_set_bits([int(word, 16) for word in words]))
    sign = max((SIGNS.get(bit, Sign.ACT) for bit in bits), default=Sign.ACT)
    return LinkError(sign=sign, link=link, bits=bits)


def _set_bits(registers: list[int]) -> Iterator[tuple[int, int]]:
    for number, value in enumerate(registers, start=1):
        yield from ((number, bit) for bit in range(value.bit_length()) if value >> bit & 1)
