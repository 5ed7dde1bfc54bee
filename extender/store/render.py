"""Values of `scoring.model` as documents: what agents, the controller and the demo write."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from extender.store import documents, plans
from extender.store.documents import Document
from extender.store.schema import API_VERSION, MAX_WORD, Kind
from extender.store.values import Value, identity
from scoring.gangs.record import GangPlan
from scoring.links import WORST
from scoring.model import (
    Allocation,
    Breaker,
    Cause,
    ClusterNode,
    Fabric,
    Gang,
    Gpu,
    Node,
    Override,
    Rejection,
    Taint,
    TopologyPolicy,
)


def document(value: Value) -> Document:
    """The document that reads back as `value`; ends of overrides and breakers, and times of
    rejections and plans, are Unix time.

    A node of epoch 0 and seq 0 is one without order: it goes after the stored one.

    Raises:
        DocumentError: the value holds what no document may.
    """
    return documents.check(body(value))


def body(value: Value) -> Mapping[str, Any]:
    """The same as plain values; what says nothing is left out."""
    match value:
        case Node():
            kind, fields = Kind.NODE, _node(value)
        case Allocation():
            kind, fields = Kind.ALLOCATION, _allocation(value)
        case Gang():
            kind, fields = Kind.GANG, _gang(value)
        case Override():
            kind, fields = Kind.OVERRIDE, _override(value)
        case Breaker():
            kind, fields = Kind.BREAKER, _breaker(value)
        case Rejection():
            kind, fields = Kind.REJECTION, _rejection(value)
        case ClusterNode():
            kind, fields = Kind.CLUSTER_NODE, _cluster_node(value)
        case GangPlan():
            kind, fields = Kind.PLAN, plans.fields(value)
    return {
        "apiVersion": API_VERSION,
        "kind": kind.value,
        **_said({"metadata": _metadata(value), **fields}),
    }


def _metadata(value: Value) -> dict[str, Any] | None:
    match value:
        case Node(labels=labels) | ClusterNode(labels=labels) if labels:
            return {"name": value.name, "labels": dict(labels)}
        case Rejection():
            return {"name": value.name} if value.name else None
        case _:
            # For people only: what tells such documents apart is in their own fields, and may be longer.
            return {"name": identity(value)[:MAX_WORD]}


def _node(node: Node) -> dict[str, Any]:
    indices = [gpu.index for gpu in node.gpus]
    return {
        "epoch": node.epoch or None,
        "seq": node.seq or None,
        "bootId": node.boot_id,
        "allocationMode": node.mode.value,
        "topologyManagerPolicy": None
        if node.topology_policy is TopologyPolicy.NONE
        else node.topology_policy.value,
        "sharing": None
        if node.sharing is None
        else {"replicas": node.sharing.replicas, "policy": node.sharing.policy.value},
        "expected": node.expected,
        "fabric": _fabric(node.fabric) if node.fabric else None,
        "links": {
            f"GPU{indices[i]}-GPU{indices[j]}": node.links.words[i][j]
            for i in range(len(indices))
            for j in range(len(indices))
            if indices[i] < indices[j] and node.links.words[i][j] != WORST
        },
        "gpus": [_said(_gpu(gpu)) for gpu in node.gpus],
        "causes": [_said(_cause(cause)) for cause in node.causes] or None,
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "uuid": gpu.uuid,
        "index": gpu.index,
        "pci": gpu.pci,
        "model": gpu.model,
        "numa": gpu.numa,
        "mig": gpu.mig,
        "causes": [_said(_cause(cause)) for cause in gpu.causes] or None,
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "id": cause.id,
        "state": cause.state.name,
        "scope": cause.scope.value,
        "firstSeen": _time(cause.first_s),
        "lastSeen": _time(cause.last_s),
        "count": cause.count,
        "evidence": cause.evidence or None,
    }


def _fabric(fabric: Fabric) -> dict[str, Any]:
    return _said(
        {
            "state": fabric.state,
            "status": fabric.status,
            "cliqueId": fabric.clique_id,
            "clusterUuid": fabric.cluster_uuid,
            "healthMask": fabric.health_mask,
            "healthSummary": fabric.health_summary,
        }
    )


def _allocation(held: Allocation) -> dict[str, Any]:
    return {
        "node": held.node,
        "pod": held.pod,
        "uid": held.uid,
        "namespace": held.namespace,
        "gang": held.gang,
        "resource": held.resource,
        "count": held.count,
        "gpus": None if held.gpus is None else sorted(held.gpus),
    }


def _gang(gang: Gang) -> dict[str, Any]:
    return {
        "key": gang.key,
        "uid": gang.uid,
        "convention": gang.convention.value,
        "min": gang.min or None,  # 0: all of it is done
        "size": gang.size or None,
        "members": list(gang.members) or None,
    }


def _override(override: Override) -> dict[str, Any]:
    return {
        "target": override.target,
        "verdict": override.verdict.value,
        "who": override.who,
        "why": override.why,
        "until": _time(override.until_s),
    }


def _breaker(breaker: Breaker) -> dict[str, Any]:
    return {
        "pool": breaker.pool,
        "state": breaker.state.value,
        "until": _time(breaker.until_s),
    }


def _rejection(rejection: Rejection) -> dict[str, Any]:
    return {
        "node": rejection.node,
        "owner": rejection.owner,
        "reason": rejection.reason,
        "at": _time(rejection.at_s),
        "epoch": rejection.epoch,
        "seq": rejection.seq,
    }


def _cluster_node(node: ClusterNode) -> dict[str, Any]:
    return {
        "unschedulable": node.unschedulable or None,
        "taints": [_taint(taint) for taint in node.taints] or None,
        "capacity": dict(node.capacity) or None,
        "allocatable": dict(node.allocatable) or None,
    }


def _taint(taint: Taint) -> dict[str, Any]:
    return _said({"key": taint.key, "effect": taint.effect, "value": taint.value or None})


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _time(unix_s: float | None) -> str | None:
    return None if unix_s is None else datetime.fromtimestamp(unix_s, UTC).isoformat()
