"""The leader's view: what comes of events, in the order in which they come."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from cluster_objects import Json, container, node
from kube_objects import (
    Cluster,
    coscheduling,
    indexed_job,
    jobset,
    kueue_job,
    native,
    object_,
    pending,
)

from extender.controller.cluster import changes, occupancy
from extender.controller.cluster import view as module
from scoring.gangs.gathering import GangId
from scoring.gangs.rules import GangRules, Hold
from scoring.gangs.values import GangPod, Gathered
from scoring.model import Convention, GangKey, NodeName
from scoring.planning.values import Amounts, HostPort

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


def patched(body: Json, version: int, **status: str) -> bytes:
    """What a PATCH answers."""
    body["metadata"]["resourceVersion"] = str(version)
    body["status"].update(status)
    return msgspec.json.encode(body)


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


# --- rooms ---------------------------------------------------------------------------------------


def asking(name: str, gpus: int = 0, cpu: str = "1", **more: Any) -> Json:
    """A bound pod that asks for cpu too."""
    ports = [{"containerPort": 80, "hostPort": more.pop("port", 80)}]
    main: Json = container(gpus, ports=ports) if gpus else {"name": "main", "ports": ports}
    main["resources"] = {**main.get("resources", {}), "requests": {"cpu": cpu}}
    more = {"node": "n1", "phase": "Running", **more}
    return pending(name, containers=[main], **more)


def test_rooms_are_what_nodes_have_and_bound_pods_hold(cluster: Cluster) -> None:
    """Whoever scheduled them; until they are finished or gone."""
    body = node("n1")
    body["status"]["allocatable"] |= {"pods": "110"}
    cluster.node(body, node("n2"))
    cluster.pod(asking("a"), asking("b", 2, "500m", port=81, schedulerName="other"))
    room = cluster.view.rooms()[N1]
    assert (room.allocatable.cpu_m, room.pods) == (128_000, 110)
    assert (room.held, room.held_pods) == (Amounts(1500), 2)
    assert room.ports == {HostPort(80), HostPort(81)}
    assert [each.count for each in cluster.view.held()[N1]] == [2]
    cluster.pod(asking("a", phase="Succeeded"))
    cluster.view.put_pod("ml/b", None)
    room = cluster.view.rooms()[N1]
    assert (room.held, room.held_pods, room.ports) == (Amounts(), 0, frozenset())
    assert cluster.view.held() == {}


def test_pods_of_a_node_that_is_not_there_yet_are_not_lost(cluster: Cluster) -> None:
    """Lists of pods and nodes come in any order."""
    cluster.pod(asking("a"))
    assert cluster.view.rooms() == {}
    cluster.node(node("n1"))
    assert cluster.view.rooms()[N1].held_pods == 1
    cluster.view.put_node(N1, None)
    assert cluster.view.rooms() == {}


def test_a_pod_that_moves_to_another_node_leaves_the_first(cluster: Cluster) -> None:
    """It is another pod of the same name, and nobody told of the end of the first."""
    cluster.node(node("n1"), node("n2"))
    cluster.pod(asking("a"))
    cluster.pod(asking("a", node="n2", uid="another"))
    rooms = cluster.view.rooms()
    assert (rooms[N1].held_pods, rooms[NodeName("n2")].held_pods) == (0, 1)


def test_pods_of_lower_priority_may_be_counted_gone(cluster: Cluster) -> None:
    """For a gang that may preempt them."""
    cluster.node(node("n1"), node("n2"))
    cluster.pod(asking("low", 2, priority=1), asking("high", 3, port=81, priority=5))
    cluster.pod(asking("default", 1, node="n2"))
    assert cluster.view.rooms(below=5)[N1].held_pods == 1
    assert {name: [each.count for each in held] for name, held in cluster.view.held(5).items()} == {
        "n1": [3]
    }
    assert cluster.view.rooms(below=0) == cluster.view.rooms()
    assert cluster.view.held(below=0) == cluster.view.held()


def test_rooms_that_did_not_change_are_the_same_object(cluster: Cluster) -> None:
    """A heartbeat is no change, nor is the status of a pod."""
    cluster.node(node("n1"))
    cluster.pod(asking("a"))
    rooms, held = cluster.view.rooms(), cluster.view.held()
    cluster.view.changes.take()
    cluster.node(node("n1", label="x"))
    cluster.pod(asking("a", version=11, status={"startTime": "2026-11-29T10:00:00Z"}))
    assert cluster.view.rooms() is rooms
    assert cluster.view.held() is held
    assert not cluster.view.changes.take()


# --- single pods ---------------------------------------------------------------------------------


def test_claims_are_nominations_outside_planned_gangs(cluster: Cluster) -> None:
    """What planning seats itself is no claim, nor is what another's gate holds."""
    nominated = {"nominatedNodeName": "n1"}
    cluster.pod(
        pending("single", status=nominated),
        pending("small", 0, status=nominated),
        indexed_job(0, status=nominated),
        indexed_job(1, status=nominated, gates=("other",)),
    )
    assert [claim.uid for claim in cluster.view.claims()] == ["uid-single", "uid-small"]


