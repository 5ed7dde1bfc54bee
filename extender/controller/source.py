"""One kind of objects on its way from the API server into the cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extender.controller.mirrors import Mirror
from extender.kube.reflector import Reflector
from extender.store.schema import Kind


@dataclass(frozen=True, slots=True)
class Source:
    """A reflector, and the mirror that it feeds, alone or beside the leader's view. The publisher's
    `Origin`.
    """

    reflector: Reflector[Any]
    mirror: Mirror[Any]

    @property
    def kind(self) -> Kind:
        """That of its documents."""
        return self.mirror.kind

    @property
    def fresh(self) -> bool:
        """Whether the API server was heard within its patience."""
        return self.reflector.fresh

    def lost(self) -> None:
        """The next list is to sweep what the cache was told to remove, and forgot."""
        self.mirror.unsweep()

    def answered(self) -> None:
        """Make up for a list in which nothing could be swept."""
        if self.mirror.take_unswept():
            self.reflector.relist()
