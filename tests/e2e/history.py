"""What pods went through, version by version, as the API server tells it: nothing falls between two looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from asking import Json

from e2e.api import Api
from e2e.pods import Pods
from scoring.gangs.rules import GATE


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """One version of a pod, as far as gangs are concerned."""

    gang: str
    """As Surefoot's own label names it; empty: of none."""
    gated: bool
    nominated: str | None
    node: str | None
    finished: bool

    @property
    def holds(self) -> str | None:
        """The node on which it takes room from others."""
        return None if self.finished else self.node or self.nominated


def state_of(pod: Json) -> PodState:
    """What a pod of the API server is."""
    gates = pod["spec"].get("schedulingGates", ())
    status = pod["status"]
    return PodState(
        gang=pod["metadata"].get("labels", {}).get("surefoot.dev/gang", ""),
        gated=any(gate["name"] == GATE for gate in gates),
        nominated=status.get("nominatedNodeName") or None,
        node=pod["spec"].get("nodeName") or None,
        finished=status["phase"] in ("Succeeded", "Failed"),
    )


Scene = Mapping[str, PodState]
"""All pods of a namespace by name, at one moment."""


class History:
    """Of the pods of a namespace, from its making on."""

    def __init__(self, api: Api, pods: Pods) -> None:
        self._api = api
        self._path = pods.path
        self._since: str = ""
        self.restart()

    def restart(self) -> Self:
        """Forget what was: from now on."""
        listed = self._api.get(self._path)
        self._since = listed["metadata"]["resourceVersion"]
        self._first = {each["metadata"]["name"]: state_of(each) for each in listed["items"]}
        return self

    def scenes(self) -> Iterator[Scene]:
        """What was, after each change, until now."""
        now = dict(self._first)
        yield dict(now)
        for event in self._api.events(self._path, self._since):
            name = event["object"]["metadata"]["name"]
            if event["type"] == "DELETED":
                now.pop(name, None)
            else:
                now[name] = state_of(event["object"])
            yield dict(now)

    def of(self, name: str) -> list[PodState]:
        """The different states of one pod, in their order."""
        found: list[PodState] = []
        for scene in self.scenes():
            if name in scene and (not found or found[-1] != scene[name]):
                found.append(scene[name])
        return found
