"""The times that kernel logs print, as seconds whose differences mean something.

Only a stamp with a time zone is Unix time; the others count from an unknown start (boot, or the
local year), good enough to tell whether two messages are of one incident.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

DAY_S: Final = 86_400
_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]

_BOOT: Final = re.compile(r"\[\s*<?\s*(\d+\.\d+)>?\s*\]")
_ISO: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:[.,]\d+)?)\s*(?:(Z|UTC)|([+-])(\d\d):?(\d\d))?"
)
_NAMED: Final = re.compile(
    r"\b([A-Za-z]{3})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:\s+(\d{4}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """When a message was printed."""

    unix_s: float | None = None
    clock_s: float | None = None


NO_STAMP: Final = Stamp()


def stamp_of(prefix: str) -> Stamp:
    """Read the prefix of a log line. Months of other languages than English are not read."""
    boot = _BOOT.search(prefix)
    iso = _ISO.search(prefix)
    if iso:
        local_s = _seconds(int(iso[1]), int(iso[2]), int(iso[3]), (iso[4], iso[5], iso[6]))
        unix_s = local_s if iso[7] else None
        if iso[8]:
            offset_s = int(iso[9]) * 3600 + int(iso[10]) * 60
            unix_s = local_s - offset_s if iso[8] == "+" else local_s + offset_s
        return Stamp(unix_s=unix_s, clock_s=float(boot[1]) if boot else local_s)
    if boot:
        return Stamp(clock_s=float(boot[1]))
    named = _NAMED.search(prefix)
    if named and named[1].lower() in _MONTHS:
        month = _MONTHS.index(named[1].lower()) + 1
        year = int(named[6]) if named[6] else 2000
        return Stamp(clock_s=_seconds(year, month, int(named[2]), (named[3], named[4], named[5])))
    return NO_STAMP


def _seconds(year: int, month: int, day: int, time: tuple[str, str, str]) -> float:
    """Seconds since 1970 in the proleptic Gregorian calendar; the date is not checked."""
    # Years that start in March put the leap day last, so that month lengths follow one formula.
    shifted = year - (month <= 2)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = 365 * shifted + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year - 719_468
    hour, minute, second = time
    clock_s = int(hour) * 3600 + int(minute) * 60 + float(second.replace(",", "."))
    return days * DAY_S + clock_s
