"""Each file of deploy/scheduler-config in front of the Surefoot that its settings make."""

from __future__ import annotations

import pytest
import shipped
from asking import Json

from e2e.caches import Cache
from e2e.fixtures import MakesScheduler, MakesSurefoot
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.processes import free_port
from e2e.surefoots import Surefoot
from e2e.waiting import eventually, throughout
from extender.rendering.shapes import Name
from scoring.reasons import Reason

DEGRADED = {0: "DEGRADED"}
SHARED = [Name.EXTENDER, Name.FAIL_OPEN, Name.FAIL_CLOSED]
"""Files in which a profile that is not judged shares the extender."""
ENFORCING = [*SHARED, Name.ALL_GPU_PODS, Name.SECONDARY]


def pointed_at(url: str, name: Name) -> Json:
    """The shipped file with Surefoot's address of this test."""
    config: Json = shipped.config(name)
    config["extenders"][0]["urlPrefix"] = url
    return config


def judged(name: Name) -> str:
    """A scheduler whose pods are judged with this file."""
    return next(reversed(shipped.profiles(name)))


@pytest.fixture
def served(cache: Cache, gpu_nodes: Nodes, surefoot: MakesSurefoot, name: Name) -> Surefoot:
    """Surefoot with the shipped settings of `name`, which knows one node: a GPU of it is degraded."""
    gpu_nodes(1)
    gpu_nodes.report(cache.settings, sick={"gpu-0": DEGRADED})
    webhook = shipped.settings(name)["webhook"]
    del webhook["bind"]
    return surefoot(nodes=1, **webhook)


@pytest.mark.parametrize("name", ENFORCING, ids=str)
def test_a_gang_is_kept_off_a_degraded_gpu(
    name: Name,
    cache: Cache,
    served: Surefoot,
    gpu_nodes: Nodes,
    pods: Pods,
    scheduler: MakesScheduler,
) -> None:
    """The file is taken as it is, its extender is asked, and its answer counts."""
    running = scheduler(pointed_at(served.url, name))
    pods.create(pod("rank-0", gpus=8, gang="train", scheduler=judged(name)))
    assert f"1 {Reason.GPU_DEGRADED.text}" in pods.refused("rank-0")
    pods.delete("rank-0")
    gpu_nodes(1)
    gpu_nodes.report(cache.settings, sick={"gpu-0": DEGRADED})
    eventually(lambda: served.shows(2), "Surefoot knows the new node")
    pods.create(pod("rank-1", gpus=8, gang="train", scheduler=judged(name)))
    assert pods.running("rank-1") == {"rank-1": "gpu-1"}
    assert running.extender_errors() == []


@pytest.mark.parametrize("name", SHARED, ids=str)
def test_the_default_profile_goes_its_way(
    name: Name, served: Surefoot, pods: Pods, scheduler: MakesScheduler
) -> None:
    """Its GPU pods pass through the same extender, and are not judged."""
    running = scheduler(pointed_at(served.url, name))
    pods.create(pod("rank-0", gpus=8, gang="train"))
    assert pods.running("rank-0") == {"rank-0": "gpu-0"}
    assert served.calls("filter") > 0
    assert running.extender_errors() == []


@pytest.mark.parametrize("name", [Name.OBSERVE], ids=str)
def test_observing_sees_and_changes_nothing(
    name: Name, served: Surefoot, pods: Pods, scheduler: MakesScheduler
) -> None:
    """The gang runs where it would be refused, and the refusal is counted."""
    running = scheduler(pointed_at(served.url, name))
    pods.create(pod("rank-0", gpus=8, gang="train"))
    assert pods.running("rank-0") == {"rank-0": "gpu-0"}
    eventually(
        lambda: any(
            sample.startswith("surefoot_decisions_total{") and 'verdict="veto"' in sample and value
            for sample, value in served.values().items()
        ),
        "what it would have done is counted",
    )
    assert running.extender_errors() == []


@pytest.mark.parametrize("name", [Name.EXTENDER, Name.FAIL_OPEN, Name.OBSERVE], ids=str)
def test_without_surefoot_an_open_file_schedules(
    name: Name, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """GPU pods of every profile run as if there were no extender."""
    gpu_nodes(2)
    scheduler(pointed_at(f"http://127.0.0.1:{free_port()}", name))
    pods.create(
        pod("theirs", gpus=8, gang="train", scheduler="default-scheduler"),
        pod("ours", gpus=8, gang="train", scheduler=judged(name)),
    )
    assert len(pods.running("theirs", "ours")) == 2


def test_without_surefoot_a_closed_file_holds_every_gpu_pod(
    gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """Those of the default profile too, since they share the extender; pods without GPUs run."""
    gpu_nodes(2)
    running = scheduler(pointed_at(f"http://127.0.0.1:{free_port()}", Name.FAIL_CLOSED))
    pods.create(
        pod("theirs", gpus=1),
        pod("ours", gpus=1, scheduler="surefoot"),
        pod("web", gpus=0),
    )
    pods.running("web")
    for name in ("theirs", "ours"):
        assert "connection refused" in pods.failed_scheduling(name)
    eventually(lambda: running.attempts("error") >= 4, "both are tried again")
    nodes = pods.nodes()
    assert (nodes["theirs"], nodes["ours"]) == (None, None)


def test_beside_a_second_scheduler_the_first_goes_on(
    gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler
) -> None:
    """secondary.yaml with `--policy closed`: only pods that chose it wait for Surefoot."""
    gpu_nodes(1)
    second = pointed_at(f"http://127.0.0.1:{free_port()}", Name.SECONDARY)
    second["extenders"][0]["ignorable"] = False
    scheduler({key: second[key] for key in ("apiVersion", "kind")}, name="first")
    scheduler(second, name="second")
    pods.create(pod("theirs", gpus=1), pod("ours", gpus=1, scheduler="surefoot"))
    pods.running("theirs")
    assert "connection refused" in pods.failed_scheduling("ours")
    throughout(lambda: pods.nodes()["ours"] is None, "it waits", for_s=1.0)
