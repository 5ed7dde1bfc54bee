"""Pods and groups as the controllers of the conventions write them, cut to what tells them apart."""

from __future__ import annotations

from typing import Any

import msgspec
from cluster_objects import Json, container, raw
from msgspec import Raw

from extender.controller.cluster.groups import SOURCES, Source
from extender.controller.cluster.handlers import GroupHandler, NodeHandler, PodHandler
from extender.controller.cluster.pods import PodReader
from extender.controller.cluster.shapes import POD
from extender.controller.cluster.values import Kept
from extender.controller.cluster.view import ClusterView
from extender.controller.mirrors import NodeMirror, PodMirror
from extender.controller.wanted import Wanted
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import GangPod
from scoring.model import Convention
from scoring.policy import DEFAULT

ALL = GangRules(plan=dict.fromkeys(Convention, Hold.REQUIRE))
CREATED = "2026-11-29T10:00:00Z"
CREATED_S = 1_795_946_400.0


def pending(
    name: str,
    gpus: int = 8,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: tuple[str, str] | None = None,
    gates: tuple[str, ...] = (),
    node: str | None = None,
    phase: str = "Pending",
    version: int = 10,
    uid: str | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Json:
    """A pod in namespace `ml`; `owner`: kind and name of its controller."""
    metadata: Json = {
        "name": name,
        "namespace": "ml",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
        "labels": labels or {},
        "annotations": annotations or {},
    }
    if owner:
        kind, called = owner
        metadata["ownerReferences"] = [
            {"kind": kind, "name": called, "uid": f"uid-{called}", "controller": True}
        ]
    body: Json = {
        "schedulerName": "default-scheduler",
        "containers": [container(gpus)] if gpus else [{"name": "main"}],
        **spec,
    }
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    if node:
        body["nodeName"] = node
    return {"metadata": metadata, "spec": body, "status": {"phase": phase, **(status or {})}}


def indexed_job(index: int = 0, **more: Any) -> Json:
    """Of an Indexed Job whose template has Surefoot's label."""
    return pending(
        f"train-{index}-x7k2p",
        labels={
            "surefoot.dev/gang": "train",
            "batch.kubernetes.io/job-name": "train",
            "batch.kubernetes.io/job-completion-index": str(index),
        },
        annotations={"batch.kubernetes.io/job-completion-index": str(index)},
        owner=("Job", "train"),
        **more,
    )


def native(index: int = 0, **more: Any) -> Json:
    """Of a PodGroup of Kubernetes 1.36 and later."""
    return pending(f"ranks-{index}", schedulingGroup={"podGroupName": "ranks"}, **more)


def coscheduling(index: int = 0, **more: Any) -> Json:
    """With the label of scheduler-plugins, as Kubeflow's operator writes it."""
    return pending(
        f"torch-worker-{index}",
        labels={
            "scheduling.x-k8s.io/pod-group": "torch",
            "training.kubeflow.org/job-name": "torch",
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": str(index),
        },
        owner=("PyTorchJob", "torch"),
        **more,
    )


def volcano(index: int = 0, **more: Any) -> Json:
    """Of a Volcano Job."""
    return pending(
        f"vc-worker-{index}",
        labels={"volcano.sh/job-name": "vc", "volcano.sh/task-index": str(index)},
        annotations={
            "scheduling.k8s.io/group-name": "vc-0f3a",
            "volcano.sh/task-index": str(index),
            "volcano.sh/task-spec": "worker",
        },
        owner=("Job", "vc"),
        **more,
    )


def kueue_group(index: int = 0, **more: Any) -> Json:
    """A plain pod in a group, admitted."""
    return pending(
        f"sweep-{index}",
        labels={
            "kueue.x-k8s.io/queue-name": "team",
            "kueue.x-k8s.io/pod-group-name": "sweep",
            "kueue.x-k8s.io/managed": "true",
            "kueue.x-k8s.io/podset": "4ebb51f1",
        },
        annotations={
            "kueue.x-k8s.io/pod-group-total-count": "3",
            "kueue.x-k8s.io/workload": "sweep",
            "kueue.x-k8s.io/role-hash": "4ebb51f1",
        },
        **more,
    )


def kueue_job(index: int = 0, **more: Any) -> Json:
    """Of a Job that Kueue admitted."""
    return pending(
        f"tune-{index}-q8z5w",
        labels={
            "batch.kubernetes.io/job-name": "tune",
            "batch.kubernetes.io/job-completion-index": str(index),
            "kueue.x-k8s.io/podset": "main",
            "kueue.x-k8s.io/cluster-queue-name": "gpus",
        },
        annotations={
            "kueue.x-k8s.io/workload": "job-tune-7f2c1",
            "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-block",
        },
        owner=("Job", "tune"),
        **more,
    )


def lws(index: int = 0, **more: Any) -> Json:
    """The leader (0) or a worker of a LeaderWorkerSet's second group."""
    return pending(
        "serve-1" if index == 0 else f"serve-1-{index}",
        labels={
            "leaderworkerset.sigs.k8s.io/name": "serve",
            "leaderworkerset.sigs.k8s.io/group-index": "1",
            "leaderworkerset.sigs.k8s.io/group-key": "8d20b1",
            "leaderworkerset.sigs.k8s.io/worker-index": str(index),
            "apps.kubernetes.io/pod-index": "1" if index == 0 else str(index),
        },
        annotations={
            "leaderworkerset.sigs.k8s.io/size": "3",
            "leaderworkerset.sigs.k8s.io/exclusive-topology": "example.com/pod-of-racks",
        },
        owner=("StatefulSet", "serve" if index == 0 else "serve-1"),
        **more,
    )


def jobset(index: int = 0, *, job: int = 0, jobs: int = 2, **more: Any) -> Json:
    """A pod of a Job of a JobSet."""
    return pending(
        f"llm-workers-{job}-{index}-m4nvd",
        labels={
            "jobset.sigs.k8s.io/jobset-name": "llm",
            "jobset.sigs.k8s.io/jobset-uid": "uid-llm",
            "jobset.sigs.k8s.io/replicatedjob-name": "workers",
            "jobset.sigs.k8s.io/job-index": str(job),
            "jobset.sigs.k8s.io/job-global-index": str(job),
            "jobset.sigs.k8s.io/global-replicas": str(jobs),
            "batch.kubernetes.io/job-completion-index": str(index),
        },
        annotations={
            "alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool",
            "batch.kubernetes.io/job-completion-index": str(index),
        },
        owner=("Job", f"llm-workers-{job}"),
        **more,
    )


def ray(name: str = "raycluster-worker-8xq2d", **more: Any) -> Json:
    """A worker of KubeRay."""
    return pending(
        name,
        labels={
            "ray.io/cluster": "raycluster",
            "ray.io/node-type": "worker",
            "ray.io/gang-scheduling-enabled": "true",
        },
        owner=("RayCluster", "raycluster"),
        **more,
    )


def object_(name: str, spec: Json, status: Json | None = None, *, uid: str | None = None) -> Json:
    """An object that says how large a gang is."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid or f"uid-{name}",
            "resourceVersion": "5",
        },
        "spec": spec,
        "status": status or {},
    }


def source(name: str) -> Source:
    """The row of this name."""
    return next(each for each in SOURCES if each.name == name)


def encoded(body: Json) -> Raw:
    """As bytes of the API server."""
    return Raw(msgspec.json.encode(body))


def asking(name: str, gpus: int = 0, cpu: str = "1", **more: Any) -> Json:
    """A bound pod that asks for cpu too."""
    ports = [{"containerPort": 80, "hostPort": more.pop("port", 80)}]
    main: Json = container(gpus, ports=ports) if gpus else {"name": "main", "ports": ports}
    main["resources"] = {**main.get("resources", {}), "requests": {"cpu": cpu}}
    more = {"node": "n1", "phase": "Running", **more}
    return pending(name, containers=[main], **more)


def patched(body: Json, version: int, **status: str) -> bytes:
    """What a PATCH answers."""
    body["metadata"]["resourceVersion"] = str(version)
    body["status"].update(status)
    return msgspec.json.encode(body)


def keep(body: Json, rules: GangRules = ALL) -> Kept | None:
    """What is kept of it."""
    return PodReader(DEFAULT, rules).read(POD.decode(msgspec.json.encode(body)))


def kept(body: Json, rules: GangRules = ALL) -> Kept:
    """What is kept, where something is."""
    found = keep(body, rules)
    assert found is not None
    return found


def member(body: Json) -> GangPod:
    """The member of a gang that it is."""
    found = kept(body).member
    assert found is not None
    return found


class Cluster:
    """A view with the handlers that feed it, called as reflectors call them."""

    def __init__(self, rules: GangRules = ALL) -> None:
        self.wanted = Wanted()
        self.view = ClusterView(DEFAULT, rules)
        self.pods = PodHandler(PodMirror(self.wanted, lambda _: frozenset()), self.view)
        self.nodes = NodeHandler(NodeMirror(self.wanted, lambda _: frozenset()), self.view)

    def pod(self, *bodies: Json) -> None:
        """Events of a watch."""
        for body in bodies:
            header, bytes_ = raw(body)
            self.pods.changed(header.key, self.pods.read(header, bytes_))

    def node(self, *bodies: Json) -> None:
        """The same of nodes."""
        for body in bodies:
            header, bytes_ = raw(body)
            self.nodes.changed(header.key, self.nodes.read(header, bytes_))

    def said(self, name: str, *bodies: Json) -> None:
        """The same of objects of one row."""
        handler = GroupHandler(source(name), self.view)
        for body in bodies:
            header, bytes_ = raw(body)
            handler.changed(header.key, handler.read(header, bytes_))

    def list_pods(self, *bodies: Json, whole: bool = True) -> None:
        """A list of all pods."""
        self.pods.listing()
        found = {}
        for body in bodies:
            header, bytes_ = raw(body)
            kept = self.pods.read(header, bytes_)
            if kept is not None:
                found[header.key] = kept
        self.pods.listed(found, whole=whole)
