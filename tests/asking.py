"""What kube-scheduler would send: pods and request bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]


def pod(
    gpus: int | str = 1,
    *,
    gang: str | None = None,
    resource: str = "nvidia.com/gpu",
    scheduler: str = "default-scheduler",
    annotations: Mapping[str, str] | None = None,
    conditions: Iterable[Json] = (),
    nominated: str | None = None,
    **spec: Any,
) -> Json:
    """A pending pod; with `gang` a member of a gang of two. `gpus` 0: it asks for none."""
    labels = {"surefoot.dev/gang": gang, "surefoot.dev/gang-size": "2"} if gang else {}
    limits = {"cpu": "4", resource: str(gpus)} if gpus else {"cpu": "4"}
    return {
        "metadata": {
            "name": "rank-0",
            "namespace": "lab",
            "uid": "uid-rank-0",
            "labels": labels,
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "resources": {"limits": limits}}],
            **spec,
        },
        "status": {
            "phase": "Pending",
            "conditions": list(conditions),
            **({"nominatedNodeName": nominated} if nominated is not None else {}),
        },
    }


def by_names(asker: Json, names: Iterable[str]) -> Json:
    """ExtenderArgs as a node-cache-capable caller sends them."""
    return {"Pod": asker, "Nodes": None, "NodeNames": list(names)}


def by_nodes(asker: Json, names: Iterable[str]) -> Json:
    """ExtenderArgs with whole Nodes."""
    items = [
        {"metadata": {"name": name, "labels": {"zone": "a"}}, "status": {"x": 1.5}}
        for name in names
    ]
    return {"Pod": asker, "Nodes": {"items": items}, "NodeNames": None}


def preemption(asker: Json, victims: Mapping[str, Iterable[str]]) -> Json:
    """ExtenderPreemptionArgs: uids of victims by node."""
    return {
        "Pod": asker,
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
            for name, uids in victims.items()
        },
    }


def refused(answer: Json) -> dict[str, str]:
    """Every node that an ExtenderFilterResult refuses, with its text."""
    return {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}


def scores(answer: list[Json]) -> dict[str, int]:
    """A HostPriorityList as a mapping."""
    return {each["Host"]: each["Score"] for each in answer}
