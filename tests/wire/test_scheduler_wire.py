"""The extender protocol as kube-scheduler speaks it, and everything else as one clear sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.wire.errors import WireError
from extender.wire.scheduler import (
    MAX_NODES,
    PreemptionRequest,
    Victims,
    decode_nodes,
    decode_preemption,
    encode_filter,
    encode_preemption,
    encode_priorities,
)
from scoring.model import NodeName, PodUid

POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "lab", "uid": "u-1", "managedFields": [{"a": 1}]},
    "spec": {"schedulerName": "surefoot", "containers": [{"name": "c", "resources": {}}]},
    "status": {"phase": "Pending"},
}


def node(name: str) -> dict[str, Any]:
    """A Node with fields that nobody here knows."""
    return {
        "metadata": {"name": name, "labels": {"zone": "ä"}, "creationTimestamp": None},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "images": [{"sizeBytes": 12345678901}]},
    }


def body(**args: Any) -> bytes:
    """A request body."""
    return json.dumps(args).encode()


def by_name(*names: str) -> bytes:
    """ExtenderArgs of a node-cache-capable caller."""
    return body(Pod=POD, Nodes=None, NodeNames=list(names))


def by_node(*names: str) -> bytes:
    """ExtenderArgs of a caller without a node cache."""
    return body(Pod=POD, Nodes={"metadata": {}, "items": [*map(node, names)]}, NodeNames=None)


def sent_back(request: bytes, *passed: str, **maps: dict[NodeName, str]) -> Any:
    """The JSON that answers `request`."""
    answer = encode_filter(
        decode_nodes(request),
        passed=[NodeName(name) for name in passed],
        failed=maps.get("failed", {}),
        unresolvable=maps.get("unresolvable", {}),
    )
    return json.loads(answer)


def test_names_come_in_their_order_with_the_pod() -> None:
    """A node-cache-capable caller sends names."""
    request = decode_nodes(by_name("b", "a"))
    assert request.names == ("b", "a")
    assert request.offered == {"a", "b"}
    assert request.nodes is None
    assert request.pod.spec is not None
    assert request.pod.spec.scheduler_name == "surefoot"


def test_names_are_answered_with_names() -> None:
    """The answer has the names, both maps, and no Nodes."""
    reasons = {NodeName("c"): "no healthy GPUs"}
    assert sent_back(by_name("a", "b", "c"), "a", "b", unresolvable=reasons) == {
        "NodeNames": ["a", "b"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {"c": "no healthy GPUs"},
    }


@pytest.mark.parametrize("request_body", [by_name("a"), by_name()])
def test_when_nothing_passed_the_list_is_empty_and_never_null(request_body: bytes) -> None:
    """kube-scheduler reads null as if the form were the other one."""
    assert sent_back(request_body, failed={NodeName("a"): "held"})["NodeNames"] == []


def test_whole_nodes_come_back_unchanged() -> None:
    """A caller without a node cache gets those that passed, field for field."""
    answer = sent_back(by_node("a", "b", "c"), "c", "a")
    assert answer["Nodes"] == {
        "kind": "NodeList",
        "apiVersion": "v1",
        "items": [node("c"), node("a")],
    }
    assert "NodeNames" not in answer
    assert sent_back(by_node("a"))["Nodes"]["items"] == []


def test_whole_nodes_are_kept_as_the_bytes_that_came() -> None:
    """Not even spelling of numbers or order of keys changes."""
    raw = b'{ "metadata":{"name":"a"}, "x":1.50e0 , "\\u0061":[] }'
    request = decode_nodes(b'{"Pod":{},"Nodes":{"items":[' + raw + b"]}}")
    answer = encode_filter(request, passed=request.names, failed={}, unresolvable={})
    assert raw in answer


def test_a_list_without_items_names_no_node() -> None:
    """Go marshals an empty slice as null."""
    assert decode_nodes(body(Pod=POD, Nodes={"items": None})).names == ()


@given(st.sampled_from([by_name("a", "b"), by_node("a", "b")]), st.data())
def test_keys_match_in_any_case(request_body: bytes, data: st.DataObject) -> None:
    """Go matches keys without regard to case, so we do."""
    sent = json.loads(request_body)
    respelled = {
        "".join(data.draw(st.sampled_from([c.upper(), c.lower()])) for c in key): value
        for key, value in sent.items()
    }
    got, expected = decode_nodes(json.dumps(respelled).encode()), decode_nodes(request_body)
    assert (got.pod, got.names, got.offered) == (expected.pod, expected.names, expected.offered)
    assert (got.nodes is None) == (expected.nodes is None)


def test_scores_are_a_host_priority_list() -> None:
    """/prioritize answers a list, not an object."""
    answer = encode_priorities([(NodeName("a"), 10), (NodeName("b"), 0)])
    assert json.loads(answer) == [{"Host": "a", "Score": 10}, {"Host": "b", "Score": 0}]


META = body(
    Pod=POD,
    NodeNameToVictims=None,
    NodeNameToMetaVictims={
        "a": {"Pods": [{"UID": "v-1"}, {"UID": "v-2"}], "NumPDBViolations": 1},
        "b": {"Pods": None, "NumPDBViolations": 0},
    },
)
FULL = body(
    Pod=POD,
    NodeNameToVictims={
        "a": {
            "Pods": [{"metadata": {"name": n, "uid": n}, "spec": {}} for n in ("v-1", "v-2")],
            "NumPDBViolations": 1,
        },
        "b": {"Pods": [], "NumPDBViolations": 0},
    },
    NodeNameToMetaVictims=None,
)
VICTIMS = {
    NodeName("a"): Victims(uids=(PodUid("v-1"), PodUid("v-2")), pdb_violations=1),
    NodeName("b"): Victims(uids=(), pdb_violations=0),
}


def lowered(request_body: bytes) -> bytes:
    """The body with all keys of the protocol in lower case."""
    text = request_body.decode()
    for key in (
        "Pod",
        "NodeNameToVictims",
        "NodeNameToMetaVictims",
        "Pods",
        "UID",
        "NumPDBViolations",
    ):
        text = text.replace(f'"{key}":', f'"{key.lower()}":')
    return text.encode()


@pytest.mark.parametrize("request_body", [META, FULL, lowered(META), lowered(FULL)])
def test_both_forms_of_victims_are_read(request_body: bytes) -> None:
    """With a node cache kube-scheduler sends uids, without one whole pods."""
    request = decode_preemption(request_body)
    assert isinstance(request, PreemptionRequest)
    assert request.victims == VICTIMS
    assert request.pod.metadata is not None
    assert request.pod.metadata.uid == "u-1"


def test_victims_are_answered_by_uid_with_their_disruption_budgets() -> None:
    """What is kept comes back as it came; what is struck is absent; nothing kept is an empty map."""
    kept = {NodeName("a"): VICTIMS[NodeName("a")]}
    assert json.loads(encode_preemption(kept)) == {
        "NodeNameToMetaVictims": {
            "a": {"Pods": [{"UID": "v-1"}, {"UID": "v-2"}], "NumPDBViolations": 1}
        }
    }
    assert json.loads(encode_preemption({})) == {"NodeNameToMetaVictims": {}}


DEEP = b"[" * 100_000 + b"]" * 100_000
TWO = body(Pod=POD, Nodes={"items": [node("a"), node("a")]})


@pytest.mark.parametrize(
    ("malformed", "sentence"),
    [
        (b"", "the body: no valid JSON"),
        (b"not json", "the body: no valid JSON"),
        (by_name("a")[:-1], "the body: no valid JSON"),
        (by_name("a") + b"x", "the body: no valid JSON"),
        (b"[]", "the body: expected object, got array"),
        (b"null", "the body: expected object, got null"),
        (b"{}", "Pod: the pod is missing"),
        (body(Pod=None, NodeNames=["a"]), "Pod: the pod is missing"),
        (body(Pod="p", NodeNames=["a"]), "Pod: expected object, got str"),
        (body(Pod=POD), "neither NodeNames nor Nodes"),
        (body(Pod=POD, Nodes=None, NodeNames=None), "neither NodeNames nor Nodes"),
        (body(Pod=POD, NodeNames="a"), "NodeNames: expected array, got str"),
        (body(Pod=POD, NodeNames=["a", 7]), r"NodeNames\[1\]: expected str, got int"),
        (body(pod=POD, nodenames=[None]), r"NodeNames\[0\]: expected str, got null"),
        (by_name("a", "b", "a"), "NodeNames: 'a' is there twice"),
        (by_name(*map(str, range(MAX_NODES + 1))), f"NodeNames: more than {MAX_NODES} nodes"),
        (body(Pod=POD, Nodes=["a"]), "Nodes: expected object, got array"),
        (body(Pod=POD, Nodes={"items": [node("a"), 3]}), r"Nodes.items\[1\]: expected object"),
        (body(Pod=POD, Nodes={"items": [{}]}), r"Nodes.items\[0\]: object missing .* metadata"),
        (body(Pod=POD, Nodes={"items": [{"metadata": {}}]}), "missing required field name"),
        (TWO, "Nodes.items: 'a' is there twice"),
        (b'{"Pod":{"x":' + DEEP + b'},"NodeNames":[]}', "nested too deeply"),
        (b'{"Pod":{},"NodeNames":' + DEEP + b"}", "nested too deeply"),
        (b'{"Pod":{"metadata":{"name":"\xff"}},"NodeNames":[]}', "Invalid UTF-8"),
        (b'{"Pod":{},"NodeNames":["\xff"]}', "NodeNames: no valid JSON: Invalid UTF-8"),
        (b'{"Pod":{"spec":{"priority":1e999}},"NodeNames":[]}', "Pod.spec.priority: number out of"),
        (body(Pod={"spec": {"priority": "high"}}, NodeNames=[]), "Pod.spec.priority: expected int"),
    ],
)
def test_anything_malformed_is_one_clear_sentence(malformed: bytes, sentence: str) -> None:
    """A body that is no ExtenderArgs raises `WireError`, which says where and what."""
    with pytest.raises(WireError, match=sentence) as raised:
        decode_nodes(malformed)
    assert "\n" not in str(raised.value)
    assert "`" not in str(raised.value)


@pytest.mark.parametrize(
    ("malformed", "sentence"),
    [
        (b"{}", "Pod: the pod is missing"),
        (body(Pod=POD), "neither NodeNameToMetaVictims nor NodeNameToVictims"),
        (body(Pod=POD, NodeNameToMetaVictims=[]), "NodeNameToMetaVictims: expected object"),
        (body(Pod=POD, NodeNameToMetaVictims={"a": None}), "expected object, got null"),
        (body(Pod=POD, NodeNameToMetaVictims={"a": {}}), "missing required field Pods"),
        (
            body(Pod=POD, NodeNameToMetaVictims={"a": {"Pods": [{"UID": 3}]}}),
            "expected str, got int",
        ),
        (
            body(Pod=POD, NodeNameToMetaVictims={"a": {"Pods": [], "NumPDBViolations": 2**63}}),
            "expected int <= 9223372036854775807",
        ),
        (body(Pod=POD, NodeNameToVictims={"a": {"Pods": [{"metadata": {}}]}}), "field uid"),
        (
            body(
                Pod=POD, NodeNameToMetaVictims={str(n): {"Pods": []} for n in range(MAX_NODES + 1)}
            ),
            f"more than {MAX_NODES} nodes",
        ),
    ],
)
def test_malformed_preemptions_are_one_clear_sentence(malformed: bytes, sentence: str) -> None:
    """A body that is no ExtenderPreemptionArgs raises `WireError`."""
    with pytest.raises(WireError, match=sentence):
        decode_preemption(malformed)


@given(st.sampled_from([by_name("a", "b"), by_node("a"), META, FULL]), st.data())
def test_any_bytes_are_a_request_or_a_wire_error(request_body: bytes, data: st.DataObject) -> None:
    """Damaged bodies never raise anything else."""
    at = data.draw(st.integers(0, len(request_body) - 1))
    length = data.draw(st.integers(0, 8))
    damaged = request_body[:at] + data.draw(st.binary(max_size=4)) + request_body[at + length :]
    for decode in (decode_nodes, decode_preemption):
        try:
            decode(damaged)
        except WireError as error:
            assert str(error)  # noqa: PT017  # an accepted body is as good as a refused one
