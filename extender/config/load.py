"""Reading the configuration: file, then environment, then one list of what is wrong.

A variable `SUREFOOT_WEBHOOK__MAX_SNAPSHOT_AGE` stands for `webhook.maxSnapshotAge` and wins over
the file.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from extender.config import policies
from extender.config.model import SurefootConfig
from scoring.policy import Policy, PolicyError
from scoring.xid import rules
from scoring.xid.rules import Rules

PREFIX: Final = "SUREFOOT_"
LARGEST_BYTES: Final = 1 << 20


class ConfigError(ValueError):
    """A configuration that cannot be used; `problems` has one sentence for each mistake."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def load(path: Path | None, environment: Mapping[str, str]) -> SurefootConfig:
    """The configuration of `path` (None: the defaults) with the environment's words over it.

    Raises:
        ConfigError: naming every mistake by its path.
    """
    raw = _read(path) if path is not None else {}
    try:
        raw["policy"] = policies.undotted(raw.get("policy") or {})
    except ValueError as error:
        raise ConfigError([f"policy.{error}"]) from error
    _overlay(raw, environment)
    try:
        config = SurefootConfig.model_validate(raw)
        policies.to_policy(config.policy)
    except ValidationError as error:
        raise ConfigError([_sentence(each) for each in error.errors()]) from error
    except PolicyError as error:
        problem = re.sub(r"[a-z_.]+_[a-z_]+", lambda name: _camel_path(name[0]), error.problem)
        raise ConfigError([f"policy.{_camel_path(error.path)}: {problem}"]) from error
    return config


def policy_of(config: SurefootConfig) -> Policy:
    """The policy of a configuration that `load` accepted."""
    return policies.to_policy(config.policy)


def rules_of(config: SurefootConfig) -> Rules:
    """The site's XID rules of a configuration that `load` accepted."""
    return rules.rules_of(config.xid)


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise ConfigError([f"{path}: larger than 1 MiB, this is no configuration"])
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        problem = getattr(error, "problem", None) or "not a text in UTF-8"
        raise ConfigError([f"{path}{where}: not YAML: {problem}"]) from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError([f"{path}: must be a mapping with apiVersion, kind, webhook, ..."])
    return raw


def leaves(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every field of the configuration that holds a value, with its path as users write it."""
    for name, spec in model.model_fields.items():
        here = (*path, spec.alias or name)
        inner = section_of(spec)
        if inner is None:
            yield here, spec
        else:
            yield from leaves(inner, here)


def section_of(spec: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds, where it holds one."""
    for hint in (spec.annotation, *typing.get_args(spec.annotation)):
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            return hint
    return None


def variable(path: tuple[str, ...]) -> str:
    """The environment variable of a field: `webhook.maxSnapshotAge` is
    `SUREFOOT_WEBHOOK__MAX_SNAPSHOT_AGE`.
    """
    return PREFIX + "__".join(re.sub(r"([A-Z])", r"_\1", part).upper() for part in path)


def _overlay(raw: dict[str, Any], environment: Mapping[str, str]) -> None:
    known = {variable(path): (path, spec) for path, spec in leaves(SurefootConfig)}
    problems = []
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        if name not in known:
            problems.append(f"{name}: no such setting{_meant(name, list(known))}")
            continue
        path, spec = known[name]
        section: Any = raw
        for part in path[:-1]:
            if section.get(part) is None:
                section[part] = {}
            section = section[part]
            if not isinstance(section, dict):
                break
        else:
            section[path[-1]] = _listed(text) if "tuple" in str(spec.annotation) else text
    if problems:
        raise ConfigError(problems)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.strip("[]").split(",") if part.strip()]


def _camel_path(path: str) -> str:
    return ".".join(policies.camel(part) for part in path.split("."))


def _sentence(error: Any) -> str:
    """`path: what is wrong, what is allowed, did you mean` of one pydantic error."""
    path = ".".join(str(part) for part in error["loc"]) or "configuration"
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        siblings = _siblings(error["loc"][:-1])
        return f"{path}: no such field{_meant(str(error['loc'][-1]), siblings)}"
    if kind in ("enum", "literal_error"):
        allowed = re.findall(r"'([^']*)'", context.get("expected", ""))
        close = difflib.get_close_matches(str(error["input"]), allowed, n=1)
        meant = f", did you mean {close[0]}?" if close else ""
        return f"{path}: {error['input']!r} is not allowed, allowed is {', '.join(allowed)}{meant}"
    if kind == "missing":
        return f"{path}: missing"
    message = error["msg"].removeprefix("Value error, ")
    return f"{path}: {message[0].lower() + message[1:]}"


def _siblings(loc: tuple[Any, ...]) -> list[str]:
    model: type[BaseModel] | None = SurefootConfig
    for part in loc:
        if model is None:
            return []
        spec = next((s for n, s in model.model_fields.items() if part in (s.alias, n)), None)
        model = section_of(spec) if spec else None
    return [spec.alias or name for name, spec in model.model_fields.items()] if model else []


def _meant(word: str, words: list[str]) -> str:
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f", did you mean {close[0]}?"
    return f", allowed is {', '.join(words)}" if 0 < len(words) <= 16 else ""
