"""deploy/kustomize/gate, and the gate itself: who waits for a plan, and how all are freed by hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from asking import Json

from e2e.cluster import KUBECTL, Cluster
from e2e.conventions import indexed_job, members, owned_by
from e2e.fixtures import MakesScheduler
from e2e.gating import gated, gates_of, policy_for
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration
from e2e.waiting import eventually, throughout
from scoring.gangs.rules import GATE

OPERATIONS: Final = Path(__file__).parents[2] / "docs" / "operations.md"
DOCUMENTED: Final = re.compile(
    r"```sh\n(kubectl get pods -A \S+ status.phase=Pending.*?)```", re.DOTALL
)
FOREIGN: Final = {"name": "kueue.x-k8s.io/admission"}
has_policies: Final = pytest.mark.since("1.36", "MutatingAdmissionPolicy v1")


@pytest.fixture
def policy(cluster: Cluster, pods: Pods, tmp_path: Path) -> Iterator[None]:
    """The shipped one, for the namespace of this test."""
    with policy_for(cluster, pods, tmp_path / "gate"):
        yield


def _gates(pods: Pods) -> dict[str, list[str]]:
    return {name: gates_of(each) for name, each in pods.all().items()}


def _daemon_of(pods: Pods) -> Json:
    """A DaemonSet that no node can satisfy: it makes no pods by itself."""
    labels = {"app": "daemon"}
    return pods.beside(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "daemon"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "nodeSelector": {"nowhere": "true"},
                        "containers": [{"name": "main", "image": "train"}],
                    },
                },
            },
        }
    )


@has_policies
@pytest.mark.usefixtures("policy")
def test_who_names_a_gang_is_gated_once_and_keeps_other_gates(pods: Pods) -> None:
    """Those of templates and of Kueue among them."""
    pods.create(
        pod("plain", gang="train"),
        pod("held", gang="train", schedulingGates=[FOREIGN]),
        gated(pod("template", gang="train")),
        gated(pod("both", gang="train", schedulingGates=[FOREIGN])),
    )
    assert _gates(pods) == {
        "plain": [GATE],
        "held": [FOREIGN["name"], GATE],
        "template": [GATE],
        "both": [FOREIGN["name"], GATE],
    }


@has_policies
@pytest.mark.usefixtures("policy")
def test_nobody_else_is_gated(cluster: Cluster, gpu_nodes: Nodes, pods: Pods) -> None:
    """Not without a gang's name, not with a node, not of a DaemonSet, not in another namespace."""
    gpu_nodes(1)
    daemon = pod("of-a-daemonset", gang="train")
    daemon["metadata"]["ownerReferences"] = [owned_by(_daemon_of(pods))]
    mirror = {"kubernetes.io/config.mirror": "a-digest"}
    pods.create(
        pod("single"),
        pod("blank", labels={"surefoot.dev/gang": ""}),
        pod("of-another-convention", labels={"scheduling.x-k8s.io/pod-group": "train"}),
        pod("by-hand", gang="train", nodeName="gpu-0"),
        pod("static", gang="train", nodeName="gpu-0", annotations=mirror),
        daemon,
    )
    assert not any(_gates(pods).values())
    elsewhere = cluster.api.create(
        "/api/v1/namespaces/default/pods?dryRun=All", pod("elsewhere", gang="train")
    )
    assert gates_of(elsewhere) == []


@has_policies
@pytest.mark.usefixtures("policy")
def test_pods_of_a_job_are_gated_when_the_job_makes_them(pods: Pods) -> None:
    """The label in the template is all that a user writes."""
    pods.beside(indexed_job("train", 3))
    eventually(lambda: len(pods.all()) == 3, "the Job has made its pods")
    assert list(_gates(pods).values()) == [[GATE]] * 3


@has_policies
@pytest.mark.usefixtures("policy")
def test_a_pod_that_was_there_before_stays_as_it_is(cluster: Cluster, pods: Pods) -> None:
    """A label that comes later gates nobody: the API server takes gates at creation only."""
    pods.create(pod("late"))
    label = {"metadata": {"labels": {"surefoot.dev/gang": "train"}}}
    cluster.api.merge(f"{pods.path}/late", label)
    assert _gates(pods) == {"late": []}


def test_a_gate_of_the_template_holds_the_pods_of_a_job(
    gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """Without a policy, in any version: kube-scheduler leaves them alone, and takes the others."""
    gpu_nodes(2)
    scheduler(configuration())
    pods.beside(gated(indexed_job("train", 2, gpus=1)))
    eventually(lambda: len(pods.all()) == 2, "the Job has made its pods")
    pods.create(pod("single"))
    pods.running("single")
    waiting = set(pods.all()) - {"single"}
    throughout(lambda: not any(pods.nodes()[name] for name in waiting), "they wait")
    assert {gate for name in waiting for gate in _gates(pods)[name]} == {GATE}
    conditions = [each["status"]["conditions"] for each in pods.all().values()]
    assert sum(each[0].get("reason") == "SchedulingGated" for each in conditions) == 2


def _with_kubectl() -> list[str]:
    """The line of docs/operations.md, as people paste it."""
    (line,) = DOCUMENTED.findall(OPERATIONS.read_text(encoding="utf-8"))
    return ["sh", "-ec", line]


def _with_surefoot() -> list[str]:
    return [sys.executable, "-m", "extender", "gates", "release", "--all"]


@pytest.mark.parametrize("command", [_with_kubectl, _with_surefoot], ids=["kubectl", "surefoot"])
def test_everybody_can_be_freed_without_a_controller(
    cluster: Cluster,
    gpu_nodes: Nodes,
    pods: Pods,
    scheduler: MakesScheduler,
    command: Callable[[], list[str]],
) -> None:
    """Of every convention; the gates of others stay."""
    gpu_nodes(2)
    scheduler(configuration())
    pods.create(
        *(gated(each) for each in members("train", 2, gpus=2)),
        gated(pod("other", labels={"scheduling.x-k8s.io/pod-group": "train"})),
        gated(pod("both", schedulingGates=[FOREIGN])),
        pod("foreign", schedulingGates=[FOREIGN]),
    )
    environment = {
        **os.environ,
        "PATH": f"{KUBECTL.parent}:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.plane.kubeconfig),
    }
    subprocess.run(command(), env=environment, check=True, timeout=60)
    pods.running("train-0", "train-1", "other")
    held = {name: found for name, found in _gates(pods).items() if found}
    assert held == {"both": [FOREIGN["name"]], "foreign": [FOREIGN["name"]]}
