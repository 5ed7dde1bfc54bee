"""Where objects are at the API server, and how it writes times."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
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


def rfc3339(unix_s: float) -> str:
    """A moment in whole seconds."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix_s(text: str) -> float | None:
    """The moment that a text names; None: it names none, with its zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None
