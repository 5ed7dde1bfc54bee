"""Pods and nodes as an API server shows them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from extender.kube.shapes import HEADED, Header

Json = dict[str, Any]


def container(gpus: int | str = 1, resource: str = "nvidia.com/gpu", **more: Any) -> Json:
    """A container that asks for so many."""
    return {"name": "main", "resources": {"limits": {resource: str(gpus)}}, **more}


def pod(
    name: str,
    gpus: int | str = 1,
    *,
    node: str | None = "gpu-0",
    phase: str = "Running",
    uid: str | None = None,
    **spec: Any,
) -> Json:
    """A pod that runs on a node; `node` None: it is not bound."""
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": uid or f"uid-{name}",
            "resourceVersion": "1",
            "labels": {},
            "annotations": {},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [container(gpus)] if gpus else [{"name": "main"}],
            **({"nodeName": node} if node else {}),
            **spec,
        },
        "status": {"phase": phase},
    }


def node(name: str, gpus: int | str = 8, **labels: str) -> Json:
    """A node with GPUs, all of them allocatable."""
    units = {"cpu": "128", "memory": "2Ti", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "resourceVersion": "1", "labels": labels},
        "spec": {},
        "status": {
            "capacity": units,
            "allocatable": dict(units),
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": ["x"], "sizeBytes": 1}],
        },
    }


def raw(body: Json) -> tuple[Header, Raw]:
    """As a reflector hands it out."""
    encoded = msgspec.json.encode(body)
    return HEADED.decode(encoded).metadata, Raw(encoded)
