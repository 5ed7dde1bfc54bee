"""`surefoot inspect pod`: what Surefoot reads from one Pod manifest, in YAML or JSON.

The manifest comes from anywhere: no tag runs code, aliases are not followed into the millions, and
whatever is no Pod is refused with a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import yaml

from extender.wire.asks import AskError, ask_of, facts_of
from extender.wire.pods import Pod
from scoring import gang
from scoring.model import GangRef, ResourceKind, WorkClass
from scoring.policy import DEFAULT, Policy

try:  # libyaml is ten times faster, so that no manifest within the limit takes long
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

MAX_BYTES: Final = 2 * 1024 * 1024
"""More than etcd takes for one object (1.5 MiB)."""
MAX_VALUES: Final = 200_000
"""Values of one document with its aliases written out."""

MAX_KINDS: Final = 4
"""Kinds that are named where there is no Pod among them."""
_TEMPLATED: Final = frozenset(
    ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")
)
"""Kinds that make Pods of a template; others are known to their users."""


class ManifestError(ValueError):
    """Input that holds no readable Pod; the message is one sentence."""


_UNREADABLE: Final = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError)
"""What PyYAML raises: its constructors of tagged scalars (`!!int ""`) let any error through."""


class _Loader(SafeLoader):
    """YAML as Kubernetes reads it: what looks like a date stays text."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # the loader's own way to be configured
        first: [rule for rule in rules if rule[0] != "tag:yaml.org,2002:timestamp"]
        for first, rules in SafeLoader.yaml_implicit_resolvers.items()
    }


def read_pod(data: bytes) -> Pod:
    """The one Pod in `data`, or `ManifestError`. Documents of other kinds beside it are skipped."""
    found = [document for document in _objects(data) if document is not None]
    pods = [document for document in found if _is_pod(document)]
    if len(pods) != 1:
        raise ManifestError(f"one Pod is expected, found {_told(len(pods), found)}")
    try:
        return msgspec.convert(pods[0], Pod)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ManifestError(f"the Pod is malformed: {str(error).replace('`', '')}") from error


def report(data: bytes, policy: Policy = DEFAULT) -> dict[str, Any] | None:
    """What stands in the Pod: GPUs, resource, gang, class, notes. None where there is no Pod.

    Where the GPUs cannot be read `gpus` is null and `problems` says why.
    """
    try:
        pod = read_pod(data)
    except ManifestError:
        return None
    try:
        ask = ask_of(pod, policy)
    except AskError as error:
        member_of = gang.detect(facts_of(pod))
        work = WorkClass.GANG if member_of else WorkClass.SINGLE
        return _report(gpus=None, resource=None, of=member_of, work=work, problems=[str(error)])
    return _report(
        gpus=ask.need.count,
        resource=None if ask.need.kind is ResourceKind.NONE else ask.need.resource,
        of=ask.gang,
        work=ask.need.work,
        notes=list(ask.notes),
    )


def render(report: dict[str, Any]) -> str:
    """`report` for people, one fact a line."""
    gpus, of = report["gpus"], report["gang"]
    lines = [
        f"gpus   {'unknown' if gpus is None else gpus} {report['resource'] or ''}".rstrip(),
        f"class  {report['class']}",
        "gang   none" if of is None else f"gang   {of['key']} ({of['convention']}), {_least(of)}",
        *(f"note   {note}" for note in report["notes"]),
        *(f"wrong  {problem}" for problem in report["problems"]),
    ]
    return "\n".join(lines)


def _least(of: dict[str, Any]) -> str:
    return "minimum unknown" if of["min"] is None else f"minimum {of['min']}"


def _report(
    *,
    gpus: int | None,
    resource: str | None,
    of: GangRef | None,
    work: WorkClass,
    notes: list[str] | None = None,
    problems: list[str] | None = None,
) -> dict[str, Any]:
    return {
        "gpus": gpus,
        "resource": resource,
        "gang": of and {"convention": of.convention.value, "key": of.key, "min": of.min},
        "class": work.value,
        "notes": notes or [],
        "problems": problems or [],
    }


def _told(pods: int, found: Sequence[Any]) -> str:
    """What was found instead of one Pod."""
    if pods:
        return f"{pods}"
    kinds = dict.fromkeys(map(_kind, found))
    hint = "; take a Pod that it made" if kinds.keys() & _TEMPLATED else ""
    return f"{', '.join(list(kinds)[:MAX_KINDS])}{hint}" if kinds else "nothing"


def _kind(document: Any) -> str:
    """The kind that a document names, as far as it does."""
    kind = document.get("kind") if isinstance(document, dict) else None
    return kind[:64] if isinstance(kind, str) and kind.isalnum() else "something without a kind"


def _is_pod(document: Any) -> bool:
    """Whether `document` is a Pod: by its kind, or without one (as in a list) by its containers."""
    if not isinstance(document, dict):
        return False
    if "kind" in document:
        return bool(document["kind"] == "Pod")
    spec = document.get("spec")
    return isinstance(spec, dict) and "containers" in spec


def _objects(data: bytes) -> Iterator[Any]:
    """Every document of `data`, and every item of those that are lists; or `ManifestError`."""
    if len(data) > MAX_BYTES:
        raise ManifestError(f"more than {MAX_BYTES // 1024**2} MiB")
    for document in _documents(data):
        items = document.get("items") if isinstance(document, dict) else None
        yield from items if isinstance(items, list) else [document]


def _documents(data: bytes) -> Iterator[Any]:
    try:
        yield msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        yield from _yaml_documents(data)


def _yaml_documents(data: bytes) -> Iterator[Any]:
    try:
        loader = _Loader(data)
        while loader.check_node():
            yield loader.construct_document(_bounded(loader.get_node()))
    except RecursionError as error:
        raise ManifestError("nested too deeply") from error
    except _UNREADABLE as error:
        raise ManifestError(f"neither JSON nor YAML: {' '.join(str(error).split())}") from error


def _bounded(document: yaml.Node | None) -> yaml.Node | None:
    if document and _values(document, {}) > MAX_VALUES:
        raise yaml.YAMLError(f"more than {MAX_VALUES} values with aliases written out")
    return document


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """Values in `node` with each alias written out; past `MAX_VALUES` where it contains itself."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MAX_VALUES + 1
    children: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        children = node.value
    elif isinstance(node, yaml.MappingNode):
        children = [child for pair in node.value for child in pair]
    known[id(node)] = min(1 + sum(_values(child, known) for child in children), MAX_VALUES + 1)
    return known[id(node)]
