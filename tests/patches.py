"""What an API server makes of a patch, as far as the tests need it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

KEYS: Final[Mapping[str, str]] = {
    "conditions": "type",
    "containers": "name",
    "ownerReferences": "uid",
    "schedulingGates": "name",
    "taints": "key",
}
"""Lists that a strategic merge patch merges, and the field that tells their items apart."""


class TestFailedError(Exception):
    """A `test` that does not hold, or an operation on what is not there."""

    __test__ = False


def json_patch(body: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902: all operations, or none."""
    whole = {"": copy.deepcopy(body)}
    for each in operations:
        parts = [_unescaped(part) for part in each["path"].split("/")]
        at: Any = whole
        try:
            for part in parts[:-1]:
                at = at[int(part)] if isinstance(at, list) else at[part]
            _operate(at, parts[-1], each)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise TestFailedError(f"{each['op']} {each['path']}: {error!r}") from error
    return whole[""]


def _operate(at: Any, last: str, each: dict[str, Any]) -> None:
    key: Any = int(last) if isinstance(at, list) and last != "-" else last
    match each["op"]:
        case "test":
            if at[key] != each["value"]:
                raise TestFailedError(f"test {each['path']}: {at[key]!r} is not {each['value']!r}")
        case "remove":
            del at[key]
        case "replace":
            del at[key]  # it must be there
            _operate(at, last, {**each, "op": "add"})
        case "add" if isinstance(at, list):
            at.insert(len(at) if key == "-" else key, each["value"])
        case "add":
            at[key] = each["value"]
        case other:
            raise TestFailedError(f"{other} is none of the operations used here")


def merge_patch(body: Any, patch: Any, *, strategic: bool = False, name: str = "") -> Any:
    """RFC 7386; `strategic`: with the lists of `KEYS` merged by key."""
    if isinstance(patch, list) and strategic and name in KEYS:
        return _merged(body or [], patch, KEYS[name])
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(body) if isinstance(body, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value, strategic=strategic, name=key)
    return result


def _merged(items: list[Any], patch: list[Any], key: str) -> list[Any]:
    found = {each[key]: each for each in items}
    for each in patch:
        if each.get("$patch") == "delete":
            found.pop(each[key], None)
        else:
            found[each[key]] = merge_patch(found.get(each[key]), each, strategic=True)
    return list(found.values())


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
