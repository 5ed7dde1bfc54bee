"""Documents: what people may write, and how the store refuses the rest."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from watching import JSON, allocation, body, node, other

from extender.store import documents
from extender.store.errors import DocumentError
from extender.store.schema import Kind
from scoring.model import (
    Allocation,
    AllocationMode,
    Gang,
    Health,
    Node,
    Override,
    Scope,
    SharePolicy,
    Sharing,
    TopologyPolicy,
)

EXAMPLE = """
apiVersion: surefoot.dev/v1
kind: Node
metadata: {name: gpu-17, labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
epoch: 4
seq: 118
bootId: 8c1f
allocationMode: planned
expected: 8
fabric: {state: completed, status: success, cliqueId: 3, clusterUuid: ab-cd, healthMask: 0}
links: {GPU0-GPU1: NV18}
gpus:
- {uuid: GPU-a, index: 0, pci: 0000:19:00.0, model: H100, numa: 0, mig: false, sampledAgo: 3s,
   causes: [{id: xid.79, state: REBOOT_REQUIRED, scope: gpu, firstSeen: 2026-11-29T10:00:00Z,
             count: 2, evidence: "fell off the bus"}]}
- {uuid: GPU-b, index: 1, numa: -1}
causes: [{id: sxid.20034, state: DEGRADED, scope: fabric}]
"""


def value_of(document: documents.Document) -> Node:
    """The Node of a Node document."""
    assert isinstance(document.value, Node)
    return document.value


def refused(content: str | bytes) -> str:
    """The error of a text that must be refused."""
    with pytest.raises(DocumentError) as caught:
        documents.parse(content, "nodes.yaml")
    return str(caught.value)


def refused_body(**fields: Any) -> str:
    """The error of a Node document with these fields, without its place."""
    with pytest.raises(DocumentError) as caught:
        node(**fields)
    return str(caught.value).removeprefix("(Node gpu-17): ")


def test_a_node_is_read_with_everything_it_says() -> None:
    """Each field of the contract's example reaches the value, a bare PCI address stays text."""
    (document,) = documents.parse(EXAMPLE)
    found = value_of(document)
    first, second = found.gpus
    (cause,) = first.causes
    assert (document.kind, document.id, document.epoch, document.seq) == ("Node", "gpu-17", 4, 118)
    assert (found.mode, found.expected, found.boot_id) == (AllocationMode.PLANNED, 8, "8c1f")
    assert (first.pci, first.numa, second.numa) == ("0000:19:00.0", 0, None)
    assert (cause.id, cause.state, cause.count) == ("xid.79", Health.REBOOT_REQUIRED, 2)
    assert cause.first_s == 1_795_946_400.0
    assert found.causes[0].scope is Scope.FABRIC
    assert found.fabric is not None
    assert found.fabric.clique_id == 3
    assert found.links.words == (("X", "NV18"), ("NV18", "X"))
    assert found.labels == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def test_a_node_says_how_its_gpus_are_offered_and_shared() -> None:
    """Kubelet's Topology Manager, and the plugin's shares."""
    found = value_of(
        node(topologyManagerPolicy="single-numa-node", sharing={"replicas": 4, "policy": "packed"})
    )
    assert found.topology_policy is TopologyPolicy.SINGLE_NUMA_NODE
    assert found.sharing == Sharing(replicas=4, policy=SharePolicy.PACKED)
    assert value_of(node(sharing={"replicas": 2})).sharing == Sharing(replicas=2)


def test_a_node_that_says_little_promises_little() -> None:
    """The stock plugin hands out GPUs, links that nobody names are SYS, no count is expected."""
    found = value_of(node(links={}))
    assert found.mode is AllocationMode.NVIDIA
    assert (found.expected, found.sharing) == (None, None)
    assert found.topology_policy is TopologyPolicy.NONE
    assert found.links.words[0][1] == "SYS"


def _large(count: int) -> dict[str, Any]:
    """A Node document of so many GPUs, every pair linked."""
    return body(
        gpus=[{"uuid": f"GPU-{i}", "index": i, "model": "GB200"} for i in range(count)],
        links={f"GPU{i}-GPU{j}": "NV18" for j in range(count) for i in range(j)},
        expected=count,
    )


@pytest.mark.parametrize("count", [0, 1, 72, 128])
def test_a_node_has_any_number_of_gpus_that_one_may_have(count: int) -> None:
    """None at all, or a whole NVL72, with all its links, through JSON and back."""
    document = documents.check(_large(count))
    found = value_of(document)
    assert len(found.gpus) == len(found.links) == count
    assert all(word == "NV18" for i, row in enumerate(found.links.words) for word in row[:i])
    assert documents.decode(document.kind, document.id, document.encoded) == found


def test_unknown_fields_are_kept() -> None:
    """What this version does not know survives a round trip."""
    written = body(novelty={"deep": [1, None, "x"]}, epoch=1)
    kept = json.loads(documents.check(written).encoded)
    assert kept == {key: value for key, value in written.items() if key != "epoch"}


@pytest.mark.parametrize(
    "content",
    [
        "---\n" + json.dumps(body("a")) + "\n---\n---\n" + json.dumps(body("b")),
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [body("a"), body("b")]}),
        json.dumps([body("a"), body("b")], indent=1),
        json.dumps(body("a")) + "\n" + json.dumps(body("b")) + "\n",
        "kind: List\nitems: [" + json.dumps(body("a")) + "," + json.dumps(body("b")) + "]",
    ],
    ids=["stream", "list", "array", "lines", "yaml-list"],
)
def test_many_documents_come_in_every_usual_form(content: str) -> None:
    """YAML streams, Lists, arrays and JSON lines hold the same documents."""
    assert [document.id for document in documents.parse(content)] == ["a", "b"]


