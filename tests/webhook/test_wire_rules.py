"""The protocol's rules as a caller of the webhook meets them: forms, cases, and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking import Json, by_names, by_nodes, pod, preemption
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import dgx_h100
from replicas import Replica, cause, fleet_of

from extender.webhook import app
from extender.wire.scheduler import MAX_NODES
from scoring.model import Health

GANG_8 = pod(8, gang="sweep")
VERBS = ("filter", "prioritize", "preempt", "explain")
SICK = dgx_h100(name="sick", causes={0: cause(Health.FAILED)})


@pytest.fixture(scope="module")
def replica() -> Replica:
    """One healthy node, one sick one."""
    return Replica(fleet_of(dgx_h100(name="well"), SICK))


def lowered(body: Json) -> Json:
    """The outermost keys in lower case."""
    return {key.lower(): value for key, value in body.items()}


class TestForms:
    """Names or whole Nodes, keys in any case."""

    @pytest.mark.parametrize("form", [lambda body: body, lowered], ids=["as-go", "lower-case"])
    def test_names_come_back_as_names(self, replica: Replica, form: Any) -> None:
        """A node-cache-capable caller gets NodeNames and no Nodes."""
        answer = replica.post("filter", form(by_names(GANG_8, ["well", "sick"]))).json
        assert answer == {
            "NodeNames": ["well"],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {},
        }

    @pytest.mark.parametrize("form", [lambda body: body, lowered], ids=["as-go", "lower-case"])
    def test_whole_nodes_come_back_whole(self, replica: Replica, form: Any) -> None:
        """Any other caller gets the Nodes that passed as they came."""
        body = by_nodes(GANG_8, ["sick", "well"])
        answer = replica.post("filter", form(body)).json
        assert answer["Nodes"]["items"] == [body["Nodes"]["items"][1]]
        assert "NodeNames" not in answer

    def test_when_nothing_passes_the_form_stays(self, replica: Replica) -> None:
        """An empty list of the caller's own form, never null."""
        by_name = replica.post("filter", by_names(GANG_8, ["sick"])).json
        by_node = replica.post("filter", by_nodes(GANG_8, ["sick"])).json
        assert by_name["NodeNames"] == []
        assert by_node["Nodes"]["items"] == []
        assert set(by_node["FailedAndUnresolvableNodes"]) == {"sick"}

    def test_no_candidates_are_no_error(self, replica: Replica) -> None:
        """An empty list is answered with an empty one by every verb."""
        assert replica.filter(GANG_8, [])["NodeNames"] == []
        assert replica.prioritize(GANG_8, []) == []
        assert replica.preempt(GANG_8, {}) == {}

    def test_preemption_with_whole_pods_is_answered_by_uid(self, replica: Replica) -> None:
        """kube-scheduler without a node cache sends victims as pods; uids come back."""
        victims = {"Pods": [{"metadata": {"uid": "v", "name": "v"}}], "NumPDBViolations": 2}
        body = {"Pod": GANG_8, "NodeNameToVictims": {"well": victims, "sick": victims}}
        assert replica.post("preempt", body).json == {
            "NodeNameToMetaVictims": {"well": {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}}
        }

    def test_what_is_said_in_json_says_so(self, replica: Replica) -> None:
        """Answers and refusals alike."""
        for body in (by_names(GANG_8, ["well"]), b"junk"):
            answer = replica.post("filter", body)
            assert answer.headers["Content-Type"] == "application/json"


def deep(levels: int) -> bytes:
    """A pod with a label so deeply nested."""
    return b'{"Pod":{"x":' + b"[" * levels + b"]" * levels + b'},"NodeNames":[]}'


