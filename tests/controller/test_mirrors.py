"""An object in, its documents wanted; and what nobody owns any more swept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import structlog
from cluster_objects import Json, container, node, pod, raw
from structlog.testing import LogCapture

from extender.controller import skips
from extender.controller.mirrors import Mirror, NodeMirror, PodMirror
from extender.controller.wanted import Wanted
from extender.store.errors import StoreError
from extender.store.schema import Kind

GPU = "nvidia.com/gpu"


def mirror(wanted: Wanted, *held: str, kind: Callable[..., Mirror[Any]] = PodMirror) -> Mirror[Any]:
    """A mirror of a cache that holds these ids."""
    found: Mirror[Any] = kind(wanted, lambda _: frozenset(held))
    return found


def lists(found: Mirror[Any], *bodies: Json, whole: bool = True) -> None:
    """What a reflector does with a whole list."""
    found.listing()
    told = {}
    for body in bodies:
        header, bytes_ = raw(body)
        kept = found.read(header, bytes_)
        if kept is not None:
            told[header.key] = kept
    found.listed(told, whole=whole)


def changes(found: Mirror[Any], body: Json) -> None:
    """What a reflector does with an event."""
    header, bytes_ = raw(body)
    found.changed(header.key, found.read(header, bytes_))


def due(wanted: Wanted) -> dict[str, bool]:
    """Whether each document that is to be written is to stand."""
    return {wish.id: wish.document is not None for wish in wanted.take(1000)}


def test_pods_come_and_go(wanted: Wanted) -> None:
    """A pod that is bound holds, one that finished or was deleted does not."""
    pods = mirror(wanted)
    lists(pods, pod("a", 2), pod("b", node=None), pod("c", 0))
    assert due(wanted) == {f"uid-a/{GPU}": True}
    changes(pods, pod("b"))
    changes(pods, pod("a", 2, phase="Succeeded"))
    assert due(wanted) == {f"uid-b/{GPU}": True, f"uid-a/{GPU}": False}
    pods.changed("lab/b", None)
    assert due(wanted) == {f"uid-b/{GPU}": False}
    pods.changed("lab/b", None)
    assert due(wanted) == {}


def test_a_pod_of_the_same_name_is_another_pod(wanted: Wanted) -> None:
    """Though nobody told of the end of the first one."""
    pods = mirror(wanted)
    lists(pods, pod("a", uid="one"))
    due(wanted)
    changes(pods, pod("a", uid="two", node="gpu-1"))
    assert due(wanted) == {f"one/{GPU}": False, f"two/{GPU}": True}


def test_several_resources_are_several_documents(wanted: Wanted) -> None:
    """They come and go together."""
    pods = mirror(wanted)
    both = [container(1), container(1, "nvidia.com/mig-1g.10gb")]
    lists(pods, pod("a", containers=both))
    ids = {f"uid-a/{GPU}", "uid-a/nvidia.com/mig-1g.10gb"}
    assert due(wanted) == dict.fromkeys(ids, True)
    pods.changed("lab/a", None)
    assert due(wanted) == dict.fromkeys(ids, False)


def test_a_list_sweeps_what_no_pod_owns(wanted: Wanted) -> None:
    """Whoever put it there. What others say of pods that exist stays: they may know more."""
    held = (f"uid-a/{GPU}", "uid-a/example.com/chip", f"uid-gone/{GPU}", f"uid-done/{GPU}", "junk")
    pods = mirror(wanted, *held)
    lists(pods, pod("a"), pod("idle", 0), pod("done", phase="Failed"))
    assert due(wanted) == {
        f"uid-a/{GPU}": True,
        f"uid-gone/{GPU}": False,
        f"uid-done/{GPU}": False,
        "junk": False,
    }


def test_a_list_that_is_not_whole_sweeps_nothing(wanted: Wanted) -> None:
    """An object that could not be told apart may own any document."""
    pods = mirror(wanted, f"uid-gone/{GPU}")
    lists(pods, pod("a"), whole=False)
    assert due(wanted) == {f"uid-a/{GPU}": True}
    nameless = pod("b")
    del nameless["metadata"]["uid"]
    lists(pods, pod("a"), nameless)
    assert due(wanted) == {}


def test_a_list_that_is_not_whole_takes_nothing_for_gone(wanted: Wanted) -> None:
    """What is missing may be what could not be read. The next whole list makes up for it."""
    pods = mirror(wanted)
    lists(pods, pod("a"), pod("b"), pod("c", 2))
    due(wanted)
    lists(pods, pod("c", 3), pod("d"), whole=False)
    assert due(wanted) == {f"uid-c/{GPU}": True, f"uid-d/{GPU}": True}
    pods.changed("lab/a", None)
    assert due(wanted) == {f"uid-a/{GPU}": False}, "its end is told"
    lists(pods, pod("c", 3))
    assert due(wanted) == {f"uid-b/{GPU}": False, f"uid-d/{GPU}": False}


def test_what_the_cache_loses_during_a_list_is_swept_by_the_next(wanted: Wanted) -> None:
    """The one that runs looked too early; one that begins later needs no other."""
    pods = mirror(wanted)
    pods.listing()
    pods.unsweep()
    pods.listed({}, whole=True)
    assert (pods.take_unswept(), pods.take_unswept()) == (True, False)
    pods.unsweep()
    lists(pods)
    assert not pods.take_unswept()


def test_a_list_while_the_cache_is_away_sweeps_later(wanted: Wanted) -> None:
    """What is wanted is known all the same; that a sweep is owed is told once."""
    away = True

    def ids(_: Kind) -> frozenset[str]:
        if away:
            raise StoreError("the cache is away")
        return frozenset({f"uid-gone/{GPU}"})

    pods = PodMirror(wanted, ids)
    lists(pods, pod("a"))
    assert due(wanted) == {f"uid-a/{GPU}": True}
    assert (pods.take_unswept(), pods.take_unswept()) == (True, False)
    away = False
    lists(pods, pod("a"))
    assert due(wanted) == {f"uid-gone/{GPU}": False}
    assert not pods.take_unswept()


MALFORMED = {
    "absurd": pod("bad", containers=[container("1e30")]),
    "no number": pod("bad", containers=[container("many")]),
    "beyond any node": pod("bad", containers=[container(5000)]),
    "a list for a mapping": {**pod("bad"), "spec": []},
    "control characters": {
        **pod("bad"),
        "metadata": {"name": "bad", "namespace": "lab", "uid": "uid-bad\n"},
    },
    "a node of no name": pod("bad", node="no such/name"),
}


@pytest.mark.parametrize("bad", MALFORMED.values(), ids=MALFORMED)
def test_one_malformed_pod_hurts_nobody_else(
    wanted: Wanted, bad: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, logged once and left out; what others say of it stays."""
    logged = LogCapture()
    monkeypatch.setattr(skips, "_log", structlog.wrap_logger(None, processors=[logged]))
    uid = bad["metadata"]["uid"]
    pods = mirror(wanted, f"{uid}/{GPU}", f"uid-gone/{GPU}")
    lists(pods, pod("a"), bad, pod("b"))
    assert due(wanted) == {f"uid-a/{GPU}": True, f"uid-b/{GPU}": True, f"uid-gone/{GPU}": False}
    changes(pods, bad)
    assert (due(wanted), pods.skipped) == ({}, 2)
    assert [each["object"] for each in logged.entries] == ["lab/bad"]


