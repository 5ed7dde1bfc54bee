"""One object for equal values: pods of one template say the same, thousands of times."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeVar

MOST: Final = 1 << 14
"""Values that are remembered. Beyond it all are forgotten, which costs memory and nothing else."""

T = TypeVar("T", bound=Hashable)


class Sharing:
    """Safe for many threads."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, value: T) -> T:
        """The first value equal to this one."""
        if len(self._known) >= MOST:
            self._known = {}
        # By type too: 1 == True, and a tuple equals a named one.
        found: T = self._known.setdefault((type(value), value), value)
        return found
