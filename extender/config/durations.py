"""Durations as Go writes them: `300ms`, `1m30s`, `4h` (https://pkg.go.dev/time#ParseDuration)."""

from __future__ import annotations

import re
from typing import Final

UNITS_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{0,9})?)(ns|us|µs|ms|s|m|h)")
LONGEST_S: Final = 10 * 365 * 86_400.0
"""Ten years: what is longer is a slip of the pen."""


def parse_s(text: str) -> float:
    """Seconds of a Go duration, not negative and at most ten years.

    Raises:
        ValueError: with a sentence that says what is wrong and what is allowed.
    """
    if text == "0":
        return 0.0
    total_s, at = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != at:
            break
        total_s += float(part[1]) * UNITS_S[part[2]]
        at = part.end()
    if at != len(text) or not text:
        raise ValueError(f"{text!r} is no duration, write it like 300ms, 90s, 1m30s or 4h")
    if total_s > LONGEST_S:
        raise ValueError(f"{text!r} is longer than ten years")
    return total_s


def show(seconds: float) -> str:
    """The shortest Go duration that says the same, to the millisecond."""
    left_ms = round(seconds * 1000)
    parts = []
    for unit, size_ms in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, left_ms = divmod(left_ms, size_ms)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0"


def ago(age_s: float) -> str:
    """An age for people, in whole seconds: `1m31s ago`."""
    seconds = max(0, round(age_s))
    return f"{show(seconds)} ago" if seconds else "0s ago"
