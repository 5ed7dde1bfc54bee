"""One node of the API server as what it offers beside GPUs."""

from __future__ import annotations

from extender.controller.cluster import sizes
from extender.controller.objects import KubeNode
from extender.controller.projection import ProjectionError
from extender.wire.quantities import QuantityError, amount
from scoring.planning.values import Room

_PATH = "status.allocatable"


def offer(node: KubeNode) -> Room:
    """What pods may use of the node, with nothing held. One that does not say how many pods it takes
    takes none, as for kube-scheduler.

    Raises:
        ProjectionError: a quantity is none.
    """
    found = (node.status.allocatable if node.status else None) or {}
    try:
        pods = amount(found.get("pods", "0"))
    except QuantityError as error:
        raise ProjectionError(f"{_PATH}[pods]: {error}") from error
    return Room(allocatable=sizes.amounts_of(found, _PATH), pods=pods)
