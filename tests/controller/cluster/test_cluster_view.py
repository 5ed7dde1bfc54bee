"""The leader's view: what comes of events, in the order in which they come."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from cluster_objects import Json, node
from kube_objects import (
    Cluster,
    asking,
    coscheduling,
    indexed_job,
    jobset,
    native,
    object_,
    patched,
    pending,
)

from extender.controller.cluster import changes, occupancy
from scoring.gangs.gathering import GangId
from scoring.gangs.values import GangPod, Gathered
from scoring.model import Convention, GangKey, NodeName

GATE = "surefoot.dev/gang"
N1 = NodeName("n1")
TRAIN = GangId(GangKey("ml/train"), Convention.SUREFOOT)
REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


@pytest.fixture
def cluster() -> Cluster:
    """Nothing yet; gangs of every convention are planned."""
    return Cluster()


def gang(cluster: Cluster) -> Gathered:
    """The one that there is."""
    (found,) = cluster.view.gangs()
    return found


def first(cluster: Cluster) -> GangPod:
    """The first pod of the one gang."""
    return gang(cluster).pods[0]


# --- gangs ---------------------------------------------------------------------------------------


def test_a_gang_is_gathered_from_pods_and_their_owner(cluster: Cluster) -> None:
    """In whatever order they come."""
    cluster.pod(*(indexed_job(index, gates=(GATE,)) for index in range(3)))
    assert (gang(cluster).min, len(gang(cluster).members)) == (None, 3)
    cluster.said("jobs.batch", object_("train", {"parallelism": 3, "completions": 3}))
    assert (gang(cluster).min, gang(cluster).uid) == (3, "uid-train")


def test_a_group_that_comes_late_and_goes(cluster: Cluster) -> None:
    """Deleted and created again under the same name it is another one."""
    groups = "podgroups.scheduling.k8s.io"
    policy = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    cluster.pod(native(0), native(1))
    assert gang(cluster).min is None
    cluster.said(groups, object_("ranks", policy, uid="one"))
    assert (gang(cluster).min, gang(cluster).uid) == (2, "one")
    cluster.said(groups, object_("ranks", policy, uid="two"))
    assert gang(cluster).uid == "two"
    cluster.view.put_said(groups, "ml/ranks", ())
    assert (gang(cluster).min, gang(cluster).uid) == (None, "")


def test_a_list_of_groups_is_all_there_are(cluster: Cluster) -> None:
    """One that is not whole takes none for gone; other kinds are not touched."""
    cluster.pod(coscheduling(0), native(0))
    row = "podgroups.scheduling.x-k8s.io"
    cluster.said(row, object_("torch", {"minMember": 4}))
    cluster.said(
        "podgroups.scheduling.k8s.io",
        object_("ranks", {"schedulingPolicy": {"gang": {"minCount": 2}}}),
    )
    cluster.view.put_all_said(row, {}, whole=False)
    assert [each.min for each in cluster.view.gangs()] == [2, 4]
    cluster.view.put_all_said(row, {}, whole=True)
    assert [each.min for each in cluster.view.gangs()] == [2, None]


def test_jobsets_are_found_by_uid(cluster: Cluster) -> None:
    """Pods of all their Jobs are one gang."""
    cluster.pod(jobset(0, job=0), jobset(0, job=1))
    jobs = [{"replicas": 2, "template": {"spec": {"parallelism": 2}}}]
    cluster.said("jobsets.jobset.x-k8s.io", object_("llm", {"replicatedJobs": jobs}))
    assert (gang(cluster).min, gang(cluster).size, len(gang(cluster).pods)) == (4, 4, 2)


def test_replicas_of_a_workload_hear_of_it(cluster: Cluster) -> None:
    """Though their key has more in it than the object says."""
    ref = {"name": "llm", "podGroup": "ranks", "podGroupReplicaKey": "a"}
    cluster.pod(pending("w", workloadRef=ref))
    groups = [{"name": "ranks", "policy": {"gang": {"minCount": 2}}}]
    assert gang(cluster).min is None
    cluster.said("workloads.scheduling.k8s.io", object_("llm", {"podGroups": groups}))
    assert gang(cluster).min == 2


def test_a_gang_ends_with_its_last_pod(cluster: Cluster) -> None:
    """Nothing of it is left, even where nobody asks for gangs."""
    cluster.pod(indexed_job(0), indexed_job(1))
    assert gang(cluster).key == "ml/train"
    for name in ("train-0-x7k2p", "train-1-x7k2p"):
        cluster.view.put_pod(f"ml/{name}", None)
    roster = cluster.view._roster
    assert [roster._pods, roster._owned, roster._gathered] == [{}, {}, {}]
    assert not roster._stale
    assert cluster.view.gangs() == ()


def test_what_did_not_change_is_the_same_object(cluster: Cluster) -> None:
    """So that planning may ask as often as it likes."""
    cluster.pod(indexed_job(0), native(0))
    before = cluster.view.gangs()
    assert cluster.view.gangs() is before
    cluster.pod(native(0, version=11, priority=3))
    after = cluster.view.gangs()
    assert [a is b for a, b in zip(before, after, strict=True)] == [False, True]


# --- versions ------------------------------------------------------------------------------------


def test_the_answer_of_a_patch_counts_before_the_watch_shows_it(cluster: Cluster) -> None:
    """And what the watch shows of the time before is ignored."""
    cluster.pod(indexed_job(0, version=10))
    cluster.view.fold(patched(indexed_job(0), 12, nominatedNodeName="n1"))
    assert (first(cluster).version, first(cluster).member.nominated) == ("12", "n1")
    cluster.pod(indexed_job(0, version=11))
    assert first(cluster).member.nominated == "n1"
    cluster.pod(indexed_job(0, version=12, status={"nominatedNodeName": "n1"}))
    cluster.pod(indexed_job(0, version=13))
    assert (first(cluster).version, first(cluster).member.nominated) == ("13", None)


def test_an_answer_that_comes_late_changes_nothing(cluster: Cluster) -> None:
    """The watch was faster, the pod is gone, or it is another one."""
    cluster.pod(indexed_job(0, version=14))
    cluster.view.fold(patched(indexed_job(0), 12, nominatedNodeName="n1"))
    assert first(cluster).version == "14"
    cluster.pod(indexed_job(0, uid="another", version=15))
    cluster.view.fold(patched(indexed_job(0), 16, nominatedNodeName="n1"))
    assert first(cluster).version == "15"
    cluster.view.put_pod("ml/train-0-x7k2p", None)
    cluster.view.fold(patched(indexed_job(0), 17))
    assert cluster.view.gangs() == ()


def test_a_list_that_began_before_a_patch_does_not_undo_it(cluster: Cluster) -> None:
    """A pod of the same name that was created since counts at once."""
    cluster.pod(indexed_job(0, version=10))
    cluster.view.fold(patched(indexed_job(0), 12, nominatedNodeName="n1"))
    cluster.list_pods(indexed_job(0, version=10))
    assert first(cluster).member.nominated == "n1"
    cluster.list_pods(indexed_job(0, version=11, uid="another"))
    assert first(cluster).version == "11"


def test_after_a_restore_lower_versions_count(cluster: Cluster) -> None:
    """Only against the answer of a patch are versions compared, and there only numbers."""
    cluster.pod(indexed_job(0, version=10))
    cluster.pod(indexed_job(0, version=4))
    assert first(cluster).version == "4"
    opaque = indexed_job(0, status={"nominatedNodeName": "n1"})
    opaque["metadata"]["resourceVersion"] = "x1"
    cluster.view.fold(msgspec.json.encode(opaque))
    assert first(cluster).version == "x1"


@pytest.mark.parametrize("junk", [b"", b"[]", b'{"metadata": {"name": "p"}, "spec": []}'])
def test_an_answer_that_cannot_be_read_is_counted(cluster: Cluster, junk: bytes) -> None:
    """The watch will show what it was."""
    cluster.view.fold(junk)
    assert cluster.view.skips.count == 1


# --- lists and changes ---------------------------------------------------------------------------


def test_a_whole_list_takes_the_rest_for_gone(cluster: Cluster) -> None:
    """One that is not whole does not."""
    cluster.pod(indexed_job(0), indexed_job(1))
    cluster.list_pods(indexed_job(1), whole=False)
    assert len(gang(cluster).pods) == 2
    cluster.list_pods(indexed_job(1))
    assert len(gang(cluster).pods) == 1


def test_nodes_that_a_list_does_not_have_are_gone(cluster: Cluster) -> None:
    """If it is whole."""
    cluster.node(node("n1"), node("n2"))
    for whole in (False, True):
        cluster.view.put_nodes({N1: cluster.view.rooms()[N1]}, whole=whole)
        assert (NodeName("n2") in cluster.view.rooms()) is not whole


def test_changes_name_what_changed(cluster: Cluster) -> None:
    """And are told once."""
    news = cluster.view.changes
    assert not news.wait(0)
    cluster.node(node("n1"))
    cluster.pod(indexed_job(0), asking("a"), pending("b", status=REFUSED))
    assert news.wait(0)
    found = news.take()
    assert (set(found.nodes), set(found.gangs), found.pods) == ({N1}, {TRAIN}, True)
    assert not news.wait(0)
    assert not news.take()


def test_changes_that_nobody_takes_do_not_pile_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that does not lead plans nothing. Too many to be named are everything."""
    monkeypatch.setattr(changes, "MOST_NAMED", 2)
    monkeypatch.setattr(occupancy, "MOST_STALE", 2)
    cluster.node(*(node(f"n{number}") for number in range(4)))
    found = cluster.view.changes.take()
    assert found.everything
    assert len(found.nodes) < 3
    assert not cluster.view.changes.take()
    assert len(cluster.view._occupancy._stale) < 3
    assert len(cluster.view.rooms()) == 4


