"""Whether the cache has told of the nodes that the API server has: a plan made before that finds a small
cluster, and says so to people, or evicts pods for room that is there.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from extender.controller.planning.scene import Look
from scoring.model import NodeName

PATIENCE_S: Final = 10.0
"""How long the cache is waited for. A node that it does not have then takes nobody, and stops nobody."""


class Coverage:
    """Of one term. A leader that comes to an empty cache fills it first, and reads it back."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Another term begins."""
        self._since_s: float | None = None
        self._whole = False

    def whole(self, look: Look, nodes: AbstractSet[NodeName], now_s: float) -> bool:
        """Whether plans can be made on `look`, of which each one is to be shown. `nodes`: those of the
        API server. Nodes that come later hold up nothing.
        """
        if self._since_s is None or look.anew:
            self._since_s, self._whole = now_s, False
        self._whole = (
            self._whole
            or nodes <= look.picture.fleet.cluster.keys()
            or now_s >= self._since_s + PATIENCE_S
        )
        return self._whole
