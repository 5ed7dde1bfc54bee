"""Pods that a kubelet refused, where that speaks of the node's devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from extender.controller.cluster.shapes import ClusterPod, Metadata, Status
from scoring.model import Ask, NodeName, PodUid, ResourceKind
from scoring.resources import kind_of

DEVICES: Final = re.compile(
    # The device plugin did not hand out what kube-scheduler counted on; so too its other hooks.
    r"UnexpectedAdmissionError"
    # No NUMA node has them together.
    r"|TopologyAffinityError"
    # The kubelet has fewer than kube-scheduler thought.
    r"|OutOf(?P<resource>.+)"
)
"""`status.reason` of pods that a node failed. Left out is what speaks of the pod or of others:
NodeAffinity, NodePorts, Taints, Evicted, Preempting, Terminated, OutOfcpu, SMTAlignmentError, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPod:
    """A pod that a node refused."""

    uid: PodUid
    node: NodeName
    owner: str
    """As `Ask.owner`."""
    reason: str
    name: str
    at_s: float
    """Unix time."""


def failed(pod: ClusterPod, ask: Ask) -> FailedPod | None:
    """What the pod's end says of its node; None: nothing."""
    status, spec = pod.status, pod.spec
    if status is None or status.phase != "Failed" or spec is None or not spec.node_name:
        return None
    match = DEVICES.fullmatch(status.reason or "")
    if match is None or ask.need.kind is ResourceKind.NONE:
        return None
    resource = match["resource"]
    if resource is not None and kind_of(resource) is ResourceKind.NONE:
        return None
    return FailedPod(
        uid=ask.uid,
        node=NodeName(spec.node_name),
        owner=ask.owner,
        reason=match[0],
        name=ask.name,
        at_s=_ended_s(status, pod.metadata),
    )


def _ended_s(status: Status, metadata: Metadata | None) -> float:
    """The latest moment that the pod names: every controller reads the same from it."""
    times = [each.last_transition_time for each in status.conditions or ()]
    times += [status.start_time, metadata.creation_timestamp if metadata else None]
    return max((each.timestamp() for each in times if each is not None), default=0.0)