MALFORMED: dict[str, tuple[bytes | Json, str]] = {
    "empty": (b"", "no valid JSON"),
    "not-json": (b"GET / HTTP/1.1", "no valid JSON"),
    "truncated": (json.dumps(by_names(GANG_8, ["well"])).encode()[:-20], "no valid JSON"),
    "two": (b"{}{}", "no valid JSON"),
    "array": (b"[]", "expected object, got array"),
    "null": (b"null", "expected object, got null"),
    "no-pod": ({"NodeNames": ["well"]}, "the pod is missing"),
    "null-pod": ({"Pod": None, "NodeNames": ["well"]}, "the pod is missing"),
    "pod-is-text": ({"Pod": "p", "NodeNames": ["well"]}, "Pod: expected object"),
    "spec-is-list": ({"Pod": {"spec": []}, "NodeNames": ["well"]}, "Pod.spec: expected object"),
    "names-are-text": ({"Pod": GANG_8, "NodeNames": "well"}, "NodeNames: expected array"),
    "name-is-number": (by_names(GANG_8, [1]), "NodeNames[0]: expected str"),  # type: ignore[list-item]
    "twice": (by_names(GANG_8, ["a", "b", "a"]), "'a' is there twice"),
    "too-many": (by_names(GANG_8, map(str, range(MAX_NODES + 1))), f"more than {MAX_NODES}"),
    "deep": (deep(100_000), "nested too deeply"),
    "utf-8": (b'{"Pod":{"metadata":{"name":"\xff"}},"NodeNames":[]}', "Invalid UTF-8"),
    "surrogate": (b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":[]}', "no valid JSON"),
    "negative": (by_names(pod("-1"), ["well"]), "is negative"),
    "absurd": (by_names(pod("9" * 18), ["well"]), "is more than"),
    "fraction": (by_names(pod("1500m"), ["well"]), "is not a whole number"),
    "no-quantity": (by_names(pod("eight"), ["well"]), "is no quantity"),
}


class TestMalformed:
    """A 400 with one clear sentence, never a 500."""

    @pytest.mark.parametrize("verb", ["filter", "prioritize"])
    @pytest.mark.parametrize("case", MALFORMED)
    def test_a_malformed_request_is_a_400_with_one_sentence(
        self, replica: Replica, verb: str, case: str
    ) -> None:
        """It says where and what, in both spellings of the key that callers look for."""
        body, sentence = MALFORMED[case]
        answer = replica.post(verb, body)
        assert answer.status == 400
        assert sentence in answer.json["Error"]
        assert answer.json["error"] == answer.json["Error"]
        assert "\n" not in answer.json["Error"]
        assert len(answer.json["Error"]) < 500

    @pytest.mark.parametrize("verb", ["filter", "prioritize"])
    def test_neither_names_nor_nodes_is_a_400(self, replica: Replica, verb: str) -> None:
        """An extender that is not told where cannot say where."""
        answer = replica.post(verb, {"Pod": GANG_8, "Nodes": None, "NodeNames": None})
        assert (answer.status, "neither NodeNames nor Nodes" in answer.text) == (400, True)

    @pytest.mark.parametrize(
        ("body", "sentence"),
        [
            (b"", "no valid JSON"),
            ({"Pod": GANG_8}, "neither NodeNameToMetaVictims nor NodeNameToVictims"),
            ({"NodeNameToMetaVictims": {}}, "the pod is missing"),
            ({"Pod": GANG_8, "NodeNameToMetaVictims": {"a": 1}}, "expected object, got int"),
            (preemption(pod("-1"), {}), "is negative"),
        ],
        ids=["empty", "no-candidates", "no-pod", "candidate-is-number", "negative"],
    )
    def test_a_malformed_preemption_is_a_400(
        self, replica: Replica, body: bytes | Json, sentence: str
    ) -> None:
        """As for the other verbs."""
        answer = replica.post("preempt", body)
        assert (answer.status, sentence in answer.text) == (400, True)

    def test_as_many_names_as_allowed_are_answered(self) -> None:
        """The limit itself is no error."""
        names = [str(i) for i in range(MAX_NODES)]
        assert len(Replica(fleet_of()).filter(pod(1), names)["NodeNames"]) == 32

    def test_a_body_over_the_limit_is_a_413(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is refused by its length, with the limit in the sentence."""
        monkeypatch.setattr(app, "LARGEST_BODY", 1 << 20)
        one = Replica(fleet_of())
        answer = one.post("filter", b" " * ((1 << 20) + 1))
        assert (answer.status, answer.json["Error"]) == (413, "the body is larger than 1 MiB")
        assert one.post("filter", b" " * (1 << 20)).status == 400
        count = 'surefoot_request_duration_seconds_count{code="413",verb="filter"}'
        assert one.values()[count] == 1

    def test_other_paths_and_methods_are_told_what_there_is(self, replica: Replica) -> None:
        """A wrong urlPrefix or verb is the commonest slip in a scheduler's configuration."""
        missing = replica.post("v1/filter", {})
        assert missing.status == 404
        assert "/filter /prioritize /preempt" in missing.json["Error"]
        assert "/healthz" in missing.json["Error"]
        wrong = replica.get("/filter")
        assert (wrong.status, wrong.json["Error"]) == (405, "this path takes another method")
        assert "POST" in wrong.headers["Allow"]
        assert replica.ask("POST", "/livez").status == 405
        assert replica.ask("HEAD", "/livez").status == 200
        assert replica.ask("GET", "/static/x").status == 404


WELL_FORMED = [
    json.dumps(body).encode()
    for body in (
        by_names(GANG_8, ["well", "sick"]),
        by_nodes(pod(1, resource="nvidia.com/mig-1g.5gb"), ["well"]),
        preemption(pod(2, annotations={"surefoot.dev/deny": "DEGRADED"}), {"well": ["v"]}),
    )
]
PIECES = st.one_of(
    st.binary(max_size=4),
    st.sampled_from(
        [b"null", b"{}", b"[]", b'""', b"-1", b"1e400", b"1e-400", b'"\\ud800"', b"true", b"\x00"]
    ),
)


@settings(max_examples=150, deadline=None)
@given(body=st.sampled_from(WELL_FORMED), verb=st.sampled_from(VERBS), data=st.data())
def test_no_body_is_a_500(replica: Replica, body: bytes, verb: str, data: st.DataObject) -> None:
    """Whatever is cut out of a request or put into it: it is answered or refused."""
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body = body[:at] + data.draw(PIECES) + body[at + data.draw(st.integers(0, 12)) :]
    answer = replica.post(verb, body)
    assert answer.status in (200, 400)
    assert answer.status == 200 or answer.json["Error"]


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "spec",
                    "status",
                    "labels",
                    "limits",
                    "containers",
                    "resources",
                    "name",
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(asker=VALUES, names=VALUES, verb=st.sampled_from(VERBS))
def test_no_shape_is_a_500(replica: Replica, asker: Any, names: Any, verb: str) -> None:
    """Any JSON in the place of the pod and of the nodes."""
    body = {"Pod": asker, "NodeNames": names, "NodeNameToMetaVictims": names}
    assert replica.post(verb, body).status in (200, 400)
