"""How many writes may go out now."""

from __future__ import annotations


class Pace:
    """Credit that grows with time, up to one second's worth or one write."""

    def __init__(self, rate_hz: float) -> None:
        self._rate_hz = rate_hz
        self._credit = 0.0
        self._at_s: float | None = None

    def allows(self, now_s: float) -> int:
        """How many writes may go out at `now_s`, which never falls."""
        passed_s = 0.0 if self._at_s is None else now_s - self._at_s
        first = max(1.0, self._rate_hz)
        self._credit = first if self._at_s is None else self._credit + passed_s * self._rate_hz
        self._credit = min(self._credit, first)
        self._at_s = now_s
        return int(self._credit)

    def spend(self, writes: int) -> None:
        """They went out."""
        self._credit -= writes
