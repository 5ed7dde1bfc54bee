"""Values that stand for "no value": DCGM's and NVML's sentinels, NaN, and sensors that do not exist.

A blank becomes `None`, never 0 (invariant 2). Sources: DCGM dcgm_structs.h (blank values of
int32, int64 and double, each the first of sixteen), dcgm-exporter README (they leak into the page).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from scoring.signals.catalogue import MAY_BE_NEGATIVE, Signal

INT32_BLANK: Final = 0x7FFFFFF0
INT64_BLANK: Final = 0x7FFFFFFFFFFFFFF0
FLOAT_BLANK: Final = 140_737_488_355_328.0
"""2^47: the first of DCGM's blank doubles. No signal here reaches it, blank int64s lie above it."""
_BLANKS_OF_A_KIND: Final = 16

ZERO_IS_NO_SENSOR: Final = frozenset({Signal.MEMORY_TEMP_C})
"""Boards with GDDR have no memory sensor and say 0 degrees."""


def value_of(signal: Signal, raw: float | None) -> float | None:
    """`raw` as a measurement of `signal`; None where it stands for no value."""
    if raw is None or not math.isfinite(raw) or raw >= FLOAT_BLANK:
        return None
    if INT32_BLANK <= raw < INT32_BLANK + _BLANKS_OF_A_KIND:
        return None
    if raw < 0 and signal not in MAY_BE_NEGATIVE:
        return None
    if raw == 0 and signal in ZERO_IS_NO_SENSOR:
        return None
    return raw + 0.0  # also makes -0 a 0


def measured(raw: Mapping[Signal, float | None]) -> Iterator[tuple[Signal, float]]:
    """The signals of `raw` that carry a measurement."""
    for signal, each in raw.items():
        if each is not None and 0 < each < INT32_BLANK:  # nearly all: no blank is among them
            yield signal, each
            continue
        value = value_of(signal, each)
        if value is not None:
            yield signal, value
