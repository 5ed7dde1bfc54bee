"""What this controller wants the cache to say of the API server's nodes, read back as values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from extender.controller.wanted import Wanted
from extender.store import documents
from extender.store.errors import DocumentError
from extender.store.schema import Kind
from scoring.model import ClusterNode, NodeName


class MirroredNodes:
    """Decodes what is asked for, each time anew: mostly that is nothing."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def __call__(self, known: Collection[NodeName]) -> Mapping[NodeName, ClusterNode]:
        """The nodes that are not `known`, by name."""
        found: dict[NodeName, ClusterNode] = {}
        for name, raw in self._wanted.absent(Kind.CLUSTER_NODE, known).items():
            try:
                value = documents.decode(Kind.CLUSTER_NODE, name, raw)
            except DocumentError:
                continue  # all readers of the cache name it, and do without it, too
            found[NodeName(name)] = cast("ClusterNode", value)
        return found
