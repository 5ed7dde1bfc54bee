"""What Surefoot says to the outside, as the API server has it: touches, events, conditions and taints."""

from __future__ import annotations

from asking import Json

from e2e.api import Api
from e2e.nodes import NODES
from e2e.pods import Pods
from scoring.conditions import TYPE
from scoring.unfit import TAINT

WAKE = "surefoot.dev/wake"
"""The annotation, by the name that users see."""
SUREFOOT = "surefoot"
"""Who Surefoot's events are from."""


def touched(pods: Pods) -> set[str]:
    """The pods that were woken at least once."""
    return {name for name, each in pods.all().items() if _touch(each)}


def touches(api: Api, pods: Pods, name: str, since: str) -> list[str]:
    """Each moment at which a pod was woken, as it was written, in order.

    `since`: a version of the list of pods.
    """
    found: list[str] = []
    for event in api.events(pods.path, since):
        at = _touch(event["object"])
        if event["object"]["metadata"]["name"] == name and at and at not in found:
            found.append(at)
    return found


def _touch(pod: Json) -> str:
    return str(pod["metadata"].get("annotations", {}).get(WAKE, ""))


def told(api: Api, kind: str, name: str, namespace: str = "default", uid: str = "") -> list[Json]:
    """Surefoot's events about one object, as core/v1 has them, the oldest first.

    With a `uid` not those about an earlier object of the same name.
    """
    found = [
        each
        for each in api.items(f"/api/v1/namespaces/{namespace}/events")
        if each["source"].get("component") == SUREFOOT
        and (each["involvedObject"]["kind"], each["involvedObject"]["name"]) == (kind, name)
        and each["involvedObject"].get("uid", "").startswith(uid)
    ]
    return sorted(found, key=lambda each: (each["firstTimestamp"], each["metadata"]["name"]))


def told_of_node(api: Api, name: str) -> list[Json]:
    """Surefoot's events about a node that is there."""
    return told(api, "Node", name, uid=api.get(f"{NODES}/{name}")["metadata"]["uid"])


def condition(api: Api, node: str) -> Json | None:
    """The condition `GpuHealthDegraded` of a node; None: it has none."""
    for each in api.get(f"{NODES}/{node}")["status"].get("conditions", ()):
        if each["type"] == TYPE:
            found: Json = each
            return found
    return None


def others(api: Api, node: str) -> list[Json]:
    """All other conditions of a node."""
    conditions = api.get(f"{NODES}/{node}")["status"]["conditions"]
    return [each for each in conditions if each["type"] != TYPE]


def status(api: Api, node: str) -> str:
    """What the condition says: True, False or Unknown; empty: there is none."""
    found = condition(api, node)
    return "" if found is None else str(found["status"])


def tainted(api: Api) -> set[str]:
    """The nodes that carry Surefoot's taint."""
    return {
        each["metadata"]["name"]
        for each in api.items(NODES)
        if any(taint["key"] == TAINT.key for taint in each["spec"].get("taints", ()))
    }
