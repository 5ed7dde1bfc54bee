"""One node of the API server: what it offers beside GPUs, and what it carries of Surefoot's."""

from __future__ import annotations

from dataclasses import dataclass

from extender.controller.cluster import sizes
from extender.controller.objects import KubeNode
from extender.controller.projection import ProjectionError
from extender.wire.quantities import QuantityError, amount
from scoring.conditions import TYPE, NodeCondition, Status
from scoring.model import Taint
from scoring.planning.values import Room

_PATH = "status.allocatable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a node carries of Surefoot's, and what a write tests."""

    uid: str
    version: str
    """Its resourceVersion."""
    condition: NodeCondition | None
    """`GpuHealthDegraded`."""
    taints: tuple[Taint, ...]
    """All of them, in the order of the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNode:
    """A node as a reflector shows it."""

    room: Room
    """With nothing held."""
    mark: Mark


def seen(node: KubeNode) -> SeenNode:
    """What is kept of a node.

    Raises:
        ProjectionError: a quantity is none.
    """
    return SeenNode(room=offer(node), mark=mark(node))


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


def mark(node: KubeNode) -> Mark:
    """What the node carries of Surefoot's."""
    taints = (node.spec.taints if node.spec else None) or ()
    return Mark(
        uid=node.metadata.uid or "",
        version=node.metadata.resource_version or "",
        condition=_condition(node),
        taints=tuple(
            Taint(key=each.key, effect=each.effect, value=each.value or "") for each in taints
        ),
    )


def _condition(node: KubeNode) -> NodeCondition | None:
    for each in (node.status.conditions if node.status else None) or ():
        if each.type == TYPE and each.status in set(Status):
            return NodeCondition(
                status=Status(each.status), reason=each.reason or "", message=each.message or ""
            )
    return None
