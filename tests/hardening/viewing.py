"""A reader with short ticks, and what it showed last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from servers import eventually

from extender.store.connect import StoreSettings
from extender.store.reader import Reader
from extender.store.status import Status
from scoring.model import Fleet


class View:
    """What a reader shows."""

    def __init__(self, settings: StoreSettings) -> None:
        self.fleet: Fleet | None = None
        self._reader = Reader(settings, self._publish, seen_every_s=0.1, tick_s=0.05)

    @property
    def status(self) -> Status:
        """The reader's word on itself."""
        return self._reader.status

    def shows(self, *names: str) -> bool:
        """Whether exactly these nodes are in the Fleet, and seen."""
        found = self.fleet
        return found is not None and set(found.nodes) == set(names) == set(found.seen_s)

    def start(self) -> None:
        """Begin to read."""
        self._reader.start()

    def close(self) -> None:
        """Stop reading."""
        self._reader.close()

    def _publish(self, fleet: Fleet, _changed: object) -> None:
        self.fleet = fleet


@contextmanager
def view(settings: StoreSettings) -> Iterator[View]:
    """A view that has begun."""
    made = View(settings)
    made.start()
    try:
        yield made
    finally:
        made.close()


def looks(seen: View) -> None:
    """Wait until the reader was answered twice from now."""
    for _ in range(2):
        heard_s = seen.status.heard_s
        eventually(lambda s=heard_s: seen.status.connected and seen.status.heard_s != s, "a look")  # type: ignore[misc]