def test_an_error_names_place_kind_name_and_path() -> None:
    """An operator finds the line without a debugger."""
    broken = body("gpu-17")
    del broken["gpus"][1]["uuid"]
    stream = "\n---\n".join(json.dumps(one) for one in (body("a"), body("b"), broken))
    assert refused(stream) == "nodes.yaml document 3 (Node gpu-17): gpus[1].uuid: missing"
    listed = json.dumps({"kind": "List", "items": [body("a"), broken]})
    assert refused(listed).startswith("nodes.yaml document 1 item 2 (Node gpu-17): ")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"gpus": "none"}, "gpus: expected a list, got text"),
        ({"gpus": [{"uuid": "a", "index": "0"}]}, "gpus[0].index: expected a whole number, got"),
        ({"gpus": [{"uuid": "a", "index": True}]}, "gpus[0].index: expected a whole number"),
        ({"expected": -1}, "expected: expected a whole number, 0 or more"),
        ({"topologyManagerPolicy": "strict"}, "topologyManagerPolicy: 'strict' is unknown"),
        ({"sharing": {"policy": "packed"}}, "sharing.replicas: missing"),
        ({"sharing": {"replicas": 0}}, "sharing.replicas: expected a whole number, 1 or more"),
        ({"sharing": {"replicas": 2, "policy": "fair"}}, "sharing.policy: 'fair' is unknown"),
        ({"gpus": [{"uuid": "a", "index": 0}, {"uuid": "a", "index": 1}]}, "gpus[1].uuid: 'a'"),
        ({"gpus": [{"uuid": "a", "index": 0}, {"uuid": "b", "index": 0}]}, "gpus[1].index: 0"),
        ({"gpus": [{"uuid": str(i), "index": i} for i in range(129)]}, "gpus: expected a list"),
        ({"links": {"0-1": "NV1"}}, "links.0-1: is no pair, write it like GPU0-GPU1"),
        ({"links": {"GPU1-GPU0": "NV1"}}, "links.GPU1-GPU0: the lower index comes first"),
        ({"links": {"GPU0-GPU1": "NVLINK"}}, "links.GPU0-GPU1: 'NVLINK' is no link of topo -m"),
        ({"links": {"GPU0-GPU1": 4}}, "links[*]: expected text, got a whole number"),
        ({"allocationMode": "plan"}, "allocationMode: 'plan' is unknown, allowed: nvidia, unknown"),
        (
            {"causes": [{"id": "x", "state": "REBOOT_REQUIRD"}]},
            "causes[0].state: 'REBOOT_REQUIRD' is unknown, allowed: HEALTHY",
        ),
        ({"causes": [{"id": "x", "state": "FAILED", "scope": "rack"}]}, "causes[0].scope: 'rack'"),
        (
            {"causes": [{"id": "x", "state": "FAILED", "firstSeen": "noon"}]},
            "causes[0].firstSeen: expected an RFC 3339 time, like",
        ),
        (
            {"causes": [{"id": "", "state": "FAILED"}]},
            "causes[0].id: expected text that is not empty",
        ),
        ({"causes": [{"id": "a\nb", "state": "FAILED"}]}, "causes[0].id: write it on one line"),
        (
            {"causes": [{"id": "x", "state": "FAILED", "firstSeen": "2026-11-29T10:00:00"}]},
            "time with a zone, like",
        ),
        (
            {"gpus": [{"uuid": "a", "index": 2000}]},
            "gpus[0].index: expected a whole number, 1023 or less",
        ),
        (
            {"gpus": [{"uuid": "a", "index": 0, "sampledAgo": "3 sec"}]},
            "gpus[0].sampledAgo: '3 sec' is no duration",
        ),
        ({"metadata": {"name": "two words"}}, "metadata.name: write a name of letters, digits"),
        ({"metadata": {"name": "gpu-17", "labels": {"a": 1}}}, "metadata.labels[*]: expected text"),
        ({"metadata": {}}, "metadata.name: missing"),
        ({"seq": 2**60}, "seq: expected a whole number"),
        ({"apiVersion": "surefoot.dev/v2"}, "apiVersion: surefoot.dev/v2 is newer than this"),
        ({"apiVersion": "v1"}, "apiVersion: expected surefoot.dev/v1, got v1"),
        ({"extra": [[1] * 1000] * 1000}, "more than 500000 values"),
        ({"extra": ["x" * 60_000] * 100}, "larger than 4 MiB"),
        ({"extra": object()}, "cannot be kept as JSON"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(fields: dict[str, Any], problem: str) -> None:
    """Types, bounds, duplicates, links, names and versions: one clear sentence each."""
    assert problem in refused_body(**fields)


def test_a_misspelt_state_is_answered_with_the_likely_one() -> None:
    """An error helps: it says what was meant."""
    wrong = [{"id": "x", "state": "REBOOT_REQUIRD"}]
    assert refused_body(causes=wrong).endswith("did you mean REBOOT_REQUIRED?")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: b: c", "nodes.yaml: neither YAML nor JSON: line 1: mapping values are not allowed"),
        ("a: 1\na: 2", "nodes.yaml: line 2: key 'a' stands twice"),
        ("a: &x {b: 1}\nc: {<<: *x}", "nodes.yaml: line 2: merge keys (<<) are not supported"),
        ("1: 2", "nodes.yaml: line 1: key 1 must be text, quote it"),
        ("just text", "nodes.yaml document 1: expected a mapping, got text"),
        ("!!python/object:os.system {}", "nodes.yaml: neither YAML nor JSON: line 1: could not"),
        (b"\xff\xfe", "nodes.yaml: not UTF-8 text"),
        ("kind: List", "nodes.yaml document 1: items: expected a list"),
        ("kind: Node", "nodes.yaml document 1 (Node): apiVersion: missing"),
        ("apiVersion: surefoot.dev/v1\nkind: Pod", "kind: 'Pod' is unknown, allowed: Node"),
        ("apiVersion: surefoot.dev/v1\nkind: Rejection", "node: missing"),
        (
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n"
                for i in range(8)
            ),
            "more than 500000 values",
        ),
        ("a: &a [*a]", "nested deeper than 32 levels"),
        ("[" * 5000, "nested too deeply"),
        ("a: !!bool maybe", "neither YAML nor JSON"),
        ("a: !!timestamp 2026-11-29", "neither YAML nor JSON: line 1: could not determine"),
    ],
    ids=lambda value: None if isinstance(value, bytes | str) and len(value) > 40 else value,
)
def test_text_that_is_no_document_is_refused_in_one_sentence(
    content: str | bytes, problem: str
) -> None:
    """Broken text, repeated keys, code, alias bombs and unknown kinds never pass and never hang."""
    assert problem in refused(content)


