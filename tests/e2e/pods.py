"""Pods of one test, in a namespace of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from asking import Json
from papers import paper

from e2e.api import Api
from e2e.waiting import eventually
from extender.store.connect import StoreSettings
from extender.store.writer import Writer

SMALL: Final = {"cpu": "100m", "memory": "64Mi"}
GPU: Final = "nvidia.com/gpu"
COMPLETES_AFTER: Final = "surefoot.dev/e2e-completes-after"
"""An annotation that KWOK heeds."""


def pod(
    name: str,
    *,
    gpus: int = 1,
    gang: str | None = None,
    size: int = 2,
    priority: str | None = None,
    scheduler: str = "default-scheduler",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """A pod; with `gang` one of `size` members of a gang of Surefoot's own convention."""
    member = {"surefoot.dev/gang": gang, "surefoot.dev/gang-size": str(size)} if gang else {}
    limits = {**SMALL, GPU: str(gpus)} if gpus else SMALL
    chosen = {"priorityClassName": priority} if priority else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {**member, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "train", "resources": {"limits": limits}}],
            **chosen,
            **spec,
        },
    }


class Pods:
    """What a test does with pods, and asks about them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self._api = api

    def create(self, *bodies: Json) -> list[str]:
        """Create them in this order; their names."""
        return [self._api.create(self.path, each)["metadata"]["name"] for each in bodies]

    def beside(self, body: Json) -> Json:
        """Create another object in their namespace, of a kind whose plural ends in `s`; it as stored."""
        return self._api.create(self._beside(body), body)

    def change(self, body: Json, **spec: Any) -> Json:
        """Change the spec of such an object; it as stored."""
        return self._api.merge(f"{self._beside(body)}/{body['metadata']['name']}", {"spec": spec})

    def remove(self, body: Json, *, wait: bool = True) -> None:
        """Delete such an object; the pods that it owns follow."""
        path = f"{self._beside(body)}/{body['metadata']['name']}"
        self._api.delete(path, propagationPolicy="Background")
        if wait:
            eventually(lambda: self._api.find(path) is None, f"{path} is gone")

    def report(self, store: StoreSettings) -> None:
        """Tell the cache how many GPUs each bound pod holds, as the controller would."""
        writer = Writer(store)
        writer.put(
            [
                paper(
                    "Allocation",
                    node=each["spec"]["nodeName"],
                    pod=name,
                    uid=each["metadata"]["uid"],
                    namespace=self.namespace,
                    resource=GPU,
                    count=int(each["spec"]["containers"][0]["resources"]["limits"][GPU]),
                )
                for name, each in self.all().items()
                if "nodeName" in each["spec"]
            ]
        )
        writer.close()

    def get(self, name: str) -> Json | None:
        """The pod as it is now, or None if it is gone."""
        return self._api.find(f"{self.path}/{name}")

    def all(self) -> dict[str, Json]:
        """Every pod of the namespace by name."""
        return {each["metadata"]["name"]: each for each in self._api.items(self.path)}

    def gang(self, name: str) -> dict[str, Json]:
        """The members of a gang of Surefoot's own convention."""
        found = self._api.items(self.path, labelSelector=f"surefoot.dev/gang={name}")
        return {each["metadata"]["name"]: each for each in found}

    def whole(self, gang: str, size: int) -> dict[str, str]:
        """Wait until `size` members of a gang run; the node of each."""
        __tracebackhide__ = True
        names = eventually(lambda: _full(self.gang(gang), size), f"{gang} has {size} pods")
        return self.running(*names)

    def delete(self, *names: str) -> None:
        """Delete them, and wait until they are gone."""
        for name in names:
            self._api.delete(f"{self.path}/{name}", gracePeriodSeconds="0")
        eventually(lambda: not self.all().keys() & set(names), f"{names} are gone")

    def complete(self, *names: str, after: str = "0s") -> None:
        """Let the processes of running pods end well."""
        for name in names:
            self._api.merge(
                f"{self.path}/{name}", {"metadata": {"annotations": {COMPLETES_AFTER: after}}}
            )

    def fail(self, name: str, reason: str) -> None:
        """Let the kubelet of its node refuse a pod that is bound there."""
        status = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {reason}"}
        self._api.merge(f"{self.path}/{name}/status", {"status": status})

    def ungate(self, name: str, gate: str) -> None:
        """Take one gate away, as whoever put it there would."""
        gates = (self.get(name) or {"spec": {}})["spec"].get("schedulingGates", ())
        left = [each for each in gates if each["name"] != gate]
        self._api.merge(f"{self.path}/{name}", {"spec": {"schedulingGates": left or None}})

    def nodes(self) -> dict[str, str | None]:
        """Where each pod is bound to, None while it is pending."""
        return {name: each["spec"].get("nodeName") for name, each in self.all().items()}

    def nominations(self) -> dict[str, str | None]:
        """Which node each pod is nominated to."""
        return {name: each["status"].get("nominatedNodeName") for name, each in self.all().items()}

    def running(self, *names: str) -> dict[str, str]:
        """Wait until all of them run; the node of each."""
        __tracebackhide__ = True
        eventually(
            lambda: self._all_run(names), lambda: f"{', '.join(names)} run: {self._states()}"
        )
        return {name: node for name, node in self.nodes().items() if node and name in names}

    def refused(self, name: str) -> str:
        """Wait until kube-scheduler gives up on this pod for now; what it says in the condition."""
        return eventually(lambda: self._unschedulable(name), f"{name} is unschedulable")

    def failed_scheduling(self, name: str) -> str:
        """Wait for the pod's event FailedScheduling; its text."""
        return eventually(
            lambda: "\n".join(self.events(name, "FailedScheduling")), f"an event of {name}"
        )

    def events(self, name: str, reason: str) -> list[str]:
        """Texts of the pod's events with this reason."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        return [
            each["note"]
            for each in self._api.items(path)
            if each["regarding"]["name"] == name and each["reason"] == reason
        ]

    def _beside(self, body: Json) -> str:
        kind = f"{body['kind'].lower()}s"
        return f"/apis/{body['apiVersion']}/namespaces/{self.namespace}/{kind}"

    def _all_run(self, names: tuple[str, ...]) -> bool:
        there = self.all()
        return all(name in there and there[name]["status"]["phase"] == "Running" for name in names)

    def _states(self) -> dict[str, str]:
        """What to say of each pod when a test has waited in vain."""
        return {
            name: self._unschedulable(name) or each["status"]["phase"]
            for name, each in self.all().items()
        }

    def _unschedulable(self, name: str) -> str:
        found = self.get(name) or {"status": {}}
        for condition in found["status"].get("conditions", ()):
            if (
                condition["type"] == "PodScheduled"
                and condition["status"] == "False"
                and condition["reason"] != "SchedulingGated"
            ):
                return str(condition["message"])
        return ""


def _full(members: dict[str, Json], size: int) -> tuple[str, ...]:
    return tuple(members) if len(members) == size else ()
