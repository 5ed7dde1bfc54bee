"""The control plane of these tests is a real one."""

from __future__ import annotations

import pytest

from e2e.cluster import Cluster
from e2e.fixtures import MakesScheduler
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration
from e2e.waiting import eventually


def test_a_gpu_pod_is_scheduled_and_runs(
    gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """kube-scheduler puts a pod onto a node with enough GPUs, and the node's kubelet runs it."""
    gpu_nodes(1)
    running = scheduler(configuration())
    pods.create(pod("fits", gpus=8))
    assert pods.running("fits") == {"fits": "gpu-0"}
    pods.create(pod("waits", gpus=1))
    assert "Insufficient nvidia.com/gpu" in pods.refused("waits")
    eventually(lambda: running.attempts("unschedulable"), "the refusal is counted")
    assert running.attempts("scheduled") == 1
    assert running.attempts("error") == 0


def test_a_node_without_a_kubelet_is_left(cluster: Cluster, gpu_nodes: Nodes) -> None:
    """The node lifecycle controller is at work: silence of a kubelet is seen, and tainted."""
    gpu_nodes(1)
    gpu_nodes.lose_kubelet("gpu-0")
    taints = eventually(
        lambda: cluster.api.get("/api/v1/nodes/gpu-0")["spec"].get("taints"),
        "a taint, after the 50 s that Kubernetes waits",
        within_s=180,
    )
    assert {each["key"] for each in taints} == {"node.kubernetes.io/unreachable"}


def test_a_request_without_the_right_to_it_is_noticed(cluster: Cluster) -> None:
    """Who lacks a right is named, with the verb and the resource."""
    kubeconfig = cluster.service_account("kube-system", "default")
    with pytest.raises(pytest.fail.Exception):
        cluster.kubectl("--kubeconfig", kubeconfig, "get", "nodes")
    assert [str(each) for each in cluster.audit.refusals()] == [
        "system:serviceaccount:kube-system:default may not list nodes"
    ]
