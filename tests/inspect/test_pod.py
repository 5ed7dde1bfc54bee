"""`inspect pod` reads one manifest from anywhere, and is never harmed by it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.inspect.pod import MAX_BYTES, ManifestError, read_pod, render, report

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: rank-3
  namespace: lab
  labels: {surefoot.dev/gang: sweep, surefoot.dev/gang-size: "4"}
spec:
  containers:
  - name: rank
    resources:
      limits: {nvidia.com/gpu: 8}
"""
GROUP = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: sweep}\n"
EXPECTED = {
    "gpus": 8,
    "resource": "nvidia.com/gpu",
    "gang": {"convention": "surefoot", "key": "lab/sweep", "min": 4},
    "class": "gang",
    "notes": [],
    "problems": [],
}
AS_JSON = json.dumps(
    {
        "metadata": {
            "namespace": "lab",
            "labels": {"surefoot.dev/gang": "sweep", "surefoot.dev/gang-size": "4"},
        },
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]},
    }
)


@pytest.mark.parametrize(
    "data",
    [
        MANIFEST.encode(),
        MANIFEST.encode("utf-16"),
        b"\xef\xbb\xbf" + MANIFEST.encode(),
        AS_JSON.replace("{", '{"kind": "Pod", ', 1).encode(),
        f"---\n{MANIFEST}...\n".encode(),
        f"{GROUP}---\n{MANIFEST}---\n".encode(),
        f"kind: PodList\nitems: [{AS_JSON}]\n".encode(),
    ],
    ids=[
        "yaml", "utf-16", "byte order mark", "json", "document marks", "beside its group", "list",
    ],
)  # fmt: skip
def test_one_pod_is_read_from_any_form(data: bytes) -> None:
    """YAML and JSON, alone, in a list or beside other objects, say the same."""
    assert report(data) == EXPECTED


def test_aliases_are_followed() -> None:
    """Anchors and aliases of YAML are part of a manifest."""
    data = b"kind: Pod\nspec: {containers: [{resources: &r {limits: {amd.com/gpu: 2}}}, {resources: *r}]}"
    found = report(data)
    assert found is not None
    assert (found["gpus"], found["resource"], found["gang"]) == (4, "amd.com/gpu", None)


def test_dates_stay_text_as_in_kubernetes() -> None:
    """Kubernetes reads an unquoted date as a string, so a label may hold one."""
    found = report(b"kind: Pod\nmetadata: {labels: {since: 2026-01-31, odd: 2026-13-41}}")
    assert found is not None
    assert (found["gpus"], found["resource"]) == (0, None)


@pytest.mark.parametrize("quantity", ["-2", "1.5", "null", "many", ".inf", "0x" + "f" * 5000])
def test_an_unreadable_ask_is_told_and_not_guessed(quantity: str) -> None:
    """The gang is still told; the count is null, and the problem names the path."""
    found = report(MANIFEST.replace("gpu: 8", f"gpu: {quantity}").encode())
    assert found is not None
    assert (found["gpus"], found["resource"], found["gang"]) == (None, None, EXPECTED["gang"])
    assert found["problems"][0].startswith("spec.containers[0].resources.limits[nvidia.com/gpu]: ")


def bomb() -> bytes:
    """Nine aliases to nine aliases to ...: a few hundred bytes that stand for billions of values."""
    lines = ["l0: &l0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"l{i}: &l{i} [{','.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    return "\n".join([*lines, "kind: Pod"]).encode()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "one Pod is expected, found nothing"),
        (b"# only a comment\n", "one Pod is expected, found nothing"),
        (b"no resources found", "one Pod is expected, found something without a kind"),
        (
            b"kind: Deployment\nspec: {}",
            "one Pod is expected, found Deployment; take a Pod that it made",
        ),
        (b"kind: [Pod]", "one Pod is expected, found something without a kind"),
        (b"kind: List\nitems: [{kind: Node}, {kind: Node}, {kind: Event}]", "found Node, Event"),
        (b"spec: {template: {spec: {containers: []}}}", "found something without a kind"),
        (f"{MANIFEST}---\n{MANIFEST}".encode(), "one Pod is expected, found 2"),
        (b"kind: Pod\nmetadata: {name: p", "neither JSON nor YAML"),
        (b"\x00\x01\x02", "neither JSON nor YAML"),
        (
            b"kind: Pod\nmetadata: {name: !!python/object/apply:os.getcwd []}",
            "neither JSON nor YAML",
        ),
        (b'kind: !!int ""', "neither JSON nor YAML"),
        (b'kind: !!timestamp "x"', "neither JSON nor YAML"),
        (b"? [kind]\n: Pod", "neither JSON nor YAML"),
        (b"kind: Pod\nmetadata: p", "the Pod is malformed: .*metadata"),
        (b"kind: Pod\nspec: {containers: main}", "the Pod is malformed: .*containers"),
        (b"kind: Pod\nmetadata: {labels: {size: 4}}", "the Pod is malformed: .*labels"),
        (bomb(), "values with aliases written out"),
        (b"kind: Pod\nspec: &s {containers: [*s]}", "values with aliases written out"),
        (b"[" * 50_000, "neither JSON nor YAML|nested too deeply"),
        (b"#" * (MAX_BYTES + 1), "more than 2 MiB"),
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else "",
)
def test_what_holds_no_readable_pod_is_refused_with_a_sentence(data: bytes, sentence: str) -> None:
    """Nothing usable is None for the report, and a one-line error for who asks why."""
    assert report(data) is None
    with pytest.raises(ManifestError, match=sentence) as raised:
        read_pod(data)
    assert "\n" not in str(raised.value)


@given(
    st.integers(0, len(MANIFEST)), st.integers(0, 5), st.text("{}[]&*!|>:-?\n\t'\"x9", max_size=5)
)
def test_any_damage_is_a_report_or_none(at: int, cut: int, junk: str) -> None:
    """A damaged manifest never raises."""
    found = report((MANIFEST[:at] + junk + MANIFEST[at + cut :]).encode())
    assert found is None or found["gpus"] is None or found["gpus"] >= 0


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({}, "gpus   8 nvidia.com/gpu"),
        ({}, "gang   lab/sweep (surefoot), minimum 4"),
        ({"gang": {"convention": "ray", "key": "lab/rc", "min": None}}, "minimum unknown"),
        ({"gang": None, "class": "single"}, "gang   none"),
        ({"gpus": None, "resource": None, "problems": ["so it is"]}, "wrong  so it is"),
        ({"gpus": 0, "resource": None, "notes": ["mind this"]}, "note   mind this"),
    ],
)
def test_the_text_tells_every_fact(change: dict[str, Any], line: str) -> None:
    """`render` writes one fact a line."""
    assert line in render({**EXPECTED, **change})
