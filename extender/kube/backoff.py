"""How long to wait before the next try: twice as long each time, never as long as the neighbour."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

LONGEST_ASKED_S: Final = 60.0
"""A server that asks for a longer pause is asked again after this one."""


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Pauses between tries, in seconds."""

    first_s: float = 0.2
    last_s: float = 10.0
    _next_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """What was tried last worked."""
        self._next_s = self.first_s

    def pause_s(self, asked_s: float = 0.0) -> float:
        """The next pause; not shorter than the server asked for, within reason."""
        pause_s = self._next_s * random.uniform(0.5, 1.0)
        self._next_s = min(2 * self._next_s, self.last_s)
        return max(pause_s, min(asked_s, LONGEST_ASKED_S))
