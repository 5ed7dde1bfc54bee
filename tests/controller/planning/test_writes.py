"""What is sent to the API server for each step."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import members
import pytest
from members import NOW_S

from extender.controller.cluster.values import GatedPod
from extender.controller.planning.writes import release, write
from extender.kube.writing import PatchKind
from scoring.gangs.rules import GATE
from scoring.gangs.steps import Step, Verb
from scoring.model import NodeName, PodUid

POD = replace(members.pod(0), version="17")
PATH = "/api/v1/namespaces/ml/pods/train-0"
TESTS = [
    {"op": "test", "path": "/metadata/uid", "value": "uid-0"},
    {"op": "test", "path": "/metadata/resourceVersion", "value": "17"},
]
SAME = {"uid": "uid-0", "resourceVersion": "17"}
CASES: dict[Verb, tuple[str, PatchKind | None, Any]] = {
    Verb.NOMINATE: (
        f"{PATH}/status",
        PatchKind.JSON,
        [*TESTS, {"op": "add", "path": "/status/nominatedNodeName", "value": "n0"}],
    ),
    Verb.CLEAR: (
        f"{PATH}/status",
        PatchKind.JSON,
        [*TESTS, {"op": "remove", "path": "/status/nominatedNodeName"}],
    ),
    Verb.LIFT: (PATH, PatchKind.JSON, [*TESTS, {"op": "remove", "path": "/spec/schedulingGates"}]),
    Verb.WAKE: (
        PATH,
        PatchKind.MERGE,
        {
            "metadata": {
                **SAME,
                "annotations": {"surefoot.dev/wake": "1970-01-01T00:16:40.000000Z"},
            }
        },
    ),
    Verb.EVICT: (
        f"{PATH}/eviction",
        None,
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "train-0", "namespace": "ml"},
            "deleteOptions": {"preconditions": SAME},
        },
    ),
}


@pytest.mark.parametrize("verb", list(Verb))
def test_each_step_is_one_request_that_names_the_pod_it_is_about(verb: Verb) -> None:
    """By uid and resourceVersion: another pod of the name, or a changed one, refuses it."""
    found = write(Step(verb=verb, pod=POD, node=NodeName("n0")), NOW_S)
    assert (found.path, found.kind, json.loads(found.body)) == CASES[verb]


def test_a_stray_is_released_by_the_name_of_our_gate() -> None:
    """Others' gates are not in the request at all."""
    stray = GatedPod(namespace="a b", name="x", uid=PodUid("u"), version="3")
    found = release(stray)
    assert (found.path, found.kind) == ("/api/v1/namespaces/a%20b/pods/x", PatchKind.STRATEGIC)
    assert json.loads(found.body) == {
        "metadata": {"uid": "u", "resourceVersion": "3"},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    }
