"""Gangs as their users and their operators write them: pods, and the objects beside them.

The kinds that Kubernetes lacks are in manifests/gang-kinds.yaml; nothing here runs their operators, so
a test writes what these would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asking import Json

from e2e.pods import pod

JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
KUEUE_GATE: Final = {"name": "kueue.x-k8s.io/admission"}
"""Of a plain pod that Kueue has not admitted yet."""


def members(gang: str, size: int, *, gpus: int = 8, **options: Any) -> list[Json]:
    """Surefoot's own labels on plain pods: `gang-0` and so on."""
    return [pod(f"{gang}-{i}", gpus=gpus, gang=gang, size=size, **options) for i in range(size)]


def indexed_job(
    gang: str,
    size: int,
    *,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """A Job whose pods are a gang of its own name; how many they are stands in the Job alone."""
    member = pod(
        gang,
        gpus=gpus,
        labels={"surefoot.dev/gang": gang, **(labels or {})},
        annotations=annotations,
        restartPolicy="Never",
    )
    del member["metadata"]["name"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": gang},
        "spec": {
            "completionMode": "Indexed",
            "completions": size,
            "parallelism": size,
            "backoffLimit": 6 * size,
            "template": {"metadata": member["metadata"], "spec": member["spec"]},
        },
    }


def coscheduling_group(gang: str, size: int) -> Json:
    """The PodGroup of scheduler-plugins."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": gang},
        "spec": {"minMember": size, "scheduleTimeoutSeconds": 10},
    }


def coscheduling_members(gang: str, size: int, *, gpus: int = 8, **options: Any) -> list[Json]:
    """Its pods."""
    label = {"scheduling.x-k8s.io/pod-group": gang}
    return [pod(f"{gang}-{i}", gpus=gpus, labels=label, **options) for i in range(size)]


def jobset(name: str, *, jobs: int, pods_each: int) -> Json:
    """A JobSet of one kind of Job, as its user writes it; the gang is all of its pods."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "replicatedJobs": [
                {
                    "name": "workers",
                    "replicas": jobs,
                    "template": {"spec": {"parallelism": pods_each, "completions": pods_each}},
                }
            ]
        },
    }


def jobs_of(jobset: Json, *, gpus: int = 8) -> list[Json]:
    """The Jobs that the operator makes of a JobSet that the API server has."""
    name, uid = jobset["metadata"]["name"], jobset["metadata"]["uid"]
    (kind,) = jobset["spec"]["replicatedJobs"]
    found = []
    for number in range(kind["replicas"]):
        own = f"{name}-{kind['name']}-{number}"
        prefix = "jobset.sigs.k8s.io"
        marks = {
            f"{prefix}/jobset-name": name,
            f"{prefix}/jobset-uid": uid,
            f"{prefix}/replicatedjob-name": kind["name"],
            f"{prefix}/replicatedjob-replicas": str(kind["replicas"]),
            f"{prefix}/global-replicas": str(kind["replicas"]),
            f"{prefix}/job-index": str(number),
            f"{prefix}/job-global-index": str(number),
            f"{prefix}/job-key": f"{number:040x}",
            f"{prefix}/restart-attempt": "0",
        }
        job = indexed_job(
            own, kind["template"]["spec"]["parallelism"], gpus=gpus, labels=marks, annotations=marks
        )
        del job["spec"]["template"]["metadata"]["labels"]["surefoot.dev/gang"]
        job["metadata"]["labels"] = marks
        job["metadata"]["ownerReferences"] = [owned_by(jobset)]
        found.append(job)
    return found


def worker_set(name: str, *, groups: int, size: int) -> Json:
    """A LeaderWorkerSet; each of its groups is a gang."""
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {"replicas": groups, "leaderWorkerTemplate": {"size": size}},
    }


def workers_of(worker_set: Json, *, gpus: int = 8, **options: Any) -> list[Json]:
    """The pods that its StatefulSets make: leaders `name-0`, workers `name-0-1` and so on."""
    name = worker_set["metadata"]["name"]
    size = worker_set["spec"]["leaderWorkerTemplate"]["size"]
    prefix = "leaderworkerset.sigs.k8s.io"
    return [
        pod(
            f"{name}-{group}" if index == 0 else f"{name}-{group}-{index}",
            gpus=gpus,
            labels={
                f"{prefix}/name": name,
                f"{prefix}/group-index": str(group),
                f"{prefix}/group-key": f"{group:040x}",
                f"{prefix}/worker-index": str(index),
            },
            annotations={
                f"{prefix}/size": str(size),
                **({f"{prefix}/leader-name": f"{name}-{group}"} if index else {}),
            },
            **options,
        )
        for group in range(worker_set["spec"]["replicas"])
        for index in range(size)
    ]


def kueue_workload(gang: str, size: int) -> Json:
    """The Workload that Kueue makes of a group of plain pods."""
    sets = [{"name": "main", "count": size, "template": {"spec": {"containers": []}}}]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": gang},
        "spec": {"queueName": "gpus", "podSets": sets},
    }


def kueue_members(
    gang: str, size: int, *, admitted: bool = True, gpus: int = 8, **options: Any
) -> list[Json]:
    """Plain pods of a Kueue group; one that is not admitted has Kueue's own gate."""
    prefix = "kueue.x-k8s.io"
    labels = {
        f"{prefix}/queue-name": "gpus",
        f"{prefix}/pod-group-name": gang,
        f"{prefix}/managed": "true",
    }
    annotations = {f"{prefix}/pod-group-total-count": str(size), f"{prefix}/role-hash": "main"}
    if admitted:
        labels |= {f"{prefix}/cluster-queue-name": "gpus", f"{prefix}/podset": "main"}
        annotations |= {f"{prefix}/workload": gang}
    gates: dict[str, Any] = {} if admitted else {"schedulingGates": [KUEUE_GATE]}
    return [
        pod(f"{gang}-{i}", gpus=gpus, labels=labels, annotations=annotations, **gates, **options)
        for i in range(size)
    ]


def owned_by(owner: Json) -> Json:
    """A reference to the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