def test_the_types_are_those_of_yaml_1_2() -> None:
    """`yes`, times of day and dates are text, as a reader of the document would think."""
    text = "apiVersion: surefoot.dev/v1\nkind: Breaker\npool: yes\nstate: open\nuntil: 2026-11-29T10:00:00Z\nn: 12:30:45\no: 010"
    (document,) = documents.parse(text)
    assert document.id == "yes"
    assert (document.body["n"], document.body["o"]) == ("12:30:45", "010")


def test_a_gpu_without_a_fresh_sample_is_unknown_on_a_fresh_node() -> None:
    """A sample that was old when the node reported opens the cause `stale` on its GPU alone."""
    gpus = [
        {"uuid": "a", "index": 0, "sampledAgo": "1m"},
        {"uuid": "b", "index": 1, "sampledAgo": "59s"},
    ]
    old, fresh = value_of(node(gpus=gpus)).gpus
    assert [(cause.id, cause.state) for cause in old.causes] == [("stale", Health.UNKNOWN)]
    assert fresh.causes == ()


def test_links_of_a_gpu_that_is_gone_say_nothing() -> None:
    """An agent may send the links of before the loss."""
    assert value_of(node(links={"GPU0-GPU1": "NV18", "GPU0-GPU7": "NV18"})).links.words == (
        ("X", "NV18"),
        ("NV18", "X"),
    )


