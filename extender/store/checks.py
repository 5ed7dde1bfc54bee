"""What the types of documents cannot say, checked for every kind in the same words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from difflib import get_close_matches
from enum import Enum
from functools import cache
from typing import TypeVar, cast

from extender.store.errors import DocumentError
from scoring.model import Health

E = TypeVar("E", bound=Enum)


def choice(names: type[E], word: str | None, path: str, default: E | None = None) -> E:
    """The member of `names` that a document calls `word`; Health goes by name, others by value.

    Raises:
        DocumentError: it is none of them, with the likely one.
    """
    if word is None and default is not None:
        return default
    members = _members(names)
    try:
        return cast("E", members[word or ""])
    except KeyError:
        near = get_close_matches(word or "", members, n=1)
        hint = f", did you mean {near[0]}?" if near else ""
        problem = f"{word!r} is unknown, allowed: {', '.join(members)}{hint}"
        raise DocumentError(problem, path=path) from None


@cache
def _members(names: type[Enum]) -> Mapping[str, Enum]:
    return {member.name if names is Health else member.value: member for member in names}


def unique(path: str, field: str, values: Iterable[Hashable]) -> None:
    """See to it that no value of a list stands twice.

    Raises:
        DocumentError: naming both places.
    """
    first: dict[Hashable, int] = {}
    for at, value in enumerate(values):
        if value in first:
            where = f"{path}[{at}].{field}".rstrip(".")
            raise DocumentError(f"{value!r} stands already at {path}[{first[value]}]", path=where)
        first[value] = at
