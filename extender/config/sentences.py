"""What pydantic and the policy find wrong, as `path: what is wrong, what is allowed`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from extender.config import policies
from extender.config.model import SurefootConfig
from scoring.policy import PolicyError

_Limits = Mapping[str, Any]
_ALLOWED: Final[Mapping[str, Callable[[_Limits], str]]] = {
    **dict.fromkeys(("bool_type", "bool_parsing"), lambda _: "true or false"),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "int_parsing_size"),
        lambda _: "a whole number",
    ),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), lambda _: "a number"),
    "string_type": lambda _: "a text",
    "string_too_short": lambda _: "a text that is not empty",
    **dict.fromkeys(("tuple_type", "list_type"), lambda _: "a list of texts"),
    "too_short": lambda limits: f"a list of {limits['min_length']} or more",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), lambda _: "a mapping"),
    "greater_than_equal": lambda limits: f"{limits['ge']} or more",
    "less_than_equal": lambda limits: f"{limits['le']} or less",
}
"""What is allowed, by pydantic's name of the error."""
_LONGEST: Final = 60
"""Characters of a value that are quoted."""


def of_validation(error: ValidationError) -> Iterator[str]:
    """One sentence or more for each error of pydantic."""
    for each in error.errors():
        yield from _sentences(each)


def of_policy(error: PolicyError) -> Iterator[str]:
    """One sentence for each problem of a policy, with the names that users write."""
    for path, problem in error.problems:
        shown = re.sub(r"[a-z_.]+_[a-z_]+", lambda name: _camel_path(name[0]), problem)
        yield f"policy.{_camel_path(path)}: {shown}"


def meant(word: str, words: list[str]) -> str:
    """`, did you mean X?` where some of `words` is close; else which there are, if few."""
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f", did you mean {close[0]}?"
    return f", allowed is {', '.join(words)}" if 0 < len(words) <= 16 else ""


def _sentences(error: Any) -> list[str]:
    path = ".".join(str(part) for part in error["loc"]) or "configuration"
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        siblings = _siblings(error["loc"][:-1])
        return [f"{path}: no such field{meant(str(error['loc'][-1]), siblings)}"]
    if kind in ("enum", "literal_error"):
        allowed = re.findall(r"'([^']*)'", context.get("expected", ""))
        close = difflib.get_close_matches(str(error["input"]), allowed, n=1)
        hint = f", did you mean {close[0]}?" if close else ""
        shown = _shown(error["input"])
        return [f"{path}: {shown} is not allowed, allowed is {', '.join(allowed)}{hint}"]
    if kind == "missing":
        return [f"{path}: missing"]
    if kind in _ALLOWED:
        shown, wanted = _shown(error["input"]), _ALLOWED[kind](context)
        return [f"{path}: {shown} is not allowed, allowed is {wanted}"]
    # A validator of our own may find several things wrong, one a line.
    told = error["msg"].removeprefix("Value error, ").splitlines()
    return [f"{path}: {line[0].lower() + line[1:]}" for line in told]


def _shown(value: object) -> str:
    """A value as people wrote it; of a list or a mapping only that it is one."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _camel_path(path: str) -> str:
    return ".".join(policies.camel(part) for part in path.split("."))


def _siblings(loc: tuple[Any, ...]) -> list[str]:
    model: type[BaseModel] | None = SurefootConfig
    for part in loc:
        if model is None:
            return []
        spec = next((s for n, s in model.model_fields.items() if part in (s.alias, n)), None)
        model = policies.section_of(spec) if spec else None
    return [spec.alias or name for name, spec in model.model_fields.items()] if model else []
