"""The native gangs of Kubernetes 1.37: PodGroup, and a control plane that knows it."""

from __future__ import annotations

from typing import Any, Final

from asking import Json

from e2e.control_plane import ClusterSettings

API: Final = "scheduling.k8s.io/v1beta1"
NATIVE: Final = ClusterSettings(
    feature_gates=("GenericWorkload=true", "TopologyAwareWorkloadScheduling=true"),
    runtime_config=(f"{API}=true",),
)


def pod_group(
    name: str,
    *,
    size: int,
    priority: str | None = None,
    topology: str | None = None,
    **spec: Any,
) -> Json:
    """A gang that runs with `size` members or not at all, within one domain of the label `topology`.

    Its members are pods of the same priority with `**member_of(name)`.
    """
    chosen = {"priorityClassName": priority} if priority else {}
    within = {"schedulingConstraints": {"topology": [{"key": topology}]}} if topology else {}
    return {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}, **chosen, **within, **spec},
    }


def member_of(group: str) -> Json:
    """What makes a pod a member of this gang."""
    return {"schedulingGroup": {"podGroupName": group}}
