"""The objects that say how large a gang is, and what each says: one row for each kind.

A minimum that an object does not state is unknown, never 1; a stated minimum of 1, or Kubernetes'
`basic`, means that the pods are no gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from extender.controller.cluster import group_shapes as shapes
from extender.controller.cluster.places import span
from extender.controller.cluster.roster import Said
from scoring.gangs.gathering import Crew
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import Group
from scoring.model import Convention, GangKey
from scoring.planning.values import NO_TOPOLOGY, Topology

O = TypeVar("O")  # noqa: E741 - an object of the API server

Reading = Callable[[Raw], tuple[Said, ...]]
"""What an object says. Raises `msgspec.DecodeError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One kind of object. The controller lists and watches it where a convention of it is planned."""

    group: str
    """API group."""
    resource: str
    versions: tuple[str, ...]
    """Those whose fields are known here, newest first."""
    conventions: frozenset[Convention]
    """The gangs of which it says something."""
    read: Reading
    sizes_alone: bool = False
    """Whether it says nothing but how many pods an owner runs."""

    @property
    def name(self) -> str:
        """`podgroups.scheduling.k8s.io`, as CustomResourceDefinitions are named."""
        return f"{self.resource}.{self.group}"


def needed(rules: GangRules) -> tuple[Source, ...]:
    """The rows that say something of gangs that `rules` plan."""
    planned = {each for each in Convention if rules.hold(each) is not Hold.OFF}
    return tuple(source for source in SOURCES if source.conventions & planned)


# --- what each kind says -------------------------------------------------------------------------


def _decoded(kind: type[O], says: Callable[[O], Iterable[Said]]) -> Reading:
    decoder = msgspec.json.Decoder(kind)
    return lambda raw: tuple(says(decoder.decode(raw)))


def _group(
    of: shapes.Headed,
    convention: Convention,
    *,
    name: str = "",
    least: int | None = None,
    size: int | None = None,
    topology: Topology = NO_TOPOLOGY,
    basic: bool = False,
) -> Group:
    found = of.metadata
    least = least if least and least > 0 else None
    size = max(size, least or 0) if size and size > 0 else None
    return Group(
        convention=convention,
        key=GangKey(f"{found.namespace or 'default'}/{name or found.name}"),
        uid=found.uid or "",
        min=least,
        size=size,
        topology=topology,
        gang=not (basic or least == 1 or size == 1),
    )


def _topology(required: str | None, preferred: str | None = None) -> Topology:
    return Topology(required=span(required), preferred=span(preferred))


def _native(found: shapes.NativeGroup) -> Iterable[Said]:
    spec = found.spec or shapes.NativeGroupSpec()
    policy = spec.scheduling_policy or shapes.Policy()
    constraints = spec.scheduling_constraints
    keys = (constraints.topology if constraints else None) or ()
    yield _group(
        found,
        Convention.NATIVE,
        least=policy.gang.min_count if policy.gang else None,
        basic=policy.basic is not None,
        topology=_topology(keys[0].key) if keys else NO_TOPOLOGY,
    )


def _workload(found: shapes.Workload) -> Iterable[Said]:
    for each in (found.spec.pod_groups if found.spec else None) or ():
        policy = each.policy or shapes.Policy()
        yield _group(
            found,
            Convention.WORKLOAD,
            name=f"{found.metadata.name}/{each.name or ''}".rstrip("/"),
            least=policy.gang.min_count if policy.gang else None,
            basic=policy.basic is not None,
        )


def _of_members(*conventions: Convention) -> Reading:
    def says(found: shapes.MemberGroup) -> Iterable[Said]:
        spec = found.spec or shapes.MemberSpec()
        levels = spec.topology_constraint or shapes.Levels()
        near = _topology(levels.required_topology_level, levels.preferred_topology_level)
        for each in conventions:
            yield _group(found, each, least=spec.min_member, topology=near)

    return _decoded(shapes.MemberGroup, says)


def _kueue(found: shapes.KueueWorkload) -> Iterable[Said]:
    sets = (found.spec.pod_sets if found.spec else None) or ()
    admission = found.status.admission if found.status else None
    admitted = {each.name: each.count for each in _some(admission)}
    size = least = 0
    for each in sets:
        count = 1 if each.count is None else each.count
        given = admitted.get(each.name)
        size += count if given is None else given
        least += (count if each.min_count is None else each.min_count) if given is None else given
    asked = {each.topology_request for each in sets} - {None}
    near = asked.pop() if len(asked) == 1 else None
    for convention in (Convention.KUEUE, Convention.KUEUE_WORKLOAD):
        yield _group(
            found,
            convention,
            least=least,
            size=size,
            topology=_topology(near.required, near.preferred) if near else NO_TOPOLOGY,
        )


def _some(admission: shapes.Admission | None) -> tuple[shapes.Assignment, ...]:
    return (admission.pod_set_assignments if admission else None) or ()


def _job(found: shapes.Job) -> Iterable[Said]:
    spec, status = found.spec or shapes.JobSpec(), found.status or shapes.JobStatus()
    if found.metadata.uid:
        yield Crew(
            uid=found.metadata.uid,
            parallelism=1 if spec.parallelism is None else spec.parallelism,
            completions=spec.completions,
            succeeded=status.succeeded or 0,
        )


def _jobset(found: shapes.JobSet) -> Iterable[Said]:
    """All its pods; those that come at once are what must start together, where some Jobs wait for
    others to be ready.
    """
    spec = found.spec or shapes.JobSetSpec()
    ordered = spec.startup_policy and spec.startup_policy.startup_policy_order == "InOrder"
    size = first = 0
    for place, each in enumerate(spec.replicated_jobs or ()):
        job = (each.template.spec if each.template else None) or shapes.JobSpec()
        pods = 1 if job.parallelism is None else job.parallelism
        if job.completions is not None:
            pods = min(pods, job.completions)
        pods *= 1 if each.replicas is None else each.replicas
        size += pods
        if not (each.depends_on or (ordered and place)):
            first += pods
    whole = _group(found, Convention.JOBSET, least=first, size=size)
    gang = size > 1
    for name in dict.fromkeys((found.metadata.uid or found.metadata.name, found.metadata.name)):
        key = GangKey(f"{found.metadata.namespace or 'default'}/{name}")
        yield replace(whole, key=key, gang=gang)


def _grove(found: shapes.PodGang) -> Iterable[Said]:
    spec = found.spec or shapes.PodGangSpec()
    least = size = 0
    for each in spec.podgroups or ():
        least += each.min_replicas or 0
        size += max(each.min_replicas or 0, len(each.pod_references or ()))
    pack = (spec.topology_constraint.pack_constraint if spec.topology_constraint else None) or (
        shapes.Pack()
    )
    near = _topology(pack.required, pack.preferred)
    yield _group(found, Convention.GROVE, least=least, size=size, topology=near)


SOURCES: Final = (
    Source(  # 1.36 v1alpha2, 1.37 v1beta1
        group="scheduling.k8s.io",
        resource="podgroups",
        versions=("v1beta1", "v1alpha3", "v1alpha2"),
        conventions=frozenset({Convention.NATIVE}),
        read=_decoded(shapes.NativeGroup, _native),
    ),
    Source(  # 1.35 only: later versions of Workload have no pods of their own
        group="scheduling.k8s.io",
        resource="workloads",
        versions=("v1alpha1",),
        conventions=frozenset({Convention.WORKLOAD}),
        read=_decoded(shapes.Workload, _workload),
    ),
    Source(
        group="scheduling.x-k8s.io",
        resource="podgroups",
        versions=("v1alpha1",),
        conventions=frozenset({Convention.COSCHEDULING, Convention.KOORDINATOR}),
        read=_of_members(Convention.COSCHEDULING, Convention.KOORDINATOR),
    ),
    Source(
        group="scheduling.volcano.sh",
        resource="podgroups",
        versions=("v1beta1",),
        conventions=frozenset({Convention.VOLCANO}),
        read=_of_members(Convention.VOLCANO),
    ),
    Source(
        group="scheduling.run.ai",
        resource="podgroups",
        versions=("v2alpha2",),
        conventions=frozenset({Convention.KAI}),
        read=_of_members(Convention.KAI),
    ),
    Source(
        group="kueue.x-k8s.io",
        resource="workloads",
        versions=("v1beta2", "v1beta1"),
        conventions=frozenset({Convention.KUEUE, Convention.KUEUE_WORKLOAD}),
        read=_decoded(shapes.KueueWorkload, _kueue),
    ),
    Source(
        group="jobset.x-k8s.io",
        resource="jobsets",
        versions=("v1alpha2",),
        conventions=frozenset({Convention.JOBSET}),
        read=_decoded(shapes.JobSet, _jobset),
    ),
    Source(
        group="scheduler.grove.io",
        resource="podgangs",
        versions=("v1alpha1",),
        conventions=frozenset({Convention.GROVE}),
        read=_decoded(shapes.PodGang, _grove),
    ),
    Source(  # how many pods the owner of a gang without a size runs
        group="batch",
        resource="jobs",
        versions=("v1",),
        conventions=frozenset({Convention.SUREFOOT, Convention.NATIVE}),
        read=_decoded(shapes.Job, _job),
        sizes_alone=True,
    ),
)
