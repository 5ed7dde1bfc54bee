"""The native gangs of Kubernetes 1.36 and later: PodGroup, and a control plane that knows it."""

from __future__ import annotations

from typing import Any, Final

from asking import Json

from e2e.cluster import Cluster
from e2e.control_plane import ClusterSettings

API: Final = "scheduling.k8s.io/v1beta1"
EARLIER: Final = "scheduling.k8s.io/v1alpha2"
"""Of 1.36."""
NATIVE: Final = ClusterSettings(
    feature_gates=("GenericWorkload=true", "TopologyAwareWorkloadScheduling=true"),
    runtime_config=(f"{API}=true", "api/alpha=true"),
)
"""An API server does not start with a version that it does not know, as 1.37 with that of 1.36."""


def api_of(cluster: Cluster) -> str:
    """The version in which a cluster has them."""
    found = cluster.api.get("/apis/scheduling.k8s.io")["versions"]
    return API if API in {each["groupVersion"] for each in found} else EARLIER


def pod_group(
    name: str,
    *,
    size: int,
    api: str = API,
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
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}, **chosen, **within, **spec},
    }


def member_of(group: str) -> Json:
    """What makes a pod a member of this gang."""
    return {"schedulingGroup": {"podGroupName": group}}
