"""A Pod as an `Ask`: how many GPUs of which resource, in which gang, and what it accepts.

GPUs are counted as Kubernetes counts a pod's request (k8s.io/component-helpers resource.PodRequests
with KEP-753): containers and sidecars run together, an init container runs alone beside the
sidecars that started before it, and the pod needs the larger of the two.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from extender.wire.errors import WireError
from extender.wire.pods import Condition, Container, Metadata, Pod, Resources, Spec, Status
from extender.wire.quantities import QuantityError, units
from scoring import gang
from scoring.model import Ask, Health, Need, NodeName, PodUid, ResourceKind, WorkClass
from scoring.policy import Policy
from scoring.resources import kind_of, order_of

ALLOW: Final = "surefoot.dev/allow"
DENY: Final = "surefoot.dev/deny"

_KIND_NOTES: Final[Mapping[ResourceKind, str]] = {
    ResourceKind.MIG: "MIG devices are judged on health only, links are not looked at",
    ResourceKind.SHARED: "shared GPUs are judged on health only, links are not looked at",
}
_CLAIMS_NOTE: Final = (
    "resource claims (DRA) are not judged: the pod does not say how many GPUs they hold"
)

_NO_METADATA: Final = Metadata()
_NO_SPEC: Final = Spec()
_NO_STATUS: Final = Status()


class AskError(WireError):
    """A pod whose ask for GPUs cannot be read."""


def ask_of(pod: Pod, policy: Policy) -> Ask:
    """What `pod` asks for, or `AskError`.

    An annotation of Surefoot's that holds unknown words never fails the pod: known words count,
    the others are left out and named in `Ask.notes`.
    """
    metadata, spec = pod.metadata or _NO_METADATA, pod.spec or _NO_SPEC
    status = pod.status or _NO_STATUS
    facts = facts_of(pod)
    member_of = gang.detect(facts)
    counts = requested(spec)
    resource = min(counts, key=lambda name: (order_of(name), -counts[name], name), default="")
    kind = kind_of(resource)
    single = member_of is None
    allow, allow_notes = _states(ALLOW, facts.annotations)
    deny, deny_notes = _states(DENY, facts.annotations)
    return Ask(
        namespace=facts.namespace,
        name=metadata.name or metadata.generate_name or "",
        uid=PodUid(metadata.uid or ""),
        need=Need(
            work=WorkClass.SINGLE if single else WorkClass.GANG,
            count=counts[resource],
            kind=kind,
            resource=resource,
            allow=allow,
            deny=deny,
            preemptible=single and (spec.priority or 0) <= policy.single.probation_max_priority,
        ),
        gang=member_of,
        scheduler=spec.scheduler_name or "",
        narrowable=not (refusal(status) or _has_preferences(spec)),
        nominated=NodeName(status.nominated_node_name) if status.nominated_node_name else None,
        notes=(*_resource_notes(spec, counts, resource), *allow_notes, *deny_notes),
        owner=member_of.key if member_of else _owner(metadata),
    )


def facts_of(pod: Pod) -> gang.PodFacts:
    """All of `pod` that the gang detector looks at."""
    metadata, spec = pod.metadata or _NO_METADATA, pod.spec or _NO_SPEC
    group, workload = spec.scheduling_group, spec.workload_ref
    return gang.PodFacts(
        namespace=metadata.namespace or "default",
        labels=_texts(metadata.labels),
        annotations=_texts(metadata.annotations),
        scheduling_group=group.pod_group_name if group else None,
        workload_ref=gang.WorkloadRef(
            name=workload.name or "",
            pod_group=workload.pod_group or "",
            replica_key=workload.pod_group_replica_key or "",
        )
        if workload
        else None,
    )


def _owner(metadata: Metadata) -> str:
    """What a pod of no gang is one of: `namespace/kind/name` of its controller, or
    `namespace/uid` where that has no name, or the pod itself where nobody controls it.
    """
    namespace = metadata.namespace or "default"
    for each in metadata.owner_references or ():
        if not each.controller:
            continue
        if each.kind and each.name:
            return f"{namespace}/{each.kind}/{each.name}"
        if each.uid:
            return f"{namespace}/{each.uid}"
    return f"{namespace}/{metadata.name or metadata.generate_name or ''}"


def requested(spec: Spec) -> Counter[str]:
    """GPUs by resource name that a pod holds at its peak, none of them zero; or `AskError`."""
    sidecars: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for index, container in enumerate(spec.init_containers or ()):
        asked = _asked(container, f"spec.initContainers[{index}]")
        if container.restart_policy == "Always":
            sidecars += asked
        else:
            peak |= sidecars + asked
    running = sidecars.copy()
    for index, container in enumerate(spec.containers or ()):
        running += _asked(container, f"spec.containers[{index}]")
    return running | peak


def _asked(container: Container, path: str) -> Counter[str]:
    """Limits count, and requests where no limit is set: the API server demands that they are equal."""
    resources = container.resources or Resources()
    asked: Counter[str] = Counter()
    for side, quantities in (("requests", resources.requests), ("limits", resources.limits)):
        for resource, quantity in (quantities or {}).items():
            if kind_of(resource) is ResourceKind.NONE:
                continue
            try:
                asked[resource] = units(quantity)
            except QuantityError as error:
                raise AskError(str(error), f"{path}.resources.{side}[{resource}]") from error
    return asked


def _resource_notes(spec: Spec, counts: Counter[str], chosen: str) -> Iterable[str]:
    kind = kind_of(chosen)
    if kind in _KIND_NOTES:
        yield _KIND_NOTES[kind]
    if others := sorted(counts.keys() - {chosen}):
        yield f"only {chosen} is judged, the pod also asks for {', '.join(others)}"
    if spec.resource_claims:
        yield _CLAIMS_NOTE


def _states(key: str, annotations: Mapping[str, str]) -> tuple[frozenset[Health], tuple[str, ...]]:
    """The states that an annotation lists, and a note on the words that are none."""
    words = [word for word in re.split(r"[\s,]+", annotations.get(key, "")) if word]
    unknown = sorted({word for word in words if word.upper() not in Health.__members__})
    states = frozenset(Health[word.upper()] for word in words if word not in unknown)
    if not unknown:
        return states, ()
    more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    return states, (f"annotation {key}: {unknown[0][:40]!r}{more} is no health state, left out",)


def refusal(status: Status) -> Condition | None:
    """What the last scheduling cycle said, if one failed. A pod whose gate was just lifted still
    carries the condition with the reason SchedulingGated, and had no cycle yet.
    """
    return next(
        (
            condition
            for condition in status.conditions or ()
            if condition.type == "PodScheduled"
            and condition.status == "False"
            and condition.reason != "SchedulingGated"
        ),
        None,
    )


def _has_preferences(spec: Spec) -> bool:
    """Whether other plugins rank nodes for this pod, so that they need more than our favourites."""
    affinity = spec.affinity
    kinds = (
        (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
        if affinity
        else ()
    )
    return any(
        kind and kind.preferred_during_scheduling_ignored_during_execution for kind in kinds
    ) or any(
        spread.when_unsatisfiable == "ScheduleAnyway"
        for spread in spec.topology_spread_constraints or ()
    )


def _texts(values: dict[str, str | None] | None) -> Mapping[str, str]:
    return {key: value or "" for key, value in (values or {}).items()}
