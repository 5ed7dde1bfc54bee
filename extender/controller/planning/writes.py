"""One step as a request to the API server.

Each is refused by the server if the pod is not the one that was looked at: a JSON patch tests its uid
and resourceVersion, a merge patch carries both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from extender.controller.cluster.values import GatedPod
from extender.kube import paths
from extender.kube.writing import PatchKind
from scoring.gangs.rules import GATE, WAKE
from scoring.gangs.steps import Step, Verb
from scoring.gangs.values import GangPod


@dataclass(frozen=True, slots=True)
class Write:
    """One request."""

    path: str
    body: bytes
    kind: PatchKind | None
    """Of a PATCH; None: a POST."""


NOMINATED: Final = "/status/nominatedNodeName"
GATES: Final = "/spec/schedulingGates"


def write(step: Step, now_s: float) -> Write:
    """The request that a step is. `now_s`: Unix time."""
    pod, path = step.pod, paths.pod(step.pod.namespace, step.pod.member.name)
    match step.verb:
        case Verb.NOMINATE:
            change = {"op": "add", "path": NOMINATED, "value": step.node}
            return Write(f"{path}/status", _tested(pod, change), PatchKind.JSON)
        case Verb.CLEAR:
            change = {"op": "remove", "path": NOMINATED}
            return Write(f"{path}/status", _tested(pod, change), PatchKind.JSON)
        case Verb.LIFT:
            # A member that counts is held by no gate but ours.
            return Write(path, _tested(pod, {"op": "remove", "path": GATES}), PatchKind.JSON)
        case Verb.WAKE:
            metadata = {
                "uid": pod.member.uid,
                "resourceVersion": pod.version,
                "annotations": {WAKE: paths.micro_time(now_s)},
            }
            return Write(path, msgspec.json.encode({"metadata": metadata}), PatchKind.MERGE)
        case Verb.EVICT:
            return Write(f"{path}/eviction", _eviction(pod), None)


def release(pod: GatedPod) -> Write:
    """Take our gate, and no other, from a pod that no plan will ever take it from."""
    metadata = {"uid": pod.uid, "resourceVersion": pod.version}
    gates = [{"$patch": "delete", "name": GATE}]  # Kubernetes merges them by name
    body = {"metadata": metadata, "spec": {"schedulingGates": gates}}
    path = paths.pod(pod.namespace, pod.name)
    return Write(path, msgspec.json.encode(body), PatchKind.STRATEGIC)


def _eviction(pod: GangPod) -> bytes:
    return msgspec.json.encode(
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.member.name, "namespace": pod.namespace},
            "deleteOptions": {
                "preconditions": {"uid": pod.member.uid, "resourceVersion": pod.version}
            },
        }
    )


def _tested(pod: GangPod, change: dict[str, Any]) -> bytes:
    return msgspec.json.encode([*paths.unchanged(pod.member.uid, pod.version), change])
