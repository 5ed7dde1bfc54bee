"""The fields of the objects that say how large a gang is; all others stay undecoded.

Any field may be null. Sources: k8s.io/api scheduling and batch; the types of scheduler-plugins, Kueue,
JobSet, Volcano, KAI-Scheduler and Grove.
"""

from __future__ import annotations

from msgspec import Struct

from extender.wire.pods import Present


class Object(Struct, frozen=True, gc=False, rename="camel"):
    """A JSON object with Kubernetes' spelling of keys."""


class Metadata(Object, frozen=True):
    """Which object it is."""

    name: str
    namespace: str | None = None
    uid: str | None = None


class Headed(Object, frozen=True):
    """An object of any kind."""

    metadata: Metadata


# --- scheduling.k8s.io ---------------------------------------------------------------------------


class GangPolicy(Object, frozen=True):
    """All or nothing."""

    min_count: int | None = None


class Policy(Object, frozen=True):
    """`basic` or `gang`."""

    basic: Present | None = None
    gang: GangPolicy | None = None


class TopologyKey(Object, frozen=True):
    """The label of the nodes that the pods share."""

    key: str | None = None


class Constraints(Object, frozen=True):
    """Where the pods may be."""

    topology: tuple[TopologyKey, ...] | None = None


class NativeGroupSpec(Object, frozen=True):
    """What a PodGroup asks."""

    scheduling_policy: Policy | None = None
    scheduling_constraints: Constraints | None = None


class NativeGroup(Headed, frozen=True):
    """`podgroups` of Kubernetes 1.36 and later."""

    spec: NativeGroupSpec | None = None


class WorkloadGroup(Object, frozen=True):
    """One group of a Workload."""

    name: str | None = None
    policy: Policy | None = None


class WorkloadSpec(Object, frozen=True):
    """Its groups."""

    pod_groups: tuple[WorkloadGroup, ...] | None = None


class Workload(Headed, frozen=True):
    """`workloads` of Kubernetes 1.35."""

    spec: WorkloadSpec | None = None


# --- groups of other schedulers ------------------------------------------------------------------


class Levels(Object, frozen=True):
    """How near, as KAI says it."""

    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class MemberSpec(Object, frozen=True):
    """How many at least."""

    min_member: int | None = None
    topology_constraint: Levels | None = None
    """KAI's only."""


class MemberGroup(Headed, frozen=True):
    """`podgroups` of scheduler-plugins, Volcano and KAI."""

    spec: MemberSpec | None = None


class Pack(Object, frozen=True):
    """How near, as Grove says it."""

    required: str | None = None
    preferred: str | None = None


class PackConstraint(Object, frozen=True):
    """Of a whole PodGang."""

    pack_constraint: Pack | None = None


class GroveGroup(Object, frozen=True):
    """One group of a PodGang."""

    min_replicas: int | None = None
    pod_references: tuple[Present, ...] | None = None


class PodGangSpec(Object, frozen=True):
    """Its groups."""

    podgroups: tuple[GroveGroup, ...] | None = None
    topology_constraint: PackConstraint | None = None


class PodGang(Headed, frozen=True):
    """`podgangs` of Grove."""

    spec: PodGangSpec | None = None


# --- Kueue ---------------------------------------------------------------------------------------


class TopologyRequest(Object, frozen=True):
    """How near the pods of a set are to be."""

    required: str | None = None
    preferred: str | None = None


class PodSet(Object, frozen=True):
    """Pods of one template."""

    name: str | None = None
    count: int | None = None
    min_count: int | None = None
    """Set where fewer may be admitted."""
    topology_request: TopologyRequest | None = None


class KueueSpec(Object, frozen=True):
    """What is to be admitted."""

    pod_sets: tuple[PodSet, ...] | None = None


class Assignment(Object, frozen=True):
    """How much of a set was admitted."""

    name: str | None = None
    count: int | None = None


class Admission(Object, frozen=True):
    """What was admitted."""

    pod_set_assignments: tuple[Assignment, ...] | None = None


class KueueStatus(Object, frozen=True):
    """How far it came."""

    admission: Admission | None = None


class KueueWorkload(Headed, frozen=True):
    """`workloads` of Kueue."""

    spec: KueueSpec | None = None
    status: KueueStatus | None = None


# --- owners --------------------------------------------------------------------------------------


class JobSpec(Object, frozen=True):
    """How many pods."""

    parallelism: int | None = None
    completions: int | None = None


class JobStatus(Object, frozen=True):
    """How many are done."""

    succeeded: int | None = None


class Job(Headed, frozen=True):
    """`jobs` of batch."""

    spec: JobSpec | None = None
    status: JobStatus | None = None


class JobTemplate(Object, frozen=True):
    """A Job to be."""

    spec: JobSpec | None = None


class ReplicatedJob(Object, frozen=True):
    """Jobs of one template."""

    replicas: int | None = None
    template: JobTemplate | None = None
    depends_on: tuple[Present, ...] | None = None


class Startup(Object, frozen=True):
    """Whether Jobs start one after the other."""

    startup_policy_order: str | None = None


class JobSetSpec(Object, frozen=True):
    """Its Jobs."""

    replicated_jobs: tuple[ReplicatedJob, ...] | None = None
    startup_policy: Startup | None = None


class JobSet(Headed, frozen=True):
    """`jobsets` of JobSet."""

    spec: JobSetSpec | None = None
