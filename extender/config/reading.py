"""The text of a configuration as plain values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import yaml

LARGEST_BYTES: Final = 1 << 20
LARGEST_BITS: Final = 63
"""Of a whole number, without its sign."""
STDIN: Final = Path("-")
"""Stands for standard input."""


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` has one sentence for each mistake."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which notes the keys that stand twice instead of dropping the first."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.twice: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                line = key.start_mark.line + 1
                self.twice.append(f"line {line}: key {key.value!r} stands twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    try:
        number = loader.construct_yaml_int(node)
    except ValueError:
        number = None
    if number is None or number.bit_length() > LARGEST_BITS:
        problem = f"{node.value[:20]!r} is no whole number of {LARGEST_BITS} bits or less"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return number


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)


def read(path: Path) -> tuple[dict[str, Any], list[str]]:
    """What a file says (`STDIN`: standard input), and a sentence for each key that stands twice.

    Raises:
        ConfigError: it cannot be read, or is no mapping in YAML.
    """
    content = _content(path)
    try:
        loader = _Loader(content.decode())
        raw = loader.get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        problem = getattr(error, "problem", None) or _told(error)
        raise ConfigError([f"{path}{where}: not YAML: {problem}"]) from error
    if raw is None:
        return {}, []
    if not isinstance(raw, dict):
        raise ConfigError([f"{path}: must be a mapping with apiVersion, kind, webhook, ..."])
    return raw, [f"{path}: {each}" for each in loader.twice]


def _told(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return "not a text in UTF-8"
        case RecursionError():
            return "nested too deeply"
        case _:
            return str(error).partition("\n")[0]


def _content(path: Path) -> bytes:
    try:
        if path == STDIN:
            data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from error
    if len(data) > LARGEST_BYTES:
        raise ConfigError([f"{path}: larger than 1 MiB, this is no configuration"])
    return data
