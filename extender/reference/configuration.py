"""docs/configuration.md: every field, with what it allows, its default and its variable."""

from __future__ import annotations

import typing
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, PlainSerializer
from pydantic.fields import FieldInfo

from extender.config import durations, load, policies
from extender.config.model import SurefootConfig
from extender.reference.markdown import HEAD, table
from scoring.policy import DEFAULT
from scoring.settings import settings
from scoring.xid.rules import EFFECTS

_INTRODUCTION: Final = """\
# Configuration

One YAML file (`surefoot serve --config FILE`, or the variable `SUREFOOT_CONFIG`). Every field may be
left out. A field that does not exist is an error that names it. `surefoot check-config FILE` checks a
file and prints it with every default filled in.

- The environment wins over the file: `webhook.maxSnapshotAge` is `SUREFOOT_WEBHOOK__MAX_SNAPSHOT_AGE`.
  A list is written `a, b`.
- Durations are written as Go writes them: `300ms`, `90s`, `1m30s`, `4h`.
- Under `policy`, `gang.suspect: true` and `gang: {suspect: true}` say the same.
- The file is read at the start. Restart the process to change it.

```yaml
apiVersion: surefoot.dev/v1alpha1
kind: SurefootConfig
webhook:
  bind: 0.0.0.0:8888
  mode: observe
store:
  url: redis://redis:6379/0
policy:
  gang.suspect: false
```
"""

_POLICY: Final = """\
Thresholds and weights of the judgement. A source of `ours` is a choice of this project; issues are
named by their repository.
"""


def page() -> str:
    """The page of every configuration field."""
    sections: defaultdict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for path, spec in load.leaves(SurefootConfig):
        sections[path[:-1]].append(_field(path, spec))
    heads = ("Field", "Allowed", "Default", "Environment", "Meaning")
    parts = [HEAD + _INTRODUCTION]
    for path, rows in sections.items():
        title = f"`{'.'.join(path)}`" if path else "The file"
        parts.append(f"## {title}\n\n{_about(path)}\n\n{table(heads, rows)}")
    return "\n".join(parts)


def _field(path: tuple[str, ...], spec: FieldInfo) -> tuple[str, ...]:
    variable = load.variable(path)
    return (
        f"`{'.'.join(path)}`",
        _allowed(path, spec),
        _default(path, spec),
        f"`{variable}`" if "__" in variable else "none",
        spec.description or "",
    )


def _about(path: tuple[str, ...]) -> str:
    """The docstring of a section; of the policy, where its sources are."""
    if path == ("policy",):
        return _POLICY.rstrip()
    section: type[BaseModel] = SurefootConfig
    for part in path:
        specs = section.model_fields
        spec = next(each for name, each in specs.items() if part in (each.alias, name))
        section = policies.section_of(spec) or section
    return " ".join((section.__doc__ or "").split())


_BOUNDS: Final[Mapping[tuple[str, ...], tuple[float | None, float | None]]] = {
    ("policy", *map(policies.camel, path.split("."))): (spec.metadata["low"], spec.metadata["high"])
    for path, spec, _ in settings(DEFAULT)
}


def _allowed(path: tuple[str, ...], spec: FieldInfo) -> str:
    hint: Any = spec.annotation
    options = [each for each in typing.get_args(hint) if each is not type(None)]
    if typing.get_origin(hint) is Literal:
        return ", ".join(f"`{option}`" for option in options)
    if words := policies.choices(hint):
        return ", ".join(f"`{word}`" for word in words)
    if typing.get_origin(hint) is tuple:
        return "list of texts"
    if typing.get_origin(hint) is dict:
        key, value = typing.get_args(hint)
        if key is str:
            return f"map of a code to {', '.join(f'`{word}`' for word in EFFECTS)}"
        keys, values = (", ".join(f"`{each.value}`" for each in kind) for kind in (key, value))
        return f"map of {keys} to {values}"
    if hint is bool:
        return "`true`, `false`"
    low, high = _bounds(path, spec)
    if any(isinstance(each, PlainSerializer) for each in spec.metadata):
        return f"duration, {durations.show(low)} or more" if low else "duration"
    if hint not in (int, float):
        return "text"
    kind = "whole number" if hint is int else "number"
    if low is None:
        return kind
    return f"{kind}, {low:g} or more" if high is None else f"{kind}, {low:g} to {high:g}"


def _bounds(path: tuple[str, ...], spec: FieldInfo) -> tuple[float | None, float | None]:
    if path in _BOUNDS:
        return _BOUNDS[path]
    found = {
        name: getattr(each, name)
        for each in spec.metadata
        for name in ("ge", "le")
        if hasattr(each, name)
    }
    return found.get("ge"), found.get("le")


def _default(path: tuple[str, ...], spec: FieldInfo) -> str:
    value: Any = SurefootConfig().model_dump(mode="json", by_alias=True)
    for part in path:
        if value is None:  # in a section that is absent unless somebody writes it
            return "required" if spec.is_required() else "unset"
        value = value[part]
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list):
        return f"`[{', '.join(value)}]`"
    if isinstance(value, dict):
        return f"`{{{', '.join(f'{key}: {each}' for key, each in value.items())}}}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