def test_a_pod_that_turns_malformed_is_no_longer_told(wanted: Wanted) -> None:
    """What is said rests on what is there now, not on what was read before."""
    pods = mirror(wanted)
    lists(pods, pod("bad"))
    due(wanted)
    changes(pods, MALFORMED["absurd"])
    assert due(wanted) == {f"uid-bad/{GPU}": False}


def test_unicode_is_no_obstacle(wanted: Wanted) -> None:
    """Names and labels of any script."""
    nodes = mirror(wanted, kind=NodeMirror)
    lists(nodes, node("gpu-0", place="機房-ü"))
    assert due(wanted) == {"gpu-0": True}


def test_nodes_come_change_and_go(wanted: Wanted) -> None:
    """A heartbeat changes nothing; a label, a cordon does."""
    nodes = mirror(wanted, "gpu-0", "gone", kind=NodeMirror)
    lists(nodes, node("gpu-0"), node("gpu-1"))
    assert due(wanted) == {"gpu-0": True, "gpu-1": True, "gone": False}
    beating = node("gpu-0")
    beating["status"]["conditions"] = []
    changes(nodes, beating)
    assert due(wanted) == {}
    changes(nodes, node("gpu-0", zone="z1"))
    assert due(wanted) == {"gpu-0": True}
    nodes.changed("gpu-1", None)
    assert due(wanted) == {"gpu-1": False}


def test_a_malformed_node_hurts_no_other(wanted: Wanted) -> None:
    """Its own document stays as somebody put it, if anybody did."""
    nodes = mirror(wanted, "bad", kind=NodeMirror)
    lists(nodes, node("bad", "lots"), node("gpu-0"))
    assert (due(wanted), nodes.skipped) == ({"gpu-0": True}, 1)


def test_what_is_kept_of_a_pod_is_small(wanted: Wanted) -> None:
    """50,000 pods must fit: of each the document, its id, and no more than a few words."""
    import tracemalloc  # noqa: PLC0415 - for this test only

    pods = mirror(wanted)
    lists(pods)
    tracemalloc.start()
    bulk = {"annotations": {"note": "x" * 5000}}
    for number in range(500):
        body = pod(f"p{number}")
        body["metadata"].update(bulk)
        changes(pods, body)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / 500 < 2500
