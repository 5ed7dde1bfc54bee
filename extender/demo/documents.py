"""Nodes and allocations of the demo as documents of the cache (docs/documents.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from extender.demo.agents import Causes
from extender.demo.cluster import Placement
from extender.demo.fleet import Machine
from extender.demo.jobs import Job
from extender.demo.scheduler import NAMESPACE, RESOURCE, pod_name, pod_uid
from extender.store import documents
from extender.store.documents import Document
from extender.store.schema import API_VERSION, Kind
from scoring.model import AllocationMode, Cause

ToUnix = Callable[[float], float]
"""From the demo's clock to the server's."""


def node(
    machine: Machine, causes: Mapping[int, Causes], cut: frozenset[int], to_unix_s: ToUnix
) -> Document:
    """What the node's agent publishes; epoch and seq are the store's to count."""
    return documents.check(
        {
            "apiVersion": API_VERSION,
            "kind": Kind.NODE.value,
            "metadata": {"name": machine.name, "labels": dict(machine.labels)},
            "allocationMode": AllocationMode.NVIDIA.value,
            "expected": machine.product.gpus,
            "links": {f"GPU{i}-GPU{j}": word for (i, j), word in machine.words(cut).items()},
            "gpus": [
                {
                    "uuid": uuid,
                    "index": index,
                    "pci": machine.pci(index),
                    "model": machine.product.model,
                    "numa": machine.product.numa(index),
                    "causes": [_cause(each, to_unix_s) for each in causes.get(index, ())],
                }
                for index, uuid in enumerate(machine.uuids)
            ],
        }
    )


def _cause(cause: Cause, to_unix_s: ToUnix) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": cause.id,
        "state": cause.state.name,
        "scope": cause.scope.value,
        "count": cause.count,
        "evidence": cause.evidence,
    }
    for key, time_s in (("firstSeen", cause.first_s), ("lastSeen", cause.last_s)):
        if time_s is not None:
            found[key] = datetime.fromtimestamp(to_unix_s(time_s), UTC).isoformat()
    return found


def allocation(job: Job, place: Placement, machine: Machine) -> Document:
    """What the kubelet's Pod Resources say of one member."""
    return documents.check(
        {
            "apiVersion": API_VERSION,
            "kind": Kind.ALLOCATION.value,
            "node": place.node,
            "pod": pod_name(job, place.member),
            "uid": pod_uid(job, place.member),
            "namespace": NAMESPACE,
            "gang": f"{NAMESPACE}/{job.name}" if job.is_gang else None,
            "resource": RESOURCE,
            "count": job.gpus,
            "gpus": [machine.uuids[gpu] for gpu in place.gpus],
        }
    )
