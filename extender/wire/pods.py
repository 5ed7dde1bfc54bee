"""The fields of a Kubernetes Pod that Surefoot reads; all others are skipped while decoding.

Any field may be null, as Go reads null: as if it were absent. The types are those of
k8s.io/api core/v1.
"""

from __future__ import annotations

from msgspec import Struct

from extender.wire.quantities import Quantity


class _Object(Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object with Kubernetes' spelling of keys."""


class Present(_Object, frozen=True):
    """An object of which only the presence matters."""


class OwnerReference(_Object, frozen=True):
    """What the pod belongs to; the one that is its `controller` makes others like it."""

    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Metadata(_Object, frozen=True):
    """Who the pod is."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class Resources(_Object, frozen=True):
    """What a container asks for. Extended resources have equal requests and limits."""

    limits: dict[str, Quantity] | None = None
    requests: dict[str, Quantity] | None = None


class Container(_Object, frozen=True):
    """A container or an init container; `restart_policy` Always makes the latter a sidecar."""

    resources: Resources | None = None
    restart_policy: str | None = None


class SchedulingGroup(_Object, frozen=True):
    """The native gang of Kubernetes 1.36 and later (KEP-4671)."""

    pod_group_name: str | None = None


class Workload(_Object, frozen=True):
    """The native gang of Kubernetes 1.35."""

    name: str | None = None
    pod_group: str | None = None
    pod_group_replica_key: str | None = None


class Terms(_Object, frozen=True):
    """The soft side of one kind of affinity."""

    preferred_during_scheduling_ignored_during_execution: tuple[Present, ...] | None = None


class Affinity(_Object, frozen=True):
    """To nodes, to pods, away from pods."""

    node_affinity: Terms | None = None
    pod_affinity: Terms | None = None
    pod_anti_affinity: Terms | None = None


class Spread(_Object, frozen=True):
    """One topology spread constraint; `ScheduleAnyway` makes it soft."""

    when_unsatisfiable: str | None = None


class Spec(_Object, frozen=True):
    """What the pod wants. Pod-level `resources` are left out on purpose: they cover CPU, memory and
    huge pages, never extended resources (KEP-2837).
    """

    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    scheduling_group: SchedulingGroup | None = None
    workload_ref: Workload | None = None
    resource_claims: tuple[Present, ...] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[Spread, ...] | None = None


class Condition(_Object, frozen=True):
    """One condition of the pod's status."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None


class Status(_Object, frozen=True):
    """What became of the pod so far."""

    conditions: tuple[Condition, ...] | None = None
    nominated_node_name: str | None = None


class Pod(_Object, frozen=True):
    """One pod, pending as kube-scheduler sends it or as a manifest."""

    metadata: Metadata | None = None
    spec: Spec | None = None
    status: Status | None = None
