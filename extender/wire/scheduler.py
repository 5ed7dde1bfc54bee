"""kube-scheduler's extender protocol: request bodies to values, answers to JSON.

The types are those of k8s.io/kube-scheduler extender/v1. Go's structs carry no JSON tags there and
Go matches keys in any case, so a body with other spellings is read too: it is respelled only when
the canonical spelling does not do, and real kube-schedulers never pay for that.

A node-cache-capable caller sends and gets names. Any other sends whole Nodes and gets whole Nodes
back; these are kept as the bytes that came, and only their names are decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from extender.wire.errors import WireError
from extender.wire.pods import Pod
from scoring.model import NodeName, PodUid

MAX_NODES: Final = 100_000
"""Nodes that one request may name, 20 times the largest cluster that Kubernetes supports."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesRequest:
    """The body of /filter, /prioritize and /explain (ExtenderArgs): one pod and candidate nodes."""

    pod: Pod
    names: tuple[NodeName, ...]
    """In the order in which they came, each once."""
    offered: frozenset[NodeName]
    """The same as a set."""
    nodes: Mapping[NodeName, Raw] | None = None
    """The whole Nodes as they came, where the caller has no node cache; else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    """The body of /explain: ExtenderArgs in which the nodes may be left out."""

    pod: Pod
    names: tuple[NodeName, ...] | None
    """None: all that the cache knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """Whom kube-scheduler would evict from one node."""

    uids: tuple[PodUid, ...]
    pdb_violations: int
    """Disruption budgets that this would break; handed back as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionRequest:
    """The body of /preempt (ExtenderPreemptionArgs): one pod and whom it would evict, by node."""

    pod: Pod
    victims: Mapping[NodeName, Victims]


# What comes in.


class _Wire(Struct, frozen=True, gc=False, rename="pascal"):
    """A JSON object with the spelling of Go's field names."""


class _NodeList(Struct, frozen=True, gc=False):
    items: tuple[Raw, ...] | None = None


class _NodeMetadata(Struct, frozen=True, gc=False):
    name: str


class _NamedNode(Struct, frozen=True, gc=False):
    metadata: _NodeMetadata


class _NodesArgs(_Wire, frozen=True):
    pod: Pod | None = None
    nodes: _NodeList | None = None
    node_names: Raw = Raw()
    """Apart, so that names are counted before they are made into objects."""


class _Identity(Struct, frozen=True, gc=False):
    uid: str


class _VictimPod(Struct, frozen=True, gc=False):
    metadata: _Identity


class _VictimUid(_Wire, frozen=True):
    uid: str = msgspec.field(name="UID")


_Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Victims(_Wire, frozen=True):
    pods: tuple[_VictimPod, ...] | None
    violations: _Int64 | None = msgspec.field(name="NumPDBViolations", default=None)


class _MetaVictims(_Wire, frozen=True):
    pods: tuple[_VictimUid, ...] | None
    violations: _Int64 | None = msgspec.field(name="NumPDBViolations", default=None)


class _PreemptionArgs(_Wire, frozen=True):
    pod: Pod | None = None
    node_name_to_victims: dict[str, _Victims] | None = None
    node_name_to_meta_victims: dict[str, _MetaVictims] | None = None


_NODES_ARGS: Final = msgspec.json.Decoder(_NodesArgs)
_NAMES: Final[msgspec.json.Decoder[tuple[NodeName, ...]]] = msgspec.json.Decoder(
    tuple[NodeName, ...]
)
_NAMED_NODE: Final = msgspec.json.Decoder(_NamedNode)
_PREEMPTION_ARGS: Final = msgspec.json.Decoder(_PreemptionArgs)

_ANY: Final = ""
"""Stands for every key of an object whose keys are data."""
_NODES_KEYS: Final[Mapping[str, Any]] = {"Pod": None, "Nodes": None, "NodeNames": None}
_PREEMPTION_KEYS: Final[Mapping[str, Any]] = {
    "Pod": None,
    "NodeNameToVictims": {_ANY: {"Pods": None, "NumPDBViolations": None}},
    "NodeNameToMetaVictims": {_ANY: {"Pods": [{"UID": None}], "NumPDBViolations": None}},
}


