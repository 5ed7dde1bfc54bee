"""Requests and nodes at the edge of what Kubernetes allows: answered, small, and fast."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

import pytest
from asking import Json, by_names, by_nodes, pod
from papers import node_paper
from replicas import Replica, fleet_of

from scoring.model import AllocationMode, Node
from scoring.reasons import Reason

MEGABYTE = 10**6
QUARTER = 256 << 10
"""Bytes that all annotations of an object may hold together in Kubernetes."""
WARM_S = 0.05
SLOWEST_S = 1.0
NAMES = ("n0", "n1")


def nodes(gpus: int, mode: AllocationMode = AllocationMode.NVIDIA, **more: object) -> list[Node]:
    """Two nodes with so many GPUs."""
    papers = [node_paper(name, gpus=gpus, allocationMode=mode, **more) for name in NAMES]
    return [paper.value for paper in papers if isinstance(paper.value, Node)]


@pytest.fixture(scope="module")
def replica() -> Replica:
    """Two nodes of eight."""
    return Replica(fleet_of(*nodes(8)))


@pytest.mark.parametrize("mode", list(AllocationMode))
@pytest.mark.parametrize("gpus", [0, 16, 72, 128])
def test_nodes_of_any_size_are_judged_within_50_ms_once_warm(
    gpus: int, mode: AllocationMode
) -> None:
    """Asks for one, some and all GPUs; a gang's for more than there are never fits, and is told why."""
    sick = {0: "DEGRADED", gpus - 1: "FAILED"} if gpus else {}
    for found in (nodes(gpus, mode), nodes(gpus, mode, sick=sick)):
        replica = Replica(fleet_of(*found))
        for count in sorted({1, 4, max(gpus, 1)}):
            for gang in (None, "sweep"):
                body = by_names(pod(count, gang=gang), NAMES)
                cold = replica.post("filter", body)
                took_s, warm = fastest(replica, body)
                assert (cold.status, warm) == (200, cold.body)
                assert took_s < WARM_S
        refused = replica.filter(pod(gpus + 1, gang="sweep"), NAMES)["FailedAndUnresolvableNodes"]
        assert refused == dict.fromkeys(NAMES, Reason.FEWER_GPUS.text)


def fastest(replica: Replica, body: Json) -> tuple[float, bytes]:
    """The shortest of three calls, which a busy machine does not spoil, and the answer."""
    took_s = []
    for _ in range(3):
        began_s = time.perf_counter()
        answer = replica.post("filter", body)
        took_s.append(time.perf_counter() - began_s)
    return min(took_s), answer.body


