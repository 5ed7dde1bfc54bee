"""What the paths of an API server name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """`/apis/GROUP/VERSION/namespaces/NAMESPACE/KIND/NAME/PART`, as far as it goes."""

    group: str
    version: str = ""
    namespace: str = ""
    kind: str = ""
    name: str = ""
    part: str = ""
    """A subresource: `status`."""

    @property
    def key(self) -> str:
        """`namespace/name`, or `name`."""
        return "/".join(filter(None, (self.namespace, self.name)))


def route(path: str) -> Route:
    """Take a path apart."""
    root, *parts = path.strip("/").split("/")
    group = parts.pop(0) if root == "apis" else ""
    version = parts.pop(0) if parts else ""
    namespace = parts[1] if parts[:1] == ["namespaces"] and len(parts) > 2 else ""
    kind, name, part, *_ = [*(parts[2:] if namespace else parts), "", "", ""]
    return Route(group, version, namespace, kind, name, part)
