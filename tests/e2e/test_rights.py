"""The rights that deploy/kustomize gives: enough to work, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import shipped

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.deployed import NAMESPACE, applied, applying
from e2e.fixtures import MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.processes import free_port
from e2e.waiting import eventually
from extender.controller.cluster.groups import SOURCES
from scoring.reasons import Reason

__all__ = ["applied"]


LEASE: Final = "leases.coordination.k8s.io/surefoot-controller"
KINDS: Final = tuple(f"{each.resource}.{each.group}" for each in SOURCES)
"""By which gangs are known; a cluster need not have them."""
OTHERS: Final = (
    "secrets", "configmaps", "pods/exec", "pods/binding", "pods/eviction", "pods/ephemeralcontainers",
    "deployments.apps", "leases.coordination.k8s.io", "leases.coordination.k8s.io/kube-scheduler",
)  # fmt: skip
"""What could hurt or tell."""
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READS: Final = {(verb, what) for verb in VERBS[:3] for what in ("pods", "nodes", *KINDS)}
LEADS: Final = {("create", "leases.coordination.k8s.io"), ("get", LEASE), ("update", LEASE)} | {
    ("create", each) for each in (LEASE, "leases.coordination.k8s.io/kube-scheduler")
}
"""RBAC knows no name of what is yet to be created, so that right has none."""
ACTS: Final = {
    ("patch", "pods"), ("patch", "pods/status"), ("patch", "nodes/status"),
    *((verb, "events") for verb in ("create", "patch")),
}  # fmt: skip


def _allowed(cluster: Cluster, account: str) -> set[tuple[str, str]]:
    """(verb, resource) that an account of Surefoot may do in its own namespace."""
    resources = (
        "pods", "nodes", "pods/status", "nodes/status", "events", LEASE,
        *KINDS, *OTHERS,
    )  # fmt: skip
    found = set()
    for verb in VERBS:
        for resource in resources:
            review = cluster.api.create(
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                {
                    "spec": {
                        "user": f"system:serviceaccount:{NAMESPACE}:{account}",
                        "groups": ["system:serviceaccounts", "system:authenticated"],
                        "resourceAttributes": {
                            "namespace": NAMESPACE, "verb": verb, **_attributes(resource)
                        },
                    }
                },
            )  # fmt: skip
            if review["status"]["allowed"]:
                found.add((verb, resource))
    return found


def _attributes(resource: str) -> dict[str, str]:
    """Of `pods/status`, `leases.coordination.k8s.io/NAME`, `jobs.batch`."""
    kind, _, rest = resource.partition("/")
    plural, _, group = kind.partition(".")
    return {"resource": plural, "group": group, ("name" if group else "subresource"): rest}


def _may(cluster: Cluster, account: str, rights: set[tuple[str, str]]) -> None:
    """Wait until it may do this and no more: what an overlay before gave, the API server forgets a moment
    later than it deletes it.
    """
    eventually(
        lambda: _allowed(cluster, account) == rights,
        lambda: f"{account} may {sorted(_allowed(cluster, account) ^ rights)} too, or not",
    )


@applying("base")
def test_each_process_may_do_what_it_does_and_no_more(applied: Cluster) -> None:
    """The controller reads, leads and acts; serve and the cache are nobody."""
    _may(applied, "surefoot-controller", READS | LEADS | ACTS)
    _may(applied, "surefoot-serve", set())
    _may(applied, "surefoot-cache", set())


@applying("overlays/observe")
def test_who_only_watches_may_change_nothing(applied: Cluster) -> None:
    """Besides its own Lease."""
    _may(applied, "surefoot-controller", READS | LEADS)


@applying("with-components")
def test_evicting_and_tainting_are_rights_of_their_own(applied: Cluster) -> None:
    """What is off by default has no right by default: the components give it."""
    more = {("create", "pods/eviction"), ("patch", "nodes")}
    _may(applied, "surefoot-controller", READS | LEADS | ACTS | more)


@applying("overlays/secondary")
def test_the_second_scheduler_works_with_the_rights_it_is_given(
    applied: Cluster,
    cache: Cache,
    gpu_nodes: Nodes,
    pods: Pods,
    surefoot: MakesSurefoot,
    tmp_path: Path,
) -> None:
    """As its own ServiceAccount it takes its own lease, asks Surefoot, binds, and is refused
    nothing.
    """
    gpu_nodes(2)
    gpu_nodes.report(cache.settings, sick={"gpu-0": {0: "DEGRADED"}})
    served = surefoot(nodes=2)
    account = applied.service_account(NAMESPACE, "surefoot-scheduler")
    config = tmp_path / "kube-scheduler.yaml"
    config.write_text(
        (shipped.CONFIGS / "secondary.yaml")
        .read_text()
        .replace("clientConnection:\n", f"clientConnection:\n  kubeconfig: {account}\n")
        .replace("http://127.0.0.1:8888", served.url)
    )
    second = applied.plane.process(
        "kube-scheduler",
        [
            f"--config={config}",
            f"--authentication-kubeconfig={account}",
            f"--authorization-kubeconfig={account}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={tmp_path}",
        ],
        log=tmp_path / "second.log",
    )
    try:
        second.start()
        pods.create(*(pod(f"r-{i}", gpus=8, gang="train", scheduler="surefoot") for i in range(2)))
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/surefoot-scheduler"
        eventually(
            lambda: (applied.api.find(lease) or {"spec": {}})["spec"].get("holderIdentity"),
            "it holds its lease",
        )
        eventually(lambda: "gpu-1" in pods.nodes().values(), "one member is on the healthy node")
        (waiting,) = (name for name, node in pods.nodes().items() if node is None)
        assert f"1 {Reason.GPU_DEGRADED.text}" in pods.refused(waiting)
    finally:
        second.kill()