def test_nominated_pods_of_a_gang_that_is_none_are_claims(cluster: Cluster) -> None:
    """By its group's own word, or since its convention is off."""
    nominated = {"nominatedNodeName": "n1"}
    cluster.pod(native(0, status=nominated))
    assert cluster.view.claims() == ()
    cluster.said(
        "podgroups.scheduling.k8s.io", object_("ranks", {"schedulingPolicy": {"basic": {}}})
    )
    assert [claim.uid for claim in cluster.view.claims()] == ["uid-ranks-0"]
    assert gang(cluster).hold is Hold.OFF
    off = Cluster(GangRules())
    off.pod(native(0, status=nominated))
    assert (off.view.gangs(), len(off.view.claims())) == ((), 1)


def test_refused_pods_are_known_until_they_are_bound(cluster: Cluster) -> None:
    """Those of gangs too."""
    cluster.pod(pending("a", status=REFUSED), kueue_job(status=REFUSED))
    assert [pod.name for pod in cluster.view.refused()] == ["a", "tune-0-q8z5w"]
    cluster.pod(pending("a", node="n1", status=REFUSED))
    assert [pod.name for pod in cluster.view.refused()] == ["tune-0-q8z5w"]


def test_a_wake_up_is_folded_too(cluster: Cluster) -> None:
    """So that the next one tests the right version."""
    cluster.pod(pending("a", status=REFUSED))
    woken = pending("a", status=REFUSED, annotations={"surefoot.dev/wake": "now"})
    cluster.view.fold(patched(woken, 12))
    (found,) = cluster.view.refused()
    assert (found.version, found.woken_at) == ("12", "now")


def test_pods_at_our_gate_that_nobody_will_lift(cluster: Cluster) -> None:
    """They are of no gang."""
    cluster.pod(pending("p", gates=(GATE,)), indexed_job(gates=(GATE,)))
    assert [pod.name for pod in cluster.view.strays()] == ["p"]
    cluster.pod(pending("p"))
    assert cluster.view.strays() == ()


def failing(name: str, **more: Any) -> Json:
    """A pod that n1 failed for its devices."""
    status = {"reason": "UnexpectedAdmissionError", **more}
    return pending(name, node="n1", phase="Failed", status=status)


def test_a_failed_pod_is_told_once(cluster: Cluster) -> None:
    """However often it is seen; its successor of the same name is told too."""
    cluster.list_pods(failing("a"))
    assert [pod.uid for pod in cluster.view.take_failed()] == ["uid-a"]
    cluster.list_pods(failing("a", startTime="2026-11-29T12:00:00Z"))
    assert cluster.view.take_failed() == ()
    again = failing("a")
    again["metadata"]["uid"] = "another"
    cluster.pod(again)
    assert [pod.uid for pod in cluster.view.take_failed()] == ["another"]


def test_failed_pods_do_not_pile_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten when nobody takes them."""
    monkeypatch.setattr(module, "MOST_FAILED", 2)
    cluster = Cluster()
    cluster.pod(*(failing(f"p{number}") for number in range(3)))
    assert [pod.name for pod in cluster.view.take_failed()] == ["p1", "p2"]


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
