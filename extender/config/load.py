"""Reading the configuration: file, then environment, then one list of what is wrong.

A variable `SUREFOOT_WEBHOOK__MAX_SNAPSHOT_AGE` stands for `webhook.maxSnapshotAge` and wins over
the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from extender.config import durations, policies, reading, sentences
from extender.config.model import SurefootConfig
from extender.config.policies import PolicySection
from extender.config.reading import ConfigError
from scoring.policy import Policy, PolicyError
from scoring.xid import rules
from scoring.xid.rules import Rules

__all__ = ["PREFIX", "ConfigError", "leaves", "load", "policy_of", "rules_of", "variable"]

PREFIX: Final = "SUREFOOT_"


def load(path: Path | None, environment: Mapping[str, str]) -> SurefootConfig:
    """The configuration of `path` (None: the defaults; `-`: standard input) with the
    environment's words over it.

    Raises:
        ConfigError: naming every mistake by its path.
    """
    raw, problems = reading.read(path) if path is not None else ({}, [])
    if raw.get("policy") is None:
        raw["policy"] = {}
    if isinstance(raw["policy"], dict):
        raw["policy"], twice = policies.undotted(raw["policy"])
        problems += [f"policy.{field}: is given twice" for field in twice]
    problems += _overlay(raw, environment)
    config, policy = None, raw["policy"]
    try:
        config = SurefootConfig.model_validate(raw)
    except ValidationError as error:
        problems += sentences.of_validation(error)
        policy = _without(policy, (each["loc"][1:] for each in error.errors() if _of_policy(each)))
    problems += _problems_of_policy(policy) or _problems_between_sections(config)
    if config is None or problems:
        raise ConfigError(problems)
    return config


def policy_of(config: SurefootConfig) -> Policy:
    """The policy of a configuration that `load` accepted."""
    return policies.to_policy(config.policy)


def rules_of(config: SurefootConfig) -> Rules:
    """The site's XID rules of a configuration that `load` accepted."""
    return rules.rules_of(config.xid)


def leaves(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every field of the configuration that holds a value, with its path as users write it."""
    for name, spec in model.model_fields.items():
        here = (*path, spec.alias or name)
        inner = policies.section_of(spec)
        if inner is None:
            yield here, spec
        else:
            yield from leaves(inner, here)


def variable(path: tuple[str, ...]) -> str:
    """The environment variable of a field: `webhook.maxSnapshotAge` is
    `SUREFOOT_WEBHOOK__MAX_SNAPSHOT_AGE`.
    """
    return PREFIX + "__".join(re.sub(r"([A-Z])", r"_\1", part).upper() for part in path)


def _overlay(raw: dict[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Lay the variables over `raw`; a sentence for each that stands for no setting."""
    known = {variable(path): (path, spec) for path, spec in leaves(SurefootConfig)}
    problems = []
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or "__" not in name:
            continue
        if name not in known:
            problems.append(f"{name}: no such setting{sentences.meant(name, list(known))}")
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
    return problems


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.strip("[]").split(",") if part.strip()]


def _of_policy(error: Any) -> bool:
    return bool(error["loc"][:1] == ("policy",))


def _without(section: Any, places: Iterable[tuple[Any, ...]]) -> Any:
    """A section without what is wrong by itself, so that the rest can still be judged."""
    for place in places:
        inside = section
        for part in place[:-1]:
            if not isinstance(inside.get(part), dict):
                inside.pop(part, None)
                break
            inside = inside[part]
        else:
            if not place:
                return {}
            inside.pop(place[-1], None)
    return section


def _problems_of_policy(section: Any) -> list[str]:
    """What its values, each allowed by itself, cannot be together or in their bounds."""
    try:
        policies.to_policy(PolicySection.model_validate(section))
    except PolicyError as error:
        return list(sentences.of_policy(error))
    except OverflowError:
        # A text of thousands of digits is a whole number to pydantic.
        return ["policy: one of its whole numbers is larger than any setting allows"]
    except ValidationError:
        return []  # told already, with the rest of the configuration
    return []


def _problems_between_sections(config: SurefootConfig | None) -> list[str]:
    """What sections, each sound by itself, cannot be together."""
    if config is None:
        return []
    silence_s, lease_s = policy_of(config).gang.leader_silence_s, config.controller.lease.duration
    if silence_s > lease_s:
        return []
    silence, lease = durations.show(silence_s), durations.show(lease_s)
    told = f"is not longer than controller.lease.duration ({lease})"
    effect = "so each change of the leader would free gangs"
    return [f"policy.gang.leaderSilence: {silence} {told}, {effect}"]
