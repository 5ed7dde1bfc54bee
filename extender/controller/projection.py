"""Pods and nodes of the API server as documents of the cache. Functions of their input alone, so
that two controllers write the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.controller.objects import FINISHED, BoundPod, KubeNode
from extender.wire import asks
from extender.wire.quantities import Quantity, QuantityError, units
from scoring import gang
from scoring.model import (
    Allocation,
    ClusterNode,
    NodeName,
    PodUid,
    ResourceKind,
    Taint,
)
from scoring.resources import kind_of


class ProjectionError(ValueError):
    """A pod or node that cannot be told in the cache's words."""


def holds(pod: BoundPod) -> bool:
    """Whether the pod holds what it asked for: bound, and not finished. One that is being deleted
    holds it to its end.
    """
    bound = pod.spec is not None and bool(pod.spec.node_name)
    return bound and (pod.status is None or pod.status.phase not in FINISHED)


def allocations(pod: BoundPod) -> tuple[Allocation, ...]:
    """What GPUs a pod that `holds` has: one allocation for each resource name, counted as for
    /filter.

    Raises:
        ProjectionError: it has no uid.
        extender.wire.errors.WireError: a quantity is none.
    """
    metadata, spec = pod.metadata, pod.spec
    if metadata is None or not metadata.uid:
        raise ProjectionError("metadata.uid: missing")
    counts = asks.requested(spec) if spec else {}
    if spec is None or not counts:
        return ()
    facts = asks.facts_of(pod)
    found = gang.detect(facts)
    return tuple(
        Allocation(
            node=NodeName(spec.node_name or ""),
            uid=PodUid(metadata.uid),
            namespace=facts.namespace,
            pod=metadata.name or "",
            resource=resource,
            count=count,
            gang=found.key if found else None,
        )
        for resource, count in sorted(counts.items())
    )


def cluster_node(node: KubeNode) -> ClusterNode:
    """What the API server says of a node.

    Raises:
        ProjectionError: a quantity is none.
    """
    spec, status = node.spec, node.status
    return ClusterNode(
        name=NodeName(node.metadata.name),
        labels={key: value or "" for key, value in sorted((node.metadata.labels or {}).items())},
        unschedulable=bool(spec and spec.unschedulable),
        taints=tuple(
            Taint(key=each.key, effect=each.effect, value=each.value or "")
            for each in (spec.taints if spec else None) or ()
        ),
        capacity=_gpus(status.capacity if status else None, "status.capacity"),
        allocatable=_gpus(status.allocatable if status else None, "status.allocatable"),
    )


def _gpus(quantities: Mapping[str, Quantity] | None, path: str) -> dict[str, int]:
    found = {}
    for resource, quantity in sorted((quantities or {}).items()):
        if kind_of(resource) is not ResourceKind.NONE:
            try:
                found[resource] = units(quantity)
            except QuantityError as error:
                raise ProjectionError(f"{path}[{resource}]: {error}") from error
    return found
