"""A leader's signs over a test's own API server: what they see is what that server holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cluster_objects
import pytest
from kubes import ApiServer
from waiters import Waiter

from extender.config.model import Mode, UnknownNodes
from extender.controller import objects
from extender.controller.cluster.nodes import Mark, mark
from extender.controller.signs.events import Target
from extender.controller.signs.signs import Signs
from extender.kube.fence import Fence
from extender.kube.writing import Writer
from extender.store.errors import StoreError
from scoring.conditions import TYPE
from scoring.learning import FailedPod
from scoring.model import Breaker, GangKey, NodeName, Rejection

Json = dict[str, Any]
HOME = Target(
    api_version="coordination.k8s.io/v1", kind="Lease", namespace="surefoot", name="controller"
)


class ServerView:
    """The cluster as the API server has it this moment."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self.waiting: tuple[Waiter, ...] = ()
        self.failures: list[FailedPod] = []
        self.behind: tuple[Waiter, ...] | None = None
        """What it shows of them however they change; None: it is not behind."""

    def refused(self) -> tuple[Waiter, ...]:
        """Those that the test says, as the server shows them."""
        if self.behind is not None:
            return self.behind
        found = []
        for pod in self.waiting:
            body = self._api.get("pods", f"{pod.namespace}/{pod.name}")
            if body is not None:
                found.append(replace(pod, version=body["metadata"]["resourceVersion"]))
        return tuple(found)

    def take_failed(self) -> Sequence[FailedPod]:
        """Each once."""
        found, self.failures = self.failures, []
        return found

    def marks(self) -> Mapping[NodeName, Mark]:
        """Every node."""
        bodies = [body for (kind, _), body in list(self._api._objects.items()) if kind == "nodes"]
        return {
            NodeName(body["metadata"]["name"]): mark(objects.NODE.decode(json.dumps(body)))
            for body in bodies
        }


class Clock:
    """Time that a test moves on; both clocks show the same."""

    def __init__(self) -> None:
        self.now_s = 1_790_000_000.0

    def __call__(self) -> float:
        """Now."""
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        """Time passes."""
        self.now_s += seconds


class Cache:
    """What the cache was told; it fails while `broken`."""

    def __init__(self) -> None:
        self.rejections: list[tuple[Rejection, int]] = []
        self.breakers: list[dict[str, Breaker]] = []
        self.broken = False

    def reject(self, rejection: Rejection, *, term: int) -> None:
        """Keep a rejection."""
        if self.broken:
            raise StoreError("the cache does not answer")
        self.rejections.append((rejection, term))

    def stand(self, breakers: Mapping[str, Breaker], term: int) -> None:
        """Note what is to stand."""
        self.breakers.append(dict(breakers))


class Stage:
    """Signs, and what surrounds them."""

    def __init__(self, api: ApiServer, kube: Writer, fence: Fence) -> None:
        self.api = api
        self.kube = kube
        self.fence = fence
        self.view = ServerView(api)
        self.clock = Clock()
        self.cache = Cache()
        self.planned: set[GangKey] = set()
        self.told: set[GangKey] = set()

    def signs(self, *, mode: Mode = Mode.ENFORCE, taint: bool = False) -> Signs:
        """Signs that do not lead yet."""
        return Signs(
            view=self.view,
            kube=self.kube,
            cache=self.cache,
            sink=self.cache,
            home=HOME,
            mode=mode,
            unknown_nodes=UnknownNodes.SINGLE,
            taint=taint,
            planned=lambda: self.planned,
            told=lambda: self.told,
            clock=self.clock,
            wall=self.clock,
        )

    def add_nodes(self, *names: str, **taints: Sequence[str]) -> None:
        """Nodes of the cluster; `taints`: keys of those that some have."""
        for name in names:
            body = cluster_objects.node(name)
            body["metadata"]["uid"] = f"uid-{name}"
            if name in taints:
                body["spec"]["taints"] = [
                    {"key": key, "effect": "NoSchedule"} for key in taints[name]
                ]
            self.api.set("nodes", body)

    def wait(self, *pods: Waiter) -> None:
        """Pods that wait."""
        for pod in pods:
            body = cluster_objects.pod(pod.name, node=None, uid=pod.uid)
            self.api.set("pods", body)
        self.view.waiting += pods

    def annotation(self, pod: Waiter) -> str | None:
        """Its wake annotation at the server."""
        body = self.api.get("pods", f"{pod.namespace}/{pod.name}")
        annotations = body["metadata"]["annotations"] if body else {}
        found: str | None = annotations.get("surefoot.dev/wake")
        return found

    def events(self) -> list[Json]:
        """Every event at the server, the oldest first."""
        found = [body for (kind, _), body in list(self.api._objects.items()) if kind == "events"]
        return [json.loads(json.dumps(body)) for body in found]

    def condition(self, name: str) -> Json | None:
        """The condition of a node at the server."""
        body = self.api.get("nodes", name) or {}
        found = [each for each in body["status"]["conditions"] if each["type"] == TYPE]
        return found[0] if found else None

    def taints(self, name: str) -> list[str]:
        """The keys of a node's taints at the server."""
        body = self.api.get("nodes", name) or {}
        return [each["key"] for each in body["spec"].get("taints", ())]


@pytest.fixture
def stage(api: ApiServer, tmp_path: Path) -> Iterator[Stage]:
    """An empty cluster."""
    fence = Fence(7)
    kube = Writer(api.settings(tmp_path), fence)
    yield Stage(api, kube, fence)
    kube.close()
