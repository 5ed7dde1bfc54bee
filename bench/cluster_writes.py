"""What one user wrote to pods and nodes, by the API server's own audit log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

READS: Final = frozenset({"get", "list", "watch"})
BACKGROUND: Final = frozenset({"leases", "selfsubjectaccessreviews"})
"""Written for as long as a controller lives, whether or not a gang is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One request that was to change something."""

    resource: str
    """With its subresource, `pods/status`."""
    name: str
    done: bool
    """Whether it was taken."""
    begun_s: float
    """When the API server had it; seconds of the epoch."""
    ended_s: float


class Writes:
    """Those of `user` from now on, but for what goes on in the background."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user
        self._from_bytes = log.stat().st_size if log.exists() else 0

    def all(self) -> Sequence[Write]:
        """Each of them, in the order in which they ended."""
        mine = f'"username":"{self._user}"'.encode()
        with self._log.open("rb") as log:
            log.seek(self._from_bytes)
            lines = [line for line in log if mine in line and line.endswith(b"\n")]
        found = (_write(json.loads(line)) for line in lines)
        return [each for each in found if each is not None]

    def count(self) -> int:
        """How many there are."""
        return len(self.all())


def _write(event: Any) -> Write | None:
    target = event.get("objectRef", {})
    if event["verb"] in READS or target.get("resource") in BACKGROUND:
        return None
    return Write(
        resource="/".join(filter(None, (target.get("resource"), target.get("subresource")))),
        name=target.get("name", ""),
        done=event.get("responseStatus", {}).get("code", 0) < 300,
        begun_s=_epoch_s(event["requestReceivedTimestamp"]),
        ended_s=_epoch_s(event["stageTimestamp"]),
    )


def _epoch_s(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
