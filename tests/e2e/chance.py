"""Random pods and nodes, of every kind that the API server lets in, and documents of every kind."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from asking import Json
from papers import node_paper, paper

from e2e.nodes import Machine, node_body
from e2e.pods import SMALL, pod
from extender.store.documents import Document

GPU: Final = "nvidia.com/gpu"
SHARED: Final = "nvidia.com/gpu.shared"
MIG: Final = ("nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb")
RESOURCES: Final = (GPU, SHARED, *MIG)
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
SHAPE: Final = "surefoot.dev/e2e-shape"
"""Pods with the same value differ by their names alone."""
ZONES: Final = ("a", "b", "c")
STATES: Final = ("SUSPECT", "DEGRADED", "UNKNOWN", "PROBATION", "RESET_REQUIRED", "FAILED")
WORDS: Final = ("", "SUSPECT", "degraded", "SUSPECT, UNKNOWN", "nonsense", "健康", "\x7f")
COUNTS: Final = ("0", "1", "2", "8", "x9", "99999999999")
ASKED: Final = (*[1] * 20, *[2] * 5, 4, 8, 16)
"""Units of one resource in one container."""
AGES_S: Final = (*[0.0] * 12, 5_400.0, 9_000.0, None)
"""Fresh, stale, silent, never seen, where nodes are stale after 1 h and unknown after 2."""

GANG_LABELS: Final = (
    "surefoot.dev/gang",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io/name",
    "volcano.sh/job-name",
    "kueue.x-k8s.io/pod-group-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "jobset.sigs.k8s.io/jobset-uid",
    "jobset.sigs.k8s.io/jobset-name",
    "grove.io/podgang",
    "yunikorn.apache.org/app-id",
    "ray.io/cluster",
)
GANG_ANNOTATIONS: Final = (
    "gang.scheduling.koordinator.sh/name",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "pod-group-name",
    "kueue.x-k8s.io/workload",
)
COUNT_LABELS: Final = (
    "surefoot.dev/gang-size",
    "pod-group.scheduling.sigs.k8s.io/min-available",
    "kueue.x-k8s.io/podset",
    "yunikorn.apache.org/task-group-name",
    "ray.io/gang-scheduling-enabled",
)
COUNT_ANNOTATIONS: Final = (
    "gang.scheduling.koordinator.sh/min-available",
    "gang.scheduling.koordinator.sh/total-number",
    "scheduling.volcano.sh/group-min-member",
    "kueue.x-k8s.io/pod-group-total-count",
    "leaderworkerset.sigs.k8s.io/size",
    "yunikorn.apache.org/task-groups",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A node as the API server has it, and what the cache has of it."""

    node: Json
    document: Document | None
    """None: nobody reports it."""
    seen_s_ago: float | None
    """When it was sampled; None: never."""
    others: tuple[Document, ...]
    """What else is known of it: who holds its GPUs, what an operator has said."""


