"""Where objects are at the API server, how it writes times, and what a write tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

GONE: Final = frozenset({404, 409, 422})
"""Answers to a write whose object is gone, is another of the same name, or changed meanwhile: a uid
that differs and a `test` that fails are 422 (seen on 1.34 and 1.37).
"""


def pod(namespace: str, name: str) -> str:
    """One pod."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def node(name: str) -> str:
    """One node."""
    return f"/api/v1/nodes/{quote(name, safe='')}"


def events(namespace: str) -> str:
    """The events of a namespace."""
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/events"


def unchanged(uid: str, version: str) -> list[dict[str, Any]]:
    """How a JSON patch begins that is for an object as it was looked at, and for no other."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
    ]


def rfc3339(unix_s: float) -> str:
    """A moment in whole seconds."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(unix_s: float) -> str:
    """A moment with its microseconds (meta/v1 MicroTime)."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix_s(text: str) -> float | None:
    """The moment that a text names; None: it names none, with its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None