def decode_nodes(body: bytes) -> NodesRequest:
    """ExtenderArgs, or `WireError`."""
    args = _decode_any_case(
        _NODES_ARGS,
        body,
        _NODES_KEYS,
        lambda args: args.pod is not None and _names_nodes(args),
    )
    if args.pod is None:
        raise WireError("the pod is missing", "Pod")
    if _is_set(args.node_names):
        names = _decode_names(bytes(args.node_names))
        return NodesRequest(pod=args.pod, names=names, offered=_distinct(names, "NodeNames"))
    if args.nodes is None:
        raise WireError("neither NodeNames nor Nodes is there, one of them is expected")
    items = args.nodes.items or ()
    _bounded(len(items), "Nodes.items")
    names = tuple(
        NodeName(_decode(_NAMED_NODE, item, f"Nodes.items[{index}]").metadata.name)
        for index, item in enumerate(items)
    )
    offered = _distinct(names, "Nodes.items")
    return NodesRequest(
        pod=args.pod, names=names, offered=offered, nodes=dict(zip(names, items, strict=True))
    )


def decode_explain(body: bytes) -> ExplainRequest:
    """ExtenderArgs with or without nodes, or `WireError`."""
    args = _decode_any_case(
        _NODES_ARGS, body, _NODES_KEYS, lambda args: args.pod is not None and _names_nodes(args)
    )
    if args.pod is None:
        raise WireError("the pod is missing", "Pod")
    if not _names_nodes(args):
        return ExplainRequest(pod=args.pod, names=None)
    return ExplainRequest(pod=args.pod, names=decode_nodes(body).names)


def _names_nodes(args: _NodesArgs) -> bool:
    return args.nodes is not None or _is_set(args.node_names)


def decode_preemption(body: bytes) -> PreemptionRequest:
    """ExtenderPreemptionArgs, or `WireError`."""
    args = _decode_any_case(
        _PREEMPTION_ARGS,
        body,
        _PREEMPTION_KEYS,
        lambda args: (
            args.pod is not None
            and (
                args.node_name_to_victims is not None or args.node_name_to_meta_victims is not None
            )
        ),
    )
    if args.pod is None:
        raise WireError("the pod is missing", "Pod")
    if args.node_name_to_meta_victims is not None:
        victims = {
            NodeName(name): _victims(
                (pod.uid for pod in candidate.pods or ()), candidate.violations
            )
            for name, candidate in args.node_name_to_meta_victims.items()
        }
    elif args.node_name_to_victims is not None:
        victims = {
            NodeName(name): _victims(
                (pod.metadata.uid for pod in candidate.pods or ()), candidate.violations
            )
            for name, candidate in args.node_name_to_victims.items()
        }
    else:
        raise WireError(
            "neither NodeNameToMetaVictims nor NodeNameToVictims is there, one of them is expected"
        )
    _bounded(len(victims), "NodeNameToVictims")
    return PreemptionRequest(pod=args.pod, victims=victims)


def _victims(uids: Iterable[str], violations: int | None) -> Victims:
    return Victims(uids=tuple(map(PodUid, uids)), pdb_violations=violations or 0)


def _is_set(raw: Raw) -> bool:
    return bytes(memoryview(raw)[:4]) not in (b"", b"null")


def _decode_names(raw: bytes) -> tuple[NodeName, ...]:
    _bounded(raw.count(b",") + 1, "NodeNames")
    return _decode(_NAMES, raw, "NodeNames")


def _bounded(count: int, path: str) -> None:
    if count > MAX_NODES:
        raise WireError(f"more than {MAX_NODES} nodes", path)


def _distinct(names: tuple[NodeName, ...], path: str) -> frozenset[NodeName]:
    distinct = frozenset(names)
    if len(distinct) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise WireError(f"{twice[:253]!r} is there twice", path)
    return distinct


