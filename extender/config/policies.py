"""The `policy:` section, made from `scoring.policy` field by field, so that the two cannot differ."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, create_model
from pydantic.fields import FieldInfo

from extender.config import durations
from scoring.policy import Policy


def camel(name: str) -> str:
    """`stale_after_s` as users write it: `staleAfter` (a duration carries its own unit)."""
    words = name.removesuffix("_s").split("_")
    return words[0] + "".join(word.capitalize() for word in words[1:])


def _duration_s(value: object) -> object:
    """A duration in text as seconds; anything else is refused where it is checked next."""
    if isinstance(value, str):
        return durations.parse_s(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a duration like 90s or 4h")  # noqa: TRY004 - pydantic wants ValueError
    if value != 0:
        raise ValueError(f"{value} has no unit, write it like {value}s")
    return 0.0


Duration = Annotated[
    float,
    BeforeValidator(_duration_s),
    PlainSerializer(durations.show, when_used="json"),
]
"""Seconds, written as a Go duration."""

STRICT: Final = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Section(BaseModel):
    """A section of the configuration: unknown fields are refused."""

    model_config = STRICT


def _section(kind: type[Any]) -> type[Section]:
    """The section whose fields are those of a dataclass of the policy."""
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {}
    for spec in dataclasses.fields(kind):
        hint = hints[spec.name]
        if dataclasses.is_dataclass(hint):
            section = _section(typing.cast("type[Any]", hint))
            fields[spec.name] = (section, Field(default_factory=section, alias=camel(spec.name)))
            continue
        shown = Duration if spec.name.endswith("_s") else hint
        described = f"{spec.metadata['doc']} Source: {spec.metadata['source']}."
        fields[spec.name] = (
            shown,
            Field(default=spec.default, alias=camel(spec.name), description=described),
        )
    return create_model(kind.__name__, __base__=Section, __doc__=kind.__doc__, **fields)


PolicySection: Final = _section(Policy)


def to_policy(section: Section) -> Policy:
    """The policy that a section describes.

    Raises:
        scoring.policy.PolicyError: where its values cannot work together.
    """
    return typing.cast("Policy", _value(Policy, section))


def _value(kind: type[Any], section: Section) -> Any:
    hints = typing.get_type_hints(kind)
    found = {}
    for spec in dataclasses.fields(kind):
        value = getattr(section, spec.name)
        found[spec.name] = _value(hints[spec.name], value) if isinstance(value, Section) else value
    return kind(**found)


def undotted(raw: Mapping[object, Any]) -> tuple[dict[object, Any], list[str]]:
    """`{"gang.suspect": x}` as `{"gang": {"suspect": x}}`: both ways of writing are accepted.

    Beside it the paths of the fields that both ways name; the first of the two stays.
    """
    nested: dict[object, Any] = {}
    twice: list[str] = []
    for key, value in raw.items():
        head, *rest = key.split(".") if isinstance(key, str) else [key]
        whole = value
        for part in reversed(rest):
            whole = {part: whole}
        _merge(nested, (head,), whole, twice)
    return nested, twice


def _merge(
    into: dict[object, Any], path: tuple[object, ...], value: object, twice: list[str]
) -> None:
    key = path[-1]
    there = into.get(key)
    if isinstance(there, dict) and isinstance(value, dict):
        for inner, each in value.items():
            _merge(there, (*path, inner), each, twice)
    elif key in into:
        twice.append(".".join(map(str, path)))
    else:
        into[key] = dict(value) if isinstance(value, dict) else value


def section_of(spec: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds, where it holds one."""
    for hint in (spec.annotation, *typing.get_args(spec.annotation)):
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            return hint
    return None


def choices(hint: object) -> tuple[str, ...]:
    """The values that an enumerated field allows; empty for any other."""
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return tuple(member.value for member in hint)
    return ()
