"""What a reader says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Times are those of the local monotonic clock, in seconds."""

    loaded: bool = False
    """Whether a Fleet was ever published."""
    connected: bool = False
    generation: int = 0
    """Of the Fleet that was published last."""
    heard_s: float | None = None
    """When the cache answered last; None: never."""
    recovering_since_s: float | None = None
    """Since when the old Fleet serves because the cache lost its data; None: it does not."""
    quarantined: int = 0
    """How many documents or stamps cannot be read; the Fleet names them."""
    reloads: int = 0
    """Full loads so far."""
    problem: str | None = None
    """Why the cache cannot be read; None while it can."""

    def cut_off_since_s(self) -> float | None:
        """Since when nothing was heard from the cache; None: connected, or never heard of."""
        return None if self.connected else self.heard_s

    def silence_s(self, monotonic_s: float) -> float | None:
        """How long ago the cache answered; None: never."""
        return None if self.heard_s is None else max(0.0, monotonic_s - self.heard_s)
