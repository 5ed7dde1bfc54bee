"""The rights that deploy/kustomize gives: enough to work, and no more."""

from __future__ import annotations

from pathlib import Path

import shipped

from e2e.caches import Cache
from e2e.cluster import Cluster
from e2e.deployed import NAMESPACE, applied, applying
from e2e.fixtures import MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.processes import free_port
from e2e.waiting import eventually
from scoring.reasons import Reason

__all__ = ["applied"]


def _allowed(cluster: Cluster, account: str) -> set[tuple[str, str]]:
    """(verb, resource) that an account of Surefoot may do, of those that could hurt or tell."""
    found = set()
    resources = (
        ("", "pods"), ("", "nodes"), ("", "secrets"), ("", "configmaps"), ("", "pods/exec"),
        ("", "pods/status"), ("", "pods/binding"), ("apps", "deployments"),
        ("coordination.k8s.io", "leases"),
    )  # fmt: skip
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
        for group, resource in resources:
            name, _, sub = resource.partition("/")
            attributes = {
                "namespace": NAMESPACE, "verb": verb, "group": group, "resource": name,
                "subresource": sub,
            }  # fmt: skip
            review = cluster.api.create(
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                {
                    "spec": {
                        "user": f"system:serviceaccount:{NAMESPACE}:{account}",
                        "groups": ["system:serviceaccounts", "system:authenticated"],
                        "resourceAttributes": attributes,
                    }
                },
            )
            if review["status"]["allowed"]:
                found.add((verb, resource))
    return found


@applying("base")
def test_each_process_may_do_what_it_does_and_no_more(applied: Cluster) -> None:
    """The controller reads pods and nodes; serve and the cache are nobody."""
    reads = {(verb, what) for verb in ("list", "watch") for what in ("pods", "nodes")}
    assert _allowed(applied, "surefoot-controller") == reads
    assert _allowed(applied, "surefoot-serve") == set()
    assert _allowed(applied, "surefoot-cache") == set()


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
