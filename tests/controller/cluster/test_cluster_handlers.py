"""The view beside the mirrors: one decoded object for both, and neither hurts the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from cluster_objects import Json, container, node, raw
from kube_objects import Cluster, indexed_job, kueue_job, object_, patched, pending, source
from kubes import ApiServer
from servers import eventually
from structlog.testing import LogCapture

from extender.controller import skips
from extender.controller.cluster.handlers import GroupHandler, PodHandler
from extender.controller.mirrors import PodMirror
from extender.kube.client import Client
from extender.kube.reflector import Reflector
from extender.store.schema import Kind
from scoring.model import NodeName

GPU = "nvidia.com/gpu"


@pytest.fixture
def cluster() -> Cluster:
    """Nothing yet."""
    return Cluster()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> LogCapture:
    """What is said of objects that cannot be read."""
    found = LogCapture()
    monkeypatch.setattr(skips, "_log", structlog.wrap_logger(None, processors=[found]))
    return found


def due(cluster: Cluster) -> dict[str, bool]:
    """Whether each document that is to be written is to stand."""
    return {wish.id: wish.document is not None for wish in cluster.wanted.take(1000)}


def test_a_pod_is_told_to_the_cache_and_kept_in_the_view(cluster: Cluster) -> None:
    """Until it goes."""
    cluster.pod(indexed_job(0, node="n1", phase="Running"))
    assert due(cluster) == {f"uid-train-0-x7k2p/{GPU}": True}
    assert list(cluster.view.held()) == ["n1"]
    cluster.pods.changed("ml/train-0-x7k2p", None)
    assert due(cluster) == {f"uid-train-0-x7k2p/{GPU}": False}
    assert (cluster.view.gangs(), cluster.view.held()) == ((), {})


def test_what_only_the_view_keeps_is_no_document(cluster: Cluster) -> None:
    """Pods that are not bound, or hold no GPUs."""
    cluster.list_pods(indexed_job(0), pending("web", 0, node="n1", phase="Running"))
    assert due(cluster) == {}
    assert len(cluster.view.gangs()) == 1
    assert cluster.wanted.count(Kind.ALLOCATION) == 0


def test_what_neither_needs_is_nothing(cluster: Cluster) -> None:
    """So that a reflector keeps nothing of it either."""
    header, bytes_ = raw(pending("web", 0))
    assert cluster.pods.read(header, bytes_) is None


def test_what_an_answer_showed_is_not_read_again(cluster: Cluster) -> None:
    """A write has one answer and one event, and both have the pod as it is then."""
    cluster.pod(indexed_job(0, version=10))
    cluster.view.fold(patched(indexed_job(0), 12, nominatedNodeName="n1"))
    header, _ = raw(indexed_job(0, version=12))
    found = cluster.pods.read(header, msgspec.Raw(b"not looked at"))
    assert found is not None
    assert found.kept is not None
    assert found.kept.version == "12"
    cluster.pods.changed(header.key, found)
    (gang,) = cluster.view.gangs()
    assert gang.members[0].member.nominated == "n1"


def test_a_bound_pod_that_an_answer_showed_is_told_to_the_cache(cluster: Cluster) -> None:
    """An answer alone tells it nothing."""
    cluster.pod(indexed_job(0, version=10))
    body = indexed_job(0, version=12, node="n1", phase="Running")
    cluster.view.fold(raw(body)[1])
    assert due(cluster) == {}
    cluster.pod(body)
    assert due(cluster) == {f"uid-train-0-x7k2p/{GPU}": True}


def test_a_list_sweeps_the_cache_as_before(cluster: Cluster) -> None:
    """Documents that no pod owns are to go; pods that only the view keeps own none."""
    held = frozenset({f"uid-gone/{GPU}", f"uid-train-0-x7k2p/{GPU}"})
    pods = PodHandler(PodMirror(cluster.wanted, lambda _: held), cluster.view)
    pods.listing()
    header, bytes_ = raw(indexed_job(0, node="n1", phase="Running"))
    kept = pods.read(header, bytes_)
    assert kept is not None
    pods.listed({header.key: kept}, whole=True)
    assert due(cluster) == {f"uid-gone/{GPU}": False, f"uid-train-0-x7k2p/{GPU}": True}


def bad(**spec: Any) -> Json:
    """A bound pod of a gang with something that the view cannot read."""
    return indexed_job(0, node="n1", phase="Running", **spec)


MALFORMED = {
    "a type": bad(tolerations="all"),
    "an operator": bad(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "?"}]}]
                }
            }
        }
    ),
    "a quantity": bad(overhead={"cpu": "lots"}),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_what_the_view_cannot_read_the_mirror_may(
    cluster: Cluster, body: Json, logged: LogCapture
) -> None:
    """Who holds the GPUs matters to others. It is counted, and said once."""
    cluster.pod(body, body, pending("good", 2, node="n1", phase="Running"))
    assert due(cluster) == {f"uid-train-0-x7k2p/{GPU}": True, f"uid-good/{GPU}": True}
    assert [each.pod for each in cluster.view.held()[NodeName("n1")]] == ["good"]
    assert cluster.view.skips.count == 2
    assert [each["object"] for each in logged.entries] == ["ml/train-0-x7k2p"]


def test_what_neither_can_read_is_said_by_both(cluster: Cluster, logged: LogCapture) -> None:
    """And hurts nobody else."""
    cluster.list_pods(
        pending("bad", node="n1", containers=[container("many")]), pending("good", node="n1")
    )
    assert due(cluster) == {f"uid-good/{GPU}": True}
    assert (cluster.view.skips.count, cluster.pods.mirror.skipped) == (1, 1)
    assert {each["kind"] for each in logged.entries} == {"view", Kind.ALLOCATION.value}


def test_a_node_is_told_and_kept(cluster: Cluster) -> None:
    """A heartbeat is news for neither."""
    cluster.node(node("n1"))
    assert due(cluster) == {"n1": True}
    assert list(cluster.view.rooms()) == ["n1"]
    cluster.nodes.changed("n1", None)
    assert due(cluster) == {"n1": False}
    assert cluster.view.rooms() == {}


def test_a_list_of_nodes(cluster: Cluster) -> None:
    """Goes to both."""
    cluster.nodes.listing()
    header, bytes_ = raw(node("n1"))
    kept = cluster.nodes.read(header, bytes_)
    assert kept is not None
    cluster.nodes.listed({"n1": kept}, whole=True)
    assert (due(cluster), list(cluster.view.rooms())) == ({"n1": True}, ["n1"])


def test_a_node_with_amounts_that_are_none_has_its_labels_told(cluster: Cluster) -> None:
    """It offers nothing until it says what."""
    body = node("n1")
    body["status"]["allocatable"]["memory"] = "much"
    cluster.node(body)
    assert (due(cluster), cluster.view.rooms()) == ({"n1": True}, {})


def test_groups_are_listed_and_followed(cluster: Cluster, logged: LogCapture) -> None:
    """One that cannot be read says nothing, and hurts no other."""
    handler = GroupHandler(source("workloads.kueue.x-k8s.io"), cluster.view)
    cluster.pod(kueue_job())
    good = raw(object_("job-tune-7f2c1", {"podSets": [{"name": "main", "count": 4}]}))
    header, bytes_ = raw(object_("odd", {"podSets": 4}))
    assert handler.read(header, bytes_) is None
    assert handler.read(header, msgspec.Raw(b'{"metadata": {"name": "odd"}}')) is not None
    assert [each["object"] for each in logged.entries] == ["workloads.kueue.x-k8s.io ml/odd"]
    handler.listing()
    found = handler.read(*good)
    assert found is not None
    handler.listed({good[0].key: found}, whole=True)
    assert [gang.min for gang in cluster.view.gangs()] == [4]
    handler.changed(good[0].key, None)
    assert [gang.min for gang in cluster.view.gangs()] == [None]


def test_what_the_view_keeps_of_a_pod_is_small(cluster: Cluster) -> None:
    """50,000 pods must fit in 150 MiB: 3 KiB each."""
    import tracemalloc  # noqa: PLC0415 - for this test only

    bodies = [indexed_job(number, node=f"n{number % 50}") for number in range(500)]
    bodies += [pending(f"web-{number}", 0, node="n1") for number in range(500)]
    for body in bodies:
        body["metadata"]["annotations"]["note"] = "x" * 5000
    raws = [raw(body) for body in bodies]
    tracemalloc.start()
    for header, bytes_ in raws:
        kept = cluster.pods.read(header, bytes_)
        cluster.view.put_pod(header.key, kept.kept if kept else None)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / len(raws) < 2500


def test_from_the_api_server_into_the_view(
    api: ApiServer, cluster: Cluster, tmp_path: Path
) -> None:
    """By reflectors: a list, then what happens after it."""
    settings = api.settings(tmp_path)
    api.set("pods", indexed_job(0))
    api.set("nodes", node("n1"))
    reflectors: list[Reflector[Any]] = [
        Reflector(Client(settings), "/api/v1/pods", cluster.pods),
        Reflector(Client(settings), "/api/v1/nodes", cluster.nodes),
    ]
    for reflector in reflectors:
        reflector.start()
    try:
        eventually(
            lambda: len(cluster.view.gangs()) == len(cluster.view.rooms()) == 1, "both lists"
        )
        api.set("pods", indexed_job(1, node="n1", phase="Running"))
        eventually(lambda: len(cluster.view.gangs()[0].pods) == 2, "the second pod")
        assert cluster.view.rooms()[NodeName("n1")].held_pods == 1
        api.delete("pods", "ml/train-0-x7k2p")
        eventually(lambda: len(cluster.view.gangs()[0].pods) == 1, "the end of the first")
    finally:
        for reflector in reflectors:
            reflector.close()
