"""The documents of the cache: read from people's YAML and JSON, kept as JSON, decoded for judging.

A document keeps the shape that it was given, unknown fields included. Only what it must say is
checked, and what is wrong is named by its path: `nodes.yaml document 3 (Node gpu-17):
gpus[2].uuid: missing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

from extender.store import schema, text, values
from extender.store.errors import DocumentError, from_validation
from extender.store.schema import API_GROUP, API_VERSION, SHAPES, Kind
from extender.store.values import Value
from scoring.gangs.record import GangState
from scoring.gangs.rules import Hold
from scoring.model import BreakerState, Convention, OverrideVerdict

S = TypeVar("S")

MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one document: 128 GPUs with their links and some hundred causes each fit."""
_MAX_BYTES: Final[Mapping[Kind, int]] = {Kind.PLAN: 4 * MAX_BYTES}
"""... of kinds that need more: a plan of 100,000 seats fits."""
_NO_TIME: Final = "1970-01-01T00:00:00Z"
"""Stands for a time that is not known yet."""
_ORDER: Final = ("epoch", "seq")
_HEADER: Final = ("apiVersion", "kind", "metadata")
_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.NODE: (),
    Kind.ALLOCATION: ("uid", "resource"),
    Kind.GANG: ("key",),
    Kind.OVERRIDE: ("target",),
    Kind.BREAKER: ("pool",),
    Kind.REJECTION: ("node", "owner", "at"),
    Kind.CLUSTER_NODE: (),
    Kind.PLAN: ("gang",),
}
"""The fields that tell documents of a kind apart, beside `metadata`."""
_REST: Final[Mapping[Kind, Mapping[str, Any]]] = {
    Kind.NODE: {"gpus": []},
    Kind.ALLOCATION: {"node": "x", "pod": "x", "namespace": "x", "count": 0},
    Kind.GANG: {"convention": Convention.SUREFOOT.value},
    Kind.OVERRIDE: {"verdict": OverrideVerdict.DENY.value, "who": "x", "why": "x"},
    Kind.BREAKER: {"state": BreakerState.CLOSED.value},
    Kind.REJECTION: {"reason": "x"},
    Kind.CLUSTER_NODE: {},
    Kind.PLAN: {
        "convention": Convention.SUREFOOT.value,
        "hold": Hold.REQUIRE.value,
        "state": GangState.WAITING.value,
        "since": _NO_TIME,
    },
}
"""Stands for what a document need not say only to be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One checked document."""

    kind: Kind
    id: str
    """Its field in the cache: node name, `uid/resource`, gang key (of a Gang and of a Plan), target,
    pool, or node, owner and time of a rejection."""
    body: Mapping[str, Any]
    """As it was given."""
    encoded: bytes
    """As JSON. A node's lacks epoch and seq: the script that stores it puts them in front, because
    only there they are certain."""
    value: Value

    @property
    def epoch(self) -> int | None:
        """Of a Node document that names one."""
        return cast("int | None", self.body.get("epoch"))

    @property
    def seq(self) -> int | None:
        """Of a Node document that names one."""
        return cast("int | None", self.body.get("seq"))

    @property
    def dated(self) -> bool:
        """False: a Rejection that leaves its time to the cache. Its id and value are not final."""
        return self.kind is not Kind.REJECTION or self.body.get("at") is not None

    def at(self, unix_s: float) -> Document:
        """The same Rejection, of this time."""
        time = datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
        return check({**self.body, "at": time})


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells a document from all others: enough to remove it."""

    kind: Kind
    id: str


def parse(content: str | bytes, source: str = "-") -> list[Document]:
    """Every document of a YAML or JSON text, in its order; `source` names it in errors.

    Raises:
        DocumentError: the first thing that is wrong, with place and path.
    """
    return [check(body, place) for place, body in bodies(content, source)]


def bodies(content: str | bytes, source: str = "-") -> list[tuple[str, Any]]:
    """Each document of a text as plain values, unchecked, after its place in the text.

    Raises:
        DocumentError: the text is neither YAML nor JSON, or a List has no items.
    """
    try:
        found = text.read(content.encode() if isinstance(content, str) else content)
    except (DocumentError, UnicodeEncodeError) as error:
        raise DocumentError(str(error), where=source) from error
    return [
        each
        for position, document in enumerate(found, start=1)
        if document is not None
        for each in _flat(document, f"{source} document {position}".strip())
    ]


def identify(body: Any, where: str = "") -> Identity:
    """What the document that `body` is, or only names, is told apart by.

    A Node may say its name alone, an Allocation `uid` and `resource`, and so on; a Rejection must
    say `at`.

    Raises:
        DocumentError: with place and path.
    """
    label = where
    try:
        label = f"{where} {_label(body)}".strip()
        header = _convert(body, schema.Header)
        kind = _kind(header.api_version, header.kind)
        said = {field: body[field] for field in (*_HEADER, *_KEYS[kind]) if field in body}
        value = values.of(_convert({**_REST[kind], **said}, SHAPES[kind]))
    except DocumentError as error:
        raise error.at(label) from error
    return Identity(kind=kind, id=values.identity(value))


def check(body: Any, where: str = "") -> Document:
    """The document that `body` is, as plain values; `where` names its place in errors.

    Raises:
        DocumentError: with place and path.
    """
    label = where
    try:
        text.check_size(body)
        label = f"{where} {_label(body)}".strip()
        header = _convert(body, schema.Header)
        kind = _kind(header.api_version, header.kind)
        value = values.of(_convert(_timed(body, kind), SHAPES[kind]))
        encoded = _encode(body, kind)
    except DocumentError as error:
        raise error.at(label) from error
    return Document(kind=kind, id=values.identity(value), body=body, encoded=encoded, value=value)


def decode(kind: Kind, key: str, raw: bytes) -> Value:
    """The value of a stored document of this kind that stands under `key`.

    Raises:
        DocumentError: it is broken, of a newer major version, or stands under the wrong key.
    """
    try:
        shape = _decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        header = _header(raw)
        if header is not None:
            _kind(header.api_version, header.kind)
        raise from_validation(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(f"is no JSON: {error}") from error
    if (shape.api_version, shape.kind) != (API_VERSION, kind):
        found = _kind(shape.api_version, shape.kind)
        raise DocumentError(f"expected {kind}, got {found}", path="kind")
    value = values.of(shape)
    if values.identity(value) != key:
        raise DocumentError(f"describes {values.identity(value)}, not {key}")
    return value


def _header(raw: bytes) -> schema.Header | None:
    try:
        return msgspec.json.decode(raw, type=schema.Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _kind(api_version: str, kind: str) -> Kind:
    """The kind of a header.

    Raises:
        DocumentError: a newer major version, another API, a kind that the cache does not hold.
    """
    if api_version != API_VERSION:
        group, _, version = api_version.partition("/")
        major = version[1:]
        if group == API_GROUP and version[:1] == "v" and major.isdecimal() and int(major) > 1:
            problem = f"{api_version} is newer than this Surefoot reads ({API_VERSION})"
        else:
            problem = f"expected {API_VERSION}, got {api_version}"
        raise DocumentError(problem, path="apiVersion")
    try:
        return Kind(kind)
    except ValueError:
        allowed = ", ".join(Kind)
        raise DocumentError(f"{kind!r} is unknown, allowed: {allowed}", path="kind") from None


def _flat(document: object, where: str) -> Iterator[tuple[str, object]]:
    """The documents of a List or of an array, each with its place; another one is itself."""
    items: object = document
    if isinstance(document, dict) and document.get("kind") == "List":
        items = document.get("items")
        if not isinstance(items, list):
            raise DocumentError("expected a list", path="items", where=where)
    if isinstance(items, list):
        for position, item in enumerate(items, start=1):
            yield f"{where} item {position}", item
    else:
        yield where, document


def _label(body: Any) -> str:
    """`(Node gpu-17)`, as far as the document says so."""
    if not isinstance(body, dict):
        return ""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    parts = [part[:64] for part in (body.get("kind"), name) if isinstance(part, str)]
    return f"({' '.join(parts)})" if parts else ""


def _timed(body: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The body with a time where it leaves it to the cache to say when."""
    undated = kind is Kind.REJECTION and body.get("at") is None
    return {**body, "at": _NO_TIME} if undated else body


def _encode(body: dict[str, Any], kind: Kind) -> bytes:
    kept = {k: v for k, v in body.items() if k not in _ORDER} if kind is Kind.NODE else body
    try:
        encoded = msgspec.json.encode(kept)
    except (TypeError, ValueError, OverflowError) as error:
        raise DocumentError(f"cannot be kept as JSON: {error}") from error
    most = _MAX_BYTES.get(kind, MAX_BYTES)
    if len(encoded) > most:
        raise DocumentError(f"larger than {most // 2**20} MiB")
    return encoded


def _convert(body: Any, shape: type[S]) -> S:
    try:
        return msgspec.convert(body, shape)
    except msgspec.ValidationError as error:
        raise from_validation(str(error)) from error


@cache
def _decoder(kind: Kind) -> msgspec.json.Decoder[schema.Shape]:
    return msgspec.json.Decoder(SHAPES[kind])