def test_equal_shapes_are_one_object() -> None:
    """Five thousand equal nodes share one link matrix and one set of labels."""
    metadata = {"labels": {"pool": "a"}}
    first, second = (
        value_of(node(name, metadata={"name": name, **metadata})) for name in ("a", "b")
    )
    assert first.links is second.links
    assert first.labels is second.labels


def test_other_kinds_are_read() -> None:
    """Gangs, overrides, breakers and allocations stand under what tells them apart."""
    gang = other("Gang", key="team/train", convention="lws", min=2, size=4, members=["u1", "u2"])
    over = other(
        "Override",
        target="gpu/GPU-a",
        verdict="deny",
        who="me",
        why="smoke",
        until="2026-11-29T10:00:00Z",
    )
    assert isinstance(gang.value, Gang)
    assert (gang.id, gang.value.min, gang.value.members) == ("team/train", 2, ("u1", "u2"))
    assert isinstance(over.value, Override)
    assert (over.id, over.value.until_s) == ("gpu/GPU-a", 1_795_946_400.0)


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("Override", {"target": "pod/x"}, "target: write it like gpu/<uuid> or node/<name>"),
        ("Override", {"target": "node/x", "verdict": "maybe"}, "verdict: 'maybe' is unknown"),
        ("Gang", {"key": "a/b", "convention": "lws", "members": ["u", "u"]}, "members[1]: 'u'"),
        ("Gang", {"key": "alone", "convention": "lws"}, "key: write it like <namespace>/<name>"),
        ("Breaker", {"pool": "a", "state": "shut"}, "state: 'shut' is unknown, allowed: closed"),
        ("Allocation", {"count": 1, "gpus": ["a", "a"]}, "gpus: names a GPU twice"),
        ("Allocation", {"count": 1, "gpus": ["a", "b"]}, "gpus: names 2 GPUs, count is 1"),
        ("Allocation", {}, "count: missing"),
    ],
)
def test_other_kinds_are_checked(kind: str, fields: dict[str, Any], problem: str) -> None:
    """Each kind refuses what cannot be meant."""
    whole = {
        "Override": {"verdict": "deny", "who": "me", "why": "smoke"},
        "Allocation": {"node": "n", "pod": "p", "uid": "u", "namespace": "s", "resource": "r"},
    }.get(kind, {})
    with pytest.raises(DocumentError) as caught:
        other(kind, **{**whole, **fields})
    assert problem in str(caught.value)


