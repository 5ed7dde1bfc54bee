"""YAML or JSON text into plain values: what people write, read strictly.

YAML is read with the types of YAML 1.2 (`yes` is text, `12:30:45` is text, times are text), which is
what Kubernetes' users expect; keys that stand twice, merge keys and alias bombs are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
import yaml

from extender.store.errors import DocumentError

MAX_BYTES: Final = 256 * 1024 * 1024
MAX_VALUES: Final = 500_000
"""Values in one document, aliases counted as often as they are used: a plan of 100,000 seats fits."""
MAX_DEPTH: Final = 32


class _Loader(yaml.CSafeLoader):
    """PyYAML's safe loader with the core types of YAML 1.2."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge keys stay plain keys; `_mapping` refuses them."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    made: dict[str, Any] = {}
    yield made
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise DocumentError(f"line {line}: key {key!r} must be text, quote it")
        if key == "<<":
            raise DocumentError(f"line {line}: merge keys (<<) are not supported")
        if key in made:
            raise DocumentError(f"line {line}: key {key!r} stands twice")
        made[key] = loader.construct_object(value_node)


_CORE_TYPES: Final = (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)\Z", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})\Z", "-+0123456789"),
    ("float", r"[-+]?[0-9]{1,18}\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,3})?\Z", "-+0123456789"),
)
_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    tag: constructor
    for tag, constructor in yaml.CSafeLoader.yaml_constructors.items()
    if tag is None or tag.rpartition(":")[2] in ("bool", "null", "int", "float", "str", "seq")
}
for _tag, _pattern, _first in _CORE_TYPES:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(content: bytes) -> list[Any]:
    """The documents of a text: a YAML stream, one JSON value, or one JSON value a line.

    Raises:
        DocumentError: the text is neither, too large, nested too deeply, or repeats a key.
    """
    if len(content) > MAX_BYTES:
        raise DocumentError(f"larger than {MAX_BYTES // 2**20} MiB")
    try:
        documents = _json(content) if content.lstrip()[:1] in (b"{", b"[") else None
        if documents is None:
            documents = list(yaml.load_all(content.decode(), _Loader))
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8 text: {error.reason} at byte {error.start}") from error
    except yaml.YAMLError as error:
        raise DocumentError(f"neither YAML nor JSON: {_told(error)}") from error
    except DocumentError:
        raise
    except (ValueError, KeyError) as error:  # PyYAML lets these out of `!!int x`, `!!bool x`
        raise DocumentError(f"neither YAML nor JSON: {error}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    return documents


def check_size(document: object) -> None:
    """Refuse a document with an absurd number of values or levels.

    Raises:
        DocumentError: saying which.
    """
    left, level = MAX_VALUES, [document]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for value in level:
            children = value.values() if isinstance(value, dict) else value
            if isinstance(children, str | bytes) or not isinstance(children, Collection):
                continue
            left -= len(children)
            if left < 0:
                raise DocumentError(f"more than {MAX_VALUES} values")
            below.extend(children)
        if not below:
            return
        level = below
    raise DocumentError(f"nested deeper than {MAX_DEPTH} levels")


def _json(content: bytes) -> list[Any] | None:
    """One JSON value, or one a line; None: it is neither, and may still be YAML."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return [msgspec.json.decode(content)]
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.Decoder().decode_lines(content)
    return None


def _told(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return str(error).partition("\n")[0]
