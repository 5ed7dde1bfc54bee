"""The fields of pods of any state that the leader reads; all others stay undecoded.

The types are those of k8s.io/api core/v1. Any field may be null.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from extender.controller import objects
from extender.wire import pods
from extender.wire.quantities import Quantity


class _Object(Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object with Kubernetes' spelling of keys."""


class Port(_Object, frozen=True):
    """A port of a container."""

    container_port: int | None = None
    host_port: int | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)


class Container(pods.Container, frozen=True):
    """A container with its ports."""

    ports: tuple[Port, ...] | None = None


class Requirement(_Object, frozen=True):
    """A condition on a label or field of a node."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class Term(_Object, frozen=True):
    """Conditions that must all hold."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeSelector(_Object, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[Term, ...] | None = None


class NodeAffinity(pods.Terms, frozen=True):
    """Both sides of node affinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(pods.Affinity, frozen=True):
    """To pods only as far as `wire` reads it."""

    node_affinity: NodeAffinity | None = None


class Toleration(_Object, frozen=True):
    """A taint that the pod does not mind."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Gate(_Object, frozen=True):
    """What keeps kube-scheduler from looking at the pod."""

    name: str


class Spec(objects.BoundSpec, frozen=True):
    """What the pod wants, of its node too."""

    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: pods.Resources | None = None
    """Of the whole pod (KEP-2837)."""
    overhead: dict[str, Quantity] | None = None
    host_network: bool | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    scheduling_gates: tuple[Gate, ...] | None = None
    preemption_policy: str | None = None


class Condition(pods.Condition, frozen=True):
    """A condition with what it says, and since when."""

    message: str | None = None
    last_transition_time: datetime | None = None


class Status(objects.PhasedStatus, frozen=True):
    """What became of the pod, and why."""

    conditions: tuple[Condition, ...] | None = None
    reason: str | None = None
    start_time: datetime | None = None


class Metadata(pods.Metadata, frozen=True):
    """Who the pod is, and since when."""

    resource_version: str | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


class ClusterPod(objects.BoundPod, frozen=True):
    """One pod."""

    metadata: Metadata | None = None
    spec: Spec | None = None
    status: Status | None = None


POD: Final = msgspec.json.Decoder(ClusterPod)
