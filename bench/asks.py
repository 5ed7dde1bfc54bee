"""Bodies as kube-scheduler sends them to an extender that caches nodes: one pod, many names."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from fleet import GPUS, MEMBERS, NAMESPACE

from scoring.model import NodeName

ORDERS: Final = 32
"""How many orders of the names take turns: kube-scheduler's parallel filters finish in any order."""
NEW_EVERY: Final = 8
"""One pod in so many is the first of its gang; the others have members that run already."""


def bodies(names: Sequence[NodeName], gangs: Sequence[str], seed: int = 1) -> Iterator[bytes]:
    """Without end: each a new pod, most of them members of half-placed gangs."""
    draw = random.Random(seed)
    orders = [msgspec.json.encode(draw.sample(names, len(names))) for _ in range(ORDERS)]
    number = 0
    while True:
        number += 1
        gang = f"new-{number:05}" if number % NEW_EVERY == 0 else draw.choice(gangs)
        pod = member(gang, MEMBERS + number % MEMBERS, number)
        yield b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (
            msgspec.json.encode(pod),
            orders[number % ORDERS],
        )


def member(gang: str, index: int, number: int) -> dict[str, Any]:
    """One pending pod of an indexed Job that trains on 8 GPUs a pod."""
    uid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{gang}/{index}/{number}"))
    job_uid = str(uuid.uuid5(uuid.NAMESPACE_URL, gang))
    gpus = {"cpu": "96", "memory": "1600Gi", "nvidia.com/gpu": str(GPUS), "rdma/hca": "8"}
    mounts = [
        {"name": "shm", "mountPath": "/dev/shm"},
        {"name": "data", "mountPath": "/data", "readOnly": True},
        {
            "name": "kube-api-access-x7k2p",
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        },
    ]
    return {
        "metadata": {
            "name": f"{gang}-{index}-{uid[:5]}",
            "generateName": f"{gang}-{index}-",
            "namespace": NAMESPACE,
            "uid": uid,
            "resourceVersion": str(900_000 + number),
            "generation": 1,
            "creationTimestamp": "2026-11-29T10:00:00Z",
            "labels": {
                "batch.kubernetes.io/controller-uid": job_uid,
                "batch.kubernetes.io/job-completion-index": str(index),
                "batch.kubernetes.io/job-name": gang,
                "scheduling.x-k8s.io/pod-group": gang,
                "team": "foundation-models",
            },
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": gang,
                    "uid": job_uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "managedFields": [_managed(job_uid)],
        },
        "spec": {
            "volumes": [
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Gi"}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "corpus"}},
                {"name": "kube-api-access-x7k2p", "projected": {"sources": [], "defaultMode": 420}},
            ],
            "containers": [
                {
                    "name": "worker",
                    "image": "trainer:2026.11",
                    "command": ["torchrun", "--nnodes=8", "--nproc-per-node=8", "-m", "train"],
                    "env": [
                        {"name": "NCCL_DEBUG", "value": "WARN"},
                        {"name": "NCCL_IB_HCA", "value": "mlx5"},
                        {"name": "MASTER_ADDR", "value": f"{gang}-0.{gang}"},
                        _from_index("NODE_RANK"),
                        _from_index("JOB_COMPLETION_INDEX"),
                    ],
                    "resources": {"limits": gpus, "requests": gpus},
                    "volumeMounts": mounts,
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                },
            ],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {},
            "hostname": f"{gang}-{index}",
            "subdomain": gang,
            "affinity": {"nodeAffinity": _required("nvidia.com/gpu.product")},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
            ],
            "priority": 1000,
            "priorityClassName": "training",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Guaranteed"},
    }


def _from_index(name: str) -> dict[str, Any]:
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def _required(label: str) -> dict[str, Any]:
    wanted = {"key": label, "operator": "In", "values": ["NVIDIA-H100-80GB-HBM3"]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [wanted]}]
        }
    }


def _managed(job_uid: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "f:metadata": {
            "f:generateName": {},
            "f:labels": {".": {}, "f:team": {}, "f:scheduling.x-k8s.io/pod-group": {}},
            "f:ownerReferences": {".": {}, f'k:{{"uid":"{job_uid}"}}': {}},
        },
        "f:spec": {
            "f:containers": {'k:{"name":"worker"}': {".": {}, "f:image": {}, "f:resources": {}}},
            "f:dnsPolicy": {},
            "f:restartPolicy": {},
            "f:schedulerName": {},
        },
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-29T10:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
