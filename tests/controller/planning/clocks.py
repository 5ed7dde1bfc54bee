"""Time that a test moves on."""

from __future__ import annotations


class Clock:
    """All clocks of what is tested show this."""

    def __init__(self) -> None:
        self.now_s = 1_790_000_000.0

    def __call__(self) -> float:
        """Now."""
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        """Time passes."""
        self.now_s += seconds
