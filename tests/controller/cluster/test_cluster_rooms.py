"""What nodes have, and what bound pods hold of it."""

from __future__ import annotations

import pytest
from cluster_objects import node
from kube_objects import Cluster, asking

from scoring.model import NodeName
from scoring.planning.values import Amounts, HostPort

N1 = NodeName("n1")


@pytest.fixture
def cluster() -> Cluster:
    """Nothing yet; gangs of every convention are planned."""
    return Cluster()


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
