"""Objects that cannot be read: counted, named once in the log, and nobody else's concern."""

from __future__ import annotations

from typing import Final

import msgspec
import structlog

from extender.controller.projection import ProjectionError
from extender.store.errors import DocumentError
from extender.wire.errors import WireError

MOST_LOGGED: Final = 1_000
"""Objects that cannot be told, of which the log says so, once each."""
MALFORMED: Final = (
    *(ProjectionError, WireError, DocumentError),
    *(msgspec.DecodeError, UnicodeDecodeError, RecursionError),
)
"""What reading an object may raise."""

_log = structlog.get_logger("surefoot.controller")


class Skips:
    """Those of one kind."""

    def __init__(self, kind: str) -> None:
        self.count = 0
        self._kind = kind
        self._logged: set[tuple[str, str]] = set()

    def skip(self, key: str, problem: str) -> None:
        """Say that the object at `key` cannot be read."""
        self.count += 1
        if (key, problem) not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add((key, problem))
            _log.warning("object_skipped", kind=self._kind, object=key, problem=problem)
