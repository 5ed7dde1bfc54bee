"""What a setting of a policy is: a field with its documentation, its source and its bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, Final

LARGEST: Final = 1e12
"""No threshold is larger, so that sums and products of them stay finite."""


def setting(
    default: Any, doc: str, source: str, low: float | None = 0, high: float | None = None
) -> Any:
    """A field with its documentation and its inclusive bounds (None: unbounded or not a number)."""
    metadata = {"doc": doc, "source": source, "low": low, "high": high}
    return dataclasses.field(default=default, metadata=metadata)


def settings(value: Any, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field[Any], Any]]:
    """Every leaf of a policy as (dotted path, its field, its value), in order of definition."""
    for spec in dataclasses.fields(value):
        current = getattr(value, spec.name)
        if dataclasses.is_dataclass(current):
            yield from settings(current, f"{prefix}{spec.name}.")
        else:
            yield f"{prefix}{spec.name}", spec, current


def out_of_range(value: Any) -> Iterator[tuple[str, str]]:
    """Every number of a policy that is outside its bounds, as (dotted path, what is wrong)."""
    for path, spec, number in settings(value):
        low, high = spec.metadata["low"], spec.metadata["high"]
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        most = LARGEST if high is None else high
        if math.isnan(number) or (low is not None and number < low) or number > most:
            bounded = high is not None or number > most
            allowed = f"{low or 0:g} to {most:g}" if bounded else f"{low:g} or more"
            yield path, f"{number:g} is out of range, allowed is {allowed}"