def _decode(decoder: msgspec.json.Decoder[T], data: bytes | Raw, path: str = "") -> T:
    try:
        return decoder.decode(data)
    except RecursionError as error:
        raise WireError("nested too deeply", path) from error
    except msgspec.ValidationError as error:
        problem, _, inner = str(error).partition(" - at `$")
        where = f"{path}{inner.rstrip('`')}".lstrip(".")
        problem = problem.replace(" | null", "").replace("`", "")
        raise WireError(f"{problem[:1].lower()}{problem[1:]}", where or "the body") from error
    except msgspec.DecodeError as error:
        raise WireError(f"no valid JSON: {error}", path or "the body") from error


def _decode_any_case(
    decoder: msgspec.json.Decoder[T],
    body: bytes,
    keys: Mapping[str, Any],
    is_complete: Callable[[T], bool],
) -> T:
    try:
        args = decoder.decode(body)
        if is_complete(args):
            return args
    except (msgspec.DecodeError, RecursionError):
        pass  # read again below, where the error is told
    return _decode(decoder, _respelled(body, keys))


_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw] | None)
_ARRAY: Final = msgspec.json.Decoder(list[Raw] | None)


def _respelled(body: bytes, keys: Mapping[str, Any]) -> bytes:
    """`body` with the keys that `keys` names as `keys` spells them, or `WireError`."""
    try:
        return msgspec.json.encode(_respell(body, keys))
    except (msgspec.DecodeError, RecursionError):
        return body  # the typed decoder says it better


def _respell(data: bytes | Raw, keys: Any) -> Any:
    if keys is None:
        return data
    if isinstance(keys, list):
        items = _ARRAY.decode(data)
        return items and [_respell(item, keys[0]) for item in items]
    fields = _OBJECT.decode(data)
    if fields is None:
        return None
    spelling = {key.lower(): key for key in keys}
    respelled = {}
    for key, value in fields.items():
        name = key if _ANY in keys else spelling.get(key.lower(), key)
        respelled[name] = _respell(value, keys.get(_ANY if _ANY in keys else name))
    return respelled


# What goes out.


class _Nodes(Struct, gc=False):
    items: list[Raw]
    kind: str = "NodeList"
    api_version: str = msgspec.field(name="apiVersion", default="v1")


class _FilterResult(_Wire, frozen=True):
    failed_nodes: Mapping[NodeName, str]
    failed_and_unresolvable_nodes: Mapping[NodeName, str]
    node_names: tuple[NodeName, ...] | UnsetType = UNSET
    nodes: _Nodes | UnsetType = UNSET


class _HostPriority(_Wire, frozen=True):
    host: NodeName
    score: int


class _PreemptionResult(_Wire, frozen=True):
    node_name_to_meta_victims: dict[NodeName, _MetaVictims]


_ENCODER: Final = msgspec.json.Encoder()


def encode_filter(
    request: NodesRequest,
    *,
    passed: Iterable[NodeName],
    failed: Mapping[NodeName, str],
    unresolvable: Mapping[NodeName, str],
) -> bytes:
    """ExtenderFilterResult: `passed` in the form in which the nodes came, and a reason for others.

    `failed` holds what freeing GPUs would cure, `unresolvable` what eviction cannot help. All names
    must be among those of `request`: kube-scheduler takes any other as an error.
    """
    nodes = request.nodes
    return _ENCODER.encode(
        _FilterResult(
            failed_nodes=failed,
            failed_and_unresolvable_nodes=unresolvable,
            node_names=tuple(passed) if nodes is None else UNSET,
            nodes=UNSET if nodes is None else _Nodes(items=[nodes[name] for name in passed]),
        )
    )


def encode_priorities(scores: Iterable[tuple[NodeName, int]]) -> bytes:
    """HostPriorityList: a score of 0 to 10 for each node."""
    return _ENCODER.encode([_HostPriority(host=host, score=score) for host, score in scores])


def encode_preemption(kept: Mapping[NodeName, Victims]) -> bytes:
    """ExtenderPreemptionResult: the candidates that are worth it, with the victims as they came."""
    return _ENCODER.encode(
        _PreemptionResult(
            node_name_to_meta_victims={
                name: _MetaVictims(
                    pods=tuple(_VictimUid(uid=uid) for uid in victims.uids),
                    violations=victims.pdb_violations,
                )
                for name, victims in kept.items()
            }
        )
    )
