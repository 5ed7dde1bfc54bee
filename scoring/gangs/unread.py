"""Kinds of objects that cannot be read, so that the gangs they speak of cannot be judged."""

from __future__ import annotations

from dataclasses import dataclass

from scoring.gangs.values import Gathered
from scoring.model import Convention


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """One of them."""

    kind: str
    """`podgroups.scheduling.k8s.io`."""
    problem: str
    """Why it cannot be read, as the API server says it."""
    conventions: frozenset[Convention]
    """The gangs of which it says something."""
    sizes_alone: bool = False
    """Whether it says nothing but how many pods there are to be, so that who states that needs it not."""

    def hides(self, gang: Gathered) -> bool:
        """Whether `gang` would be misjudged without it."""
        stated = gang.min is not None and gang.size is not None
        return gang.convention in self.conventions and not (self.sizes_alone and stated)
