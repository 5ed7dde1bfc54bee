"""What was looked at as it is no more, as a refused write tells, though the view may show it so still."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Outdated(Generic[K]):
    """Things whose last write was in vain, and the versions of them that are old. `note` is for any
    thread, the rest for one at a time.
    """

    def __init__(self) -> None:
        self.vain = 0
        """Writes to what was gone, or not any more what it had been looked at as."""
        self._noted: deque[tuple[K, str]] = deque()
        self._versions: dict[K, str] = {}

    def __contains__(self, key: K) -> bool:
        """Whether the view shows it as it was."""
        return key in self._versions

    def __len__(self) -> int:
        """How many there are: mostly none."""
        return len(self._versions)

    def forget(self) -> None:
        """Begin anew."""
        self._versions.clear()

    def note(self, key: K, version: str) -> None:
        """A write to it as it was in `version` was in vain."""
        self.vain += 1
        self._noted.append((key, version))

    def take(self) -> Sequence[K]:
        """What was noted since the last call."""
        noted = [self._noted.popleft() for _ in range(len(self._noted))]
        self._versions.update(noted)
        return [key for key, _ in noted]

    def settle(self, version_of: Callable[[K], str | None]) -> Sequence[K]:
        """Let go what the view shows in another version now, or not at all (None); these."""
        settled = [key for key, old in self._versions.items() if version_of(key) != old]
        for key in settled:
            del self._versions[key]
        return settled
