"""The versions of Kubernetes that Surefoot is tried on."""

from __future__ import annotations

from typing import Final

DEFAULT: Final = "1.37.2"
ALL: Final = ("1.34.9", "1.35.4", "1.36.3", DEFAULT)


def numbers(version: str) -> tuple[int, ...]:
    """1.37.2 as (1, 37, 2), which compares as versions do."""
    return tuple(int(part) for part in version.split("."))


def nearest(version: str, served: tuple[str, ...]) -> str | None:
    """The served patch release of the same minor version that is closest to `version`, if any."""
    wanted = numbers(version)
    same = [each for each in served if numbers(each)[:2] == wanted[:2]]
    return min(same, key=lambda each: abs(numbers(each)[2] - wanted[2]), default=None)