@pytest.mark.parametrize(
    ("later", "told"),
    [
        (indexed_job(0, version=11), True),
        (indexed_job(0, node="n1", phase="Running", version=11), True),
        (indexed_job(0, version=10), False),
    ],
)
def test_a_member_that_has_no_node_is_news_whenever_it_changes(
    cluster: Cluster, later: Json, told: bool
) -> None:
    """Somebody may be about to write to it, and must know its version."""
    cluster.pod(indexed_job(0, version=10))
    cluster.view.changes.take()
    cluster.pod(later)
    assert (TRAIN in cluster.view.changes.take().gangs) is told


def test_a_member_that_runs_is_no_news_for_its_version(cluster: Cluster) -> None:
    """It says that it is ready, and ready, and ready."""
    cluster.pod(indexed_job(0, node="n1", phase="Running", version=10))
    cluster.view.changes.take()
    cluster.pod(indexed_job(0, node="n1", phase="Running", version=11))
    assert not cluster.view.changes.take()
    assert first(cluster).version == "11"
    cluster.pod(indexed_job(0, node="n1", phase="Succeeded", version=12))
    assert TRAIN in cluster.view.changes.take().gangs


def test_owners_and_groups_are_news_of_their_gangs_only(cluster: Cluster) -> None:
    """Jobs come and go by the thousand."""
    cluster.pod(indexed_job(0), native(0))
    cluster.view.changes.take()
    cluster.said("jobs.batch", object_("somebody", {"parallelism": 3}))
    assert not cluster.view.changes.take()
    cluster.said("jobs.batch", object_("train", {"parallelism": 3}))
    assert cluster.view.changes.take().gangs == {TRAIN}
    cluster.said("jobs.batch", object_("train", {"parallelism": 3}))
    assert not cluster.view.changes.take()


def test_threads_do_not_hurt_each_other(cluster: Cluster) -> None:
    """Reflectors write, planning reads, answers of patches come in between: what is there at the
    end is what was written last.
    """
    stop = threading.Event()

    def follow() -> int:
        for version in range(10, 200, 4):
            cluster.pod(*(indexed_job(index, version=version) for index in range(4)))
        return len(cluster.view.gangs())

    def answer() -> int:
        for version in range(12, 200, 4):
            cluster.view.fold(patched(indexed_job(1), version, nominatedNodeName="n1"))
        return 1

    def read() -> int:
        rounds = 0
        while not stop.is_set() or not rounds:
            for found in cluster.view.gangs():
                assert 1 <= len(found.pods) <= 4
            cluster.view.rooms(), cluster.view.claims(), cluster.view.refused()
            rounds += 1
        return rounds

    with ThreadPoolExecutor(max_workers=3) as pool:
        reader = pool.submit(read)
        writers = [pool.submit(follow), pool.submit(answer)]
        for writer in writers:
            assert writer.result() == 1
        stop.set()
        assert reader.result() > 0
    cluster.pod(*(indexed_job(index, version=300) for index in range(4)))
    assert {pod.version for pod in gang(cluster).pods} == {"300"}