@pytest.mark.parametrize("named", [None, [], ["GPU-a"]])
def test_an_allocation_may_name_fewer_gpus_than_it_counts(named: list[str] | None) -> None:
    """Which ones the rest are is not known: the count stays, and no name is made up."""
    value = allocation("gpu-17", count=3, gpus=named).value
    assert isinstance(value, Allocation)
    assert (value.count, value.gpus) == (3, None if named is None else frozenset(named))


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"junk", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[]", "expected a mapping, got a list"),
        (b'{"epoch":1,"seq":"x",', "seq: expected a whole number or nothing, got text"),
        (b"{}", "missing"),
        (json.dumps(body("gpu-18")).encode(), "describes gpu-18, not gpu-17"),
        (json.dumps(body(apiVersion="surefoot.dev/v2")).encode(), "is newer than this Surefoot"),
        (json.dumps(body(apiVersion="surefoot.dev/v2", gpus=7)).encode(), "is newer than this"),
        (json.dumps({**body(), "kind": "Gang"}).encode(), "kind: expected Node, got Gang"),
    ],
)
def test_stored_junk_is_told_apart(raw: bytes, problem: str) -> None:
    """The reader's decoder refuses with a sentence whatever may stand in the cache."""
    with pytest.raises(DocumentError) as caught:
        documents.decode(Kind.NODE, "gpu-17", raw)
    assert problem in str(caught.value)


@given(st.sampled_from([kind.value for kind in Kind]), st.data())
def test_a_document_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    """Whatever the values of its fields, a document is read or refused by name, nothing else."""
    fields = data.draw(
        st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "gpus",
                    "links",
                    "causes",
                    "fabric",
                    "epoch",
                    "seq",
                    "count",
                    "uid",
                    "key",
                    "members",
                    "target",
                    "state",
                    "until",
                    "pool",
                    "node",
                    "convention",
                ]
            ),
            JSON,
        )
    )
    try:
        document = documents.check({**body(), **fields, "kind": kind})
    except DocumentError:
        return
    assert documents.decode(document.kind, document.id, document.encoded) is not None


@given(st.binary(max_size=64) | st.text(max_size=64).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """No input at all makes the parser fail in another way."""
    with suppress(DocumentError):
        assert isinstance(documents.parse(content), list)


@given(JSON)
def test_what_is_kept_is_what_was_given(extra: Any) -> None:
    """The store keeps unknown fields as they were, whatever they hold."""
    assert documents.check(body(extra=extra)).encoded == msgspec.json.encode(body(extra=extra))


WHOLE: dict[str, dict[str, Any]] = {
    "Node": body("gpu-17"),
    "Allocation": {
        "uid": "u",
        "resource": "r",
        "node": "n",
        "pod": "p",
        "namespace": "s",
        "count": 1,
    },
    "Gang": {"key": "team/train", "convention": "lws", "min": 2},
    "Override": {"target": "gpu/GPU-a", "verdict": "deny", "who": "me", "why": "smoke"},
    "Breaker": {"pool": "H100", "state": "open"},
    "Rejection": {"node": "n", "owner": "o", "at": "2026-11-29T10:00:00Z", "reason": "r"},
    "ClusterNode": {"metadata": {"name": "gpu-17"}, "unschedulable": True},
    "Plan": {
        "gang": "team/train~lws",
        "convention": "lws",
        "hold": "require",
        "state": "waiting",
        "since": "2026-11-29T10:00:00Z",
    },
}
NAMES: dict[str, dict[str, Any]] = {
    "Node": {"metadata": {"name": "gpu-17"}},
    "Allocation": {"uid": "u", "resource": "r"},
    "Gang": {"key": "team/train"},
    "Override": {"target": "gpu/GPU-a"},
    "Breaker": {"pool": "H100"},
    "Rejection": {"node": "n", "owner": "o", "at": "2026-11-29T10:00:00Z"},
    "ClusterNode": {"metadata": {"name": "gpu-17"}},
    "Plan": {"gang": "team/train~lws"},
}


@pytest.mark.parametrize("kind", Kind)
def test_a_document_is_identified_by_what_tells_it_apart(kind: Kind) -> None:
    """The whole document, and the least that names it, stand under the same key."""
    header = {"apiVersion": "surefoot.dev/v1", "kind": kind.value}
    whole = {**WHOLE[kind], **header}
    least = documents.identify({**header, **NAMES[kind]})
    assert least == documents.identify(whole)
    assert (least.kind, least.id) == (kind, documents.check(whole).id)
    for field in NAMES[kind]:
        with pytest.raises(DocumentError, match=rf"{field}.*: missing"):
            documents.identify({k: v for k, v in {**header, **NAMES[kind]}.items() if k != field})


def test_a_broken_document_can_still_be_named() -> None:
    """So that it can be removed, whatever else it says."""
    assert documents.identify(body("gpu-17", gpus="none", links=3)).id == "gpu-17"
