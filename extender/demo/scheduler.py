"""A small gang scheduler that asks an extender as kube-scheduler does.

One pod after the other: nodes with enough free GPUs by count, then POST /filter, then, where more
than one is left, POST /prioritize; its points count times the weight of the extender and times 10
beside the scheduler's own 0..100. A gang is placed in thought, and committed only when every member
has a node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from extender.demo.cluster import Cluster
from extender.demo.jobs import Job
from scoring.model import NodeName

EXTENDER_WEIGHT: Final = 5
NAMESPACE: Final = "demo"
RESOURCE: Final = "nvidia.com/gpu"


class Extender(Protocol):
    """What kube-scheduler asks over HTTP."""

    def filter(self, pod: Mapping[str, Any], names: Sequence[NodeName]) -> list[NodeName]:
        """The fit ones of `names`."""
        ...

    def prioritize(
        self, pod: Mapping[str, Any], names: Sequence[NodeName]
    ) -> Mapping[NodeName, int]:
        """0..10 for each of `names`."""
        ...


def room(job: Job, free: Mapping[NodeName, int]) -> bool:
    """Whether counts alone would hold the whole job."""
    return sum(count >= job.gpus for count in free.values()) >= job.members


def chosen(
    job: Job, cluster: Cluster, extender: Extender | None, *, tried: bool = False
) -> list[NodeName] | None:
    """A node for each member, no two the same, or None where not all find one.

    Two members in thought on one node would be two questions about the same free GPUs.

    `tried`: an earlier attempt failed, which kube-scheduler writes on the pod.
    """
    free = cluster.free_counts(job.product)
    if not room(job, free):
        return None
    nodes: list[NodeName] = []
    for member in range(job.members):
        names = sorted(name for name, count in free.items() if count >= job.gpus)
        pod = pod_of(job, member, tried=tried)
        if extender is not None and names:
            names = extender.filter(pod, names)
        if not names:
            return None
        points = extender.prioritize(pod, names) if extender is not None and len(names) > 1 else {}
        best = max(names, key=lambda name: _order(job, member, name, free, points, cluster))
        nodes.append(best)
        del free[best]
    return nodes


def _order(
    job: Job,
    member: int,
    name: NodeName,
    free: Mapping[NodeName, int],
    points: Mapping[NodeName, int],
    cluster: Cluster,
) -> tuple[float, bytes]:
    """kube-scheduler's total, ties by lot: LeastAllocated plus what the extender adds."""
    total = cluster.machines[name].product.gpus
    least_allocated = 100.0 * (free[name] - job.gpus) / total
    lot = hashlib.blake2b(f"{job.name}/{member}/{name}".encode(), digest_size=8).digest()
    return least_allocated + 10 * EXTENDER_WEIGHT * points.get(name, 0), lot


def pod_of(job: Job, member: int, *, tried: bool = False) -> dict[str, Any]:
    """One pod of the job as kube-scheduler sends it."""
    labels = (
        {"surefoot.dev/gang": job.name, "surefoot.dev/gang-size": str(job.members)}
        if job.is_gang
        else {}
    )
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    return {
        "metadata": {
            "name": pod_name(job, member),
            "namespace": NAMESPACE,
            "uid": pod_uid(job, member),
            "labels": labels,
        },
        "spec": {
            "schedulerName": "demo",
            "containers": [{"name": "main", "resources": {"limits": {RESOURCE: str(job.gpus)}}}],
        },
        "status": {"phase": "Pending", "conditions": conditions if tried else []},
    }


def pod_name(job: Job, member: int) -> str:
    """The name of one member."""
    return f"{job.name}-{member}"


def pod_uid(job: Job, member: int) -> str:
    """Its uid; a member that is started again keeps it here."""
    return f"{pod_name(job, member)}-uid"
