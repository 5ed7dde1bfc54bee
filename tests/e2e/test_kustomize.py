"""deploy/kustomize as a real API server takes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
import shipped
from asking import Json

from e2e.cluster import Cluster
from e2e.deployed import CHOSEN, DEPLOYMENTS, FOLDERS, NAMESPACE, applied, applying
from e2e.pods import Pods, pod
from e2e.waiting import eventually

__all__ = ["applied"]

ONE_NAMESPACE: Final = """\
resources: [{folder}]
patches:
- target: {{kind: MutatingAdmissionPolicy}}
  patch: |
    - op: replace
      path: /spec/matchConstraints/namespaceSelector/matchLabels/kubernetes.io~1metadata.name
      value: {namespace}
"""
"""As its user would lay it over the shipped one."""
WITH_TOKEN: Final = {
    "surefoot-controller": {"surefoot"},
    "surefoot-scheduler": {"kube-scheduler"},
}
"""Containers that speak to the API server, by the account of their pod."""


def _asking(resource: str) -> Json:
    return {"name": "asks", "image": "train", "resources": {"limits": {resource: "1"}}}


@applying(*FOLDERS)
def test_the_api_server_takes_it_and_makes_the_pods(
    applied: Cluster, request: pytest.FixtureRequest
) -> None:
    """Admission lets each pod in, the strictest Pod Security Standard among it, with the tokens
    that its process needs and no others.
    """
    wanted = DEPLOYMENTS[request.node.callspec.params["applied"]]
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    made = eventually(
        lambda: found if len(found := applied.api.items(path)) == sum(wanted.values()) else [],
        "every replica has its pod",
    )
    for each in made:
        account = each["spec"]["serviceAccountName"]
        containers = (*each["spec"]["containers"], *each["spec"].get("initContainers", []))
        with_token = {
            container["name"]
            for container in containers
            for mount in container["volumeMounts"]
            if mount["mountPath"] == shipped.TOKEN
        }
        assert with_token == WITH_TOKEN.get(account, set())
        assert each["spec"]["priority"] > 1_000_000_000
        configs = [v["configMap"]["name"] for v in each["spec"]["volumes"] if "configMap" in v]
        for name in configs:
            assert applied.api.find(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")


@applying("base")
def test_a_drain_takes_one_replica_at_a_time(applied: Cluster) -> None:
    """The budget is for the two pods of serve, and for no others."""
    path = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/surefoot"
    eventually(
        lambda: applied.api.get(path)["status"]["expectedPods"] == 2, "the budget knows its pods"
    )
    assert applied.api.get(path)["spec"]["maxUnavailable"] == 1


@applying("overlays/tls")
def test_the_service_has_the_address_that_was_chosen(applied: Cluster) -> None:
    """So that kube-scheduler's file can be written beforehand."""
    service = applied.api.get(f"/api/v1/namespaces/{NAMESPACE}/services/surefoot")
    assert service["spec"]["clusterIP"] == CHOSEN


@pytest.mark.since("1.36", "MutatingAdmissionPolicy v1")
def test_one_namespace_can_be_sent_to_surefoot(
    cluster: Cluster, pods: Pods, tmp_path: Path
) -> None:
    """Its GPU pods get the name, unless they chose one; others there, and elsewhere, do not."""
    (tmp_path / "kustomization.yaml").write_text(
        ONE_NAMESPACE.format(
            folder=os.path.relpath(shipped.KUSTOMIZE / "one-namespace", tmp_path),
            namespace=pods.namespace,
        )
    )
    cluster.apply(tmp_path)

    def is_sent() -> bool:
        pods.create(pod("probe"))
        name = pods.all()["probe"]["spec"]["schedulerName"]
        pods.delete("probe")
        return bool(name == "surefoot")

    try:
        eventually(is_sent, "the policy is at work")
        pods.create(
            pod("web", gpus=0),
            pod("chose", scheduler="volcano"),
            pod("init", gpus=0, initContainers=[_asking("nvidia.com/gpu")]),
            pod("init-web", gpus=0, initContainers=[_asking("cpu")]),
            pod("shares", containers=[_asking("nvidia.com/gpu.shared")]),
            pod("mig", containers=[_asking("nvidia.com/mig-1g.10gb")]),
            pod("unbounded", containers=[{"name": "main", "image": "train"}]),
        )
        names = {name: each["spec"]["schedulerName"] for name, each in pods.all().items()}
        assert names == {
            **dict.fromkeys(("web", "init-web", "unbounded"), "default-scheduler"),
            **dict.fromkeys(("init", "shares", "mig"), "surefoot"),
            "chose": "volcano",
        }
        elsewhere = cluster.api.create("/api/v1/namespaces/default/pods", pod("elsewhere"))
        assert elsewhere["spec"]["schedulerName"] == "default-scheduler"
    finally:
        cluster.api.delete("/api/v1/namespaces/default/pods/elsewhere", gracePeriodSeconds="0")
        cluster.kubectl("delete", "--ignore-not-found", "--kustomize", tmp_path)
