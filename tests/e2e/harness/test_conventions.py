"""What conventions.py writes is what the detector, and the API server, take it for."""

from __future__ import annotations

import json

import msgspec
import pytest
from asking import Json

from e2e.cluster import Cluster
from e2e.conventions import (
    KUEUE_GATE,
    coscheduling_group,
    coscheduling_members,
    indexed_job,
    jobs_of,
    jobset,
    kueue_members,
    kueue_workload,
    members,
    worker_set,
    workers_of,
)
from e2e.fixtures import MakesScheduler
from e2e.gating import gates_of
from e2e.history import History, PodState
from e2e.nodes import Nodes
from e2e.pods import Pods, pod
from e2e.schedulers import configuration
from e2e.waiting import eventually
from extender.wire.asks import facts_of
from extender.wire.pods import Pod
from scoring.gang import detect
from scoring.model import Convention, GangRef


def _gang(found: Json) -> GangRef | None:
    return detect(facts_of(msgspec.json.decode(json.dumps(found), type=Pod)))


def _gangs(pods: Pods, count: int) -> set[tuple[Convention, str, int | None]]:
    """Convention, name and size as read from the pods alone, once there are `count`."""
    there = eventually(lambda: them if len(them := pods.all()) == count else {}, "all are made")
    refs = [ref for each in there.values() if (ref := _gang(each))]
    assert len(refs) == count
    return {(ref.convention, ref.key.partition("/")[2], ref.size) for ref in refs}


def test_surefoots_own_gangs(pods: Pods) -> None:
    """The size stands on plain pods; that of a Job stands in the Job."""
    pods.create(*members("plain", 2))
    assert _gangs(pods, 2) == {(Convention.SUREFOOT, "plain", 2)}
    pods.delete("plain-0", "plain-1")
    pods.beside(indexed_job("train", 3))
    assert _gangs(pods, 3) == {(Convention.SUREFOOT, "train", None)}


@pytest.mark.usefixtures("gang_kinds")
def test_coscheduling(pods: Pods) -> None:
    """The size stands in the PodGroup."""
    assert pods.beside(coscheduling_group("train", 2))["spec"]["minMember"] == 2
    pods.create(*coscheduling_members("train", 2))
    assert _gangs(pods, 2) == {(Convention.COSCHEDULING, "train", None)}


@pytest.mark.usefixtures("gang_kinds")
def test_jobset(pods: Pods) -> None:
    """Its Jobs are real, and so are the pods that they make: one gang, by the uid of the JobSet."""
    made = pods.beside(jobset("train", jobs=2, pods_each=2))
    for job in jobs_of(made):
        pods.beside(job)
    assert _gangs(pods, 4) == {(Convention.JOBSET, made["metadata"]["uid"], None)}


@pytest.mark.usefixtures("gang_kinds")
def test_leader_worker_set(pods: Pods) -> None:
    """Each group is a gang of the size that its pods state."""
    made = pods.beside(worker_set("serve", groups=2, size=2))
    pods.create(*workers_of(made))
    found = _gangs(pods, 4)
    assert {(convention, size) for convention, _, size in found} == {(Convention.LWS, 2)}
    assert len(found) == 2


@pytest.mark.usefixtures("gang_kinds")
def test_kueue(pods: Pods) -> None:
    """Before Kueue admits it, behind its gate, and afterwards."""
    assert pods.beside(kueue_workload("train", 2))["spec"]["podSets"][0]["count"] == 2
    pods.create(*kueue_members("waits", 2, admitted=False), *kueue_members("runs", 2))
    assert _gangs(pods, 4) == {(Convention.KUEUE, "waits", 2), (Convention.KUEUE, "runs", 2)}
    gates = {name: gates_of(each) for name, each in pods.all().items()}
    assert gates["waits-0"] == [KUEUE_GATE["name"]]
    assert gates["runs-0"] == []


def test_a_history_misses_no_version(
    cluster: Cluster, gpu_nodes: Nodes, pods: Pods, scheduler: MakesScheduler, history: History
) -> None:
    """A nomination that stood for a moment is in it, and so is the end of a pod."""
    gpu_nodes(1)
    pods.create(pod("a"))
    for node in ("gpu-0", "elsewhere", None):
        cluster.api.merge(f"{pods.path}/a/status", {"status": {"nominatedNodeName": node}})
    scheduler(configuration())
    pods.running("a")
    pods.complete("a")
    eventually(lambda: pods.all()["a"]["status"]["phase"] == "Succeeded", "it completes")
    pods.delete("a")
    seen = history.of("a")
    assert [each.nominated for each in seen[:4]] == [None, "gpu-0", "elsewhere", None]
    assert seen[-1] == PodState(gang="", gated=False, nominated=None, node="gpu-0", finished=True)
    assert list(history.scenes())[-1] == {}
