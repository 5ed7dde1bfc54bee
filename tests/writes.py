"""What an API server makes of a write: optimistic concurrency, subresources, and refusals."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any, Final

from patches import json_patch, merge_patch
from routes import Route

Json = dict[str, Any]
WITH_STATUS: Final = frozenset({"nodes", "pods"})
"""Kinds whose status is written on its own, and on its own only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One request that changes something."""

    verb: str
    route: Route
    content: str
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)

    @property
    def key(self) -> str:
        """Of the object: a new one is named in the body, if at all."""
        if self.verb != "POST":
            return self.route.key
        name = self.json["metadata"].get("name", "")
        return "/".join(filter(None, (self.route.namespace, name)))


class RefusalError(Exception):
    """An answer other than a success."""

    def __init__(self, status: int, told: str) -> None:
        super().__init__(told)
        self.status = status


def written(write: Write, now: Json | None, version: str) -> Json | None:
    """The object after a write; `now` itself where nothing changes, None where it is deleted.

    Raises:
        RefusalError: 404, 409 or 415.
        TestFailedError: a JSON patch does not apply.
    """
    if write.verb == "POST" and write.route.part == "eviction":
        if now is None:
            raise RefusalError(404, f"{write.route.kind} {write.route.name!r} not found")
        wanted = write.json.get("deleteOptions", {}).get("preconditions", {})
        _same(now, wanted.get("uid"), wanted.get("resourceVersion"))
        return None
    if write.verb == "POST":
        if now is not None:
            raise RefusalError(409, f"{write.key} already exists")
        return _created(write, version)
    if now is None:
        raise RefusalError(404, f"{write.route.kind} {write.route.name!r} not found")
    if write.verb == "DELETE":
        wanted = (json.loads(write.body or b"{}") or {}).get("preconditions", {})
        _same(now, wanted.get("uid"), wanted.get("resourceVersion"))
        return None
    made = write.json if write.verb == "PUT" else _patched(write, now)
    metadata = made.get("metadata", {})
    _same(now, metadata.get("uid"), metadata.get("resourceVersion"))
    return _kept(write.route, now, made)


def _created(write: Write, version: str) -> Json:
    made: Json = write.json
    metadata = made["metadata"]
    metadata.setdefault("uid", str(uuid.uuid4()))
    if write.route.namespace:
        metadata.setdefault("namespace", write.route.namespace)
    if "name" not in metadata:
        metadata["name"] = f"{metadata['generateName']}{version}"
    return made


def _patched(write: Write, now: Json) -> Json:
    kind, patch = write.content, write.json
    match kind:
        case "application/json-patch+json":
            made: Json = json_patch(now, patch)
        case "application/merge-patch+json" | "application/strategic-merge-patch+json":
            made = merge_patch(now, patch, strategic="strategic" in kind)
        case _:
            raise RefusalError(415, f"{kind} is no patch")
    return made


def _same(now: Json, uid: str | None, version: str | None) -> None:
    metadata = now["metadata"]
    if uid not in (None, metadata.get("uid")):
        raise RefusalError(409, f"Precondition failed: UID in precondition: {uid}")
    if version not in (None, "", metadata["resourceVersion"]):
        raise RefusalError(409, "the object has been modified; please apply your changes")


def _kept(route: Route, now: Json, made: Json) -> Json:
    """`made`, without what this path does not write."""
    if route.part == "status":
        made = {**now, "status": made.get("status", {})}
    elif route.kind in WITH_STATUS:
        made = {key: value for key, value in made.items() if key != "status"}
        if "status" in now:
            made["status"] = now["status"]
    same = {"resourceVersion": now["metadata"]["resourceVersion"]}
    if "uid" in now["metadata"]:
        same["uid"] = now["metadata"]["uid"]
    return {**made, "metadata": {**made["metadata"], **same}}
