"""How patient a reflector is, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Restart(StrEnum):
    """Why a watch or a list did not go on."""

    ENDED = "ended"
    """The server ended the watch, as it does every few minutes."""
    BROKEN = "broken"
    """No connection, or it broke."""
    SILENT = "silent"
    """Not even a bookmark came: the server hangs, or the network swallows what it says."""
    REFUSED = "refused"
    """An answer other than 200."""
    ASKED = "asked"
    """The controller wants a new list."""
    GONE = "gone"
    """The version is no longer kept (410)."""
    GARBAGE = "garbage"
    """What came is no JSON of an API server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The reflector's patience, in seconds."""

    watch_s: float = 300.0
    """How long one watch lasts, up to twice that: servers spread their load by it."""
    silence_s: float = 130.0
    """A watch that says nothing for so long is given up: a bookmark is due every minute or so."""
    absent_s: float = 60.0
    """How often it is asked, at most, whether what is not served is served by now; at least half
    that pause."""
    patience_s: float = 30.0
    """How long others wait for a kind that cannot be listed, once the rest is known."""
    first_pause_s: float = 0.2
    last_pause_s: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a reflector says of itself. Times are of the local monotonic clock, in seconds."""

    synced_s: float | None = None
    """When a list came through first, so that what the handler has is whole; None: none did yet."""
    barred: str | None = None
    """Why the last try to list failed, where none came through yet."""
    served: bool = True
    """Whether the API server has this kind of objects; where it has not, there are none."""
    heard_s: float | None = None
    """When the server said something last: a page, an event or a bookmark."""
    problem: str | None = None
    """Why nothing is heard; None: it is."""
    lists: int = 0
    skipped: int = 0
    """Objects that could not be told apart, or that the handler failed on."""

    @property
    def synced(self) -> bool:
        """Whether a list came through."""
        return self.synced_s is not None

    def silence_s(self, monotonic_s: float) -> float | None:
        """How long nothing was heard; None: never anything."""
        return None if self.heard_s is None else max(0.0, monotonic_s - self.heard_s)