class Chance:
    """The same seed gives the same pods and nodes, in the same order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def place(self, name: str) -> Place:
        """A node of 1 to 16 GPUs, whole, shared or cut into instances."""
        gpus = self._one((1, 2, 4, 4, 8, 8, 8, 16))
        node = node_body(name, Machine(product="made-up", gpus=gpus), {ZONE: self._one(ZONES)})
        node["metadata"]["annotations"] = {"example.com/remark": self._one(WORDS)}
        node["spec"] = {"unschedulable": self._rarely()}
        capacity = node["status"]["capacity"]
        for resource in (SHARED, *MIG):
            capacity[resource] = str(self._random.randint(1, 56))
        return Place(
            node=with_ready(node),
            document=None if self._rarely() else self._document(name, gpus),
            seen_s_ago=self._one(AGES_S),
            others=tuple(self._others(name, gpus)),
        )

    def pod(self, name: str) -> Json:
        """A pod of a shape of its own."""
        labels, annotations = self._gang()
        for key in ("surefoot.dev/allow", "surefoot.dev/deny"):
            if self._rarely():
                annotations[key] = self._one(WORDS)
        if self._random.random() < 0.005:
            annotations["example.com/huge"] = "語" * 60_000
        spec: Json = {"containers": self._containers("main")}
        inits = self._containers("init") if self._rarely() else []
        sidecars = self._containers("side") if self._rarely() else []
        spec["initContainers"] = [
            *inits,
            *({**each, "restartPolicy": "Always"} for each in sidecars),
        ]
        for wish in (_pod_level, _tolerant, self._affinity, self._spread, self._selector):
            if self._rarely():
                spec |= wish()
        return pod(
            name,
            gpus=0,
            priority=self._one((*[None] * 6, "low", "low", "high")),
            labels={**labels, SHAPE: name},
            annotations=annotations,
            **spec,
        )

    def _document(self, name: str, gpus: int) -> Document:
        sick = {}
        if self._random.random() < 0.5:
            sick = {index: self._one(STATES) for index in range(gpus) if self._rarely()}
        found = node_paper(
            name,
            gpus=gpus,
            sick=sick,
            metadata={"name": name, "labels": {ZONE: self._one(ZONES), "röck": self._one(WORDS)}},
            allocationMode=self._one(("unknown", "nvidia", "nvidia", "planned", "dra")),
            expected=gpus + self._rarely(),
        )
        return replace(found, encoded=found.encoded[:-20]) if self._rarely() else found

    def _others(self, name: str, gpus: int) -> list[Document]:
        found = []
        if self._rarely():
            verdict = self._one(("allow", "deny"))
            said = {"target": f"node/{name}", "verdict": verdict, "who": "e2e", "why": "by chance"}
            found.append(paper("Override", **said))
        if self._rarely():
            held = {"uid": f"of-{name}", "pod": "other", "namespace": "elsewhere", "resource": GPU}
            found.append(paper("Allocation", node=name, count=gpus // 2, **held))
        return found

    def _gang(self) -> tuple[dict[str, str], dict[str, str]]:
        """Labels and annotations of one convention, or of several, or of none."""
        if self._random.random() < 0.4:
            return {}, {}
        name = f"gang-{self._random.randrange(20)}"
        labels = dict.fromkeys(self._random.sample(GANG_LABELS, self._random.randint(0, 1)), name)
        annotations = dict.fromkeys(
            self._random.sample(GANG_ANNOTATIONS, self._random.randint(0, 1)), name
        )
        labels |= {key: self._one(COUNTS) for key in self._some(COUNT_LABELS)}
        annotations |= {key: self._one((*COUNTS, *WORDS)) for key in self._some(COUNT_ANNOTATIONS)}
        return labels, annotations

    def _containers(self, prefix: str) -> list[Json]:
        return [
            {
                "name": f"{prefix}-{number}",
                "image": "train",
                "resources": {"limits": {**SMALL, **self._resources()}},
            }
            for number in range(self._one((1, 1, 1, 1, 1, 1, 2, 3)))
        ]

    def _resources(self) -> Mapping[str, str]:
        if self._rarely():
            return {}
        resources = [self._one((GPU, GPU, GPU, *RESOURCES))]
        if self._rarely():
            resources.append(self._one(RESOURCES))
        return {each: str(self._one(ASKED)) for each in resources}

    def _affinity(self) -> Json:
        zone = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [self._one(ZONES)]}]}
        kinds: tuple[Json, ...] = (
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [zone]}},
            {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "preference": zone}
                ]
            },
        )
        return {"affinity": {"nodeAffinity": self._one(kinds)}}

    def _spread(self) -> Json:
        spread = {
            "maxSkew": 2,
            "topologyKey": self._one((ZONE, HOST)),
            "whenUnsatisfiable": self._one(("ScheduleAnyway", "DoNotSchedule")),
            "labelSelector": {"matchExpressions": [{"key": SHAPE, "operator": "Exists"}]},
        }
        return {"topologySpreadConstraints": [spread]}

    def _selector(self) -> Json:
        return {"nodeSelector": {ZONE: self._one(ZONES)}}

    def _one(self, choices: Any) -> Any:
        return self._random.choice(choices)

    def _some(self, choices: tuple[str, ...]) -> list[str]:
        return [each for each in choices if self._rarely()]

    def _rarely(self) -> bool:
        return self._random.random() < 0.15


def _pod_level() -> Json:
    """Resources of the pod as a whole (KEP-2837)."""
    return {"resources": {"limits": {"cpu": "4", "memory": "2Gi"}}}


def _tolerant() -> Json:
    """Goes to cordoned nodes, too."""
    return {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}


def with_ready(node: Json) -> Json:
    """The node with the condition that its kubelet would set: nobody plays the kubelet here."""
    node["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return node
