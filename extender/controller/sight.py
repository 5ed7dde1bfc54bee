"""How much of the cluster a controller knows, and what it goes on without.

Without pods and nodes nothing can be said. One kind of groups that cannot be listed (no right to, an API
of somebody else that is down) must not keep all other gangs waiting: after a while it is given up on, and
only the gangs that it speaks of wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from extender.controller.cluster.groups import Source
from extender.kube.reflector import Reflector
from scoring.gangs.unread import Unread


class Sight:
    """Of one controller. Safe for many threads."""

    def __init__(
        self,
        needed: Sequence[Reflector[Any]],
        groups: Mapping[Source, Reflector[Any]],
        *,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`needed`: that of what nothing goes without. `clock`: as that of the reflectors."""
        self._needed = needed
        self._groups = groups
        self._patience_s = patience_s
        self._clock = clock

    def whole(self) -> bool:
        """Whether all is known but for what was given up on. Who does not know it takes no Lease from who
        does.
        """
        if not all(each.status.synced for each in self._needed):
            return False
        missing = {
            source.name for source, reflector in self._groups.items() if not reflector.status.synced
        }
        # Each write of a leader asks, and mostly nothing is missing.
        return not missing or missing <= {each.kind for each in self.unread()}

    def unread(self) -> Sequence[Unread]:
        """What was given up on until a list of it comes through: it was tried in vain for `patience_s`
        after all that is needed was there.
        """
        times_s = [each.status.synced_s for each in self._needed]
        known_s = [each for each in times_s if each is not None]
        if len(known_s) < len(times_s) or self._clock() < max(known_s) + self._patience_s:
            return ()
        return tuple(
            Unread(
                kind=source.name,
                problem=problem,
                conventions=source.conventions,
                sizes_alone=source.sizes_alone,
            )
            for source, reflector in self._groups.items()
            if (problem := reflector.status.barred) is not None
        )
