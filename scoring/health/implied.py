"""Causes that follow from a node's document itself: nobody sends them, every reader derives them."""

from __future__ import annotations

from scoring import topology
from scoring.model import Cause, Health, Node, Scope


def open_causes(node: Node) -> tuple[tuple[Cause, ...], ...]:
    """For each GPU of `node`, every cause that is open on it: its own, the node's, the implied."""
    shared = node.causes + _missing_gpus(node) + topology.fabric_problems(node.fabric)
    models = tuple(gpu.model for gpu in node.gpus)
    missing_links = topology.missing_links(node.links, models)
    return tuple(
        gpu.causes + shared + missing_links.get(position, ())
        for position, gpu in enumerate(node.gpus)
    )


def _missing_gpus(node: Node) -> tuple[Cause, ...]:
    """Fewer GPUs than the product has: the rest of the node is SUSPECT (NVIDIA/aicr #1858).

    A GPU that vanished while the node ran is the agent's `gpu.lost`; this is the weaker sign.
    """
    if node.expected is None or len(node.gpus) >= node.expected:
        return ()
    return (
        Cause(
            id="gpu.missing",
            state=Health.SUSPECT,
            scope=Scope.NODE,
            evidence=f"{len(node.gpus)} of {node.expected} GPUs",
        ),
    )
