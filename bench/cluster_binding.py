"""Pods between their creation and their binding, as the API server and kube-scheduler tell of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from asking import Json
from cluster_stage import in_parallel
from e2e.api import Api
from e2e.processes import LAST_WORDS
from e2e.schedulers import Scheduler
from e2e.waiting import eventually

NAMESPACE: Final = "default"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS: Final = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
GATE: Final = {"name": "surefoot.dev/gang"}

patiently = partial(eventually, within_s=300.0, pause_s=0.25)
"""Each look costs the API server a little of what is measured."""


class Binding:
    """Pods of one namespace that holds nothing else, bound by one kube-scheduler at a time."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def create(self, bodies: Sequence[Json]) -> None:
        """Create all of them, in parallel."""
        in_parallel(partial(self._api.create, PODS), bodies)

    def wait_until_bound(self, scheduler: Scheduler) -> None:
        """Return once no pod is without a node."""
        patiently(
            lambda: not self._api.items(PODS, fieldSelector="spec.nodeName=", limit="1"),
            lambda: f"all pods are bound; {scheduler.process.text()[-LAST_WORDS:]}",
        )

    def bound_s(self, names: Collection[str]) -> float:
        """When the last of them was, by kube-scheduler's own events; in seconds of the epoch."""

        def complete() -> list[Json] | None:
            # Others may be there: of pods that were deleted while they were bound.
            found = [
                event
                for event in self._api.items(EVENTS, fieldSelector="reason=Scheduled")
                if event["regarding"]["name"] in names
            ]
            return found if len(found) == len(names) else None

        events = patiently(complete, f"{len(names)} events of bound pods") or []
        return max(datetime.fromisoformat(event["eventTime"]).timestamp() for event in events)

    def nodes(self) -> Mapping[str, str]:
        """Where each pod is bound."""
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"] for each in self._api.items(PODS)
        }

    def clear(self) -> None:
        """Delete them and all events, and wait until the pods are gone."""
        self._api.delete(PODS, gracePeriodSeconds="0")
        patiently(lambda: not self._api.items(PODS, limit="1"), "no pods are left")
        self._api.delete(EVENTS)