def big_annotations() -> Iterator[tuple[str, str]]:
    """Every annotation that means something, with a megabyte of something else."""
    for key in (
        "surefoot.dev/allow",
        "surefoot.dev/deny",
        "surefoot.dev/topology-required",
        "scheduling.k8s.io/group-name",
        "gang.scheduling.koordinator.sh/name",
        "gang.scheduling.koordinator.sh/min-available",
        "pod-group-name",
        "kueue.x-k8s.io/pod-group-total-count",
        "leaderworkerset.sigs.k8s.io/size",
        "yunikorn.apache.org/app-id",
        "yunikorn.apache.org/task-groups",
        "example.com/anything",
    ):
        for text in ("x", "SUSPECT,", "é, ", "9", "["):
            yield key, text * (MEGABYTE // len(text.encode()))


def test_a_megabyte_of_annotation_costs_neither_time_nor_memory(replica: Replica) -> None:
    """Each is answered fast; what is kept of the decision, and what explain tells, stays small."""
    marks = {"yunikorn.apache.org/app-id": "app", "yunikorn.apache.org/task-group-name": "g"}
    for key, text in big_annotations():
        asker = pod(2, annotations={**marks, key: text})
        for verb in ("filter", "prioritize", "explain"):
            began_s = time.perf_counter()
            answer = replica.post(verb, by_names(asker, NAMES))
            assert answer.status == 200
            assert time.perf_counter() - began_s < SLOWEST_S, (key, text[:8], verb)
            assert len(answer.body) < 10_000, (key, text[:8], verb)
        assert len(replica.records[-1].tell()) < 10_000, (key, text[:8])


def test_many_annotations_are_as_one(replica: Replica) -> None:
    """Fifty thousand of them, and labels alike."""
    many = {f"example.com/{number}": "ü" * 10 for number in range(50_000)}
    asker = pod(2, annotations=many)
    asker["metadata"]["labels"] = many
    began_s = time.perf_counter()
    assert replica.filter(asker, NAMES)["NodeNames"] == list(NAMES)
    assert time.perf_counter() - began_s < SLOWEST_S


def test_a_gang_with_an_endless_name_is_a_gang_of_its_own(replica: Replica) -> None:
    """Two names that differ at their very end are two gangs, each with a key of bounded length."""
    keys = []
    for end in ("a", "b", "b"):
        asker = pod(2, annotations={"scheduling.k8s.io/group-name": "x" * QUARTER + end})
        keys.append(replica.explain(asker)["ask"]["gang"]["key"])
    assert keys[0] != keys[1] == keys[2]
    assert all(len(key) <= 512 for key in keys)


def wide(word: str) -> str:
    """The word in full-width letters, which look alike and are others."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in word)


THREE = "\N{ARABIC-INDIC DIGIT THREE}"
UNICODE: Mapping[str, str] = {
    "surefoot.dev/gang": wide("gang") + "\u00e9",
    "surefoot.dev/allow": wide("SUSPECT"),
    "surefoot.dev/deny": "degraded\u0000\ud7ff",
    "\U0001f525": "\u2028",
}


def test_unicode_is_carried_and_never_taken_for_ascii(replica: Replica) -> None:
    """Full-width words and digits are no states and no numbers; the pod is judged and told of."""
    asker = pod(2, annotations=UNICODE)
    asker["metadata"] |= {"name": "rang-\u00e9-\U0001f525", "labels": {**UNICODE, "x": THREE}}
    asker["metadata"]["labels"]["surefoot.dev/gang-size"] = THREE
    told = replica.explain(asker, NAMES)["ask"]
    assert (told["pod"], told["gang"]["key"]) == (
        "rang-\u00e9-\U0001f525",
        f"lab/{UNICODE['surefoot.dev/gang']}",
    )
    assert (told["allow"], told["deny"], told["gang"]["min"]) == ([], [], None)
    assert len(told["notes"]) == 2
    assert replica.filter(asker, NAMES)["NodeNames"] == list(NAMES)
    json.loads(replica.records[-1].tell())


def test_absurd_minimums_are_unknown_ones(replica: Replica) -> None:
    """Numbers that Python can add and not print."""
    total = json.dumps([{"minMember": 10**4299}] * 20)
    marks = {
        "yunikorn.apache.org/app-id": "app",
        "yunikorn.apache.org/task-group-name": "g",
        "yunikorn.apache.org/task-groups": total,
    }
    told = replica.explain(pod(2, annotations=marks), NAMES)
    assert told["ask"]["gang"] == {"key": "lab/app", "convention": "yunikorn", "min": None}


TWICE = '{"Pod":%s,"NodeNameToMetaVictims":{"n0":{"Pods":[]},"n1":{"Pods":[]},"n0":{"Pods":[]}}}'


def test_a_node_that_is_named_twice_is_refused_in_one_sentence(replica: Replica) -> None:
    """Nobody knows what the caller meant; the next request is served as ever."""
    names = ("n0", "n1", "n0")
    for verb in ("filter", "prioritize"):
        for body in (by_names(pod(1), names), by_nodes(pod(1), names)):
            answer = replica.post(verb, body)
            assert answer.status == 400
            assert answer.json["error"].endswith("'n0' is there twice")
    assert replica.filter(pod(1), NAMES)["NodeNames"] == list(NAMES)


def test_a_victim_map_that_names_a_node_twice_keeps_it_once(replica: Replica) -> None:
    """JSON objects may repeat a key, and Go's reader takes the last one: so does this one."""
    body = TWICE % json.dumps(pod(8))
    answer = replica.post("preempt", body.encode())
    assert answer.status == 200
    assert set(answer.json["NodeNameToMetaVictims"]) == set(NAMES)
    assert set(replica.preempt(pod(8), {"n0": ["u"]})) == {"n0"}


def test_node_names_of_any_kind_come_back_as_they_went(replica: Replica) -> None:
    """Unknown nodes pass for a single pod, by the very bytes of their names."""
    names = ["é" * 300, "\u0000", "n" * MEGABYTE, "\U0001f525", " n0"]
    assert set(replica.filter(pod(1), names)["NodeNames"]) == set(names)
