"""The fields of bound pods and of nodes that the controller reads; all others stay undecoded.

Any field may be null, as Go reads null: as if it were absent.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from extender.wire import pods
from extender.wire.quantities import Quantity

FINISHED: Final = frozenset({"Succeeded", "Failed"})
"""Phases in which a pod holds nothing any more."""


class BoundSpec(pods.Spec, frozen=True):
    """What a pod asks for, and where it was bound to."""

    node_name: str | None = None


class PhasedStatus(pods.Status, frozen=True):
    """How far a pod has come."""

    phase: str | None = None


class BoundPod(pods.Pod, frozen=True):
    """One pod of any scheduler, or of none: mirrors of static pods too."""

    spec: BoundSpec | None = None
    status: PhasedStatus | None = None


class _Object(Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object with Kubernetes' spelling of keys."""


class NodeMetadata(_Object, frozen=True):
    """Who the node is."""

    name: str
    labels: dict[str, str | None] | None = None
    uid: str | None = None
    resource_version: str | None = None


class Taint(_Object, frozen=True):
    """One taint; the time at which it was added is left out."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(_Object, frozen=True):
    """What an administrator says of the node."""

    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None


class NodeCondition(_Object, frozen=True):
    """One condition; its times are left out."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None


class NodeStatus(_Object, frozen=True):
    """What the kubelet says of the node, and what others let it say."""

    capacity: dict[str, Quantity] | None = None
    allocatable: dict[str, Quantity] | None = None
    conditions: tuple[NodeCondition, ...] | None = None


class KubeNode(_Object, frozen=True):
    """One node."""

    metadata: NodeMetadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


POD: Final = msgspec.json.Decoder(BoundPod)
NODE: Final = msgspec.json.Decoder(KubeNode)
