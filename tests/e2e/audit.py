"""What the API server refused for lack of rights, by its own audit log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        # They may do everything, or are the API server itself.
        {"level": "None", "userGroups": ["system:masters"]},
        {"level": "None", "users": ["system:apiserver", "system:anonymous"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One request that RBAC forbade."""

    user: str
    verb: str
    resource: str
    namespace: str

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.user} may not {self.verb} {self.resource}{where}"


class Audit:
    """Reads the log on, from where it was left."""

    def __init__(self, directory: Path) -> None:
        self.policy = directory / "audit-policy.yaml"
        self.log = directory / "audit.log"
        self.policy.write_text(yaml.safe_dump(POLICY))
        self._read_bytes = 0

    def refusals(self) -> list[Refusal]:
        """Each kind of refusal since the last call, once.

        A 403 of admission, as in a namespace that ends, is none: only authorization counts.
        """
        with self.log.open("rb") as log:
            log.seek(self._read_bytes)
            fresh = log.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        found = (_refusal(json.loads(line)) for line in whole.splitlines() if b'"forbid"' in line)
        return list(dict.fromkeys(each for each in found if each is not None))


def _refusal(event: Any) -> Refusal | None:
    if event.get("annotations", {}).get("authorization.k8s.io/decision") != "forbid":
        return None
    target = event.get("objectRef", {})
    kind = "/".join(filter(None, (target.get("resource"), target.get("subresource"))))
    group = target.get("apiGroup")
    return Refusal(
        user=event["user"]["username"],
        verb=event["verb"],
        resource=f"{kind}.{group}" if kind and group else kind or event["requestURI"],
        namespace=target.get("namespace", ""),
    )
